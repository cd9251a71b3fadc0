"""Draws from the prior and predictions, each kept from interrupts.

PyMC compiles one function that makes a draw and calls it again and again. Where the graph holds a
forest or a soft tree a draw may take long, and an interrupt in its middle could end the process.
"""

import functools
import inspect

import pymc.sampling.forward
from pytensor.graph.traversal import ancestors

from pymc_trees.core.interrupts import deferred_interrupts
from pymc_trees.distributions.ops.forest_rv import is_forest
from pymc_trees.distributions.ops.soft_tree_rv import is_soft_tree

COMPILERS = ("compile", "compile_forward_sampling_function")
"""Functions of `pymc.sampling.forward` that make what a draw is made with."""


class DeferredDraw:
    """A compiled function whose calls an interrupt cannot cut short."""

    def __init__(self, function):
        self._function = function

    def __call__(self, *args, **kwargs):
        """Call the function."""
        with deferred_interrupts():
            return self._function(*args, **kwargs)

    def __getattr__(self, name):
        return getattr(self._function, name)


def defer_in_draws() -> None:
    """Wrap the compilers of PyMC's forward sampling, once each."""
    for name in COMPILERS:
        compiler = getattr(pymc.sampling.forward, name, None)
        if compiler is not None and not getattr(compiler, "defers_interrupts", False):
            setattr(pymc.sampling.forward, name, _deferring(compiler))


def _deferring(compiler):
    signature = inspect.signature(compiler)

    @functools.wraps(compiler)
    def run(*args, **kwargs):
        made = compiler(*args, **kwargs)
        outputs = signature.bind(*args, **kwargs).arguments["outputs"]
        outputs = outputs if isinstance(outputs, list | tuple) else [outputs]
        if not any(is_forest(v) or is_soft_tree(v) for v in ancestors(outputs)):
            return made
        if isinstance(made, tuple):
            return (DeferredDraw(made[0]), *made[1:])
        return DeferredDraw(made)

    run.defers_interrupts = True  # type: ignore[attr-defined]
    return run
