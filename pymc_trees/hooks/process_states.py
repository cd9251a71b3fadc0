"""States of step methods from the processes of `pymc.sample`.

The state of a chain is sent with the statistics of its last draw. After an interrupt PyMC tells
each process to stop, and the process sends its state. It is then one draw ahead of the calling
process; this draw is sent with the state and recorded.
"""

import signal
import time
from contextvars import ContextVar
from multiprocessing.connection import wait
from typing import Any, cast

import pymc.sampling.mcmc
from pymc.backends.ndarray import NDArray
from pymc.sampling.parallel import ParallelSampler, ProcessAdapter, _Process

from pymc_trees.hooks.known_functions import read_functions, write_functions
from pymc_trees.hooks.register import STEPS
from pymc_trees.hooks.wrap import arguments, wrap
from pymc_trees.inference.chains.left import STATE, state_of
from pymc_trees.step_methods.base import ForestStep

PATIENCE = 5.0
"""Seconds that processes have to finish their current step after an interrupt."""

_traces: ContextVar[dict | None] = ContextVar("traces of chains in processes", default=None)


def keep_states_of_processes() -> None:
    """Wrap the loop of a process, and the receiving functions of the calling process."""
    wrap([_Process], "_start_loop", _loop)
    wrap([ProcessAdapter], "recv_draw", _receive)
    wrap([ParallelSampler], "__exit__", _stop)
    wrap([pymc.sampling.mcmc], "_mp_sample", _collect)


class _WithState(list):
    """Statistics of the last draw of a chain, and the state of its steps."""

    state: dict | None = None


class _Telling:
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
    if any(type(step) in STEPS or isinstance(step, ForestStep) for step in steps):
        # A terminal interrupt reaches all processes; the main one tells this process to stop.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        self._step_method = self._msg_pipe = _Telling(self._step_method, self._msg_pipe)
    return original(self)


def _receive(original, *args, **kwargs):
    found = original(*args, **kwargs)
    traces = _traces.get()
    if traces is not None:
        _note(traces[found[0].chain], found[-1])
    return found


def _note(trace, stats) -> None:
    if isinstance(stats, _WithState):
        setattr(trace, STATE, stats.state)


def _stop(original, self, *error):
    traces = _traces.get()
    if traces is not None and error and error[0] and issubclass(error[0], KeyboardInterrupt):
        _hear_out(self._active, traces)
    return original(self, *error)


def _hear_out(active, traces) -> None:
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
                _note(trace, message[4])
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
