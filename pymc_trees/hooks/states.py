"""What is kept of a run: states of samplers, functions of forests, and the draws if it fails."""

import signal
import time
import warnings
from collections.abc import Sequence
from contextvars import ContextVar
from multiprocessing.connection import wait
from typing import Any, cast

import numpy as np
import pymc.sampling.mcmc
import xarray as xr
from pymc.backends import NDArray
from pymc.backends.base import _choose_chains
from pymc.sampling.parallel import ParallelSampler, ProcessAdapter, _Process
from pytensor.graph.traversal import ancestors

from pymc_trees.core.value.evaluate import cached_outputs, publish_outputs
from pymc_trees.core.value.fields import CHECKSUM
from pymc_trees.distributions.capacity import ForestTooLargeError
from pymc_trees.distributions.forest_inputs import FunctionOfRows
from pymc_trees.distributions.tree_variable import tree_variables
from pymc_trees.hooks.register import STEPS
from pymc_trees.hooks.wrap import arguments, wrap
from pymc_trees.inference.chains.states import GROUP as STATES
from pymc_trees.inference.chains.states import (
    STATE,
    add_states,
    is_tuning,
    note_ends,
    numbers_of_chains,
    result_so_far,
    state_of,
    states_only,
)
from pymc_trees.posterior.declarations import GROUP as FORESTS
from pymc_trees.posterior.declarations import declared_group
from pymc_trees.step_methods.sweep import SweepStep

# ----------------- States of step methods, stored with the draws of models with trees for `resume`
#
# In this process, states are read when a chain ends or is interrupted between two iterations. The
# next section handles the states of other processes.


STOPPED_TUNING = (
    "The run was stopped during tuning: the result holds no draws, only the states of the chains "
    "that had started, from which pymc_trees.resume continues."
)


def keep_states() -> None:
    """Wrap PyMC's sampling loop and the function that builds the result."""
    wrap([pymc.sampling.mcmc], "_iter_sample", _iterate)
    wrap([pymc.sampling.mcmc], "_sample_return", _add_states)


def _iterate(original, *args, **kwargs):
    call = arguments(original, args, kwargs)
    try:
        yield from original(*args, **kwargs)
    except Exception:  # during an iteration; interrupts are handled between iterations
        raise
    except BaseException:
        _store_state(call)
        raise
    else:
        _store_state(call)


def _store_state(call) -> None:
    if _has_trees(call.get("model")):
        setattr(call["trace"], STATE, state_of(call["step"]))


def _has_trees(model) -> bool:
    return model is not None and bool(tree_variables(model))


def _add_states(original, *args, **kwargs):
    call = arguments(original, args, kwargs)
    traces, tune, model = call["traces"], call["tune"], call["model"]
    discards, in_list = call["discard_tuned_samples"], isinstance(traces, Sequence)
    # A ZarrTrace holds the chains itself, and is not iterable.
    if call["return_inferencedata"] and in_list and is_tuning(traces, tune, discards):
        states = states_only(traces, tune, model)
        if states is not None:
            warnings.warn(STOPPED_TUNING, stacklevel=2)
            return states
    result = original(*args, **kwargs)
    if isinstance(result, xr.DataTree):
        declared = None if model is None else declared_group(model)
        if declared is not None:
            result[FORESTS] = xr.DataTree(declared)
        if in_list:
            add_states(result, traces, tune, discards, model)
    return result


# -------------------------------------- States of step methods from the processes of `pymc.sample`
#
# A process sends the state of its chain with the statistics of the last draw. After an interrupt
# PyMC tells each process to stop, and the process sends its state. It is then one draw ahead of the
# calling process; this draw is sent with the state, and recorded.


PATIENCE = 5.0
"""Seconds that processes have to finish their current step after an interrupt."""

_traces: ContextVar[dict | None] = ContextVar("traces of chains in processes", default=None)


def keep_states_of_processes() -> None:
    """Wrap the loop of a process, and the functions of the calling process that receive draws."""
    wrap([_Process], "_start_loop", _start_loop)
    wrap([ProcessAdapter], "recv_draw", _receive_state)
    wrap([ParallelSampler], "__exit__", _exit)
    wrap([pymc.sampling.mcmc], "_mp_sample", _collect_states)


class _StatsWithState(list):
    """Statistics of the last draw of a chain, and the state of its steps."""

    state: dict | None = None


class StateReportingStep:
    """Step methods and the pipe of a chain's process; sends their state at the end."""

    def __init__(self, step, pipe):
        self._step, self._pipe = step, pipe
        self.n_draws, self.last_draw = 0, None

    def step(self, point):
        """Make a draw, and store it."""
        self.last_draw = self._step.step(point)
        self.n_draws += 1
        return self.last_draw

    def setup_chain(self, *args):
        """Begin a chain."""
        self._step.setup_chain(*args)

    def stop_tuning(self):
        """Stop tuning."""
        self._step.stop_tuning()

    def send(self, message):
        """Send a message: a draw with the functions of its forests, the last one with the state."""
        if message[0] == "writing_done" and self.last_draw is not None:
            write_functions(self._step, self.last_draw[0])
        if message[0] == "writing_done" and message[1]:
            *others, stats = message
            stats = _StatsWithState(stats)
            stats.state = state_of(self._step)
            message = (*others, stats)
        self._pipe.send(message)

    def recv(self):
        """Receive a message; answer a request to stop with the state."""
        message = self._pipe.recv()
        if message[0] == "abort" and self.last_draw is not None:
            self._pipe.send(("stopped", self.n_draws, *self.last_draw, state_of(self._step)))
        return message

    def close(self):
        """Close the pipe."""
        self._pipe.close()


def _start_loop(original, self):
    steps = getattr(self._step_method, "methods", [self._step_method])
    if any(type(step) in STEPS or isinstance(step, SweepStep) for step in steps):
        # An interrupt from a terminal reaches all processes; the main one tells this one to stop.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        self._step_method = self._msg_pipe = StateReportingStep(self._step_method, self._msg_pipe)
    return original(self)


def _receive_state(original, *args, **kwargs):
    process, *others, stats = original(*args, **kwargs)
    traces = _traces.get()
    if traces is not None:
        _store_state_sent(traces[process.chain], stats)
    return process, *others, stats


def _store_state_sent(trace, stats) -> None:
    if isinstance(stats, _StatsWithState):
        setattr(trace, STATE, stats.state)


def _exit(original, self, *error):
    traces = _traces.get()
    if traces is not None and error and error[0] and issubclass(error[0], KeyboardInterrupt):
        _drain(self._active, traces)
    return original(self, *error)


def _drain(active, traces) -> None:
    """Record the draws that processes have still to send, and their states."""
    deadline = time.monotonic() + PATIENCE
    pipes: dict[Any, ProcessAdapter] = {}
    for process in active:
        try:
            process.abort()
        except Exception:  # it has ended
            continue
        pipes[process._msg_pipe] = process
    while pipes and (left := deadline - time.monotonic()) > 0:
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
                _store_state_sent(trace, message[4])
            elif message[0] == "stopped":
                _, n_draws, draw, stats, state = message
                if len(trace) == n_draws - 1:
                    point = {name: draw[name] for name in process._point}
                    trace.record(point, stats, in_warmup=True)
                    setattr(trace, STATE, state)
                del pipes[pipe]


def _collect_states(original, *args, **kwargs):
    traces = arguments(original, args, kwargs)["traces"]
    in_memory = all(isinstance(trace, NDArray) for trace in traces)
    token = _traces.set({trace.chain: trace for trace in traces} if in_memory else None)
    try:
        return original(*args, **kwargs)
    finally:
        _traces.reset(token)


# --------------------------------------------------------------------------------------------------
# Functions of forests, passed from the processes of `pymc.sample` to the one that records draws.
#
# PyMC writes a draw into memory that a chain's process shares with the recording process. Next to
# it the function at the training rows is written, for variables that are recorded and depend on
# it: the step has its values, so the recording process need not evaluate the trees of all chains.


_recorded: ContextVar[frozenset] = ContextVar(
    "forests whose function a run records", default=frozenset()
)
_shared: dict[str, np.ndarray] = {}
"""In a chain's process: for each forest the checksum of a value, and the function of that value."""


def share_functions() -> None:
    """Wrap the functions that start the processes and receive their draws."""
    wrap([pymc.sampling.mcmc], "_mp_sample", _note_recorded)
    wrap([ProcessAdapter], "__init__", _allocate)
    wrap([ProcessAdapter], "recv_draw", _receive_functions)


def _note_recorded(original, *args, **kwargs):
    traces = arguments(original, args, kwargs)["traces"]
    above = {v for trace in traces for v in ancestors(getattr(trace, "vars", None) or [])}
    nodes = [v.owner for v in above if v.owner and isinstance(v.owner.op, FunctionOfRows)]
    token = _recorded.set(frozenset(node.inputs[0].name for node in nodes))
    try:
        return original(*args, **kwargs)
    finally:
        _recorded.reset(token)


class _Context:
    """Context of `multiprocessing` whose processes get the memory that functions share."""

    def __init__(self, context, memory: dict):
        self._context, self._memory = context, memory

    def __getattr__(self, name):
        return getattr(self._context, name)

    def Process(self, *, target, args, **kwargs):
        """Start a process that has the memory."""
        return self._context.Process(target=_run, args=(self._memory, target, *args), **kwargs)


def _forests(step) -> list:
    steps = getattr(step, "methods", [step])
    return [
        forest for method in steps if isinstance(method, SweepStep) for forest in method.forests
    ]


def _allocate(original, self, *args, **kwargs):
    call = arguments(original, (self, *args), kwargs)
    call.pop("self")
    self.forests_recorded, memory = {}, {}
    for forest in _forests(call["step_method"]):
        if not {forest.name, forest.value_name} & _recorded.get():
            continue
        n, k = forest.layout.n_rows, forest.layout.n_outputs
        block = call["mp_ctx"].RawArray("d", 1 + n * k)
        memory[forest.value_name] = block
        shared = np.frombuffer(block)
        place = (forest.layout.max_nodes, CHECKSUM)
        self.forests_recorded[forest.value_name] = (forest.fingerprint, place, shared, (n, k))
    self.functions_received = {}
    if memory:
        call["mp_ctx"] = _Context(call["mp_ctx"], memory)
    return original(self, **call)


def _run(memory, target, *args):
    _shared.update({name: np.frombuffer(block) for name, block in memory.items()})
    target(*args)


def write_functions(step, point: dict[str, Any]) -> None:
    """Share the functions of a point's forests, before the process reports that it is written."""
    for forest in _forests(step) if _shared else []:
        if forest.value_name not in _shared:
            continue
        value, shared = point[forest.value_name], _shared[forest.value_name]
        checksum = value[forest.layout.max_nodes, CHECKSUM]
        fit = cached_outputs(value, checksum, forest.fingerprint)
        shared[0] = np.nan if fit is None else checksum
        if fit is not None:
            shared[1:] = fit.reshape(-1)


def read_functions(process: ProcessAdapter) -> None:
    """Publish the functions that a process shared with its point, in place of the previous ones."""
    for name, (fingerprint, place, shared, shape) in process.forests_recorded.items():
        process.functions_received.pop(name, None)
        value, checksum = process._point[name], float(shared[0])
        if value[place] == checksum:
            fit = shared[1:].reshape(shape).copy()
            process.functions_received[name] = publish_outputs(value, checksum, fingerprint, fit)


def _receive_functions(original, *args, **kwargs):
    process, *others = original(*args, **kwargs)
    read_functions(process)
    return process, *others


# --- Draws of runs that end with an error: a forest that exceeds its capacity, or a chain that died
#
# PyMC returns the draws when a run is interrupted, but not when it ends with an error. A wrapper
# around its sampling loops attaches the draws to the error.


LOOPS = ("_sample_many", "_mp_sample")
"""Functions of `pymc.sampling.mcmc` that run chains: in this process, and in others."""


class ChainLostError(RuntimeError):
    """The process of a chain ended without an error message.

    Attributes
    ----------
    idata : xarray.DataTree or None
        As for `ForestTooLargeError`.
    """

    idata = None


CHAIN_LOST = (
    "The process of a chain terminated unexpectedly: it was killed, or there was not enough memory."
)


def keep_draws() -> None:
    """Wrap the sampling loops of PyMC."""
    for name in LOOPS:
        wrap([pymc.sampling.mcmc], name, _keeping)


def _keeping(loop, *args, **kwargs):
    start = time.time()
    try:
        return loop(*args, **kwargs)
    except Exception as error:
        call = arguments(loop, args, kwargs)
        call |= call.pop("kwargs", {})
        reason = _reason(error, call["model"])
        if reason is None:
            raise
        idata = _draws_so_far(call, time.time() - start)
        where = "" if idata is None else " The draws made before are error.idata."
        raised = type(reason)(f"{reason}{where}")
        raised.idata = idata
        raise raised from error


def _reason(error: BaseException | None, model) -> ForestTooLargeError | ChainLostError | None:
    if isinstance(error, EOFError | ConnectionError):  # error of the pipe to another process
        return ChainLostError(CHAIN_LOST) if tree_variables(model) else None
    # An error in another process arrives as the cause of PyMC's error.
    while error is not None and not isinstance(error, ForestTooLargeError):
        error = error.__cause__
    return error


def _draws_so_far(call, seconds):
    traces, tune = call["traces"], call["tune"]
    if not all(isinstance(trace, NDArray) for trace in traces):
        return None  # the draws are in the user's own storage
    longest = max(len(trace) for trace in traces)
    if longest == 0:
        return None
    discard = call["discard_tuned_samples"] and longest > tune
    idata = result_so_far(traces, tune, seconds, discard, call["model"])
    # PyMC keeps the chains that together have most draws, and numbers them from zero.
    kept = sorted(trace.chain for trace in _choose_chains(traces, tune if discard else 0)[0])
    idata = idata.map_over_datasets(
        lambda group: group.assign_coords(chain=kept) if "chain" in group.dims else group
    )
    if STATES in idata.children:
        note_ends(idata, numbers_of_chains(idata))
    return idata
