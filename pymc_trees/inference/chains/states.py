"""States of samplers as numbers and text, end states of chains, and checkpoints of a run."""

import json
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any, NamedTuple

import numpy as np
import pymc.sampling.mcmc as mcmc
import xarray as xr
from pymc.backends.base import _choose_chains
from pymc.backends.ndarray import NDArray
from pymc.step_methods.state import DataClassState
from pymc.util import RandomGeneratorState

from pymc_trees.arguments import check_number
from pymc_trees.posterior.draws import STATES
from pymc_trees.posterior.saving import save
from pymc_trees.predictors.file import check_path

# ------------------------ States of step methods as numbers and text, for files: nothing is pickled
#
# A state is a tree of dataclasses, dicts, lists, arrays and generators. Its arrays are stored as
# bytes, the rest as JSON, with positions of arrays and names of classes. Reading only creates
# objects of state classes and named tuples, and imports nothing.


GROUP = STATES
WORDS, NUMBERS = "state", "numbers"
"""Variables of a chain's group, of bytes: the JSON, and all arrays one after another."""


def to_dataset(state: dict) -> xr.Dataset:
    """A state as text and bytes."""
    numbers = bytearray()
    words = bytearray(json.dumps(_encode(state, numbers)).encode())
    parts = ((WORDS, words), (NUMBERS, numbers))
    return xr.Dataset(
        {name: (f"byte_of_{name}", np.array(part, dtype=np.uint8)) for name, part in parts}
    )


def from_dataset(stored: xr.Dataset) -> dict:
    """A state from the output of `to_dataset`."""
    words = json.loads(stored[WORDS].to_numpy().tobytes())
    return _decode(words, stored[NUMBERS].to_numpy().tobytes())


def _encode(value: Any, numbers: bytearray) -> Any:
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, np.ndarray | np.generic) and value.dtype != object:
        kind = "scalar" if isinstance(value, np.generic) else "array"
        start = len(numbers)
        numbers += value.tobytes()
        return {kind: [start, value.dtype.str, *value.shape]}
    name = f"{type(value).__module__}.{type(value).__name__}"
    if isinstance(value, DataClassState):
        inside = {item.name: _encode(getattr(value, item.name), numbers) for item in fields(value)}
        return {"state": inside, "class": name}
    if isinstance(value, RandomGeneratorState):
        return {"generator": {k: _encode(v, numbers) for k, v in value._asdict().items()}}
    if isinstance(value, dict):
        return {"dict": [[_encode(k, numbers), _encode(v, numbers)] for k, v in value.items()]}
    if isinstance(value, tuple):
        words = {"tuple": [_encode(item, numbers) for item in value]}
        return words if type(value) is tuple else words | {"class": name}
    if isinstance(value, list):
        return {"list": [_encode(item, numbers) for item in value]}
    raise TypeError(
        f"The state of a step method holds a {type(value).__name__}, which cannot be written to a "
        "file."
    )


def _decode(words: Any, stored: bytes) -> Any:
    if not isinstance(words, dict):
        return words
    kind, inside = next(iter(words.items()))
    if kind in ("array", "scalar"):
        start, dtype, *shape = inside
        array = np.ndarray(tuple(shape), dtype, stored, start)
        return array.copy() if kind == "array" else array[()]
    if kind == "state":
        by_name = {name: _decode(item, stored) for name, item in inside.items()}
        return _class_named(words["class"])(**by_name)
    if kind == "generator":
        return RandomGeneratorState(
            **{name: _decode(item, stored) for name, item in inside.items()}
        )
    if kind == "dict":
        return {_decode(k, stored): _decode(v, stored) for k, v in inside}
    items = [_decode(item, stored) for item in inside]
    if kind == "list":
        return items
    return _class_named(words["class"])(*items) if "class" in words else tuple(items)


def _class_named(name: str) -> Any:
    """A state class or named tuple that the steps have imported; no other."""
    module, _, kind = name.rpartition(".")
    cls = getattr(sys.modules.get(module), kind, None)
    if isinstance(cls, type):
        if issubclass(cls, DataClassState):
            return cls
        if issubclass(cls, tuple) and hasattr(cls, "_fields"):
            return cls
    raise ValueError(f"The state of a step names {name}, which is not a known class of states.")


# ------------------------- End states of chains: from the traces of a run into its result, and back


STATE = "state_of_steps"
"""Attribute of a trace: result of `state_of` after its last draw."""

POINT = "last_point"
"""Attribute of a trace: the values of the model's variables from which its chain continues; without
it, those of the last draw."""

REASON = "missing_because"
"""Attribute of a group without states."""

TUNING = "remaining_tuning"
"""Attribute of the group of a chain in tuning: remaining tuning iterations."""

CHAIN, LAST = "chain", "last_draw"
"""Attributes of the group of a chain: its label in the draws, and that of the last draw before its
end, or before its draws ahead. Whoever selects chains or draws leaves states as they are."""

DRAWN = ("posterior", "sample_stats", "warmup_posterior", "warmup_sample_stats")
"""Groups of the draws of a run, first those after tuning."""


class StoppedChain(NamedTuple):
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
    # NUTS counts its divergences but leaves the count out of its state.
    divergences = [getattr(method, "divergences", None) for method in _methods_of(step)]
    return {
        "steps": _names_of_steps(step),
        "state": step.sampling_state,
        "divergences": divergences,
    }


def restore_state(step, state: dict[str, Any]) -> None:
    """Restore step methods to a state from `state_of`."""
    step.sampling_state = state["state"]
    for method, count in zip(_methods_of(step), state["divergences"], strict=True):
        if count is not None:
            method.divergences = count


def _methods_of(step) -> list:
    return getattr(step, "methods", [step])


def _names_of_steps(step) -> list[str]:
    return [
        f"{type(method).__name__}({', '.join(v.name for v in getattr(method, 'vars', []))})"
        for method in _methods_of(step)
    ]


def remaining_tuning(iterations: int, tune: int) -> int | None:
    """`Left.tuning` of a chain after a number of iterations."""
    return tune - iterations if iterations <= tune else None


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
    """Whether a run stopped before any chain had a draw for the result."""
    return discards_tuning and all(len(trace) <= tune for trace in traces)


def states_only(traces, tune: int, model) -> xr.DataTree | None:
    """States for resuming a run that stopped in tuning; None if it cannot be resumed."""
    if not all(isinstance(trace, NDArray) for trace in traces):
        return None
    started = [trace for trace in traces if len(trace) and hasattr(trace, STATE)]
    states = _states_group(started, None, tune, model) if started else None
    return None if states is None else xr.DataTree.from_dict({GROUP: states})


def add_states(idata: xr.DataTree, traces, tune: int, discards_tuning: bool, model) -> None:
    """Add the end states of the traces to the result of `pymc.sample`.

    Chains of an interrupted run differ in length, and PyMC truncates them to a common length; the
    draws beyond it are stored with the state.
    """
    if not all(isinstance(trace, NDArray) for trace in traces):
        return
    included, length = _choose_chains(traces, tune if discards_tuning else 0)
    states = _states_group(included, int(length), tune, model)
    if states is not None:
        idata[GROUP] = states
        note_ends(idata, numbers_of_chains(idata))


def note_ends(idata: xr.DataTree, numbers: Sequence[int]) -> None:
    """Note at the states, numbered in the order of the chains, which draws they follow."""
    labels = labels_of_draws(idata)
    if labels is None or not numbers:
        return
    chains, draws = labels
    for number, chain in zip(numbers, chains, strict=True):
        idata[GROUP][f"chain_{number}"].attrs |= {CHAIN: int(chain), LAST: int(draws[-1])}


def labels_of_draws(idata: xr.DataTree) -> tuple[np.ndarray, np.ndarray] | None:
    """Labels of the chains and of the draws; None of a run that stopped before it had any."""
    for name in DRAWN:
        if name in idata.children and {"chain", "draw"} <= set(idata[name].coords):
            chains, draws = (idata[name][dim].to_numpy() for dim in ("chain", "draw"))
            return chains.reshape(-1), draws.reshape(-1)
    return None


def with_its_states(idata: xr.DataTree) -> xr.DataTree:
    """The draws, with the states of the chains that they have, numbered in their order.

    Raises
    ------
    ValueError
        For chains without states, and where draws are missing before the end of the chains.
    """
    labels = labels_of_draws(idata)
    if labels is None:
        return idata
    chains, draws = labels
    states = idata[GROUP].children
    by_label = {
        int(states[f"chain_{number}"].attrs.get(CHAIN, number)): states[f"chain_{number}"]
        for number in numbers_of_chains(idata)
    }
    chosen = chains.tolist()
    if len(set(chosen)) < len(chosen) or not set(chosen) <= set(by_label):
        raise ValueError(
            f"idata: its chains {chosen} are not those whose states it holds, {list(by_label)}: "
            "chains were renamed, or those of several runs joined. Resume each result as it was "
            "returned, or some of its chains, such as idata.isel(chain=[0])."
        )
    last = max((int(by_label[chain].attrs.get(LAST, -1)) for chain in chosen), default=-1)
    if not draws.size or (np.diff(draws) != 1).any() or last not in (-1, draws[-1]):
        has = f"{draws.size} from {draws[0]} to {draws[-1]}" if draws.size else "none"
        raise ValueError(
            "idata: draws were left out, so that new ones would not follow them: of the draws up "
            f"to {max([last, *draws.tolist()])} it has {has}. Resume the whole result, and leave "
            "draws out afterwards; only the first ones may be left out before."
        )
    kept = {f"chain_{k}": by_label[chain] for k, chain in enumerate(chosen)}
    result = idata.map_over_datasets(with_axes)
    result.attrs = dict(idata.attrs)
    result[GROUP] = xr.DataTree.from_dict(kept)
    return result


def with_axes(group: xr.Dataset) -> xr.Dataset:
    """With axes for chains and draws, where one chain or draw was selected."""
    lacking = [dim for dim in ("chain", "draw") if dim in group.coords and dim not in group.dims]
    if not lacking:
        return group
    return group.expand_dims(lacking).transpose("chain", "draw", ..., missing_dims="ignore")


def _states_group(traces, length: int | None, tune: int, model) -> xr.DataTree | None:
    """Group of the states, with the draws of each chain beyond ``length``, unless that is None."""
    if not all(hasattr(trace, STATE) for trace in traces):
        return None  # interrupted in another process
    names = [variable.name for variable in model.value_vars]
    if not all(_has_points(trace, names, length) for trace in traces):
        return None
    by_chain = {}
    for trace in sorted(traces, key=lambda trace: trace.chain):
        iterations = len(trace)
        point = getattr(trace, POINT, None) or trace.point(iterations - 1)
        tuning = remaining_tuning(iterations, tune)
        first = iterations if length is None else length
        end = {
            "state": getattr(trace, STATE),
            "point": {name: np.asarray(point[name]) for name in names},
            "ahead": [_row(trace, names, k) for k in range(first, iterations)],
        }
        try:
            stored = to_dataset(end)
        except TypeError as error:  # the draws must not be lost because of it
            return xr.DataTree(xr.Dataset(attrs={REASON: str(error)}))
        stored.attrs = {} if tuning is None else {TUNING: tuning}
        by_chain[f"chain_{trace.chain}"] = stored
    return xr.DataTree.from_dict(by_chain)


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
    """Numbers of the chains that have states, in order."""
    return sorted(int(name.removeprefix("chain_")) for name in idata[GROUP].children)


def longest_tuning(idata: xr.DataTree) -> int:
    """Remaining tuning iterations of the chain with the fewest iterations."""
    return max(int(node.attrs.get(TUNING, 0)) for node in idata[GROUP].children.values())


def read_states(idata: xr.DataTree, step: Any) -> list[StoppedChain]:
    """States stored by `add_states`, chain by chain, for steps of the same kinds."""
    names, chains = _names_of_steps(step), []
    for number in numbers_of_chains(idata):
        node = idata[GROUP][f"chain_{number}"]
        stored = from_dataset(node.to_dataset())
        if stored["state"]["steps"] != names:
            raise ValueError(
                "idata: its chains were drawn with other step methods, "
                f"{stored['state']['steps']}, not with {names}. Give resume the step= and other "
                "options of the first run."
            )
        tuning = node.attrs.get(TUNING)
        chains.append(
            StoppedChain(
                stored["state"],
                stored["point"],
                None if tuning is None else int(tuning),
                stored["ahead"],
            )
        )
    return chains


# ------------------------------- Checkpoints: draws and states in a file during a run, for `resume`


WRITES = 10
"""Default number of checkpoints; each writes all draws so far."""


class Checkpoint:
    """The file, and when it is written.

    Parameters
    ----------
    path : str or path
        The file.
    every : int or None
        Iterations of each chain between two writes; None for a tenth of the run.
    total : int
        Iterations of a chain, tuning included.
    merged : callable
        Function from the result of this run to the content of the file.
    """

    def __init__(self, path, every, total: int, merged: Callable = lambda new: new):
        self.path = check_path("checkpoint", path)
        self.every = -(-total // WRITES) if every is None else check_number("every", every, 1)
        self.merged, self.start = merged, time.time()
        self.warned = False

    def of_run(self, every, total: int, merged: Callable = lambda new: new) -> "Checkpoint":
        """Itself, for a run of ``total`` iterations."""
        raise NotImplementedError

    def write_traces(self, traces, tune: int, settings: dict) -> None:
        """Write the draws so far."""
        result = self._so_far(traces, tune, settings)
        if result is not None:
            self.write(self.merged(result))

    def write(self, idata: xr.DataTree) -> None:
        """Write the file; if that fails, issue a warning and continue."""
        states = idata.children.get(GROUP)
        if states is not None and not states.children and not self.warned:
            self.warned = True
            warnings.warn(
                f"checkpoint={str(self.path)!r} holds draws from which chains cannot be resumed. "
                f"{states.attrs[REASON]}",
                stacklevel=2,
            )
        try:
            save(idata, self.path)
        except OSError as error:
            warnings.warn(
                "checkpoint: this one was not written. The run continues, and the previous "
                f"checkpoint is unchanged. {error}",
                stacklevel=2,
            )

    def _so_far(self, traces, tune: int, settings: dict) -> xr.DataTree | None:
        discards, model = settings["discard_tuned_samples"], settings["model"]
        if not any(len(trace) for trace in traces):
            return None
        if is_tuning(traces, tune, discards):
            return states_only(traces, tune, model)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Found chain dimension to be longer")  # a few draws
            return result_so_far(traces, tune, time.time() - self.start, discards, model)


def check_checkpoint(checkpoint, every, total: int, *merged) -> Checkpoint | None:
    """A checkpoint, if requested, or an error that names the argument."""
    if checkpoint is None:
        if every is not None:
            raise ValueError(
                f"every={every!r} needs a checkpoint: give the name of a file as checkpoint=."
            )
        return None
    if isinstance(checkpoint, Checkpoint):
        return checkpoint.of_run(every, total, *merged)
    return Checkpoint(checkpoint, every, total, *merged)
