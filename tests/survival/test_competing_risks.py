"""Cumulative incidences: one together with survival, and sums over times made by hand."""

from functools import cache

import numpy as np
import pandas as pd
import pymc as pm
import pytest
import xarray as xr
from scipy.special import ndtr, softmax
from support.fitted import predicted_of

import pymc_trees as pmt
from pymc_trees import survival
from pymc_trees.survival.long_table import check_cause

pytestmark = pytest.mark.usefixtures("quick_compile")
N = 40
RNG = np.random.default_rng(5)
X, NEW = RNG.random((N, 2)), RNG.random((7, 2))
TIME = RNG.exponential(1.0, N) + 0.1
EVENT = RNG.random(N) < 0.8
GRID = np.array([0.3, 0.6, 1.1, 2.0])
CAUSES = {
    2: np.where(EVENT, RNG.choice(["death", "relapse"], N), None),
    3: np.where(EVENT, RNG.integers(1, 4, N), 0),
}
NAMES = {2: ["death", "relapse"], 3: [1, 2, 3]}
QUIET = {"progressbar": False}


def draws_of(model):
    options = {"tune": 10, "draws": 5, "chains": 2, "cores": 1, "progressbar": False}
    options |= {"compute_convergence_checks": False, "random_seed": 2}
    return pm.sample(model=model, **options)


@cache
def fitted(k):
    model = survival.competing_risks(X, TIME, CAUSES[k], times=GRID, m=6)
    return model, draws_of(model)


def at_the_grid(model, idata, forest):
    """(chain, draw, row, time) outputs of a forest."""
    found = [
        predicted_of(model, idata, forest, np.column_stack([np.full(len(NEW), g), NEW]))
        for g in GRID
    ]
    return np.stack(found, axis=-1)


@pytest.mark.parametrize("k", [2, 3])
def test_incidences_are_sums_over_the_times_so_far(k):
    model, idata = fitted(k)
    found = survival.cumulative_incidence(idata, model, NEW, **QUIET)
    assert found["incidence"].dims == ("chain", "draw", "cause", "row", "time")
    assert list(found["cause"].to_numpy()) == NAMES[k]
    hazard = ndtr(at_the_grid(model, idata, "f_event_forest"))
    if k == 2:
        second = ndtr(at_the_grid(model, idata, "f_cause_forest"))
        share = np.stack([1 - second, second], axis=2)
    else:
        f = [at_the_grid(model, idata, f"f_cause_{cause}_forest") for cause in range(3)]
        share = softmax(np.stack(f, axis=2), axis=2)
    alive, total = np.ones(hazard.shape[:-1]), np.zeros((2, 5, k, 7))
    for j in range(GRID.size):
        total = total + (alive * hazard[..., j])[:, :, None] * share[..., j]
        alive = alive * (1 - hazard[..., j])
        np.testing.assert_allclose(found["incidence"][..., j], total, rtol=0, atol=1e-6)
        np.testing.assert_allclose(found["survival"][..., j], alive, rtol=0, atol=1e-6)
    assert np.ptp(total, axis=2).max() > 0.05


@pytest.mark.parametrize("by", [None, True, 1])
@pytest.mark.parametrize("k", [2, 3])
def test_incidences_and_survival_are_one_together(k, by):
    model, idata = fitted(k)
    times = [0.1, 0.3, 0.5, 2.0]
    found = survival.cumulative_incidence(idata, model, NEW, times, by=by, **QUIET)
    total = found["incidence"].sum("cause") + found["survival"]
    np.testing.assert_allclose(total, 1.0, rtol=0, atol=1e-12)
    assert (found["incidence"].sel(time=0.1) == 0).all()
    alone = survival.survival_function(idata, model, NEW, times, by=by, var_name="event", **QUIET)
    np.testing.assert_allclose(found["survival"], alone["survival"], rtol=1e-12)


def test_several_variables_are_named():
    model, idata = fitted(2)
    with pytest.raises(ValueError, match=r"var_name=None .*\['event', 'cause'\]"):
        survival.survival_function(idata, model, NEW, **QUIET)


def test_a_model_written_by_hand_with_other_names():
    long = survival.long_form(X, TIME, EVENT, times=GRID)
    now = long.y == 1
    relapse = (CAUSES[2][long.row[now]] == "relapse").astype(int)
    leaf = pmt.NormalLeaf(0.0, 0.3)
    with pm.Model() as model:
        f = pmt.BART("f", long.X, m=4, leaf=leaf)
        g = pmt.BART("g", long.X[now], m=4, leaf=leaf)
        pm.Bernoulli("any", logit_p=f, observed=long.y)
        pm.Bernoulli("relapse", logit_p=g, observed=relapse)
    idata = draws_of(model)
    given = {"event": "any", "cause": "relapse"} | QUIET
    found = survival.cumulative_incidence(idata, model, NEW, **given)
    assert list(found["cause"].to_numpy()) == [0, 1]
    total = found["incidence"].sum("cause") + found["survival"]
    np.testing.assert_allclose(total, 1.0, rtol=0, atol=1e-12)


def test_frames():
    frame = pd.DataFrame(X, columns=["age", "dose"])
    frame["site"] = RNG.choice(["a", "b"], N)
    frame.loc[::6, "age"] = np.nan
    model = survival.competing_risks(frame, TIME, pd.Series(CAUSES[2]), times=GRID, m=4)
    idata = draws_of(model)
    rows = survival.cumulative_incidence(idata, model, frame, **QUIET)
    by = survival.cumulative_incidence(idata, model, frame, by="site", **QUIET)
    assert by["incidence"].dims == ("chain", "draw", "cause", "site", "time")
    members = rows["incidence"].isel(row=np.flatnonzero(frame["site"] == "b")).mean("row")
    np.testing.assert_allclose(by["incidence"].sel(site="b"), members, rtol=1e-12)


def test_causes_have_columns_and_levels_of_their_own():
    """Columns in another order, and a level without any event, which is no level of causes."""
    frame = pd.DataFrame({"site": np.resize(list("abc"), N), "u": X[:, 0]})
    event = EVENT & (frame["site"] != "a").to_numpy()
    long = survival.long_form(frame, TIME, event, times=GRID)
    now, leaf = long.y == 1, pmt.NormalLeaf(0.0, 0.5)
    codes = RNG.integers(0, 2, now.sum())
    with pm.Model() as model:
        f = pmt.BART("f", pmt.Data("X", long.X), m=3, leaf=leaf)
        pm.Bernoulli("event", p=pm.math.invprobit(f), observed=long.y, shape=f.shape)
        events = pmt.Data("X_cause", long.X[now][["time", "u", "site"]])
        g = pmt.BART("g", events, m=20, leaf=leaf)
        pm.Bernoulli("cause", p=pm.math.invprobit(g), observed=codes, shape=g.shape)
    prior = pm.sample_prior_predictive(4, model=model, random_seed=1)["prior"]
    idata = xr.DataTree.from_dict({"posterior": prior.to_dataset()})
    new = pd.DataFrame({"site": ["b", "c"], "u": [0.1, 0.9]})

    def at(name):
        rows = pd.concat([new.assign(time=t) for t in GRID])[["time", "site", "u"]]
        found = pmt.predictions(idata, model, rows, var_name=name, **QUIET)["prediction"]
        return ndtr(found.to_numpy().reshape(4, len(GRID), len(new)))

    found = survival.cumulative_incidence(idata, model, new, **QUIET)["incidence"]
    hazard, second = at("f"), at("g")
    before = np.cumprod(np.concatenate([np.ones((4, 1, 2)), 1 - hazard[:, :-1]], axis=1), axis=1)
    expected = np.cumsum(before * hazard * second, axis=1).swapaxes(1, 2)
    np.testing.assert_allclose(found.sel(cause=1)[0], expected, rtol=1e-5)


@pytest.mark.parametrize("name", ["cause", "part", "time"])
def test_columns_with_the_names_of_dimensions(name):
    frame = pd.DataFrame({name: np.resize([0.0, 1.0], N)})
    if name == "time":
        model = survival.accelerated_failure_time(frame, TIME, EVENT, m=2)
        idata = pm.sample_prior_predictive(2, model=model, random_seed=1)
        found = survival.survival_function(
            idata, model, frame, [0.5], by=name, group="prior", **QUIET
        )["survival"]
    else:
        model = survival.competing_risks(frame, TIME, CAUSES[3], times=GRID, m=2)
        idata = pm.sample_prior_predictive(2, model=model, random_seed=1)
        found = survival.cumulative_incidence(idata, model, frame, by=name, group="prior", **QUIET)[
            "incidence"
        ]
        assert found.sizes["cause"] == 3
    assert found.sizes[f"{name}_"] == 2


def other_columns():
    long = survival.long_form(X, TIME, EVENT, times=GRID)
    leaf = pmt.NormalLeaf(0.0, 0.3)
    with pm.Model() as model:
        f = pmt.BART("f", long.X, m=2, leaf=leaf)
        g = pmt.BART("g", X, m=2, leaf=leaf)
        pm.Bernoulli("event", logit_p=f, observed=long.y)
        pm.Bernoulli("cause", logit_p=g, observed=EVENT)
        pm.Poisson("number", pm.math.exp(g), observed=EVENT)
    return model, pm.sample_prior_predictive(2, model=model, random_seed=1)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            {"event": "any"},
            r"var_name='any' is not a one-dimensional observed.*\['event', 'cause', 'number'\]",
        ),
        ({"event": "number"}, "number is not a Bernoulli: hazards are read from a"),
        ({"cause": "number"}, "number is neither Bernoulli nor Categorical"),
        ({}, "event and cause have forests on different columns"),
    ],
)
def test_variables_that_are_not_those_of_competing_risks(given, words):
    model, idata = other_columns()
    with pytest.raises(ValueError, match=words):
        survival.cumulative_incidence(idata, model, NEW, group="prior", **given, **QUIET)


@pytest.mark.parametrize("dtype", ["string", "Int64", "category", object])
def test_missing_causes_of_pandas_are_censored(dtype):
    given = pd.Series([1, 2, None, 1], dtype="Int64")
    causes = given if dtype == "Int64" else given.map({1: "a", 2: "b"}).astype(dtype)
    names, codes = check_cause(causes, 4)
    assert names.tolist() == ([1, 2] if dtype == "Int64" else ["a", "b"])
    assert codes.tolist() == [0, 1, -1, 0]
