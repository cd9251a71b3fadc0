"""Paths through time against loops over draws, closed forms and sums over all paths."""

from functools import cache

import numpy as np
import pandas as pd
import pymc as pm
import pytest
import xarray as xr
from scipy.stats import norm

import pymc_trees as pmt
from pymc_trees import survival

pytestmark = pytest.mark.usefixtures("quick_compile")
QUIET = {"progressbar": False}
N, H = 30, 6
RNG = np.random.default_rng(3)
Y = np.cumsum(RNG.normal(size=N))
LEAF = pmt.NormalLeaf(0.0, 0.6)


def prior_of(model, draws=4):
    with model:
        prior = pm.sample_prior_predictive(draws, random_seed=3)
    return xr.DataTree.from_dict({"posterior": prior["prior"].to_dataset()})


def lagged(y=Y):
    table = pd.DataFrame({"month": np.arange(len(y)) % 4, "site": np.resize(list("ab"), len(y))})
    return table.assign(last=pd.Series(y).shift(1), before=pd.Series(y).shift(3))


@cache
def series():
    """A model of a series by its lags, and draws of its prior."""
    with pm.Model() as model:
        X, drift = pmt.Data("X", lagged()), pm.Data("drift", np.linspace(0, 1, N))
        mu = pmt.BART("mu", X, m=6, leaf=LEAF)
        b, sigma, rho = pm.Normal("b"), pm.HalfNormal("sigma"), pm.Uniform("rho", -0.9, 0.9)
        mean = pm.Deterministic("mean", mu + b * drift)
        pm.Deterministic("both", pm.math.stack([mu, 2 * mu], axis=1))
        pm.Normal("y", mean, sigma, observed=Y, shape=mu.shape)
        pm.Deterministic("unused", rho + 0.0)
    return model, prior_of(model)


def future(steps=H):
    return pd.DataFrame({"month": np.arange(N, N + steps) % 4, "site": np.resize(["b"], steps)})


def by_loops(name, steps, drift, noise):
    """(draws, steps) paths by `predictions`, a draw and a step after the other."""
    model, idata = series()
    paths = np.zeros((4, steps))
    for draw in range(4):
        one, y = idata.isel(draw=[draw]), list(Y)
        for t in range(steps):
            row = future(steps).iloc[[t]].assign(last=y[-1], before=y[-3])
            data = {"X": row, "drift": drift[[t]]}
            value = pmt.predictions(one, model, data, var_name=name, **QUIET)["prediction"].item()
            y.append(value + noise[t])
        paths[draw] = y[N:]
    return paths


def test_paths_are_those_of_a_loop_over_draws_and_steps():
    model, idata = series()
    noise, drift = RNG.normal(size=H), np.linspace(1, 2, H)
    before = model["X"].get_value()
    given = {"var_name": {"y": "mean"}, "sample": lambda value, step: value + noise[step]}
    found = pmt.forecast(
        idata,
        model,
        {"X": future(), "drift": drift},
        lags={"last": 1, "before": 3},
        **given,
        **QUIET,
    )
    assert found["y"].dims == ("chain", "draw", "step")
    assert found["step"].to_numpy().tolist() == list(range(1, H + 1))
    np.testing.assert_allclose(found["y"][0], by_loops("mean", H, drift, noise), rtol=1e-12)
    np.testing.assert_array_equal(model["X"].get_value(), before)


def test_one_step_is_a_prediction():
    model, idata = series()
    row = future(1).assign(last=Y[-1], before=Y[-3])
    wanted = pmt.predictions(idata, model, row, var_name="mu", **QUIET)["prediction"][..., 0]
    options = {"lags": {"last": 1, "before": 3}, "history": Y, **QUIET}
    found = pmt.forecast(idata, model, future(1), var_name="mu", **options)["mu"]
    np.testing.assert_allclose(found[..., 0], wanted, rtol=1e-12)
    # as columns that are given and not filled
    as_given = pmt.forecast(idata, model, row, var_name="mu", **QUIET)["mu"]
    np.testing.assert_array_equal(found, as_given)


def test_draws_are_thinned_and_seeded():
    model, idata = series()
    asked = {"lags": {"last": 1, "before": 3}, **QUIET}
    X = {"X": future(), "drift": 1.0}
    every = pmt.forecast(idata, model, X, random_state=1, **asked)
    again = pmt.forecast(idata, model, X, random_state=1, **asked)
    xr.testing.assert_identical(every, again)
    other = pmt.forecast(idata, model, X, random_state=2, **asked)
    assert (every["y"] != other["y"]).all()
    sampled = {"var_name": {"y": "mean"}, "sample": lambda value, sigma: value + sigma}
    some = pmt.forecast(idata, model, X, draws=2, **sampled, **asked)
    all_of = pmt.forecast(idata, model, X, **sampled, **asked)
    xr.testing.assert_identical(some, all_of.isel(draw=[0, 3]))


# ------------------------------------------------------------------------------------ Closed forms


def repeated(idata, draw, times):
    """One draw as often as wanted."""
    several = idata["posterior"].to_dataset().isel(draw=[draw] * times)
    return xr.DataTree.from_dict({"posterior": several.assign_coords(draw=np.arange(times))})


def test_a_stump_of_the_last_value_has_a_markov_chain_in_closed_form():
    """4,000 paths: |z| < 4.5 of six means; variances within 10%, of which 2.3% are one error."""
    sd = 0.7
    with pm.Model() as model:
        mu = pmt.DecisionTree("mu", Y[:-1, None], alpha=0.999, beta=30, leaf=pmt.NormalLeaf(0, 1))
        pm.Normal("y", mu, sd, observed=Y[1:], shape=mu.shape)
    idata = prior_of(model)
    value = idata["posterior"]["mu_forest"].to_numpy()[0, 1]
    cut, (low, high) = value[0, 1], value[1:3, 1]
    assert value[0, 0] >= 0 and (value[1:3, 0] == -1).all()
    found = pmt.forecast(
        repeated(idata, 1, 4000), model, 6, lags={"x0": 1}, random_state=1, **QUIET
    )["y"].to_numpy()[0]
    below, second = float(Y[-1] <= cut), low**2 + sd**2
    for step in range(6):
        mean = below * low + (1 - below) * high
        second = below * low**2 + (1 - below) * high**2 + sd**2
        variance = second - mean**2
        draws = found[:, step]
        assert abs(draws.mean() - mean) < 4.5 * np.sqrt(variance / 4000)
        assert abs(draws.var() / variance - 1) < 0.1
        below = below * norm.cdf(cut, low, sd) + (1 - below) * norm.cdf(cut, high, sd)
    assert 0.05 < below < 0.95


def test_errors_that_follow_an_autoregression():
    """y_t = f(x_t) + e_t, e_t = rho e_{t-1} + N(0, sigma); 4,000 paths, |z| < 4.5."""
    model, idata = series()
    draw, past = 2, lagged().iloc[[-1]]
    X = pd.concat([past, future(3).assign(last=0.0, before=0.0)])

    def sample(rng, value, history, values, rho, sigma):
        error = history["y"][-1] - values["y"][-1]
        return rng.normal(value + rho * error, sigma)

    known = np.ma.array([Y[-1], 99.0, 99.0, 99.0], mask=[False, True, True, True])
    found = pmt.forecast(
        repeated(idata, draw, 4000),
        model,
        X,
        var_name={"y": "mu"},
        sample=sample,
        history=Y[:-1],
        known=known,
        random_state=1,
        **QUIET,
    )["y"].to_numpy()[0]
    f = pmt.predictions(idata, model, X, var_name="mu", **QUIET)["prediction"].to_numpy()[0, draw]
    rho, sigma = (float(idata["posterior"][k][0, draw]) for k in ("rho", "sigma"))
    assert (found[:, 0] == Y[-1]).all()
    for k in (1, 2, 3):
        mean = f[k] + rho**k * (Y[-1] - f[0])
        variance = sigma**2 * (1 - rho ** (2 * k)) / (1 - rho**2)
        assert abs(found[:, k].mean() - mean) < 4.5 * np.sqrt(variance / 4000)
        assert abs(found[:, k].var() / variance - 1) < 0.1


LIKELIHOODS = {
    "Poisson": lambda m, **o: pm.Poisson("y", pm.math.exp(m), **o),
    "Bernoulli": lambda m, **o: pm.Bernoulli("y", logit_p=m, **o),
    "NegativeBinomial": lambda m, **o: pm.NegativeBinomial("y", pm.math.exp(m), 3.0, **o),
    "StudentT": lambda m, **o: pm.StudentT("y", 6.0, mu=m, sigma=0.5, **o),
    "Gamma": lambda m, **o: pm.Gamma("y", mu=pm.math.exp(m), sigma=0.5, **o),
    "Binomial": lambda m, **o: pm.Binomial("y", pm.Data("trials", np.full(N, 4)), logit_p=m, **o),
}


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_the_distribution_of_the_model_is_drawn(name):
    """Means of 3,000 draws of two rows, |z| < 4.5, against the mean of the distribution."""
    declare = LIKELIHOODS[name]
    rows = RNG.random((N, 2))
    with pm.Model() as model:
        mu = pmt.BART("mu", rows, m=3, leaf=LEAF)
        declare(mu, observed=np.ones(N, dtype=int), shape=mu.shape)
        prior = pm.sample_prior_predictive(2, random_seed=3)
    idata = xr.DataTree.from_dict({"posterior": prior["prior"].to_dataset()})
    tables = [rows[:2]] if name != "Binomial" else [{"mu_X": rows[:2], "trials": 9}]
    found = pmt.forecast(repeated(idata, 1, 3000), model, tables, random_state=2, **QUIET)["y"]
    assert found.dims == ("chain", "draw", "step", "row")
    f = idata["posterior"]["mu"].to_numpy()[0, 1, :2]
    means = {"Bernoulli": 1 / (1 + np.exp(-f)), "StudentT": f, "Binomial": 9 / (1 + np.exp(-f))}
    wanted = means.get(name, np.exp(f))
    z = (found.mean("draw")[0, 0] - wanted) / (found.std("draw")[0, 0] / np.sqrt(3000))
    assert abs(z).max() < 4.5, z
    whole = name in ("Poisson", "Bernoulli", "NegativeBinomial", "Binomial")
    assert bool((found == found.round()).all()) == whole


def test_categories_are_drawn():
    rows = RNG.random((N, 2))
    with pm.Model() as model:
        mu = pmt.BART("mu", rows, m=3, leaf=LEAF)
        pm.OrderedLogistic("y", eta=mu, cutpoints=[-0.5, 0.5], observed=np.resize([0, 1, 2], N))
        prior = pm.sample_prior_predictive(1, random_seed=3)
    idata = xr.DataTree.from_dict({"posterior": prior["prior"].to_dataset()})
    found = pmt.forecast(repeated(idata, 0, 3000), model, rows[:1], random_state=2, **QUIET)["y"]
    p = idata["posterior"]["y_probs"].to_numpy()[0, 0, 0]
    share = np.array([float((found == k).mean()) for k in range(3)])
    assert np.abs((share - p) / np.sqrt(p * (1 - p) / 3000)).max() < 4.5


# ------------------------------------------------------------- Several responses, rules and series


@cache
def two_periods():
    """Confounder L given the treatment and itself before; outcome given both."""
    rng = np.random.default_rng(8)
    before = pd.DataFrame({"L_before": rng.integers(0, 2, N), "A_before": rng.integers(0, 2, N)})
    now = pd.DataFrame({"L": rng.integers(0, 2, N), "A": rng.integers(0, 2, N)})
    with pm.Model() as model:
        g = pmt.BART("g", before, m=3, leaf=pmt.NormalLeaf(0.0, 1.0))
        pm.Bernoulli("L", logit_p=g, observed=now.L.to_numpy(), shape=g.shape)
        mu = pmt.BART("mu", now, m=3, leaf=pmt.NormalLeaf(0.0, 1.0))
        pm.Normal("y", mu, 0.5, observed=now.A.to_numpy(), shape=mu.shape)
    return model, prior_of(model)


def test_the_g_formula_of_two_periods():
    """Means over 4,000 subjects, |z| < 4.5 of four draws, against the sum over all paths."""
    model, idata = two_periods()
    size, start = 4000, {"L": 1.0, "A": 0.0}
    policy = {"A": lambda history: 1 - history["L"][-1]}
    table = pd.DataFrame({"subject": range(size)})
    lags = {"L_before": ("L", 1), "A_before": ("A", 1)}
    found = pmt.forecast(
        idata,
        model,
        [{"g_X": table, "mu_X": table}] * 2,
        var_name=["L", "A", "y"],
        update=policy,
        lags=lags,
        history={k: np.full((1, size), v) for k, v in start.items()},
        random_state=1,
        **QUIET,
    )
    np.testing.assert_array_equal(found["A"], 1 - found["L"])
    cells = pd.DataFrame([(0, 0), (0, 1), (1, 0), (1, 1)], columns=["a", "b"]).astype(float)
    of_L = cells.rename(columns={"a": "L_before", "b": "A_before"})
    of_y = cells.rename(columns={"a": "L", "b": "A"})
    logit = pmt.predictions(idata, model, of_L, var_name="g", **QUIET)["prediction"].to_numpy()[0]
    p = (1 / (1 + np.exp(-logit))).reshape(-1, 2, 2)
    mean = pmt.predictions(idata, model, of_y, var_name="mu", **QUIET)["prediction"].to_numpy()
    mean = mean[0].reshape(-1, 2, 2)
    for draw in range(4):
        exact = 0.0
        for first in (0, 1):
            p_first = p[draw, 1, 0] if first else 1 - p[draw, 1, 0]
            for second in (0, 1):
                ill = p[draw, first, 1 - first]
                exact += p_first * (ill if second else 1 - ill) * mean[draw, second, 1 - second]
        y = found["y"][0, draw, 1].to_numpy()
        assert abs(y.mean() - exact) < 4.5 * y.std() / np.sqrt(size)


def test_hazards_along_a_path_are_the_survival_function():
    rng = np.random.default_rng(1)
    X, T = rng.random((15, 1)), rng.integers(1, 5, 15)
    rows = survival.long_form(X, T, rng.integers(0, 2, 15))
    with pm.Model() as model:
        f = pmt.BART("f", rows.X, m=4, leaf=LEAF)
        p = pm.Deterministic("p", pm.math.invlogit(f))
        pm.Bernoulli("event", p, observed=rows.y, shape=p.shape)
    idata = prior_of(model)
    grid = rows.times
    wanted = survival.survival_function(idata, model, X[:3], times=grid, **QUIET)["survival"]
    tables = [np.column_stack([np.full(3, t), X[:3]]) for t in grid]
    found = pmt.forecast(idata, model, tables, var_name="p", **QUIET)["p"]
    np.testing.assert_allclose(
        (1 - found).cumprod("step").transpose("chain", "draw", "row", "step"), wanted, rtol=1e-12
    )
    # columns that change on the way
    path = np.array([[[t, 0.1 * k]] for k, t in enumerate(grid)])
    along = pmt.forecast(idata, model, path, var_name="p", **QUIET)["p"][..., 0]
    wanted = pmt.predictions(idata, model, path[:, 0], var_name="p", **QUIET)["prediction"]
    np.testing.assert_array_equal(along, wanted)


def test_series_are_followed_side_by_side():
    model, idata = series()
    noise = RNG.normal(size=(H, 2))
    tables = [{"X": pd.concat([future()[t : t + 1]] * 2), "drift": [0.0, 1.0]} for t in range(H)]
    asked = {"lags": {"last": 1, "before": 3}, "var_name": {"y": "mean"}, **QUIET}
    past = np.column_stack([Y, Y[::-1]])
    both = pmt.forecast(
        idata,
        model,
        tables,
        history=past,
        sample=lambda value, step: value + noise[step],
        **asked,
    )["y"]
    assert both.sizes["row"] == 2
    for k in range(2):
        alone = pmt.forecast(
            idata,
            model,
            {"X": future(), "drift": float(k)},
            history=past[:, k],
            sample=lambda value, step, k=k: value + noise[step, k],
            **asked,
        )["y"]
        np.testing.assert_allclose(both.isel(row=k), alone, rtol=1e-12)


def test_computed_columns_and_data_beside_X():
    """A moving mean fills a column of X, and the last value a coefficient's data."""
    model, idata = series()
    update = {"last": lambda history: history["y"][-3:].mean(axis=0)}
    asked = {"var_name": {"y": "mean"}, "sample": lambda value: value, "random_state": 1, **QUIET}
    found = pmt.forecast(
        idata, model, future(), update=update, lags={"before": 3, "drift": 1}, **asked
    )
    for draw in range(4):
        y = list(Y)
        for t in range(H):
            row = future().iloc[[t]].assign(last=np.mean(y[-3:]), before=y[-3])
            given = {"X": row, "drift": y[-1:]}
            one = idata.isel(draw=[draw])
            y.append(
                pmt.predictions(one, model, given, var_name="mean", **QUIET)["prediction"].item()
            )
        np.testing.assert_allclose(found["y"][0, draw], y[N:], rtol=1e-12)
        means = [np.mean(y[k - 3 : k]) for k in range(N, N + H)]
        np.testing.assert_allclose(found["last"][0, draw], means, rtol=1e-12)


def test_several_values_a_row_need_a_sample():
    model, idata = series()
    with pytest.raises(ValueError, match="both has several values for each row: draw one number"):
        pmt.forecast(idata, model, lagged()[:2], var_name="both", **QUIET)
    found = pmt.forecast(
        idata, model, lagged()[:2], var_name="both", sample=lambda value: value[1], **QUIET
    )["both"]
    wanted = 2 * idata["posterior"]["mu"].to_numpy()[..., :2]
    np.testing.assert_allclose(found, wanted, rtol=1e-12)


REFUSED = {
    "X": ({"X": None}, r"X=None: give the rows of the future, or a number of steps"),
    "number": ({"X": 3}, r"X=3 has no columns, but \['month', 'site'\] are not filled"),
    "column": ({"lags": {"lost": 1}}, r"lags: \['lost'\] are not columns"),
    "state": ({"lags": {"last": ("z", 1)}}, r"lags names \['z'\]: choose from"),
    "zero": ({"lags": {"last": 0}}, r"lags\['last'\]=0: must be a whole number of at least 1"),
    "same": ({"lags": {"last": ("y", 0)}}, r"which is not known when y is computed: name y before"),
    "short": ({"history": [1.0]}, r"history holds 1 values of y, and lags reach 3 back"),
    "shape": (
        {"history": np.ones((5, 2))},
        r"history of y has the shape \(5, 2\): give \(times, 1\)",
    ),
    "known": ({"known": [1.0]}, r"known has 1 steps of y: give 6, as X has"),
    "whose": ({"history": {"z": Y}}, r"history names \['z'\]: choose from \['y'\]"),
    "several": (
        {"var_name": ["y", "mu"]},
        r"lags: 'last' is a lag of one of \['y', 'mu'\]: say of",
    ),
    "sampled": (
        {"var_name": ["y", "mu"], "lags": {}, "sample": lambda value: value},
        r"sample is one function for the responses .*: give a dict",
    ),
    "array": (
        {"var_name": ["y", "mu"], "X": {"X": lagged(), "drift": 1.0}, "lags": {}, "history": Y},
        r"history is one array for the responses .*: give a dict",
    ),
    "names": (
        {"sample": lambda value, kappa: value},
        r"sample takes \['kappa'\], which are not known",
    ),
    "no function": ({"sample": 3}, r"sample must be a function, not int"),
    "returned": (
        {"sample": lambda value: np.ones(3)},
        r"sample returned the shape \(3,\): return a",
    ),
    "unknown": ({"var_name": "lost"}, r"var_name='lost' is not a function of trees"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name):
    model, idata = series()
    change, said = REFUSED[name]
    right = {"X": {"X": future(), "drift": 1.0}, "lags": {"last": 1, "before": 3}, **QUIET}
    pmt.forecast(idata, model, **right)
    with pytest.raises((ValueError, TypeError), match=said):
        pmt.forecast(idata, model, **right | change)


def test_what_else_is_refused():
    model, idata = series()
    with pytest.raises(ValueError, match=r"X has steps of \[1, 2\] rows: give each step the same"):
        pmt.forecast(idata, model, [lagged()[:1], lagged()[:2]], var_name="mu", **QUIET)
    with pytest.raises(ValueError, match="name a function or an observed variable"):
        pmt.forecast(idata, model, lagged(), var_name=["a"], update={"a": lambda: 1.0}, **QUIET)
    with pm.Model() as censored:
        mu = pmt.BART("mu", Y[:, None], m=2, leaf=LEAF)
        pm.Censored(
            "c", pm.Normal.dist(mu, 1.0), lower=None, upper=3.0, observed=np.minimum(Y, 3.0)
        )
        pm.Normal("y", mu, 1.0, observed=Y, shape=mu.shape)
    draws = prior_of(censored)
    with pytest.raises(
        ValueError, match=r"observed variables \['c', 'y'\].*choose one by var_name"
    ):
        pmt.forecast(draws, censored, 2, lags={"x0": 1}, **QUIET)
    with pytest.raises(ValueError, match="c is a Censored, which cannot be drawn here.*sample="):
        pmt.forecast(draws, censored, 2, lags={"x0": 1}, var_name="c", **QUIET)
    for given in ({"var_name": "y"}, {"var_name": {"c": "mu"}, "sample": lambda value: value}):
        found = pmt.forecast(draws, censored, 2, lags={"x0": 1}, **given, **QUIET)
        assert dict(found.sizes) == {"chain": 1, "draw": 4, "step": 2}


def autoregression(y, is_data=False):
    """A model of a series by its last value, and draws of its prior with the data of the fit."""
    before = np.append(0.0, Y[:-1])[:, None]
    with pm.Model() as model:
        mu = pmt.BART("mu", pm.Data("X", before), m=4, leaf=LEAF)
        observed = pm.Data("observed", y) if is_data else y
        pm.Normal("y", mu, pm.HalfNormal("sigma"), observed=observed)
        prior = pm.sample_prior_predictive(4, random_seed=3)
    groups = {"posterior": prior["prior"].to_dataset()}
    groups["observed_data"] = prior["observed_data"].to_dataset()
    return model, xr.DataTree.from_dict(groups)


def pasts(model, idata, **options):
    """The history that `forecast` begins with, and its first values of mu."""
    seen = []

    def sample(history, value):
        seen.append(next(iter(history.values()))[:, 0].copy())
        return value

    found = pmt.forecast(idata, model, 1, lags={"x0": 2}, sample=sample, **options, **QUIET)
    return seen[0], next(iter(found.values())).to_numpy()[..., 0]


def test_the_past_is_that_of_the_fit_when_the_model_has_other_data():
    model, idata = autoregression(Y, is_data=True)
    pm.set_data({"X": np.zeros((5, 1)), "observed": np.zeros(5)}, model=model)
    np.testing.assert_array_equal(pasts(model, idata)[0], Y)
    lacking = xr.DataTree.from_dict({"posterior": idata["posterior"].to_dataset()})
    np.testing.assert_array_equal(pasts(model, lacking)[0], np.zeros(5))


@pytest.mark.filterwarnings("ignore::pymc.exceptions.ImputationWarning")
def test_missing_responses_stay_at_their_rows():
    y = np.where(np.isin(np.arange(N), (3, N - 2)), np.nan, Y)
    model, idata = autoregression(y)
    past, value = pasts(model, idata)
    np.testing.assert_array_equal(past, y)
    at_missing = pmt.predictions(idata, model, np.array([[np.nan]]), **QUIET)["prediction"]
    np.testing.assert_array_equal(value, at_missing[..., 0])


@pytest.mark.filterwarnings("ignore::pymc.exceptions.ImputationWarning")
def test_soft_trees_want_a_past_without_missing_responses():
    y = np.where(np.arange(N) == N - 2, np.nan, Y)
    with pm.Model() as model:
        mu = pmt.SoftBART("mu", np.append(0.0, Y[:-1])[:, None], Y, m=2)
        pm.Normal("y", mu, 1.0, observed=y)
    idata = prior_of(model)
    with pytest.raises(ValueError, match=r"history holds missing values.*without NaN"):
        pasts(model, idata)
    assert pasts(model, idata, history=Y)[0].size == N


def test_a_column_called_step_is_computed_and_has_an_underscore():
    table = lagged().rename(columns={"month": "step"})[["step", "last"]]
    with pm.Model() as model:
        mu = pmt.BART("mu", table, m=4, leaf=LEAF)
        pm.Normal("y", mu, 1.0, observed=Y, shape=mu.shape)
    rule = {"step": lambda step: (N + step) % 4}
    found = pmt.forecast(prior_of(model), model, 3, lags={"last": 1}, update=rule, **QUIET)
    assert set(found.data_vars) == {"step_", "y"}
    np.testing.assert_array_equal(found["step_"][0, 0], (N + np.arange(3)) % 4)
    np.testing.assert_array_equal(found["step"], [1, 2, 3])
