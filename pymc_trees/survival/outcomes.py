"""What is let in as times, events, causes of events, and a grid of times."""

from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from pymc_trees.arguments import check_number
from pymc_trees.distributions.data.numbers import row_numbers


class Outcome(NamedTuple):
    """What was seen of n subjects, or in n records of subjects."""

    time: np.ndarray
    """(n,) float64, positive."""
    event: np.ndarray
    """(n,) bool: an event, or censored."""
    entry: np.ndarray
    """(n,) float64: from when on a subject was watched."""


def check_outcome(time: Any, event: Any, n: int | None = None, entry: Any = None) -> Outcome:
    """Times with at least one event."""
    times = row_numbers("time", time, n)
    if not (times > 0).all():
        raise ValueError(f"time must be positive, but the least is {times.min():g}.")
    events = row_numbers("event", event)
    if events.size != times.size:
        raise ValueError(
            f"event has {events.size} entries, but time has {times.size}: give the same number."
        )
    if not np.isin(events, (0.0, 1.0)).all():
        other = events[~np.isin(events, (0.0, 1.0))][0]
        raise ValueError(f"event holds {other:g}: give 1 for an event and 0 for a censored time.")
    if not events.any():
        raise ValueError("event is 0 in every row: hazards cannot be estimated without an event.")
    entries = np.zeros(times.size) if entry is None else row_numbers("entry", entry, times.size)
    if not ((entries >= 0) & (entries < times)).all():
        raise ValueError("entry must be at least 0 and below time in every row.")
    return Outcome(times, events == 1.0, entries)


def check_cause(cause: Any, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Sorted causes, at least two, and (n,) codes, -1 where a time is censored."""
    held = np.asarray(cause.to_numpy() if hasattr(cause, "to_numpy") else cause, dtype=object)
    if held.shape != (n,):
        raise ValueError(f"cause has shape {held.shape}: give {n} causes, one for each row of X.")
    events = ~(pd.isna(held) | (held == 0)).astype(bool)
    try:
        names, codes_of_events = np.unique(held[events], return_inverse=True)
    except TypeError as error:
        raise TypeError("cause must hold numbers or text, not both.") from error
    if names.size < 2:
        raise ValueError(
            f"cause names {names.tolist()}: competing risks need at least two causes, besides 0 "
            "or missing for censored times. Use discrete_time for events of one kind."
        )
    codes = np.full(n, -1)
    codes[events] = codes_of_events
    return np.array(names.tolist()), codes


def check_grid(times: Any, outcome: Outcome) -> np.ndarray:
    """Increasing times at which events are said to happen."""
    if times is None:
        return np.unique(outcome.time)
    if np.ndim(times) == 0:
        number = check_number("times", times, 1)
        known = outcome.time[outcome.event]
        if np.unique(known).size <= number:
            return np.unique(known)
        shares = np.arange(1, number + 1) / number
        return np.unique(np.quantile(known, shares, method="inverted_cdf"))
    grid = row_numbers("times", times)
    if grid.size == 0 or grid[0] <= 0 or (np.diff(grid) <= 0).any():
        raise ValueError(
            "times must be positive and increasing, or a whole number (of quantiles of the event "
            "times), or None (all times in the data)."
        )
    return grid
