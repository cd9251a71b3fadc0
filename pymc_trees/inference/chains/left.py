"""Where chains stopped: from the traces of a run into its result, and out of that again."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pymc.sampling.mcmc as mcmc
import xarray as xr
from pymc.backends.base import _choose_chains
from pymc.backends.ndarray import NDArray

from pymc_trees.inference.chains.states import GROUP, from_dataset, to_dataset

STATE = "state_of_steps"
"""Attribute of a trace: what `state_of` gave after its last draw."""

POINT = "last_point"
"""Attribute of a trace: the values of the model's variables that its chain goes on from. Without it
the last draw says them."""

WHY = "missing_because"
"""Attribute of a group without states."""

TUNING = "tuning_left"
"""Attribute of the group of a chain that tunes: how long it still does."""


class Left(NamedTuple):
    """A chain that stopped."""

    state: dict[str, Any]
    """What `state_of` gave after the last of its iterations."""
    point: dict[str, Any]
    """The last of its points."""
    tuning: int | None
    """Iterations that are still to tune; None after the first that does not."""
    ahead: Sequence[tuple[dict[str, Any], list[dict[str, Any]]]] = ()
    """Draws and statistics beyond those of the shortest chain, which the result leaves out."""


def state_of(step) -> dict[str, Any]:
    """State of step methods, with their names and what they move."""
    # NUTS numbers its divergences, and leaves the number out of its state.
    divergences = [getattr(one, "divergences", None) for one in _several(step)]
    return {"steps": _named(step), "state": step.sampling_state, "divergences": divergences}


def put_back(step, state: dict[str, Any]) -> None:
    """Bring step methods into the state that `state_of` gave."""
    step.sampling_state = state["state"]
    for one, count in zip(_several(step), state["divergences"], strict=True):
        if count is not None:
            one.divergences = count


def _several(step) -> list:
    return getattr(step, "methods", [step])


def _named(step) -> list[str]:
    return [
        f"{type(one).__name__}({', '.join(v.name for v in getattr(one, 'vars', []))})"
        for one in _several(step)
    ]


def tuning_left(made: int, tune: int) -> int | None:
    """`Left.tuning` of a chain that has made so many iterations."""
    return tune - made if made <= tune else None


def result_so_far(traces, tune: int, seconds: float, discards_tuning: bool, model) -> xr.DataTree:
    """What `pymc.sample` would return of traces that hold only so much, without its checks."""
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
    """Whether a run was stopped before any of its chains had a draw for the result."""
    return discards_tuning and all(len(trace) <= tune for trace in traces)


def states_alone(traces, tune: int, model) -> xr.DataTree | None:
    """What a run that was stopped while it tuned can go on from; None where it cannot."""
    if not all(isinstance(trace, NDArray) for trace in traces):
        return None
    begun = [trace for trace in traces if len(trace) and hasattr(trace, STATE)]
    found = _stored(begun, None, tune, model) if begun else None
    return None if found is None else xr.DataTree.from_dict({GROUP: found})


def note_states(idata: xr.DataTree, traces, tune: int, discards_tuning: bool, model) -> None:
    """Give the result of `pymc.sample` the states that its traces were left with.

    Chains of an interrupted run differ in length, and PyMC keeps what the shortest of the best has;
    the draws beyond are noted with the state.
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
        except TypeError as error:  # the draws are not to be lost for it
            return xr.DataTree(xr.Dataset(attrs={WHY: str(error)}))
        stored.attrs = {} if tuning is None else {TUNING: tuning}
        found[f"chain_{trace.chain}"] = stored
    return xr.DataTree.from_dict(found)


def _has_points(trace: NDArray, names: list[str], length: int | None) -> bool:
    """Whether all is known that a chain goes on from, where var_names= leaves variables out too."""
    if all(name in trace.varnames for name in names):
        return True
    return hasattr(trace, POINT) and length in (None, len(trace))  # no draws ahead


def _row(trace: NDArray, names: list[str], k: int) -> list:
    point = trace.point(k)
    stats = [
        {name: np.asarray(values[k])[()] for name, values in of_step.items() if name != "warning"}
        for of_step in trace._stats
    ]
    return [{name: np.asarray(point[name]) for name in names}, stats]


def numbers_of_chains(idata: xr.DataTree) -> list[int]:
    """Which chains have states, in order."""
    return sorted(int(name.removeprefix("chain_")) for name in idata[GROUP].children)


def longest_tuning(idata: xr.DataTree) -> int:
    """Iterations that are still to tune in the chain that has made the fewest."""
    return max(int(node.attrs.get(TUNING, 0)) for node in idata[GROUP].children.values())


def read_states(idata: xr.DataTree, step: Any) -> list[Left]:
    """What `note_states` noted, chain by chain, for steps of the same kinds."""
    named, found = _named(step), []
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
