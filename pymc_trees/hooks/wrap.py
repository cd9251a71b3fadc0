"""Wrap a function of PyMC: once, under its own name, in every module that exports it."""

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import pymc as pm
import pymc.sampling.mcmc

SAMPLE = [pm, pymc.sampling, pymc.sampling.mcmc]
"""Modules in which users find `pymc.sample`."""

WRAPPED: dict[str, Callable] = {}
"""Original functions by their full names."""

_MARK = "pymc_trees_wrappers"


def wrap(places: Sequence[Any], name: str, wrapper: Callable) -> None:
    """Replace a function of PyMC by a wrapper, unless it is already wrapped.

    Parameters
    ----------
    places : sequence of modules or classes
        Places of the function; the original is taken from the last.
    name : str
        Name of the function. Nothing happens if this version of PyMC does not have it.
    wrapper : callable
        Called instead of the function, with the function as its first argument.
    """
    original = getattr(places[-1], name, None)
    if original is None or wrapper in getattr(original, _MARK, ()):
        return

    @functools.wraps(original)
    def wrapped(*args, **kwargs):
        return wrapper(original, *args, **kwargs)

    setattr(wrapped, _MARK, (*getattr(original, _MARK, ()), wrapper))
    first = inspect.unwrap(original)
    WRAPPED[f"{first.__module__}.{first.__qualname__}"] = first
    is_static = isinstance(inspect.getattr_static(places[-1], name), staticmethod)
    for place in places:
        setattr(place, name, staticmethod(wrapped) if is_static else wrapped)


def arguments(function: Callable, args: tuple, kwargs: dict) -> dict[str, Any]:
    """Arguments of a call by the names of the function's parameters."""
    return inspect.signature(function).bind_partial(*args, **kwargs).arguments
