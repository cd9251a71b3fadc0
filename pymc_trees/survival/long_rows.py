"""Which rows the long form has: a subject at each time of the grid at which it is at risk.

An event at a time t is one at the first time of the grid that is not before t. A subject whose time
is censored was seen without an event at the times of the grid up to its own, and nothing is known
of later ones. The product over the rows of 1 - h, and h where y is 1, is then the likelihood of
hazards h at the times of the grid.
"""

from typing import Any, NamedTuple

import numpy as np

from pymc_trees.distributions.data.numbers import row_numbers
from pymc_trees.survival.outcomes import Outcome


class LongRows(NamedTuple):
    """N rows, those of a subject one after the other in the order of time."""

    subject: np.ndarray
    """(N,) numbers of the subjects."""
    y: np.ndarray
    """(N,) 1 for an event, else 0."""
    columns: dict[str, np.ndarray]
    """What is put before the columns of the subjects, by name."""


def rows_of(outcome: Outcome, grid: np.ndarray) -> LongRows:
    """Rows of subjects of which each has at most one event."""
    first = np.searchsorted(grid, outcome.entry, side="right")
    at = np.searchsorted(grid, outcome.time)
    known = np.searchsorted(grid, outcome.time, side="right") - 1
    last = np.where(outcome.event, np.minimum(at, grid.size - 1), known)
    seen = np.flatnonzero(outcome.event & (at < grid.size))
    return _rows(grid, first, last, seen, at[seen])[0]


def recurrent_rows(outcome: Outcome, subject: np.ndarray, n: int, grid: np.ndarray) -> LongRows:
    """Rows of n subjects with several records, and the history that each row has.

    The time since the last event of the subject, or since 0, and the number of events so far: at
    earlier times of the grid, as a time of the grid has one event or none.
    """
    end = np.zeros(n)
    np.maximum.at(end, subject, outcome.time)
    event = outcome.event
    last = np.searchsorted(grid, end, side="right") - 1
    at, of = np.searchsorted(grid, outcome.time[event]), subject[event]
    np.maximum.at(last, of, np.minimum(at, grid.size - 1))
    seen = at < grid.size
    rows, starts = _rows(grid, np.zeros(n, dtype=np.int64), last, of[seen], at[seen])
    start = starts[rows.subject]
    before = np.cumsum(rows.y) - rows.y
    count = before - before[start]
    # of each row the last one with an event before it, which may be another subject's
    latest = np.maximum.accumulate(np.where(rows.y == 1, np.arange(rows.y.size), -1))
    latest = np.concatenate([[-1], latest[:-1]])
    time = rows.columns["time"]
    since = time - np.where(latest >= start, time[latest], 0.0)
    return rows._replace(columns=rows.columns | {"since": since, "count": count.astype(float)})


def _rows(grid, first, last, subject, at) -> tuple[LongRows, np.ndarray]:
    """Rows from one number of the grid to another, with events; and where each subject starts."""
    counts = np.maximum(last - first + 1, 0)
    starts = np.cumsum(counts) - counts
    of = np.repeat(np.arange(counts.size), counts)
    y = np.zeros(of.size, dtype=np.int64)
    y[starts[subject] + at - first[subject]] = 1
    if not y.any():
        raise ValueError(f"No event happens by {grid[-1]:g}, the last of times: add later times.")
    time = grid[np.arange(of.size) - (starts - first)[of]]
    return LongRows(of, y, {"time": time}), starts


def check_subject(subject: Any, outcome: Outcome, n: int) -> np.ndarray:
    """(records,) rows of X, of which each has records that end once."""
    given = row_numbers("subject", subject)
    if given.size != outcome.time.size:
        raise ValueError(
            f"subject has {given.size} entries, but time has {outcome.time.size}: give the same "
            "number."
        )
    found = given.astype(np.int64)
    if not (found == given).all() or found.min() < 0 or found.max() >= n:
        raise ValueError(f"subject must hold rows of X, numbered from 0 to {n - 1}.")
    absent = np.setdiff1d(np.arange(n), found)
    if absent.size:
        raise ValueError(
            f"The rows {absent[:10].tolist()} of X have no record: give the end of follow-up of "
            "each, with event 0, or leave them out."
        )
    order = np.lexsort((~outcome.event, outcome.time, found))  # at one time the event comes first
    found_of, event = found[order], outcome.event[order]
    goes_on = np.append(found_of[1:] == found_of[:-1], False)
    early = found_of[goes_on & ~event]
    if early.size:
        raise ValueError(
            f"The follow-up of row {early[0]} of X ends, with event 0, before its last record."
        )
    return found
