"""Curves and incidences against products and sums made one draw, row and time at a time."""

import numpy as np
import pandas as pd
import pymc as pm
import pytest
import xarray as xr
from scipy import stats
from scipy.special import expit, gammaln
from support.fitted import draws_of

import pymc_trees as pmt
from pymc_trees import survival
from pymc_trees.survival import curves

pytestmark = pytest.mark.usefixtures("quick_compile")

N = 24
QUIET = {"progressbar": False}
PROBABILITY = {
    "probit": stats.norm.cdf,
    "logit": expit,
    "cloglog": lambda f: -np.expm1(-np.exp(f)),
}


def subjects():
    """Times, codes of events, and covariates with levels and missing cells."""
    rng = np.random.default_rng(8)
    X = pd.DataFrame({"age": rng.normal(50, 10, N), "site": rng.choice(list("abc"), N)})
    X.loc[3, "age"], X.loc[5, "site"] = np.nan, None
    return np.ceil(rng.exponential(4, N)), rng.integers(0, 4, N), X


def fitted(long, **options):
    with survival.discrete_time_model(long, m=5, **options) as model:
        return model, draws_of()


@pytest.fixture(scope="module")
def one_kind():
    time, event, X = subjects()
    return fitted(survival.long_form(time, event > 0, X))


@pytest.fixture(scope="module")
def three_kinds():
    return fitted(survival.competing_risks(*subjects()))


@pytest.fixture(scope="module", params=["weibull", "lognormal"])
def accelerated(request):
    time, event, X = subjects()
    with survival.aft_model(time, event > 0, X, distribution=request.param, m=5) as model:
        return request.param, model, draws_of()


def of_rows(model, idata, name, X, grid):
    """(chain, draw, row, time) values of a function of time and covariates, one table a time."""
    tables = [X.assign(time=t)[["time", *X.columns]] for t in grid]
    found = [pmt.predictions(idata, model, rows, var_name=name, **QUIET) for rows in tables]
    return np.stack([one["prediction"].to_numpy() for one in found], axis=-1)


def brute(hazard, grid, at):
    """Product of what is left, for each time asked."""
    return np.stack([np.prod((1 - hazard)[..., grid <= t], axis=-1) for t in at], axis=-1)


@pytest.mark.parametrize("link", list(PROBABILITY))
@pytest.mark.parametrize("group", [False, True])
def test_the_models_likelihood_is_the_product_of_hazards(link, group):
    time, event, X = subjects()
    long = survival.long_form(time, event > 0, X[["site"]], group=group)
    model, idata = fitted(long, link=link)
    with model:
        pm.compute_log_likelihood(idata, **QUIET)
    found = idata.log_likelihood["y"].sum("y_dim_0").to_numpy()
    orders = gammaln(long.trials + 1) - gammaln(long.y + 1) - gammaln(long.trials - long.y + 1)
    h = of_rows(model, idata, "hazard", X[["site"]], long.times)
    want = np.full(found.shape, orders.sum())
    for i in range(N):
        before = long.times < time[i] if event[i] else long.times <= time[i]
        want += np.log(1 - h[:, :, i, before]).sum(-1)
        if event[i]:
            want += np.log(h[:, :, i, long.times == time[i]]).sum(-1)
    np.testing.assert_allclose(found, want, rtol=1e-12)


@pytest.mark.parametrize("link", list(PROBABILITY))
def test_the_hazard_is_the_inverse_link_of_f(link):
    time, event, X = subjects()
    _, idata = fitted(survival.long_form(time, event > 0, X, times=3), link=link)
    want = PROBABILITY[link](idata.posterior["f"])
    # PyMC's normal distribution function has seven digits: its root of 2 is in single precision.
    atol = 1e-7 if link == "probit" else 1e-12
    np.testing.assert_allclose(idata.posterior["hazard"], want, rtol=0, atol=atol)


def test_curves_are_products_of_hazards(one_kind, monkeypatch):
    model, idata = one_kind
    _, _, X = subjects()
    new = X.iloc[[3, 5, 0, 7]].assign(site=["a", None, "never seen", "c"])
    grid = np.array(model.coords["time"])
    at = np.array([0.0, 0.5, grid[2], grid[2] + 0.1, grid[-1], 1.0])
    want = brute(hazards(model, idata, new), grid, at)
    found = survival.survival_function(idata, model, new, at, **QUIET)
    assert found.dims == ("chain", "draw", "row", "time") and found.name == "survival"
    np.testing.assert_allclose(found, want, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(found["time"], at)
    monkeypatch.setattr(curves, "BLOCK", 1)
    by_row = survival.survival_function(idata, model, new, at, **QUIET)
    xr.testing.assert_identical(by_row, found)
    whole = survival.survival_function(idata, model, new, **QUIET)
    want = brute(hazards(model, idata, new), grid, grid)
    np.testing.assert_allclose(whole, want, rtol=0, atol=1e-12)


def test_curves_follow_from_f_where_the_link_is_exact():
    time, event, X = subjects()
    model, idata = fitted(survival.long_form(time, event > 0, X, times=4), link="logit")
    grid = np.array(model.coords["time"])
    want = brute(expit(of_rows(model, idata, "f", X, grid)), grid, grid)
    found = survival.survival_function(idata, model, X, **QUIET)
    np.testing.assert_allclose(found, want, rtol=0, atol=1e-12)


def hazards(model, idata, X):
    return of_rows(model, idata, "hazard", X, np.array(model.coords["time"]))


def test_draws_from_a_file_and_some_of_them(one_kind, three_kinds, tmp_path):
    model, idata = one_kind
    _, _, X = subjects()
    found = survival.survival_function(idata, model, X[:3], **QUIET)
    idata.to_netcdf(tmp_path / "draws.nc", engine="h5netcdf")
    with xr.open_datatree(tmp_path / "draws.nc", engine="h5netcdf") as read:
        again = survival.survival_function(read, model, X[:3], **QUIET)
    xr.testing.assert_identical(again, found)
    some = idata.isel(draw=[0, 3])
    thinned = survival.survival_function(some, model, X[:3], **QUIET)
    xr.testing.assert_identical(thinned, found.isel(draw=[0, 3]))
    with model:
        only = xr.DataTree.from_dict({"posterior": idata.posterior.to_dataset()[["f_forest"]]})
        xr.testing.assert_identical(
            survival.survival_function(only, None, X[:3], **QUIET), found
        )  # neither f nor the hazard is needed
    model, idata = three_kinds
    whole = survival.cumulative_incidence(idata, model, X[:3], **QUIET)
    thinned = survival.cumulative_incidence(idata.isel(draw=[1]), model, X[:3], **QUIET)
    xr.testing.assert_identical(thinned, whole.isel(draw=[1]))


def test_arrays_and_models_without_covariates():
    time, event, X = subjects()
    array = X[["age"]].to_numpy()
    model, idata = fitted(survival.long_form(time, event > 0, array))
    found = survival.survival_function(idata, model, array, **QUIET)
    assert found.sizes["row"] == N
    named = survival.long_form(time, event > 0, group=True)
    model, idata = fitted(named)
    alone = survival.survival_function(idata, model, **QUIET)
    assert dict(alone.sizes) == {"chain": 2, "draw": 4, "row": 1, "time": named.times.size}
    np.testing.assert_allclose(
        alone[:, :, 0], np.cumprod(1 - idata.posterior["hazard"].to_numpy(), -1), rtol=1e-12
    )
    with pytest.raises(ValueError, match="X: the model has 0 columns beside time: leave X out"):
        survival.survival_function(idata, model, array, **QUIET)


def test_incidences_and_survival_add_up_to_one(three_kinds):
    model, idata = three_kinds
    _, _, X = subjects()
    grid = np.array(model.coords["time"])
    at = np.array([0.0, 1.5, grid[3], grid[-1]])
    found = survival.cumulative_incidence(idata, model, X, at, **QUIET)
    assert found["incidence"].dims == ("chain", "draw", "kind", "row", "time")
    assert found["kind"].to_numpy().tolist() == [1, 2, 3]
    total = found["incidence"].sum("kind") + found["survival"]
    np.testing.assert_allclose(total, 1.0, rtol=0, atol=1e-12)
    h = hazards(model, idata, X)
    first, second = (of_rows(model, idata, f"share_{k}", X, grid) for k in (1, 2))
    shares = [first, (1 - first) * second, (1 - first) * (1 - second)]
    for k, share in enumerate(shares):
        want = np.zeros((*h.shape[:3], at.size))
        for j in range(grid.size):
            left = np.prod(1 - h[..., :j], axis=-1)
            want += (left * h[..., j] * share[..., j])[..., None] * (grid[j] <= at)
        np.testing.assert_allclose(found["incidence"][:, :, k], want, rtol=0, atol=1e-12)
    only = survival.survival_function(idata, model, X, at, **QUIET)
    np.testing.assert_array_equal(only, found["survival"])


def test_accelerated_curves_are_those_of_scipy(accelerated):
    distribution, model, idata = accelerated
    _, _, X = subjects()
    new = X.iloc[[3, 5, 0]].assign(site=["a", None, "c"])
    at = np.array([0.0, 1e-3, 1.0, 4.0, 1e4])
    found = survival.survival_function(idata, model, new, at, **QUIET)
    f = pmt.predictions(idata, model, new, **QUIET)["prediction"].to_numpy()
    scale = np.exp(f)[..., None]
    if distribution == "weibull":
        shape = idata.posterior["shape"].to_numpy()[..., None, None]
        want = stats.weibull_min.sf(at, shape, scale=scale)
    else:
        sigma = idata.posterior["sigma"].to_numpy()[..., None, None]
        want = stats.lognorm.sf(at, sigma, scale=scale)
    np.testing.assert_allclose(found, want, rtol=0, atol=1e-12)
    own = survival.survival_function(idata, model, times=at, **QUIET)
    assert own.sizes["row"] == N


def test_accelerated_likelihood_and_draws_of_new_times(accelerated):
    distribution, model, idata = accelerated
    time, event, X = subjects()
    name = {"weibull": "time", "lognormal": "log_time"}[distribution]
    with model:
        pm.compute_log_likelihood(idata, **QUIET)
    f = idata.posterior["f"].to_numpy()
    if distribution == "weibull":
        shape = idata.posterior["shape"].to_numpy()[..., None]
        law = stats.weibull_min(shape, scale=np.exp(f))
        at = time
    else:
        law = stats.norm(f, idata.posterior["sigma"].to_numpy()[..., None])
        at = np.log(time)
    want = np.where(event > 0, law.logpdf(at), law.logsf(at))
    # PyMC's normal distribution function has seven digits.
    np.testing.assert_allclose(idata.log_likelihood[name], want, rtol=1e-6)
    limits = model["upper"].get_value()
    with model:
        pm.set_data({"f_X": X[:5], "upper": np.full(5, np.inf)})
        drawn = pm.sample_posterior_predictive(idata, var_names=[name], random_seed=1, **QUIET)
        pm.set_data({"f_X": X, "upper": limits})
    assert drawn.posterior_predictive[name].shape == (2, 4, 5)


def test_settings_reach_the_forests():
    time, event, X = subjects()
    long = survival.competing_risks(time, event, X[["age"]])
    leaf = pmt.NormalLeaf(0.0, 0.5)
    model = survival.discrete_time_model(long, m=3, leaf=leaf, split_prior={"age": 2.0})
    assert [v.name for v in model.free_RVs] == ["f_forest", "f_kind_1_forest", "f_kind_2_forest"]
    prior = pm.Gamma.dist(2.0, 1.0)
    model = survival.aft_model(time, event > 0, X, m=3, parameter=prior, alpha=0.5)
    assert model["shape"].owner.op.name == "gamma"


def test_recurrent_events_make_an_intensity():
    long = survival.recurrent_events(np.resize([1, 2, 3], 12), np.arange(1.0, 13), [1, 1, 0, 1] * 3)
    model, idata = fitted(long)
    found = pmt.predictions(idata, model, [[5.0, 2.0, 1.0]], var_name="intensity", **QUIET)
    assert found["prediction"].sizes["row"] == 1
    with pytest.raises(ValueError, match="Of recurrent events ask predictions"):
        survival.survival_function(idata, model, **QUIET)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"X": None}, "X: the model has 2 columns beside time: give its 2 columns"),
        ({"X": [[1.0, 1.0, 1.0]]}, "X has 3 columns, but the model was declared with 2"),
        ({"X": np.zeros((0, 2))}, "X has no rows"),
        ({"times": []}, "times must be at least 0, and at least one"),
        ({"times": [-1.0]}, "times must be at least 0, and at least one"),
        ({"times": [1e9]}, "is after the last time of the model"),
    ],
)
def test_what_is_wrong_with_a_question_is_said(one_kind, asked, message):
    model, idata = one_kind
    _, _, X = subjects()
    with pytest.raises(ValueError, match=message):
        survival.survival_function(idata, model, **{"X": X} | asked, **QUIET)


def test_models_that_cannot_answer_say_so(one_kind, accelerated):
    model, idata = one_kind
    with pytest.raises(ValueError, match="model has no kinds of events"):
        survival.cumulative_incidence(idata, model)
    _, model, idata = accelerated
    with pytest.raises(ValueError, match="accelerated failure time model has none of its own"):
        survival.survival_function(idata, model)
    with pytest.raises(ValueError, match="it has no survival function"):
        survival.survival_function(idata, pm.Model())


def test_what_is_wrong_with_a_model_is_said():
    time, event, X = subjects()
    long = survival.long_form(time, event > 0, X)
    with pytest.raises(TypeError, match="long is a DataFrame: give what long_form"):
        survival.discrete_time_model(long.X)
    with pytest.raises(ValueError, match="link='log': choose from"):
        survival.discrete_time_model(long, link="log")
    with pytest.raises(ValueError, match="m=0: must be a whole number"):
        survival.discrete_time_model(long, m=0)
    with pytest.raises(TypeError, match=r"\['shape'\] are no options here"):
        survival.discrete_time_model(long, shape=(2, N))
    with pytest.raises(ValueError, match="distribution='gamma': choose from"):
        survival.aft_model(time, event > 0, X, distribution="gamma")
    with pytest.raises(ValueError, match="several kinds of events to competing_risks"):
        survival.aft_model(time, event, X)
    with pytest.raises(ValueError, match="X has 4 rows, but time has 24"):
        survival.aft_model(time, event > 0, X[:4])
    with pytest.raises(ValueError, match="event marks no event, which sets no scale"):
        survival.aft_model(time, event * 0, X)
    with pytest.raises(ValueError, match="time has the one value 2, which sets no scale"):
        survival.aft_model(time * 0 + 2, event > 0, X)
