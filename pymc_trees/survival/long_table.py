"""`long_form`: a row for each time of the grid at which a subject is at risk."""

from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from pymc_trees.arguments import check_number
from pymc_trees.core.columns.cells import MISSING
from pymc_trees.distributions.data.numbers import row_numbers
from pymc_trees.distributions.data.table import Table, as_matrix
from pymc_trees.predictors.columns import check_held, column_names

# --------------------------- What is let in as times, events, causes of events, and a grid of times


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
    events = ~np.asarray(pd.isna(held), dtype=bool)
    events[events] = [one != 0 for one in held[events]]  # NA has no truth value
    if any(isinstance(one, str) and one == "0" for one in held[events]):
        raise ValueError(
            "cause holds the text '0', which would be one more cause: give the number 0, or None, "
            "where a time is censored, or all causes as numbers."
        )
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


# -------------------------------------------------------------------------------------------------


# --------- Which rows the long form has: a subject at each time of the grid at which it is at risk
#
# An event at a time t is one at the first time of the grid that is not before t. A subject whose
# time is censored was seen without an event at the times of the grid up to its own, and nothing
# is known of later ones. The product over the rows of 1 - h, and h where y is 1, is then the
# likelihood of hazards h at the times of the grid.


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
    numbers = row_numbers("subject", subject)
    if numbers.size != outcome.time.size:
        raise ValueError(
            f"subject has {numbers.size} entries, but time has {outcome.time.size}: give the same "
            "number."
        )
    codes = numbers.astype(np.int64)
    if not (codes == numbers).all() or codes.min() < 0 or codes.max() >= n:
        raise ValueError(f"subject must hold rows of X, numbered from 0 to {n - 1}.")
    absent = np.setdiff1d(np.arange(n), codes)
    if absent.size:
        raise ValueError(
            f"The rows {absent[:10].tolist()} of X have no record: give the end of follow-up of "
            "each, with event 0, or leave them out."
        )
    order = np.lexsort((~outcome.event, outcome.time, codes))  # at one time the event comes first
    found_of, event = codes[order], outcome.event[order]
    goes_on = np.append(found_of[1:] == found_of[:-1], False)
    early = found_of[goes_on & ~event]
    if early.size:
        raise ValueError(
            f"The follow-up of row {early[0]} of X ends, with event 0, before its last record."
        )
    return codes


# --------------------------------------------------------------------------------------------------


class LongForm(NamedTuple):
    """The long form of survival data: N rows of n subjects."""

    X: Any
    """(N, 1 + p) array or frame: the time of the grid, then the columns of the subject. Recurrent
    events have two more columns behind the time."""
    y: np.ndarray
    """(N,) 1 where the subject has its event at that time, else 0."""
    row: np.ndarray
    """(N,) row of the subject in the table that was given."""
    times: np.ndarray
    """(K,) the grid."""


def long_form(X: Any, time: Any, event: Any, *, times=50, entry=None, subject=None) -> LongForm:
    """Survival data as rows of a binary outcome (Sparapani et al. 2016).

    Each subject has a row for each time of a grid at which it is at risk, with ``y = 1`` in the row
    of its event. A binary regression of y on time and covariates is then a model of the hazard, of
    any shape.

    Parameters
    ----------
    X : (n, p) array, pandas or polars frame
        Covariates. Text, categories and missing cells are kept.
    time : (n,) array
        Time of the event, or of the last observation of a subject without one.
    event : (n,) array
        1 for an event, 0 for a censored time.
    times : int, None or increasing array, default 50
        The grid: at most this many quantiles of the event times; None for all distinct times in the
        data, as in Sparapani (2016); or the times themselves. Events after the last of them are not
        used: these subjects are treated as surviving until then.
    entry : (n,) array, optional
        Start of observation of a subject (left truncation). Default: 0.
    subject : (records,) array of int, optional
        Recurrent events: ``time`` and ``event`` are then records, one for each event and one, with
        event 0, for the end of follow-up, and ``subject`` is the row of X that each belongs to.

    Returns
    -------
    LongForm
        ``X``, ``y``, ``row`` and ``times``. The first column of X is ``time``; recurrent events add
        ``since``, the time since the last event (or 0), and ``count``, events so far.

    Raises
    ------
    ValueError
        Times that are not positive, events other than 0 and 1, a grid that does not increase.

    Notes
    -----
    An event between two times of the grid is moved to the later one. A time censored between two
    times counts up to the earlier one, until which the subject is known to have survived; a time
    censored before the first one has no row. There are sum_i #{j: entry_i < g_j <= t_i} rows and
    one more for each event between two times, at most n K; nothing larger is allocated. For
    recurrent events a time of the grid has at most one event: events that a coarse grid merges
    count once.

    References
    ----------
    Sparapani, Logan, McCulloch and Laud (2016). Nonparametric survival analysis using Bayesian
    Additive Regression Trees (BART). Statistics in Medicine 35(16).
    Sparapani, Rein, Tarima, Jackson and Meurer (2020). Non-parametric recurrent events analysis
    with BART and an application to the hospital admissions of patients with diabetes.
    Biostatistics 21(1).

    Examples
    --------
    >>> import numpy as np
    >>> from pymc_trees import survival
    >>> long = survival.long_form([[0.5], [0.7]], [3.0, 2.0], [1, 0], times=[1, 2, 3])
    >>> long.X.tolist()
    [[1.0, 0.5], [2.0, 0.5], [3.0, 0.5], [1.0, 0.7], [2.0, 0.7]]
    >>> long.y.tolist(), long.row.tolist()
    ([0, 0, 1, 0, 0], [0, 0, 0, 1, 1])
    """
    check_held(X, "X")
    is_frame = column_names(X) is not None
    matrix = None if is_frame else as_matrix(X, "X")
    n = len(X) if matrix is None else len(matrix)
    rows, grid = read_rows(n, time, event, times, entry, subject)
    if matrix is None:
        return LongForm(_frame(X, rows), rows.y, rows.subject, grid)
    table = _table(matrix, rows)
    table[table == MISSING] = np.nan
    return LongForm(table, rows.y, rows.subject, grid)


def read_rows(n: int, time, event, times, entry=None, subject=None) -> tuple[LongRows, np.ndarray]:
    """Rows of n subjects, and the grid."""
    if subject is None:
        outcome = check_outcome(time, event, n, entry)
        grid = check_grid(times, outcome)
        return rows_of(outcome, grid), grid
    if entry is not None:
        raise ValueError("entry: recurrent events are counted from time 0, so leave it out.")
    outcome = check_outcome(time, event)
    subject = check_subject(subject, outcome, n)
    grid = check_grid(times, outcome)
    return recurrent_rows(outcome, subject, n, grid), grid


def long_inputs(table: Table, rows: LongRows) -> Table:
    """Inputs of the long form from those of the subjects."""
    _check_names(table.schema.names or (), rows)
    return Table(_table(table.values, rows), table.schema.with_numbers(rows.columns, first=True))


def _table(values: np.ndarray, rows: LongRows) -> np.ndarray:
    """Fill the table column by column, so that only one more column is in memory."""
    first = list(rows.columns.values())
    table = np.empty((rows.y.size, len(first) + values.shape[1]))
    for j, column in enumerate(first):
        table[:, j] = column
    for j in range(values.shape[1]):
        table[:, len(first) + j] = values[rows.subject, j]
    return table


def _frame(X, rows: LongRows):
    """A frame of the kind that was given."""
    _check_names(column_names(X) or (), rows)
    if hasattr(X, "iloc"):
        table = X.iloc[rows.subject].reset_index(drop=True)
        for j, (name, column) in enumerate(rows.columns.items()):
            table.insert(j, name, column)
        return table
    import polars

    first = [polars.Series(name, column) for name, column in rows.columns.items()]
    return polars.DataFrame(first).hstack(X[rows.subject])


def _check_names(names, rows: LongRows) -> None:
    both = [name for name in rows.columns if name in names]
    if both:
        raise ValueError(
            f"X has columns {both}, which are also names of columns of the long form: rename them."
        )
