"""What is kept of a run: states of samplers, functions of forests, and draws where it fails."""

import signal
import time
import warnings
from contextvars import ContextVar
from multiprocessing.connection import wait
from typing import Any, cast

import numpy as np
import pymc.sampling.mcmc
import xarray as xr
from pymc.backends.base import _choose_chains
from pymc.backends.ndarray import NDArray
from pymc.sampling.parallel import ParallelSampler, ProcessAdapter, _Process
from pytensor.graph.traversal import ancestors

from pymc_trees.core.value.fields import CHECKSUM
from pymc_trees.core.value.output_cache import cached_outputs, publish_outputs
from pymc_trees.distributions.capacity import ForestTooLargeError
from pymc_trees.distributions.ops.function_of_rows import FunctionOfRows
from pymc_trees.distributions.tree_variable import tree_variables
from pymc_trees.hooks.register import STEPS
from pymc_trees.hooks.wrap import arguments, wrap
from pymc_trees.inference.chains.states import (
    STATE,
    is_tuning,
    note_states,
    result_so_far,
    state_of,
    states_alone,
)
from pymc_trees.step_methods.sweep import SweepStep

# ----------------- States of step methods, stored with the draws of models with trees for `resume`
#
# In this process they are read when a chain ends or is interrupted, between two iterations;
# `process_states` handles those of other processes.


STOPPED_TUNING = (
    "The run was stopped during tuning: the result holds no draws, only the states of the chains "
    "that had started, from which pymc_trees.resume continues."
)


def keep_states() -> None:
    """Wrap PyMC's sampling loop and the function that builds the result."""
    wrap([pymc.sampling.mcmc], "_iter_sample", _iterate)
    wrap([pymc.sampling.mcmc], "_sample_return", _note)


def _iterate(original, *args, **kwargs):
    given = arguments(original, args, kwargs)
    try:
        yield from original(*args, **kwargs)
    except Exception:  # during an iteration; interrupts are handled between two
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


# -------------------------------------- States of step methods from the processes of `pymc.sample`
#
# The state of a chain is sent with the statistics of its last draw. After an interrupt PyMC tells
# each process to stop, and the process sends its state. It is then one draw ahead of the calling
# process; this draw is sent with the state and recorded.


PATIENCE = 5.0
"""Seconds that processes have to finish their current step after an interrupt."""

_traces: ContextVar[dict | None] = ContextVar("traces of chains in processes", default=None)


def keep_states_of_processes() -> None:
    """Wrap the loop of a process, and the receiving functions of the calling process."""
    wrap([_Process], "_start_loop", _loop)
    wrap([ProcessAdapter], "recv_draw", _receive_state)
    wrap([ParallelSampler], "__exit__", _stop)
    wrap([pymc.sampling.mcmc], "_mp_sample", _collect)


class _WithState(list):
    """Statistics of the last draw of a chain, and the state of its steps."""

    state: dict | None = None


class StateReportingStep:
    """Step methods and the pipe of a chain's process; sends their state at the end."""

    def __init__(self, step, pipe):
        self._step, self._pipe = step, pipe
        self.n_made, self.made = 0, None

    def step(self, point):
        """Make an iteration, and store it."""
        self.made = self._step.step(point)
        self.n_made += 1
        return self.made

    def setup_chain(self, *given):
        """Begin."""
        self._step.setup_chain(*given)

    def stop_tuning(self):
        """Stop tuning."""
        self._step.stop_tuning()

    def send(self, message):
        """Send a message, a draw with the functions of its forests, the last with the state."""
        if message[0] == "writing_done" and self.made is not None:
            write_functions(self._step, self.made[0])
        if message[0] == "writing_done" and message[1]:
            *known, stats = message
            stats = _WithState(stats)
            stats.state = state_of(self._step)
            message = (*known, stats)
        self._pipe.send(message)

    def recv(self):
        """Receive a message; answer a request to stop with the state."""
        message = self._pipe.recv()
        if message[0] == "abort" and self.made is not None:
            self._pipe.send(("left", self.n_made, *self.made, state_of(self._step)))
        return message

    def close(self):
        """Close the pipe."""
        self._pipe.close()


def _loop(original, self):
    steps = getattr(self._step_method, "methods", [self._step_method])
    if any(type(step) in STEPS or isinstance(step, SweepStep) for step in steps):
        # A terminal interrupt reaches all processes; the main one tells this process to stop.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        self._step_method = self._msg_pipe = StateReportingStep(self._step_method, self._msg_pipe)
    return original(self)


def _receive_state(original, *args, **kwargs):
    found = original(*args, **kwargs)
    traces = _traces.get()
    if traces is not None:
        _note_process(traces[found[0].chain], found[-1])
    return found


def _note_process(trace, stats) -> None:
    if isinstance(stats, _WithState):
        setattr(trace, STATE, stats.state)


def _stop(original, self, *error):
    traces = _traces.get()
    if traces is not None and error and error[0] and issubclass(error[0], KeyboardInterrupt):
        _drain(self._active, traces)
    return original(self, *error)


def _drain(active, traces) -> None:
    """Record further draws of the processes that have not arrived, and their states."""
    until = time.monotonic() + PATIENCE
    pipes: dict[Any, ProcessAdapter] = {}
    for process in active:
        try:
            process.abort()
        except Exception:  # it has ended
            continue
        pipes[process._msg_pipe] = process
    while pipes and (left := until - time.monotonic()) > 0:
        for pipe in cast("list[Any]", wait(list(pipes), left)):
            process = pipes[pipe]
            try:
                message = pipe.recv()
            except (EOFError, OSError):
                del pipes[pipe]
                continue
            trace = traces[process.chain]
            if message[0] == "writing_done":
                read_functions(process)
                point = {name: value.copy() for name, value in process._point.items()}
                trace.record(point, message[4], in_warmup=message[3])
                _note_process(trace, message[4])
            elif message[0] == "left":
                _, n_made, made, stats, state = message
                if len(trace) == n_made - 1:
                    point = {name: made[name] for name in process._point}
                    trace.record(point, stats, in_warmup=True)
                    setattr(trace, STATE, state)
                del pipes[pipe]


def _collect(original, *args, **kwargs):
    traces = arguments(original, args, kwargs)["traces"]
    able = all(isinstance(trace, NDArray) for trace in traces)
    token = _traces.set({trace.chain: trace for trace in traces} if able else None)
    try:
        return original(*args, **kwargs)
    finally:
        _traces.reset(token)


# --------------------------------------------------------------------------------------------------
# Functions of forests from the processes of `pymc.sample` to the process that records their
# draws.
#
# PyMC writes a draw into memory that a chain's process shares with the recording one. The
# function at the training rows lies beside it, where a recorded variable reads it: the step has
# it, and the recording process need not walk through the trees of every chain.


_recorded: ContextVar[frozenset] = ContextVar("forests that a run records", default=frozenset())
_here: dict[str, np.ndarray] = {}
"""In a chain's process: for each forest a checksum, and the function of the value that has it."""


def pass_functions_on() -> None:
    """Wrap what starts the processes, and what receives their draws."""
    wrap([pymc.sampling.mcmc], "_mp_sample", _note_recorded)
    wrap([ProcessAdapter], "__init__", _with_room)
    wrap([ProcessAdapter], "recv_draw", _receive_function)


def _note_recorded(original, *args, **kwargs):
    traces = arguments(original, args, kwargs)["traces"]
    seen = {v for trace in traces for v in ancestors(getattr(trace, "vars", None) or [])}
    of_rows = [v.owner for v in seen if v.owner and isinstance(v.owner.op, FunctionOfRows)]
    token = _recorded.set(frozenset(node.inputs[0].name for node in of_rows))
    try:
        return original(*args, **kwargs)
    finally:
        _recorded.reset(token)


class _Context:
    """Context of `multiprocessing` whose processes get the shared memory of functions."""

    def __init__(self, context, room: dict):
        self._context, self._room = context, room

    def __getattr__(self, name):
        return getattr(self._context, name)

    def Process(self, *, target, args, **given):
        """Start a process that has the memory."""
        return self._context.Process(target=_run, args=(self._room, target, *args), **given)


def _forests(step) -> list:
    steps = getattr(step, "methods", [step])
    return [forest for one in steps if isinstance(one, SweepStep) for forest in one.forests]


def _with_room(original, self, *args, **kwargs):
    given = arguments(original, (self, *args), kwargs)
    given.pop("self")
    self.forests_recorded, room = {}, {}
    for forest in _forests(given["step_method"]):
        if not {forest.name, forest.value_name} & _recorded.get():
            continue
        n, k = forest.layout.n_rows, forest.layout.n_outputs
        memory = given["mp_ctx"].RawArray("d", 1 + n * k)
        room[forest.value_name] = memory
        mine = np.frombuffer(memory)
        place = (forest.layout.max_nodes, CHECKSUM)
        self.forests_recorded[forest.value_name] = (forest.fingerprint, place, mine, (n, k))
    self.functions_known = {}
    if room:
        given["mp_ctx"] = _Context(given["mp_ctx"], room)
    return original(self, **given)


def _run(room, target, *args):
    _here.update({name: np.frombuffer(memory) for name, memory in room.items()})
    target(*args)


def write_functions(step, point: dict[str, Any]) -> None:
    """Share the functions of a point's forests, before its process says that it is written."""
    for forest in _forests(step) if _here else []:
        if forest.value_name not in _here:
            continue
        value, shared = point[forest.value_name], _here[forest.value_name]
        checksum = value[forest.layout.max_nodes, CHECKSUM]
        fit = cached_outputs(value, checksum, forest.fingerprint)
        shared[0] = np.nan if fit is None else checksum
        if fit is not None:
            shared[1:] = fit.reshape(-1)


def read_functions(process: ProcessAdapter) -> None:
    """Know the functions that a process shared with its point; the last ones are forgotten."""
    for name, (fingerprint, place, shared, shape) in process.forests_recorded.items():
        process.functions_known.pop(name, None)
        value, checksum = process._point[name], float(shared[0])
        if value[place] == checksum:
            fit = shared[1:].reshape(shape).copy()
            process.functions_known[name] = publish_outputs(value, checksum, fingerprint, fit)


def _receive_function(original, *args, **kwargs):
    found = original(*args, **kwargs)
    read_functions(found[0])
    return found


# ------- Draws of runs that end with an error: a forest that outgrew its capacity, or a lost chain
#
# PyMC returns its draws when a run is interrupted, but not when it ends with an error. A wrapper
# around its sampling loops attaches the draws to the error.


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
