"""Rows of the long form against a twin in loops, and their likelihood against a product."""

import numpy as np
import pandas as pd
import polars as pl
import pymc as pm
import pytest
from scipy.special import expit, ndtr
from support.fitted import predicted_of

from pymc_trees import survival

pytestmark = pytest.mark.usefixtures("quick_compile")


def subjects(seed, n=25):
    """Times with ties, some of them censored, late entries and covariates."""
    rng = np.random.default_rng(seed)
    time = rng.integers(1, 9, n) / 2.0
    event = rng.random(n) < 0.6
    entry = np.where(rng.random(n) < 0.5, 0.0, time * rng.choice([0.2, 0.5, 0.9], n))
    return rng.random((n, 2)), time, event, entry


GRIDS = [None, 1, 3, 50, [2.0], [0.7, 1.5, 2.2, 3.9], [1.0, 2.0, 3.0, 4.0, 9.0]]


def grid_of(times, time, event):
    if times is None:
        return sorted(set(time))
    if isinstance(times, list):
        return times
    distinct = sorted(set(time[event]))
    if len(distinct) <= times:
        return distinct
    ordered = sorted(time[event])
    places = [-(-len(ordered) * (k + 1) // times) - 1 for k in range(times)]
    return sorted({ordered[place] for place in places})


def twin(X, time, event, entry, grid):
    """(row, time, y), from what is said of each subject and time of the grid."""
    found = []
    for i in range(len(X)):
        for g in grid:
            happened = event[i] and g >= time[i]
            if g > entry[i] and (happened or g <= time[i] or event[i]):
                found.append((i, g, int(happened)))
            if happened:
                break
    return found


@pytest.mark.parametrize("times", GRIDS, ids=str)
@pytest.mark.parametrize("seed", range(5))
def test_rows_are_those_of_the_twin(seed, times):
    X, time, event, entry = subjects(seed)
    long = survival.long_form(X, time, event, times=times, entry=entry)
    grid = grid_of(times, time, event)
    np.testing.assert_array_equal(long.times, grid)
    wanted = twin(X, time, event, entry, grid)
    assert list(zip(long.row, long.X[:, 0], long.y, strict=True)) == wanted
    np.testing.assert_array_equal(long.X[:, 1:], X[long.row])
    assert long.y.dtype == np.int64 and long.X.dtype == np.float64


def recurrent_twin(records, n, grid):
    """(row, time, since, count, y) of each subject's records [(time, event), ...]."""
    found = []
    for i in range(n):
        mine = sorted((t, not e) for t, e in records[i])
        marks = {
            min([g for g in grid if g >= t], default=None) for t, censored in mine if not censored
        }
        end = mine[-1][0]
        last, count = 0.0, 0
        for g in grid:
            if g > end and not any(m is not None and m >= g for m in marks):
                break
            found.append((i, g, g - last, count, int(g in marks)))
            if g in marks:
                last, count = g, count + 1
    return found


@pytest.mark.parametrize("times", GRIDS, ids=str)
@pytest.mark.parametrize("seed", range(5))
def test_histories_are_those_of_the_twin(seed, times):
    rng = np.random.default_rng(seed)
    n, records = 12, []
    for _ in range(n):
        t = np.unique(rng.integers(1, 9, rng.integers(0, 5)) / 2.0)
        end = (t.max() if t.size else 0.0) + rng.choice([0.0, 0.3, 1.0])
        records.append([(v, True) for v in t] + [(end or 0.4, False)])
    flat = [(i, t, e) for i, mine in enumerate(records) for t, e in mine]
    rng.shuffle(flat)
    subject, time, event = (np.array(column) for column in zip(*flat, strict=True))
    X = rng.random((n, 2))
    long = survival.long_form(X, time, event, times=times, subject=subject)
    wanted = recurrent_twin(records, n, grid_of(times, time, event))
    assert len(wanted) == len(long.y)
    found = zip(long.row, *long.X[:, :3].T, long.y, strict=True)
    np.testing.assert_array_equal(list(found), wanted)
    np.testing.assert_array_equal(long.X[:, 3:], X[long.row])


def exact_log_likelihood(hazard, time, event, entry, grid):
    """Sum over subjects: T is one of the grid, seen, or beyond what was seen, given T > entry."""
    total = 0.0
    for i in range(len(time)):
        h = {g: hazard(i, g) for g in grid if g > entry[i]}
        at = min((g for g in h if g >= time[i]), default=np.inf) if event[i] else np.inf
        seen = at if event[i] else time[i]
        survived = np.prod([1.0 - h[g] for g in h if g <= seen and g != at])
        total += np.log(survived * h.get(at, 1.0))
    return total


@pytest.mark.parametrize(
    ("link", "inverse", "rtol"),
    [
        ("logit", expit, 1e-12),
        ("cloglog", lambda f: -np.expm1(-np.exp(f)), 1e-12),
        # PyMC keeps the root of 2 in its distribution function of a Normal in single precision.
        ("probit", ndtr, 1e-6),
    ],
)
@pytest.mark.parametrize("times", [None, 3, [1.0, 2.5]], ids=str)
def test_the_likelihood_is_the_exact_one_of_discrete_times(link, inverse, rtol, times):
    X, time, event, entry = subjects(9)
    model = survival.discrete_time(X, time, event, times=times, entry=entry, link=link, m=5)
    prior = pm.sample_prior_predictive(1, model=model, random_seed=3, var_names=["f_forest"])
    prior["posterior"] = prior["prior"]
    point = {"f_forest": prior["prior"]["f_forest"].to_numpy()[0, 0]}
    found = model.compile_logp(vars=[model["event"]])(point)
    grid = grid_of(times, time, event)

    def hazard(i, g):
        return inverse(f[i, grid.index(g)])

    rows = np.array([[g, *x] for x in X for g in grid])
    f = predicted_of(model, prior, "f_forest", rows)[0, 0].reshape(len(X), len(grid))
    assert np.ptp(f) > 0.1
    wanted = exact_log_likelihood(hazard, time, event, entry, grid)
    np.testing.assert_allclose(found, wanted, rtol=rtol)


def mixed(n=25):
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"age": rng.normal(50, 9, n), "site": rng.choice(list("abc"), n)})
    frame.loc[::7, "age"] = np.nan
    frame.loc[3, "site"] = None
    frame["stage"] = pd.Categorical(rng.choice(["low", "high"], n), ["low", "high"], ordered=True)
    return frame


def test_frames_stay_as_they_are():
    _, time, event, entry = subjects(2)
    frame = mixed().set_index(np.arange(25) + 100)
    long = survival.long_form(frame, time, event, times=4, entry=entry)
    assert list(long.X.columns) == ["time", "age", "site", "stage"]
    pd.testing.assert_frame_equal(
        long.X[["age", "site", "stage"]], frame.iloc[long.row].reset_index(drop=True)
    )
    array = survival.long_form(frame[["age"]].to_numpy(), time, event, times=4, entry=entry)
    np.testing.assert_array_equal(array.X, long.X[["time", "age"]])
    of_polars = survival.long_form(polars_of(mixed()), time, event, times=4, entry=entry).X
    assert isinstance(of_polars, pl.DataFrame)
    assert of_polars.equals(polars_of(long.X))


def polars_of(frame):
    columns = {name: frame[name].astype(object) for name in frame}
    return pl.DataFrame({k: [None if v != v else v for v in c] for k, c in columns.items()})


def test_histories_of_frames():
    frame = mixed().iloc[:2]
    for X in (frame, polars_of(frame)):
        long = survival.long_form(X, [1.0, 2.0, 3.0], [1, 0, 0], subject=[0, 0, 1], times=[1, 2, 3])
        assert list(long.X.columns) == ["time", "since", "count", "age", "site", "stage"]
        assert list(long.X["count"]) == [0, 1, 0, 0, 0]


def test_no_array_is_larger_than_the_result():
    """Peaks of memory, as numpy reports them: the result, two columns of numbers and its rows."""
    import tracemalloc

    n, p = 400, 30
    rng = np.random.default_rng(1)
    X, time = rng.random((n, p)), rng.random(n) + 0.5
    survival.long_form(X, time, np.ones(n), times=None)
    tracemalloc.start()
    long = survival.long_form(X, time, np.ones(n), times=None)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    rows = n * (n + 1) // 2
    assert long.X.shape == (rows, p + 1)
    # rows, y, time, a column on the way, and the mask of missing cells
    assert peak < long.X.nbytes + 8 * rows * 5 + long.X.size + 1e6
