"""States of step methods, kept with the draws of models with trees, so that `resume` can go on.

In this process they are read when a chain ends, or an interrupt ends it, between two of its
iterations. From a process of `pymc.sample` the state comes with the statistics of the last draw.
"""

import warnings
from contextvars import ContextVar

import pymc.sampling.mcmc
import xarray as xr
from pymc.sampling.parallel import ProcessAdapter, _Process

from pymc_trees.distributions.tree_variable import tree_variables
from pymc_trees.hooks.register import STEPS
from pymc_trees.hooks.wrap import arguments, wrap
from pymc_trees.inference.chains.left import (
    STATE,
    is_tuning,
    note_states,
    state_of,
    states_alone,
)

STOPPED_TUNING = (
    "The run was stopped while it tuned: the result holds no draws, and the states of the chains "
    "that had begun, from which pymc_trees.resume goes on."
)

_arrived: ContextVar[dict | None] = ContextVar("states from other processes", default=None)


def keep_states() -> None:
    """Wrap the loops of PyMC and what makes the result."""
    wrap([pymc.sampling.mcmc], "_iter_sample", _iterate)
    wrap([pymc.sampling.mcmc], "_mp_sample", _collect)
    wrap([pymc.sampling.mcmc], "_sample_return", _note)
    wrap([ProcessAdapter], "recv_draw", _receive)
    wrap([_Process], "_start_loop", _loop)


def _iterate(original, *args, **kwargs):
    given = arguments(original, args, kwargs)
    try:
        yield from original(*args, **kwargs)
    except Exception:  # in the middle of an iteration; interrupts come between two
        raise
    except BaseException:
        _keep(given)
        raise
    else:
        _keep(given)


def _keep(given) -> None:
    if _has_trees(given.get("model")):
        setattr(given["trace"], STATE, state_of(given["step"]))


def _has_trees(model) -> bool:
    return model is not None and bool(tree_variables(model))


def _note(original, *args, **kwargs):
    given = arguments(original, args, kwargs)
    traces, tune, model = given["traces"], given["tune"], given["model"]
    discards = given["discard_tuned_samples"]
    if given["return_inferencedata"] and is_tuning(traces, tune, discards):
        alone = states_alone(traces, tune, model)
        if alone is not None:
            warnings.warn(STOPPED_TUNING, stacklevel=2)
            return alone
    found = original(*args, **kwargs)
    if isinstance(found, xr.DataTree):
        note_states(found, traces, tune, discards, model)
    return found


class _WithState(list):
    """Statistics of the last draw of a chain, and the state of its steps."""

    state: dict | None = None


class _Telling:
    """The pipe of a chain's process, which adds the state to the last draw."""

    def __init__(self, pipe, step):
        self.pipe, self.step = pipe, step

    def __getattr__(self, name):
        return getattr(self.pipe, name)

    def send(self, message):
        """Send a message."""
        if message[0] == "writing_done" and message[1]:
            *known, stats = message
            stats = _WithState(stats)
            stats.state = state_of(self.step)
            message = (*known, stats)
        self.pipe.send(message)


def _loop(original, self):
    steps = getattr(self._step_method, "methods", [self._step_method])
    if any(type(step) in STEPS for step in steps):
        self._msg_pipe = _Telling(self._msg_pipe, self._step_method)
    return original(self)


def _receive(original, *args, **kwargs):
    found = original(*args, **kwargs)
    stats, arrived = found[-1], _arrived.get()
    if isinstance(stats, _WithState) and arrived is not None:
        arrived[found[0].chain] = stats.state
    return found


def _collect(original, *args, **kwargs):
    arrived: dict = {}
    token = _arrived.set(arrived)
    try:
        return original(*args, **kwargs)
    finally:
        _arrived.reset(token)
        for trace in arguments(original, args, kwargs)["traces"]:
            if getattr(trace, "chain", None) in arrived:
                setattr(trace, STATE, arrived[trace.chain])
