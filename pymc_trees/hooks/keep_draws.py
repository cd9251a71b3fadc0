"""Draws of runs that end with an error: a forest that outgrew its capacity, or a lost chain.

PyMC returns its draws when a run is interrupted, but not when it ends with an error. A wrapper
around its sampling loops attaches the draws to the error.
"""

import time

import pymc.sampling.mcmc
from pymc.backends.base import _choose_chains
from pymc.backends.ndarray import NDArray

from pymc_trees.distributions.capacity import ForestTooLargeError
from pymc_trees.distributions.tree_variable import tree_variables
from pymc_trees.hooks.wrap import arguments, wrap
from pymc_trees.inference.chains.left import result_so_far

LOOPS = ("_sample_many", "_mp_sample")
"""Functions of `pymc.sampling.mcmc` that run chains: in this process, in others."""


class ChainLostError(RuntimeError):
    """The process of a chain ended without an error message.

    Attributes
    ----------
    idata : xarray.DataTree or None
        As of `ForestTooLargeError`.
    """

    idata = None


LOST = "The process of a chain ended without a word: it was killed, or the memory did not suffice."


def keep_draws() -> None:
    """Wrap the sampling loops of PyMC."""
    for name in LOOPS:
        wrap([pymc.sampling.mcmc], name, _keeping)


def _keeping(loop, *args, **kwargs):
    start = time.time()
    try:
        return loop(*args, **kwargs)
    except Exception as error:
        given = arguments(loop, args, kwargs)
        given |= given.pop("kwargs", {})
        reason = _reason(error, given["model"])
        if reason is None:
            raise
        idata = _draws_so_far(given, time.time() - start)
        where = "" if idata is None else " The draws made before are error.idata."
        raised = type(reason)(f"{reason}{where}")
        raised.idata = idata
        raise raised from error


def _reason(error: BaseException | None, model) -> ForestTooLargeError | ChainLostError | None:
    if isinstance(error, EOFError | ConnectionError):  # error of the pipe to another process
        return ChainLostError(LOST) if tree_variables(model) else None
    # Another process's error arrives as the cause of PyMC's.
    while error is not None and not isinstance(error, ForestTooLargeError):
        error = error.__cause__
    return error


def _draws_so_far(given, seconds):
    traces, tune = given["traces"], given["tune"]
    if not all(isinstance(trace, NDArray) for trace in traces):
        return None  # the draws are in the user's own storage
    longest = max(len(trace) for trace in traces)
    if longest == 0:
        return None
    discard = given["discard_tuned_samples"] and longest > tune
    idata = result_so_far(traces, tune, seconds, discard, given["model"])
    # PyMC keeps the chains that together have most draws, and numbers them from zero.
    kept = sorted(trace.chain for trace in _choose_chains(traces, tune if discard else 0)[0])
    return idata.map_over_datasets(
        lambda group: group.assign_coords(chain=kept) if "chain" in group.dims else group
    )
