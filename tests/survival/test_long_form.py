"""Rows at risk against definitions written out subject by subject."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.special import expit

from pymc_trees.survival import competing_risks, long_form, recurrent_events

N = 60


@pytest.fixture
def seen(rng):
    """Times with ties, events, entries, and covariates of few values."""
    time = np.ceil(rng.exponential(6.0, N) + 0.1)
    return time, rng.random(N) < 0.6, rng.integers(0, 3, (N, 2)).astype(float)


def hazard(t, x):
    return expit(-2.0 + 0.1 * t + x[0] - 0.3 * x[1] * np.sin(t))


def log_likelihood(long):
    """Of the rows, Bernoulli or Binomial without the number of orders."""
    h = np.array([hazard(row[0], row[1:]) for row in np.asarray(long.X)])
    return float(np.sum(long.y * np.log(h) + (long.trials - long.y) * np.log1p(-h)))


def product_of_hazards(time, event, X, entry):
    """The discrete-time likelihood of the events and censorings, by its definition."""
    times = sorted({t for t, happened in zip(time, event, strict=True) if happened})
    total = 0.0
    for t_i, happened, x, start in zip(time, event, X, entry, strict=True):
        for t in times:
            if start < t < t_i or (t == t_i and not happened):
                total += np.log(1 - hazard(t, x))
        if happened:
            total += np.log(hazard(t_i, x))
    return total


@pytest.mark.parametrize("group", [False, True])
@pytest.mark.parametrize("late", [False, True])
def test_the_likelihood_is_that_of_discrete_time(seen, rng, group, late):
    time, event, X = seen
    entry = np.floor(time * rng.random(N) * late) * (time > 1)
    long = long_form(time, event, X, entry=entry if late else None, group=group)
    want = product_of_hazards(time, event, X, entry)
    np.testing.assert_allclose(log_likelihood(long), want, rtol=1e-12)
    assert long.y.sum() == event.sum()


def test_groups_count_what_rows_hold(seen):
    time, event, X = seen
    rows, groups = (long_form(time, event, X, group=group) for group in (False, True))
    found = pd.DataFrame(rows.X).assign(y=rows.y).groupby([0, 1, 2])["y"].agg(["sum", "size"])
    counted = pd.DataFrame(groups.X).assign(y=groups.y, n=groups.trials).set_index([0, 1, 2])
    counted = counted.sort_index()
    assert len(counted) == len(found) < len(rows.y)
    np.testing.assert_array_equal(counted[["y", "n"]], found)
    np.testing.assert_array_equal(X[groups.subject], groups.X[:, 1:])


def test_without_covariates_the_counts_are_those_of_kaplan_and_meier(seen):
    time, event, _ = seen
    long = long_form(time, event, group=True)
    for t, deaths, at_risk in zip(long.X[:, 0], long.y, long.trials, strict=True):
        assert deaths == np.sum(event & (time == t))
        assert at_risk == np.sum(time >= t)


@pytest.mark.parametrize(
    ("at_risk", "moment"), [("end", 1.0), ("middle", 0.5), ("start", 1e-9), (None, 0.5)]
)
def test_who_is_at_risk_in_an_interval(rng, at_risk, moment):
    time, event = rng.exponential(5.0, N) + 0.01, rng.random(N) < 0.5
    entry = time * rng.random(N) * (rng.random(N) < 0.4)
    grid = np.array([1.0, 2.5, 6.0, 7.0])
    long = long_form(time, event, times=grid, entry=entry, at_risk=at_risk)
    want = []
    for i in range(N):
        for low, high in zip([0.0, *grid], grid, strict=False):
            now = event[i] and low < time[i] <= high
            judged = low + moment * (high - low)
            over = event[i] and time[i] <= low
            if now or (entry[i] < judged <= time[i] and not over):
                want.append((i, high, int(now)))
    found = list(zip(long.subject.tolist(), long.X[:, 0].tolist(), long.y.tolist(), strict=True))
    assert found == want


def test_a_number_of_times_takes_quantiles_of_events(seen):
    time, event, X = seen
    long = long_form(time, event, X, times=4)
    of_events = np.sort(time[event])
    assert long.times.size <= 4 and set(long.times) <= set(of_events)
    assert long.times[-1] == of_events[-1]
    share = np.mean(of_events <= long.times[0])
    assert share >= 0.25


def test_frames_keep_names_levels_and_missing_cells(seen):
    time, event, _ = seen
    X = pd.DataFrame({"age": np.arange(N, dtype=float), "site": np.resize(["a", "b", None], N)})
    X["stage"] = pd.Categorical(np.resize(["I", "II"], N), ordered=True)
    X.loc[1, "age"] = np.nan
    X.index = X.index + 100
    long = long_form(time, event, X)
    assert list(long.X.columns) == ["time", "age", "site", "stage"]
    assert long.X["stage"].dtype == X["stage"].dtype
    want = X.iloc[long.subject].reset_index(drop=True)
    pd.testing.assert_frame_equal(long.X.drop(columns="time"), want)
    grouped = long_form(time, event, X[["site"]], group=True)
    assert grouped.X["site"].isna().any() and len(grouped.y) <= 3 * grouped.times.size
    other = long_form(time, event, pl.DataFrame({"age": np.arange(N, dtype=float)}))
    assert isinstance(other.X, pl.DataFrame) and other.X.columns == ["time", "age"]
    np.testing.assert_array_equal(other.X["age"], other.subject)
    array = long_form(time, event, np.where(np.arange(N) == 2, np.nan, 1.0)[:, None])
    np.testing.assert_array_equal(np.isnan(array.X[:, 1]), array.subject == 2)


def test_competing_kinds_are_asked_in_turn(seen, rng):
    time, event, X = seen
    kind = np.where(event, rng.integers(1, 4, N), 0)
    long = competing_risks(time, kind, X)
    any_kind = long_form(time, event, X)
    np.testing.assert_array_equal(long.event.X, any_kind.X)
    np.testing.assert_array_equal(long.event.y, any_kind.y)
    assert long.codes == (1, 2, 3)
    for code, rows in zip((1, 2), long.kinds, strict=True):
        who = np.flatnonzero(kind >= code)
        np.testing.assert_array_equal(rows.subject, who)
        np.testing.assert_array_equal(rows.X, np.column_stack([time, X])[who])
        np.testing.assert_array_equal(rows.y, kind[who] == code)
    counted = competing_risks(time, kind, X, group=True).event
    assert counted.y.sum() == event.sum() and counted.trials.sum() == len(any_kind.y)


def history(subject, time, event, X, grid):
    """Rows of recurrent events: at risk at the end of an interval, or an event in it."""
    rows = []
    for who in sorted(set(subject)):
        own = np.flatnonzero(subject == who)
        own = own[np.argsort(time[own])]
        for low, high in zip([0.0, *grid], grid, strict=False):
            inside = [i for i in own if event[i] and low < time[i] <= high]
            if high > time[own[-1]] and not inside:
                continue
            before = [time[i] for i in own if event[i] and time[i] <= low]
            stretch = inside[0] if inside else own[np.flatnonzero(time[own] >= high)[0]]
            last = max(before, default=0.0)
            rows.append([high, high - last, len(before), X[stretch, 0], bool(inside)])
    return np.array(rows)


@pytest.mark.parametrize("times", [None, [2.0, 4.0, 5.0, 9.0]])
def test_recurrent_events_have_a_history(rng, times):
    subject = rng.choice(list("abcdef"), N)
    time = rng.choice(np.arange(1, 1000), N, replace=False) / 100
    event, X = rng.random(N) < 0.5, rng.normal(size=(N, 1))
    found = recurrent_events(subject, time, event, X, times=times, at_risk="end")
    grid = np.sort(time[event]) if times is None else times
    want = history(subject, time, event, X, grid)
    np.testing.assert_allclose(np.column_stack([found.X, found.y]), want, rtol=1e-12)
    np.testing.assert_array_equal(X[found.subject], found.X[:, 3:])
    if times is None:
        assert found.y.sum() == event.sum()


def test_a_frame_of_recurrent_events_is_named():
    X = pd.DataFrame({"site": ["a", "b", "a"]})
    long = recurrent_events([1, 1, 2], [2.0, 4.0, 3.0], [1, 0, 0], X)
    assert list(long.X.columns) == ["time", "since_last", "n_before", "site"]
    # the same interval seen by two stretches is one row, with the first of them
    long = recurrent_events([1, 1], [3.1, 6.0], [1, 0], times=[4.0, 8.0], at_risk="middle")
    assert long.X.tolist() == [[4.0, 4.0, 0.0], [8.0, 8.0 - 3.1, 1.0]]
    assert long.y.tolist() == [1, 0]


GOOD = {"time": [1.0, 2.0], "event": [1, 0]}


@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        ({"time": [1.0, "two"]}, TypeError, "time must hold numbers only"),
        ({"time": [[1.0, 2.0]]}, ValueError, "give one number a row"),
        ({"time": [1.0, np.nan]}, ValueError, "time holds missing or infinite"),
        ({"time": [], "event": []}, ValueError, "time is empty"),
        ({"time": [0.0, 2.0]}, ValueError, "time holds 0: times must be positive"),
        ({"event": [1]}, ValueError, "event has shape .1,.: give 2 numbers"),
        ({"event": [1, 0.5]}, ValueError, "event holds 0.5: give 0 for censored"),
        ({"event": [1, 2]}, ValueError, "Give several kinds of events to competing_risks"),
        ({"event": [0, 0]}, ValueError, "event marks no event, so that no time can be taken"),
        ({"entry": [0.0, 2.0]}, ValueError, "entry: row 1 enters at 2 and ends at 2"),
        ({"times": [2.0, 1.0]}, ValueError, "times must be positive and increase"),
        ({"times": []}, ValueError, "times must be positive and increase"),
        ({"times": 0}, ValueError, "times=0: must be a whole number of at least 1, or a seq"),
        ({"times": [5.0], "event": [0, 0]}, ValueError, "times: no subject is at risk"),
        ({"at_risk": "begin"}, ValueError, "at_risk='begin': choose from"),
        ({"X": [[1.0]]}, ValueError, "X has 1 rows, but time has 2"),
        ({"X": [1.0, 2.0]}, ValueError, "X must be two-dimensional"),
        ({"X": pd.DataFrame({"time": [1, 2]})}, ValueError, r"X has columns named \['time'\]"),
    ],
)
def test_what_is_wrong_with_a_long_form_is_said(changed, error, message):
    with pytest.raises(error, match=message):
        long_form(**GOOD | changed)


def test_what_is_wrong_with_several_events_is_said():
    with pytest.raises(ValueError, match="competing risks are at least two"):
        competing_risks([1.0, 2.0], [1, 0])
    with pytest.raises(ValueError, match="no event of kind 2 or above is among them"):
        competing_risks([1.0, 5.0, 6.0], [1, 2, 3], times=[1.0])
    with pytest.raises(ValueError, match="b has two rows at one time"):
        recurrent_events(["a", "b", "b"], [2.0, 1.0, 1.0], [1, 1, 0])
    with pytest.raises(ValueError, match="subject has shape"):
        recurrent_events(["a"], [2.0, 1.0], [1, 1])
    with pytest.raises(TypeError, match="subject: give numbers or text"):
        recurrent_events(["a", None], [2.0, 1.0], [1, 1])
