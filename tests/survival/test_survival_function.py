"""Survival functions against PyMC's predictions of f, closed forms and scipy's laws."""

import subprocess
import sys
from functools import cache

import arviz as az
import numpy as np
import pandas as pd
import pymc as pm
import pytest
import xarray as xr
from scipy import stats
from scipy.special import expit, ndtr
from support.fitted import predicted_of

import pymc_trees as pmt
from pymc_trees import survival

pytestmark = [
    pytest.mark.usefixtures("quick_compile"),
    # NUTS tries long steps while it tunes.
    pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning"),
]
N = 30
RNG = np.random.default_rng(5)
X, NEW = RNG.random((N, 2)), RNG.random((7, 2))
TIME = RNG.exponential(1.0, N) + 0.1
EVENT = RNG.random(N) < 0.7
LIMIT = np.where(EVENT, np.inf, TIME)
TIMES = [0.2, 0.7, 1.5, 4.0]
QUIET = {"progressbar": False}
LEAF = pmt.NormalLeaf(0.0, 0.3)
ROOT = 1e-7
"""PyMC keeps the root of 2 in its distribution function of a Normal in single precision."""
GRID = np.array([0.3, 0.6, 1.1, 2.0])


def draws_of(model, **given):
    options = {"tune": 10, "draws": 5, "chains": 2, "cores": 1, "progressbar": False}
    options |= {"compute_convergence_checks": False, "random_seed": 2}
    return pm.sample(model=model, **options | given)


@cache
def on_the_grid(link="probit"):
    model = survival.discrete_time(X, TIME, EVENT, times=GRID, m=6, link=link)
    return model, draws_of(model)


def products(hazards):
    """(..., row, time) of hazards (..., time, row)."""
    return np.swapaxes(np.cumprod(1 - hazards, axis=-2), -1, -2)


def hazards_by_hand(model, idata, rows, inverse=ndtr, forest="f_forest", grid=GRID):
    """One time of the grid after the other."""
    found = [
        predicted_of(model, idata, forest, np.column_stack([np.full(len(rows), g), rows]))
        for g in grid
    ]
    return inverse(np.stack(found, axis=-2))


LINKS = {"probit": ndtr, "logit": expit, "cloglog": lambda f: -np.expm1(-np.exp(f))}


@pytest.mark.parametrize("link", LINKS)
def test_the_grid(link):
    model, idata = on_the_grid(link)
    found = survival.survival_function(idata, model, NEW, **QUIET)["survival"]
    assert found.dims == ("chain", "draw", "row", "time")
    np.testing.assert_array_equal(found["time"], GRID)
    wanted = products(hazards_by_hand(model, idata, NEW, LINKS[link]))
    np.testing.assert_allclose(found, wanted, rtol=0, atol=ROOT if link == "probit" else 1e-10)
    assert np.ptp(wanted) > 0.2


def test_a_model_written_by_hand_is_asked_through_pymc():
    """With `pm.set_data` and the posterior predictive of f, time by time."""
    long = survival.long_form(X, TIME, EVENT, times=GRID)
    with pm.Model() as model:
        data = pm.Data("X", long.X)
        f = pmt.BART("f", data, m=6, leaf=LEAF)
        pm.Bernoulli("died", logit_p=f, observed=long.y, shape=f.shape)
    idata = draws_of(model)
    found = survival.survival_function(idata, model, NEW, **QUIET)["survival"]
    hazards = []
    for g in GRID:
        with model:
            pm.set_data({"X": np.column_stack([np.full(len(NEW), g), NEW])})
            drawn = pm.sample_posterior_predictive(idata, var_names=["f"], **QUIET)
        hazards.append(expit(drawn.posterior_predictive["f"].to_numpy()))
    np.testing.assert_allclose(found, products(np.stack(hazards, -2)), rtol=0, atol=1e-10)


def test_times_between_those_of_the_grid():
    model, idata = on_the_grid()
    whole = survival.survival_function(idata, model, NEW, **QUIET)["survival"]
    times = [0.0, 0.29, 0.3, 0.5, 0.6, 1.9, 2.0]
    found = survival.survival_function(idata, model, NEW, times, **QUIET)["survival"]
    for t, at in zip(times, [None, None, 0, 0, 1, 2, 3], strict=True):
        wanted = 1.0 if at is None else whole.isel(time=at)
        np.testing.assert_array_equal(found.sel(time=t), np.broadcast_to(wanted, (2, 5, 7)))
    with pytest.raises(ValueError, match="times up to 2.1, but the hazards of the model end at 2"):
        survival.survival_function(idata, model, NEW, [1.0, 2.1], **QUIET)


@cache
def accelerated(distribution):
    model = survival.accelerated_failure_time(X, TIME, EVENT, distribution=distribution, m=6)
    return model, draws_of(model)


@pytest.mark.parametrize("new", [False, True])
@pytest.mark.parametrize("distribution", ["lognormal", "weibull"])
def test_log_times_have_closed_forms(distribution, new):
    model, idata = accelerated(distribution)
    rows = NEW if new else None
    found = survival.survival_function(idata, model, rows, TIMES, **QUIET)["survival"]
    f = predicted_of(model, idata, "f_forest", NEW) if new else idata.posterior["f"].to_numpy()
    sigma = idata.posterior["sigma"].to_numpy()[..., None]
    assert np.ptp(sigma) > 0
    for k, t in enumerate(TIMES):
        z = (np.log(t) - f) / sigma
        wanted = ndtr(-z) if distribution == "lognormal" else np.exp(-np.exp(z))
        np.testing.assert_allclose(found[..., k], wanted, rtol=0, atol=ROOT)


LAWS = {
    "gamma": (
        pm.Gamma,
        lambda f, g, s: {"alpha": s, "beta": pm.math.exp(-f)},
        lambda f, g, s: stats.gamma(s, scale=np.exp(f)),
    ),
    "two forests": (
        pm.LogNormal,
        lambda f, g, s: {"mu": f, "sigma": pm.math.exp(g) * s},
        lambda f, g, s: stats.lognorm(np.exp(g) * s, scale=np.exp(f)),
    ),
    "wald": (
        pm.Wald,
        lambda f, g, s: {"mu": pm.math.exp(f), "lam": s},
        lambda f, g, s: stats.invgauss(np.exp(f) / s, scale=s),
    ),
}


@pytest.mark.parametrize(
    "law, censored",
    [
        pytest.param("gamma", True, marks=pytest.mark.full),  # half a minute
        ("two forests", False),
        ("wald", True),
    ],
)
def test_other_laws_are_read_from_the_model(law, censored):
    kind, parameters, exact = LAWS[law]
    with pm.Model() as model:
        data = pm.Data("data", X)
        f, g = (pmt.BART(name, data, m=4, leaf=LEAF) for name in "fg")
        s = pm.HalfNormal("s", 1.0)
        given = parameters(f, g, s)
        if censored:
            pm.Censored("t", kind.dist(**given), lower=None, upper=LIMIT, observed=TIME)
        else:  # of a fixed length
            kind("t", **given, observed=TIME)
        # Gradients of a gamma's distribution function take half a minute.
        idata = draws_of(model, step=[pmt.Hybrid(), pm.Metropolis([s])])
    found = survival.survival_function(idata, model, NEW, TIMES, **QUIET)["survival"]
    f, g = (predicted_of(model, idata, f"{name}_forest", NEW)[..., None] for name in "fg")
    s = idata.posterior["s"].to_numpy()[..., None, None]
    np.testing.assert_allclose(found, exact(f, g, s).sf(TIMES), rtol=0, atol=ROOT)


def test_the_usual_times_go_up_to_the_largest():
    model, idata = accelerated("lognormal")
    found = survival.survival_function(idata, model, by=True, **QUIET)
    np.testing.assert_allclose(found["time"], TIME.max() * np.arange(1, 51) / 50)


def test_means_over_rows():
    for model, idata, times in ((*on_the_grid(), None), (*accelerated("weibull"), TIMES)):
        rows = np.column_stack([np.repeat([0.2, 0.8, 0.8], 2), np.linspace(0, 1, 6)])
        given = (idata, model, rows, times)
        single = survival.survival_function(*given, **QUIET)["survival"]
        whole = survival.survival_function(*given, by=True, **QUIET)["survival"]
        assert whole.dims == ("chain", "draw", "time")
        np.testing.assert_allclose(whole, single.mean("row"), rtol=1e-12)
        groups = survival.survival_function(*given, by=0, **QUIET)["survival"]
        assert groups.dims == ("chain", "draw", "x0", "time")
        np.testing.assert_array_equal(groups["x0"], [0.2, 0.8])
        for value, members in ((0.2, [0, 1]), (0.8, [2, 3, 4, 5])):
            wanted = single.isel(row=members).mean("row")
            np.testing.assert_allclose(groups.sel(x0=value), wanted, rtol=1e-12)


def frame():
    found = pd.DataFrame(X, columns=["age", "dose"])
    found["site"] = RNG.choice(["a", "b"], N)
    found.loc[::6, "age"] = np.nan
    return found


@cache
def on_a_frame(kind):
    table = frame()
    if kind == "grid":
        model = survival.discrete_time(table, TIME, EVENT, times=GRID, m=6)
    else:
        model = survival.accelerated_failure_time(table, TIME, EVENT, m=6)
    return table, model, draws_of(model)


@pytest.mark.parametrize("kind", ["grid", "free"])
def test_frames_with_levels_and_missing_cells(kind):
    table, model, idata = on_a_frame(kind)
    found = survival.survival_function(idata, model, table, TIMES[:3], **QUIET)["survival"]
    other_order = table[["site", "age", "dose"]]
    again = survival.survival_function(idata, model, other_order, TIMES[:3], **QUIET)["survival"]
    np.testing.assert_array_equal(again, found)
    by_site = survival.survival_function(idata, model, table, TIMES[:3], by="site", **QUIET)
    assert list(by_site["site"].to_numpy()) == ["a", "b"]
    members = found.isel(row=np.flatnonzero(table["site"] == "b")).mean("row")
    np.testing.assert_allclose(by_site["survival"].sel(site="b"), members, rtol=1e-12)
    if kind == "grid":  # codes as `pymc_trees.Data` has them
        cells = table.assign(site=(table["site"] == "b").astype(float)).to_numpy(float)
        assert np.isnan(cells).any()
        wanted = products(hazards_by_hand(model, idata, cells, grid=GRID))[..., [0, 1, 2]]
        at_grid = survival.survival_function(idata, model, table, GRID[:3], **QUIET)["survival"]
        np.testing.assert_allclose(at_grid, wanted, rtol=0, atol=ROOT)


def test_draws_that_are_stacked_thinned_prior_or_read_from_a_file(tmp_path):
    model, idata = accelerated("lognormal")
    whole = survival.survival_function(idata, model, NEW, TIMES, **QUIET)["survival"]

    def asked(draws, **given):
        return survival.survival_function(draws, model, NEW, TIMES, **QUIET, **given)["survival"]

    np.testing.assert_array_equal(asked(az.extract(idata)), whole)
    thin = idata.isel(draw=slice(None, None, 2))
    np.testing.assert_array_equal(asked(thin), whole.isel(draw=[0, 2, 4]))
    idata.to_netcdf(tmp_path / "draws.nc", engine="h5netcdf")
    with xr.open_datatree(tmp_path / "draws.nc", engine="h5netcdf") as stored:
        np.testing.assert_array_equal(asked(stored), whole)
    prior = pm.sample_prior_predictive(6, model=model, random_seed=1)
    found = asked(prior, group="prior")
    f = predicted_of(model, _as_posterior(prior), "f_forest", NEW)
    sigma = prior.prior["sigma"].to_numpy()[..., None]
    for k, t in enumerate(TIMES):
        np.testing.assert_allclose(found[..., k], ndtr((f - np.log(t)) / sigma), atol=ROOT)


def _as_posterior(prior):
    return xr.DataTree.from_dict({"posterior": prior["prior"].to_dataset()})


SCRIPT = """
import sys
import numpy as np, xarray as xr
from pymc_trees import survival
folder = sys.argv[1]
known = np.load(folder + "/data.npz")
model = survival.discrete_time(known["X"], known["time"], known["event"], times=known["grid"], m=6)
idata = xr.open_datatree(folder + "/draws.nc", engine="h5netcdf")
found = survival.survival_function(idata, model, known["new"], progressbar=False)
np.save(folder + "/found.npy", found["survival"].to_numpy())
"""


@pytest.mark.full
def test_a_new_process_says_the_same(tmp_path):
    model, idata = on_the_grid()
    idata.to_netcdf(tmp_path / "draws.nc", engine="h5netcdf")
    np.savez(tmp_path / "data.npz", X=X, time=TIME, event=EVENT, grid=GRID, new=NEW)
    subprocess.run([sys.executable, "-c", SCRIPT, str(tmp_path)], check=True)
    wanted = survival.survival_function(idata, model, NEW, **QUIET)["survival"]
    # by numba there, and by Python here
    np.testing.assert_allclose(np.load(tmp_path / "found.npy"), wanted, rtol=0, atol=1e-12)


def test_blocks_change_nothing(monkeypatch):
    wanted = [
        survival.survival_function(idata, model, NEW, **QUIET)["survival"]
        for model, idata in (on_the_grid(), accelerated("weibull"))
    ]
    monkeypatch.setattr("pymc_trees.posterior.reading.functions.BLOCK", 3)
    for (model, idata), whole in zip((on_the_grid(), accelerated("weibull")), wanted, strict=True):
        found = survival.survival_function(idata, model, NEW, **QUIET)["survival"]
        np.testing.assert_array_equal(found, whole)


def test_other_questions_take_the_forest_by_name():
    model, idata = on_the_grid()
    found = pmt.partial_dependence(idata, model, 1, grid=[0.2, 0.8], **QUIET)["average"]
    assert dict(found.sizes) == {"chain": 2, "draw": 5, "x1": 2}
    assert pmt.get_variable_inclusion(idata, model).sizes["feature"] == 3


def test_areas_under_curves():
    """Against the mean of min(T, horizon), summed over fine steps."""
    for model, idata in (on_the_grid(), accelerated("lognormal")):
        step = 1e-3
        for horizon in (0.45, 1.1, 1.9):
            fine = (np.arange(round(horizon / step)) + 0.5) * step
            curve = survival.survival_function(idata, model, NEW, fine, **QUIET)["survival"]
            wanted = curve.sum("time") * step
            times = None if "limit" not in model.named_vars else np.linspace(0.01, 2.0, 400)
            given = survival.survival_function(idata, model, NEW, times, **QUIET)
            found = survival.restricted_mean(given, horizon)
            assert found.dims == ("chain", "draw", "row")
            np.testing.assert_allclose(found, wanted, rtol=0, atol=2e-3)


def test_curves_at_few_times_of_the_grid_are_no_steps():
    """Between the times of a coarser grid they go on changing: the mean is that of all times."""
    model = survival.discrete_time(X, TIME, EVENT, times=20, m=5)
    idata = pm.sample_prior_predictive(4, model=model, random_seed=1)
    given = {"group": "prior", **QUIET}
    full = survival.survival_function(idata, model, X, **given)
    grid = full["time"].to_numpy()
    few = survival.survival_function(idata, model, X, grid[1::2], **given)
    early = survival.survival_function(idata, model, X, grid[:10], **given)
    assert [one.attrs["stepwise"] for one in (full, few, early)] == [1, 0, 1]
    horizon = float(grid[-1])
    wanted, found = (survival.restricted_mean(one, horizon).mean() for one in (full, few))
    between = np.diff(np.append(0.0, grid)).max()
    assert abs(float(found - wanted)) < between / 2
