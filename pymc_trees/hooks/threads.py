"""Cores not used by the chains of `pymc.sample` run threads of its step methods."""

from contextvars import ContextVar

import pymc.sampling.mcmc

from pymc_trees.core.compile.threads import available_threads, give_threads
from pymc_trees.hooks.wrap import SAMPLE, arguments, wrap
from pymc_trees.inference.chains.runner import RUNNER
from pymc_trees.processes import shares_cores
from pymc_trees.step_methods.sweep import SweepStep

_cores: ContextVar[int | None] = ContextVar("cores of a run, where they were given", default=None)


def share_cores() -> None:
    """Wrap `pymc.sample`, and the loops in which it runs chains."""
    wrap(SAMPLE, "sample", _note_cores)
    wrap([pymc.sampling.mcmc], "_mp_sample", _in_processes)
    wrap([pymc.sampling.mcmc], "_sample_many", _one_by_one)


def _note_cores(original, *args, **kwargs):
    token = _cores.set(arguments(original, args, kwargs).get("cores"))
    try:
        return original(*args, **kwargs)
    finally:
        _cores.reset(token)


def _in_processes(original, **given):
    _leave(given["step"], min(given["chains"], given["cores"]))
    return original(**given)


def _one_by_one(original, **given):
    runner = RUNNER.get()
    if runner is None:
        _leave(given["step"], 1)
    else:
        _tell(given["step"], None if shares_cores(runner.cores) else 1)
    try:
        return original(**given)
    finally:
        give_threads(None)


def _leave(step, at_once: int) -> None:
    """Set the number of threads of each step method, given the number of concurrent chains."""
    cores = _cores.get() or available_threads()
    _tell(step, max(cores // at_once, 1))


def _tell(step, threads_left: int | None) -> None:
    for one in getattr(step, "methods", [step]):
        if isinstance(one, SweepStep):
            one.threads_left = threads_left
