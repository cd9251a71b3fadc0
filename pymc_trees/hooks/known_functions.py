"""Functions of forests from the processes of `pymc.sample` to the process that records their draws.

PyMC writes a draw into memory that a chain's process shares with the recording one. The function at
the training rows lies beside it, where a recorded variable reads it: the step has it, and the
recording process need not walk through the trees of every chain.
"""

from contextvars import ContextVar
from typing import Any

import numpy as np
import pymc.sampling.mcmc
from pymc.sampling.parallel import ProcessAdapter
from pytensor.graph.traversal import ancestors

from pymc_trees.core.value.fields import CHECKSUM
from pymc_trees.core.value.known import known_fit, make_known
from pymc_trees.distributions.ops.function_of_rows import FunctionOfRows
from pymc_trees.hooks.wrap import arguments, wrap
from pymc_trees.step_methods.base import ForestStep

_recorded: ContextVar[frozenset] = ContextVar("forests that a run records", default=frozenset())
_here: dict[str, np.ndarray] = {}
"""In a chain's process: for each forest a checksum, and the function of the value that has it."""


def pass_functions_on() -> None:
    """Wrap what starts the processes, and what receives their draws."""
    wrap([pymc.sampling.mcmc], "_mp_sample", _note_recorded)
    wrap([ProcessAdapter], "__init__", _with_room)
    wrap([ProcessAdapter], "recv_draw", _receive)


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
    return [forest for one in steps if isinstance(one, ForestStep) for forest in one.forests]


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
        fit = known_fit(value, checksum, forest.fingerprint)
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
            process.functions_known[name] = make_known(value, checksum, fingerprint, fit)


def _receive(original, *args, **kwargs):
    found = original(*args, **kwargs)
    read_functions(found[0])
    return found
