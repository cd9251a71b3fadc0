"""Runs that an error ends, and the draws made before: a forest outgrew its room, a chain is lost.

What PyMC has drawn it gives back when a run is interrupted, but not when an error ends it. A
wrapper around its sampling loops hands the draws over with the error.
"""

import functools
import inspect
import time

import pymc.sampling.mcmc
from pymc.backends.ndarray import NDArray

from pymc_trees.distributions.capacity import ForestTooLargeError
from pymc_trees.distributions.ops.forest_rv import is_forest
from pymc_trees.distributions.ops.soft_tree_rv import is_soft_tree

LOOPS = ("_sample_many", "_mp_sample")
"""Functions of `pymc.sampling.mcmc` that run chains: in this process, in others."""


class ChainLostError(RuntimeError):
    """The process of a chain ended without a word.

    Attributes
    ----------
    idata : xarray.DataTree or None
        As of `ForestTooLargeError`.
    """

    idata = None


LOST = "The process of a chain ended without a word: it was killed, or the memory did not suffice."


def keep_draws() -> None:
    """Wrap the sampling loops of PyMC, once each."""
    for name in LOOPS:
        loop = getattr(pymc.sampling.mcmc, name, None)
        if loop is not None and not getattr(loop, "keeps_draws", False):
            setattr(pymc.sampling.mcmc, name, _keeping(loop))


def _keeping(loop):
    @functools.wraps(loop)
    def run(*args, **kwargs):
        start = time.time()
        try:
            return loop(*args, **kwargs)
        except Exception as error:
            arguments = inspect.signature(loop).bind(*args, **kwargs).arguments
            arguments |= arguments.pop("kwargs", {})
            reason = _reason(error, arguments["model"])
            if reason is None:
                raise
            idata = _draws_so_far(arguments, time.time() - start)
            where = "" if idata is None else " The draws made before are error.idata."
            raised = type(reason)(f"{reason}{where}")
            raised.idata = idata
            raise raised from error

    run.keeps_draws = True  # type: ignore[attr-defined]
    return run


def _reason(error: BaseException | None, model) -> ForestTooLargeError | ChainLostError | None:
    if isinstance(error, EOFError | ConnectionError):  # of the pipe to another process
        trees = any(is_forest(rv) or is_soft_tree(rv) for rv in model.free_RVs)
        return ChainLostError(LOST) if trees else None
    # Another process's error arrives as the cause of PyMC's.
    while error is not None and not isinstance(error, ForestTooLargeError):
        error = error.__cause__
    return error


def _draws_so_far(arguments, seconds):
    traces, tune = arguments["traces"], arguments["tune"]
    if not all(isinstance(trace, NDArray) for trace in traces):
        return None  # a storage of the user's own holds the draws
    longest = max(len(trace) for trace in traces)
    if longest == 0:
        return None
    return pymc.sampling.mcmc._sample_return(
        run=None,
        traces=traces,
        tune=tune,
        t_sampling=seconds,
        discard_tuned_samples=arguments["discard_tuned_samples"] and longest > tune,
        compute_convergence_checks=False,
        return_inferencedata=True,
        keep_warning_stat=False,
        idata_kwargs={},
        model=arguments["model"],
        quiet=True,
    )
