"""States of samplers as numbers and text, for files, and end states of chains."""

import json
import sys
from collections.abc import Sequence
from dataclasses import fields
from typing import Any, NamedTuple

import numpy as np
import pymc.sampling.mcmc as mcmc
import xarray as xr
from pymc.backends.base import _choose_chains
from pymc.backends.ndarray import NDArray
from pymc.step_methods.state import DataClassState
from pymc.util import RandomGeneratorState

# ----------------------- States of step methods as numbers and text, for files: nothing is pickled
#
# A state is a tree of dataclasses, dicts, lists, arrays and generators. Its arrays are stored as
# bytes, the rest as JSON, with positions of arrays and names of classes. Reading only creates
# objects of state classes and named tuples, and imports nothing.


GROUP = "sampling_state"
"""Group of the draws, with a group for each chain."""
WORDS, NUMBERS = "state", "numbers"
"""Variables of a chain's group, of bytes: the JSON, and all arrays one after another."""


def to_dataset(state: dict) -> xr.Dataset:
    """A state as text and bytes."""
    numbers = bytearray()
    words = bytearray(json.dumps(_words(state, numbers)).encode())
    parts = ((WORDS, words), (NUMBERS, numbers))
    return xr.Dataset(
        {name: (f"byte_of_{name}", np.array(part, dtype=np.uint8)) for name, part in parts}
    )


def from_dataset(stored: xr.Dataset) -> dict:
    """A state from the output of `to_dataset`."""
    words = json.loads(stored[WORDS].to_numpy().tobytes())
    return _value(words, stored[NUMBERS].to_numpy().tobytes())


def _words(value: Any, numbers: bytearray) -> Any:
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, np.ndarray | np.generic) and value.dtype != object:
        kind = "scalar" if isinstance(value, np.generic) else "array"
        start = len(numbers)
        numbers += value.tobytes()
        return {kind: [start, value.dtype.str, *value.shape]}
    name = f"{type(value).__module__}.{type(value).__name__}"
    if isinstance(value, DataClassState):
        inside = {one.name: _words(getattr(value, one.name), numbers) for one in fields(value)}
        return {"state": inside, "class": name}
    if isinstance(value, RandomGeneratorState):
        return {"generator": {k: _words(v, numbers) for k, v in value._asdict().items()}}
    if isinstance(value, dict):
        return {"dict": [[_words(k, numbers), _words(v, numbers)] for k, v in value.items()]}
    if isinstance(value, tuple):
        words = {"tuple": [_words(one, numbers) for one in value]}
        return words if type(value) is tuple else words | {"class": name}
    if isinstance(value, list):
        return {"list": [_words(one, numbers) for one in value]}
    raise TypeError(
        f"The state of a step method holds a {type(value).__name__}, which cannot be written to a "
        "file."
    )


def _value(words: Any, stored: bytes) -> Any:
    if not isinstance(words, dict):
        return words
    kind, inside = next(iter(words.items()))
    if kind in ("array", "scalar"):
        start, dtype, *shape = inside
        found = np.ndarray(tuple(shape), dtype, stored, start)
        return found.copy() if kind == "array" else found[()]
    if kind == "state":
        of = {name: _value(one, stored) for name, one in inside.items()}
        return _named(words["class"])(**of)
    if kind == "generator":
        return RandomGeneratorState(**{name: _value(one, stored) for name, one in inside.items()})
    if kind == "dict":
        return {_value(k, stored): _value(v, stored) for k, v in inside}
    several = [_value(one, stored) for one in inside]
    if kind == "list":
        return several
    return _named(words["class"])(*several) if "class" in words else tuple(several)


def _named(name: str) -> Any:
    """A state class or named tuple that the steps have imported; no other."""
    module, _, kind = name.rpartition(".")
    found = getattr(sys.modules.get(module), kind, None)
    if isinstance(found, type):
        if issubclass(found, DataClassState):
            return found
        if issubclass(found, tuple) and hasattr(found, "_fields"):
            return found
    raise ValueError(f"The state of a step names {name}, which is not a known class of states.")


# ------------------------ End states of chains: from the traces of a run into its result, and back


STATE = "state_of_steps"
"""Attribute of a trace: result of `state_of` after its last draw."""

POINT = "last_point"
"""Attribute of a trace: the values of the model's variables that its chain goes on from. Without it
the last draw says them."""

WHY = "missing_because"
"""Attribute of a group without states."""

TUNING = "tuning_left"
"""Attribute of the group of a chain in tuning: remaining tuning iterations."""


class Left(NamedTuple):
    """A chain that stopped."""

    state: dict[str, Any]
    """Result of `state_of` after its last iteration."""
    point: dict[str, Any]
    """Its last point."""
    tuning: int | None
    """Remaining tuning iterations; None after tuning."""
    ahead: Sequence[tuple[dict[str, Any], list[dict[str, Any]]]] = ()
    """Draws and statistics beyond those of the shortest chain, which the result leaves out."""


def state_of(step) -> dict[str, Any]:
    """State of step methods, with their names and variables."""
    # NUTS numbers its divergences, and leaves the number out of its state.
    divergences = [getattr(one, "divergences", None) for one in _several(step)]
    return {
        "steps": _names_of_steps(step),
        "state": step.sampling_state,
        "divergences": divergences,
    }


def put_back(step, state: dict[str, Any]) -> None:
    """Restore step methods to a state from `state_of`."""
    step.sampling_state = state["state"]
    for one, count in zip(_several(step), state["divergences"], strict=True):
        if count is not None:
            one.divergences = count


def _several(step) -> list:
    return getattr(step, "methods", [step])


def _names_of_steps(step) -> list[str]:
    return [
        f"{type(one).__name__}({', '.join(v.name for v in getattr(one, 'vars', []))})"
        for one in _several(step)
    ]


def tuning_left(made: int, tune: int) -> int | None:
    """`Left.tuning` of a chain after a number of iterations."""
    return tune - made if made <= tune else None


def result_so_far(traces, tune: int, seconds: float, discards_tuning: bool, model) -> xr.DataTree:
    """Result of `pymc.sample` for incomplete traces, without its checks."""
    return mcmc._sample_return(
        run=None,
        traces=traces,
        tune=tune,
        t_sampling=seconds,
        discard_tuned_samples=discards_tuning,
        compute_convergence_checks=False,
        return_inferencedata=True,
        keep_warning_stat=False,
        idata_kwargs={},
        model=model,
        quiet=True,
    )


def is_tuning(traces, tune: int, discards_tuning: bool) -> bool:
    """Whether a run was stopped before any chain had a draw for the result."""
    return discards_tuning and all(len(trace) <= tune for trace in traces)


def states_alone(traces, tune: int, model) -> xr.DataTree | None:
    """States for resuming a run that was stopped in tuning; None if it cannot be resumed."""
    if not all(isinstance(trace, NDArray) for trace in traces):
        return None
    begun = [trace for trace in traces if len(trace) and hasattr(trace, STATE)]
    found = _stored(begun, None, tune, model) if begun else None
    return None if found is None else xr.DataTree.from_dict({GROUP: found})


def note_states(idata: xr.DataTree, traces, tune: int, discards_tuning: bool, model) -> None:
    """Add the end states of the traces to the result of `pymc.sample`.

    Chains of an interrupted run differ in length, and PyMC truncates them to a common length; the
    draws beyond it are stored with the state.
    """
    if not all(isinstance(trace, NDArray) for trace in traces):
        return
    chosen, length = _choose_chains(traces, tune if discards_tuning else 0)
    found = _stored(chosen, int(length), tune, model)
    if found is not None:
        idata[GROUP] = found


def _stored(traces, length: int | None, tune: int, model) -> xr.DataTree | None:
    """Group of the states; draws beyond a length are ahead, unless it is None."""
    if not all(hasattr(trace, STATE) for trace in traces):
        return None  # interrupted in another process
    names = [variable.name for variable in model.value_vars]
    if not all(_has_points(trace, names, length) for trace in traces):
        return None
    found = {}
    for trace in sorted(traces, key=lambda trace: trace.chain):
        made = len(trace)
        last = getattr(trace, POINT, None) or trace.point(made - 1)
        tuning = tuning_left(made, tune)
        first = made if length is None else length
        left = {
            "left": getattr(trace, STATE),
            "point": {name: np.asarray(last[name]) for name in names},
            "ahead": [_row(trace, names, k) for k in range(first, made)],
        }
        try:
            stored = to_dataset(left)
        except TypeError as error:  # the draws must not be lost because of it
            return xr.DataTree(xr.Dataset(attrs={WHY: str(error)}))
        stored.attrs = {} if tuning is None else {TUNING: tuning}
        found[f"chain_{trace.chain}"] = stored
    return xr.DataTree.from_dict(found)


def _has_points(trace: NDArray, names: list[str], length: int | None) -> bool:
    """Whether the state is complete for resuming, also if var_names= leaves variables out."""
    if all(name in trace.varnames for name in names):
        return True
    return hasattr(trace, POINT) and length in (None, len(trace))  # no draws ahead


def _row(trace: NDArray, names: list[str], k: int) -> list:
    point = trace.point(k)
    stats = [
        {
            name: np.asarray(trace.get_sampler_stats(name, step)[k])[()]
            for name in names_of_step
            if name != "warning"
        }
        for step, names_of_step in enumerate(trace.sampler_vars)
    ]
    return [{name: np.asarray(point[name]) for name in names}, stats]


def numbers_of_chains(idata: xr.DataTree) -> list[int]:
    """Which chains have states, in order."""
    return sorted(int(name.removeprefix("chain_")) for name in idata[GROUP].children)


def longest_tuning(idata: xr.DataTree) -> int:
    """Remaining tuning iterations of the chain with the fewest iterations."""
    return max(int(node.attrs.get(TUNING, 0)) for node in idata[GROUP].children.values())


def read_states(idata: xr.DataTree, step: Any) -> list[Left]:
    """States stored by `note_states`, chain by chain, for steps of the same kinds."""
    named, found = _names_of_steps(step), []
    for number in numbers_of_chains(idata):
        node = idata[GROUP][f"chain_{number}"]
        stored = from_dataset(node.to_dataset())
        if stored["left"]["steps"] != named:
            raise ValueError(
                "idata: its chains were drawn with other step methods, "
                f"{stored['left']['steps']}, not with {named}. Give resume the step= and other "
                "options of the first run."
            )
        tuning = node.attrs.get(TUNING)
        found.append(
            Left(
                stored["left"],
                stored["point"],
                None if tuning is None else int(tuning),
                stored["ahead"],
            )
        )
    return found
