"""`pymc.sample` of a model with trees, interrupted only between two steps.

An interrupt during PyMC's compiled log-probability, or while a draw is recorded, may become a
`SystemError` that loses the previous draws; and numba's compiler calls Python functions that must
not raise. Interrupts are therefore deferred, and handled between two iterations, and while
`pymc.sample` waits for draws of other processes. These have received the interrupt as well and may
have ended, so sending to them fails.
"""

import time
import traceback
from contextlib import closing
from multiprocessing.connection import wait

import pymc as pm
import pymc.sampling.mcmc
from pymc.sampling.parallel import ProcessAdapter
from pymc.step_methods.compound import CompoundStep

from pymc_trees.core.interrupts import PATIENCE, deferred_interrupts, interrupts_wait
from pymc_trees.distributions.tree_variable import tree_variables
from pymc_trees.hooks.wrap import SAMPLE, arguments, wrap
from pymc_trees.step_methods.base import ForestStep
from pymc_trees.step_methods.noise_scale import NoiseScale
from pymc_trees.step_methods.rjhmc import RJHMC
from pymc_trees.step_methods.split_weights import SplitWeights


def defer_around_draws() -> None:
    """Wrap `pymc.sample` and, within it, the loops that make draws or wait for them."""
    wrap(SAMPLE, "sample", _prepare_and_finish)
    wrap([pymc.sampling.mcmc], "_sample_many", _start)
    wrap([pymc.sampling.mcmc], "_iter_sample", _iterate)
    wrap([ProcessAdapter], "_send", _send)
    wrap([ProcessAdapter], "recv_draw", _receive)
    wrap([CompoundStep], "step", _step)


def _prepare_and_finish(original, *args, **kwargs):
    model = pm.modelcontext(arguments(original, args, kwargs).get("model"))
    if not tree_variables(model):
        return original(*args, **kwargs)
    # PyMC calls `competence` without the model, which must therefore be on the context stack.
    with model, deferred_interrupts():
        return original(*args, **kwargs)


def _answer() -> None:
    if interrupts_wait():
        with deferred_interrupts() as held:
            held.answer()


def _start(original, *args, **kwargs):
    _answer()
    return original(*args, **kwargs)


def _iterate(original, *args, **kwargs):
    with closing(original(*args, **kwargs)) as iterations:
        for stats in iterations:
            _answer()
            yield stats


def _receive(original, processes, timeout=3600):
    if not interrupts_wait() or not processes:
        return original(processes, timeout)
    pipes = [process._msg_pipe for process in processes]
    until = time.monotonic() + timeout
    with deferred_interrupts() as held:
        held.answer()
        while not wait(pipes, PATIENCE) and time.monotonic() < until:
            held.answer()
        try:
            return original(processes, timeout)
        except (EOFError, OSError):
            held.answer()
            raise


def _send(original, self, message, *args):
    if not interrupts_wait():
        return original(self, message, *args)
    with deferred_interrupts() as held:
        try:
            return original(self, message, *args)
        except Exception as error:
            # Python 3.12.1 crashes if objects of these frames are left to garbage collection
            # (python/cpython issue 111049).
            _clear_frames(error)
            if message != "abort":  # it would leave other processes running
                held.answer()
            raise


def _clear_frames(error):
    while error is not None:
        traceback.clear_frames(error.__traceback__)
        error = error.__context__


def _step(original, self, point):
    if not any(
        isinstance(method, ForestStep | RJHMC | SplitWeights | NoiseScale)
        for method in self.methods
    ):
        return original(self, point)
    with deferred_interrupts():
        return original(self, point)
