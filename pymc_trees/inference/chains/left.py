"""Where chains stopped: from the traces of a run into its result, and out of that again."""

from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from pymc.backends.base import _choose_chains
from pymc.backends.ndarray import NDArray

from pymc_trees.inference.chains.states import GROUP, from_dataset, to_dataset

STATE = "state_of_steps"
"""Attribute of a trace: what `state_of` gave after its last draw."""

WHY = "missing_because"
"""Attribute of a group without states."""


class Left(NamedTuple):
    """A chain that stopped."""

    state: Any
    """Of the step methods, after the last of its draws."""
    point: dict[str, Any]
    """The last of its draws."""
    ahead: list[tuple[dict[str, Any], list[dict[str, Any]]]]
    """Draws and statistics beyond those of the shortest chain, which the result leaves out."""


def state_of(step) -> dict[str, Any]:
    """State of step methods, with their names and what they move."""
    return {"steps": _named(step), "state": step.sampling_state}


def _named(step) -> list[str]:
    several = getattr(step, "methods", [step])
    return [
        f"{type(one).__name__}({', '.join(v.name for v in getattr(one, 'vars', []))})"
        for one in several
    ]


def note_states(idata: xr.DataTree, traces, tune: int, discards_tuning: bool, model) -> None:
    """Give the result of `pymc.sample` the states that its traces were left with.

    Chains of an interrupted run differ in length, and PyMC keeps what the shortest of the best has;
    the draws beyond are noted with the state.
    """
    if not all(isinstance(trace, NDArray) for trace in traces):
        return
    chosen, length = _choose_chains(traces, tune if discards_tuning else 0)
    if length < tune or not all(hasattr(trace, STATE) for trace in chosen):
        return  # interrupted while it tuned, or in another process
    names = [variable.name for variable in model.value_vars]
    if not all(name in trace.varnames for trace in chosen for name in names):
        return  # var_names= of pymc.sample leaves some out
    found = {}
    for trace in sorted(chosen, key=lambda trace: trace.chain):
        last = trace.point(len(trace) - 1)
        left = {
            **getattr(trace, STATE),
            "point": {name: np.asarray(last[name]) for name in names},
            "ahead": [_row(trace, names, k) for k in range(int(length), len(trace))],
        }
        try:
            found[f"chain_{trace.chain}"] = to_dataset(left)
        except TypeError as error:  # the draws are not to be lost for it
            idata[GROUP] = xr.DataTree(xr.Dataset(attrs={WHY: str(error)}))
            return
    idata[GROUP] = xr.DataTree.from_dict(found)


def _row(trace: NDArray, names: list[str], k: int) -> list:
    point = trace.point(k)
    stats = [
        {name: np.asarray(values[k])[()] for name, values in of_step.items() if name != "warning"}
        for of_step in trace._stats
    ]
    return [{name: np.asarray(point[name]) for name in names}, stats]


def read_states(idata: xr.DataTree, step: Any) -> list[Left]:
    """What `note_states` noted, chain by chain, for steps of the same kinds."""
    named, found, noted = _named(step), [], idata[GROUP].children
    for name in sorted(noted, key=lambda name: int(name.removeprefix("chain_"))):
        stored = from_dataset(noted[name].to_dataset())
        if stored["steps"] != named:
            raise ValueError(
                f"idata: its chains were made by other step methods, {stored['steps']}, and not by "
                f"{named}. Give resume the step= and the other options of the first run."
            )
        found.append(Left(stored["state"], stored["point"], stored["ahead"]))
    return found
