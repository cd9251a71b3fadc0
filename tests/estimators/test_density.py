"""`BARTRegressor(noise="density")`: its model, its predictive law, and what it refuses."""

import pickle
import subprocess
import sys
import warnings
from functools import cache

import numpy as np
import pandas as pd
import pymc as pm
import pytensor.tensor as pt
import pytest
import xarray as xr
from scipy import stats
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression

import pymc_trees as pmt
from pymc_trees.core.value import mixtures
from pymc_trees.core.value.mixtures import below_and_density, mass_between
from pymc_trees.distributions.forest_inputs import declared
from pymc_trees.estimators import density
from pymc_trees.estimators.density import CellMixture
from pymc_trees.inference.chains.lengths import Lengths
from pymc_trees.mondrian.kernels import predict
from pymc_trees.predictors import laws

pytestmark = [
    pytest.mark.usefixtures("quick_compile"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]

SMALL = {"m": 5, "scale_trees": 4, "draws": 8, "tune": 12, "chains": 2, "cores": 1}
SMALL |= {"random_state": 3, "progressbar": False}
N = 40
RNG = np.random.default_rng(2)
X = RNG.random((N, 3))
Y = 10 + 4 * X[:, 0] * RNG.choice([-1, 1], N) + 0.3 * RNG.normal(size=N)
CUTS = np.sqrt(2) * stats.norm.ppf(np.arange(1, 100) / 100)
LEVELS = np.linspace(0.02, 0.98, 49)


@cache
def fitted(**given):
    return pmt.BARTRegressor(noise="density", **SMALL | given).fit(X, Y)


def by_hand():
    """The model, as a user would write it."""
    left = np.sqrt(np.sum((Y - LinearRegression().fit(X, Y).predict(X)) ** 2) / (N - 4))
    centre, spread = (Y.max() + Y.min()) / 2, (Y.max() - Y.min()) / 2
    weights = [0.25, 0.25, 0.25, 0.25]
    with pm.Model() as model:
        data = pmt.Data("X", X)
        g = pmt.BART("g", data, m=20, leaf=pmt.NormalLeaf(0, 1 / np.sqrt(20)), beta=1)
        z = pm.Normal("z", g, 1, shape=g.shape)
        inputs = pmt.with_columns(data, z=z, cuts={"z": CUTS})
        leaf = pmt.NormalLeaf(centre / 5, spread / np.sqrt(5))
        both = {"beta": 0.5, "split_prior": weights}
        f = pmt.BART("f", inputs, m=5, leaf=leaf, monotone={"z": 1}, **both)
        sd = pm.HalfNormal("log_sigma_sd", 1)
        leaf = pmt.NormalLeaf((np.log(left) - 1.0344) / 4, sd / np.sqrt(4))
        log_sigma = pmt.BART("log_sigma", inputs, m=4, leaf=leaf, **both)
        pm.Normal("y", f, pm.math.exp(log_sigma), observed=Y, shape=f.shape)
        quantiles = [
            pmt.evaluate(model["f_forest"], pt.concatenate([data, (g + c)[:, None]], axis=1))
            for c in stats.norm.ppf([0.1, 0.5, 0.9])
        ]
        pm.Deterministic("f_quantiles", pt.stack(quantiles))
    return model


def test_the_model_is_that_written_by_hand():
    found, model = fitted(), by_hand()
    point = found.model_.initial_point()
    assert point.keys() == model.initial_point().keys()
    ours, theirs = found.model_.compile_logp(), model.compile_logp()
    assert ours(point) == pytest.approx(theirs(point), rel=1e-9)
    options = {"draws": 8, "tune": 12, "chains": 2, "cores": 1, "random_seed": 3}
    with model:
        wanted = pm.sample(**options, progressbar=False, compute_convergence_checks=False)
    assert set(found.idata_.posterior) == set(wanted.posterior)
    for name in ("f", "log_sigma", "g", "z", "log_sigma_sd", "f_quantiles"):
        wanted_one = wanted.posterior[name]
        np.testing.assert_allclose(found.idata_.posterior[name], wanted_one, rtol=1e-8)


def laws_by_hand(found, new):
    """(draws, cells, rows) weights, means and sds, by PyMC's functions at a point of each cell."""
    model, posterior = found.model_, found.idata_.posterior
    middles = np.concatenate([[CUTS[0] - 1], (CUTS[1:] + CUTS[:-1]) / 2, [CUTS[-1] + 1]])
    cells = np.concatenate([np.column_stack([new, np.full(len(new), c)]) for c in middles])
    f, h = (pmt.evaluate(model[f"{name}_forest"], cells) for name in ("f", "log_sigma"))
    g = pmt.evaluate(model["g_forest"], new)
    names = ["f_forest", "log_sigma_forest", "g_forest"]
    function = pm.compile([model[name] for name in names], [f, h, g])
    edges = np.concatenate([[-np.inf], CUTS, [np.inf]])
    parts = []
    for chain, draw in np.ndindex(2, posterior.sizes["draw"]):
        f, h, g = function(*(posterior[name].to_numpy()[chain, draw] for name in names))
        mass = np.diff(stats.norm.cdf(edges[:, None] - g), axis=0)
        parts.append([mass, f.reshape(100, -1), np.exp(h).reshape(100, -1)])
    return np.moveaxis(np.array(parts), 1, 0)


def test_the_predictive_law_is_the_mixture_over_draws_and_cells():
    """To 1e-10, of numbers by PyMC's functions and scipy's Normal."""
    found, new = fitted(), np.random.default_rng(5).random((4, 3))
    weight, mean, sd = laws_by_hand(found, new)
    assert np.ptp(mean, axis=1).max() > 0.5 and np.ptp(sd, axis=1).max() > 0.05  # z matters
    n_draws = len(weight)
    of_draws = weight / n_draws
    law = found.predict_dist(new)
    expected = (of_draws * mean).sum(axis=(0, 1))
    np.testing.assert_allclose(found.predict(new), expected, rtol=1e-10)
    np.testing.assert_allclose(law.mean(), expected, rtol=1e-10)
    second = (of_draws * (sd**2 + (mean - expected) ** 2)).sum(axis=(0, 1))
    _, std, quantiles = found.predict(new, return_std=True, quantiles=LEVELS)
    np.testing.assert_allclose(std, np.sqrt(second), rtol=1e-10)
    y = np.random.default_rng(6).uniform(4, 16, (4, 5))
    z = (y.T[:, None, None] - mean) / sd
    cdf = (of_draws * stats.norm.cdf(z)).sum(axis=(1, 2)).T
    np.testing.assert_allclose(law.cdf(y), cdf, atol=1e-10)
    log_density = logsumexp(stats.norm.logpdf(z) - np.log(sd), axis=(1, 2), b=of_draws).T
    np.testing.assert_allclose(law.logpdf(y), log_density, rtol=1e-10)
    np.testing.assert_allclose(found.log_density(new, y), log_density, rtol=1e-10)
    np.testing.assert_allclose(found.log_density(new, y[:, 0]), log_density[:, 0], rtol=1e-10)
    z = (quantiles.T[:, None, None] - mean) / sd
    at = (of_draws * stats.norm.cdf(z)).sum(axis=(1, 2)).T
    np.testing.assert_allclose(at, np.broadcast_to(LEVELS, at.shape), atol=2e-10)
    np.testing.assert_allclose(law.ppf(0.3), law.ppf([0.3])[:, 0])


def test_the_density_integrates_to_one():
    found, new = fitted(), X[:3]
    grid = np.linspace(-60, 80, 140_001)
    density = np.exp(found.log_density(new, np.tile(grid, (3, 1))))
    np.testing.assert_allclose(np.trapezoid(density, grid, axis=1), 1.0, atol=1e-8)
    mean = np.trapezoid(density * grid, grid, axis=1)
    np.testing.assert_allclose(mean, found.predict(new), rtol=1e-8)


def test_the_law_is_what_pymc_draws():
    """New rows of the model, z drawn from its prior there: 4.5 standard errors of shares."""
    found, new = fitted(), np.random.default_rng(5).random((3, 3))
    model = found.model_
    repeats = 400
    with model:
        pmt.set_data({"X": np.repeat(new, repeats, axis=0)})
        drawn = pm.sample_posterior_predictive(
            found.idata_,
            var_names=["y"],
            sample_vars=["z", "y"],
            predictions=True,
            progressbar=False,
            random_seed=1,
        )
        pmt.set_data({"X": X})
    y = drawn.predictions["y"].to_numpy().reshape(-1, 3, repeats)
    _, quantiles = found.predict(new, quantiles=[0.1, 0.3, 0.7, 0.9])
    for k, q in enumerate((0.1, 0.3, 0.7, 0.9)):
        share = (y < quantiles[:, k, None]).mean(axis=(0, 2))
        np.testing.assert_allclose(share, q, atol=4.5 * np.sqrt(q * (1 - q) / y[:, 0].size))


def test_samples_are_of_the_law():
    found = fitted()
    drawn = found.sample_y(X[:3], 4000, random_state=1)
    law = found.predict_dist(X[:3])
    for q in (0.2, 0.8):
        share = (drawn < law.ppf(q)[:, None]).mean(axis=1)
        np.testing.assert_allclose(share, q, atol=4.5 * np.sqrt(0.16 / 4000))
    np.testing.assert_array_equal(drawn, found.sample_y(X[:3], 4000, random_state=1))


def test_masses_are_exact_in_both_tails():
    for a, b in ((-np.inf, -8.0), (8.0, np.inf), (-1.0, 2.0), (9.0, 9.5), (-np.inf, np.inf)):
        wanted = stats.norm.sf(a) - stats.norm.sf(b) if a > 0 else stats.norm.cdf(b)
        wanted -= 0.0 if a > 0 else stats.norm.cdf(a)
        assert mass_between(a, b) == pytest.approx(wanted, rel=1e-12)


def test_the_table_of_the_normal_is_close():
    """To 2e-11 between its places, which quantiles rest on."""
    z = np.linspace(-9.5, 9.5, 100_003)
    one = np.ones(1)
    at = np.array([below_and_density(0, 1, 1, one, np.zeros(1), one, y) for y in z])
    assert np.abs(at[:, 0] - stats.norm.cdf(z)).max() < 2e-11
    assert np.abs(at[:, 1] - stats.norm.pdf(z)).max() < 1e-5


def test_sds_that_differ_stay_apart_in_every_unit(monkeypatch):
    """What rounding merges of f, of the size of y, says nothing of log sds."""
    found = pmt.BARTRegressor(noise="density", **SMALL).fit(X, 2.0**40 * Y)
    sds = []
    for rounding in (density.ROUNDING, 0.0):
        monkeypatch.setattr(density, "ROUNDING", rounding)
        sds.append(found.predict_dist(X).std())
    np.testing.assert_allclose(*sds, rtol=1e-9)
    np.testing.assert_allclose(sds[0] / 2.0**40, fitted().predict_dist(X).std(), rtol=1e-4)


def test_quantiles_of_mixtures_that_are_hard():
    """Modes far apart, and components whose sds differ by six orders of magnitude."""
    far = CellMixture(np.array([0, 2]), np.full(2, 0.5), np.array([-50.0, 50.0]), np.full(2, 1e-3))
    assert far.ppf(0.25)[0] == pytest.approx(-50.0, abs=1e-6)
    assert -50.1 < far.ppf(0.5)[0] < 50.1
    rng = np.random.default_rng(1)
    start = np.array([0, 700, 2000])
    weight = rng.gamma(0.1, size=2000)
    weight[:700] /= weight[:700].sum()
    weight[700:] /= weight[700:].sum()
    law = CellMixture(start, weight, rng.normal(size=2000), 10 ** rng.uniform(-5, 1, 2000))
    q = np.array([1e-8, 0.001, 0.3, 0.5, 0.9, 1 - 1e-8])
    found = law.ppf(q)
    assert (np.diff(found, axis=1) >= 0).all()
    np.testing.assert_allclose(law.cdf(found), np.tile(q, (2, 1)), atol=2e-10)
    assert np.isfinite(law.logpdf(np.array([[1e6], [-1e6]]))).all()
    for bad in (0.0, 1.0, np.nan, []):
        with pytest.raises(ValueError, match="quantiles="):
            law.ppf(bad)


def test_answers_are_the_same_in_blocks_and_threads(monkeypatch):
    found, levels = fitted(), [0.1, 0.5]
    mean, quantiles = found.predict(X, quantiles=levels)
    monkeypatch.setattr("pymc_trees.estimators.density.HELD", 16 * 100 * 7)
    for n_jobs in (1, 2):
        again = found.predict(X, quantiles=levels, n_jobs=n_jobs)
        np.testing.assert_allclose(again[0], mean, rtol=1e-12)
        np.testing.assert_allclose(again[1], quantiles, rtol=1e-8)
    one = found.predict(X, quantiles=levels, draws=2)[1]
    assert one.shape == quantiles.shape and not np.allclose(one, quantiles)


def test_files_copies_and_refits(tmp_path):
    found = fitted()
    found.save(tmp_path / "fit.nc")
    for again in (pmt.BARTRegressor.load(tmp_path / "fit.nc"), pickle.loads(pickle.dumps(found))):
        np.testing.assert_array_equal(again.predict(X), found.predict(X))
        np.testing.assert_array_equal(again.log_density(X, Y), found.log_density(X, Y))
    twin = clone(found).fit(X, Y)
    np.testing.assert_array_equal(twin.predict(X), found.predict(X))
    assert 0 < found.score(X, Y) < 1
    with pytest.raises(ValueError, match=r"computes answers from the training rows.*predictor"):
        found.save(tmp_path / "a.nc", training_data=False)
    assert not (tmp_path / "a.nc").exists()


@pytest.mark.parametrize("y", [Y, np.round(Y)])
def test_a_predictor_in_another_process(tmp_path, y):
    """The same mixture: mean, sd and quantiles; shares of draws, in standard errors."""
    found = fitted() if y is Y else pmt.BARTRegressor(noise="density", **SMALL).fit(X, y)
    levels, rows = [0.03, 0.5, 0.9], X[:6] + 0.01
    found.predictor().save(tmp_path / "fit.pmt")
    np.save(tmp_path / "X.npy", rows)
    code = f"""
import sys, numpy as np, pymc_trees as pmt
p, X = pmt.load(r"{tmp_path / "fit.pmt"}"), np.load(r"{tmp_path / "X.npy"}")
mean, sd = p.predict(X), p.predict(X, "sd", of="y")
q = p.predict(X, quantiles={levels}, of="y")
y = p.sample_y(np.repeat(X[:1], 2_000, axis=0), random_seed=1)
assert not {{"pymc", "pytensor", "numba"}} & set(sys.modules)
np.savez(r"{tmp_path / "answers.npz"}", mean=mean, sd=sd, q=q, y=y)
"""
    subprocess.run([sys.executable, "-c", code], check=True)
    answers, law = np.load(tmp_path / "answers.npz"), found.predict_dist(rows)
    mean, quantiles = found.predict(rows, quantiles=levels)
    for name, truth in (("mean", mean), ("sd", law.std())):
        np.testing.assert_allclose(answers[name], truth, rtol=0, atol=1e-10)
    np.testing.assert_allclose(law.cdf(answers["q"]), np.tile(levels, (6, 1)), rtol=0, atol=1e-10)
    np.testing.assert_allclose(answers["q"], quantiles, rtol=1e-8)
    # 2,000 draws of y for each of 16 draws of the trees: errors of shares are below 0.003
    share = (answers["y"].ravel()[:, None] <= quantiles[0]).mean(axis=0)
    assert abs(share - levels).max() < 5 * 0.003


def test_rounding_is_the_least_noise():
    y = np.round(Y)
    found = pmt.BARTRegressor(noise="density", **SMALL).fit(X, y)
    assert found.predict_dist(X).scale.min() >= np.sqrt(1 / 12)
    point = found.model_.initial_point()
    log_sigma, f = (
        found.model_.compile_fn(
            found.model_.replace_rvs_by_values([found.model_[name]]),
            inputs=found.model_.value_vars,
            on_unused_input="ignore",
        )(point)[0]
        for name in ("log_sigma", "f")
    )
    ours = found.model_.compile_logp(found.model_["y"], sum=False)(point)[0]
    sd = np.sqrt(np.exp(2 * log_sigma) + 1 / 12)
    np.testing.assert_allclose(ours, stats.norm(f, sd).logpdf(y), rtol=1e-9)


def test_frames_weights_and_names():
    frame = pd.DataFrame(X, columns=["z", "age", "weight"])
    frame["site"] = RNG.choice(["north", "south"], N)
    frame.loc[::7, "age"] = np.nan
    given = SMALL | {"split_prior": {"weight": 0.0}, "n_cuts": 10}
    kept = np.arange(N) % 4 > 0
    found = pmt.BARTRegressor(noise="density", **given).fit(frame, Y, kept.astype(float))
    assert found.model_["z"].eval().shape == (kept.sum(),)
    mean, quantiles = found.predict(frame, quantiles=[0.1, 0.9])
    assert np.isfinite(mean).all() and (np.diff(quantiles) > 0).all()
    changed = frame.assign(weight=0.5)
    np.testing.assert_allclose(found.predict(changed), mean, rtol=1e-12)  # excluded from all
    with pytest.raises(ValueError, match="feature names"):
        found.predict(frame.rename(columns={"age": "years"}))


@pytest.mark.parametrize(
    ("given", "weights", "words"),
    [
        ({}, np.linspace(0.5, 1.5, N), "sample_weight: noise='density'"),
        ({"m": 0}, None, "m=0"),
        ({"k": -1.0}, None, "k=-1.0"),
        ({"scale_trees": 0}, None, "scale_trees=0"),
        ({"split_prior": [1.0]}, None, "split_prior"),
        ({"beta": -1.0}, None, "beta"),
    ],
)
def test_what_makes_no_sense_is_named(given, weights, words):
    with pytest.raises(ValueError, match=words):
        pmt.BARTRegressor(noise="density", **SMALL | given).fit(X, Y, weights)
    if weights is not None:  # what the message proposes
        assert pmt.BARTRegressor(noise="forest", **SMALL).fit(X, Y, weights).predict(X).shape == (
            N,
        )
        twice = np.repeat(X, 2, axis=0), np.repeat(Y, 2)
        assert pmt.BARTRegressor(noise="density", **SMALL).fit(*twice).predict(X).shape == (N,)


def test_missing_cells_of_new_rows_go_to_the_sides_of_their_nodes():
    """Where training rows had none; as the forests themselves send them."""
    found = fitted()
    new = X[:9].copy()
    new[::2, 0] = np.nan
    made = found.predictor()
    np.testing.assert_allclose(found.predict(new), made.predict(new), rtol=1e-9)


def test_few_rows_know_all_cuts_of_the_latent_column():
    rows = declared(fitted().model_["f_forest"]).X[:, -1]
    assert rows.min() < CUTS[0] and rows.max() > CUTS[-1] and len(np.unique(rows)) == N


def test_densities_are_asked_at_numbers_of_each_row():
    for y in (Y[:3], Y[:, None, None], 1.0):
        with pytest.raises(ValueError, match="y has shape"):
            fitted().log_density(X, y)
    assert (fitted().log_density(X[:2], [[np.inf, -np.inf]] * 2) == -np.inf).all()
    assert np.isnan(fitted().predict_dist(X[:2]).logpdf([np.nan, 10.0])).tolist() == [True, False]
    even = pmt.BARTRegressor(noise="constant", **SMALL).fit(X, Y)
    grid = np.linspace(-100, 120, 20_001)
    density = np.exp(even.log_density(X[:2], np.tile(grid, (2, 1))))
    np.testing.assert_allclose(np.trapezoid(density, grid, axis=1), 1.0, atol=1e-6)


@pytest.mark.parametrize(
    ("shift", "chains", "words"),
    [(0.7, 4, ""), (0.7, 2, "cannot be judged as a pool"), (4.0, 4, "too few")],
)
def test_warnings_come_where_the_pool_does_not_do(shift, chains, words):
    """Chains that differ in labels are no reason; too few of them are."""
    found = pickle.loads(pickle.dumps(fitted()))
    assert found.idata_["posterior"]["f_quantiles"].shape == (2, 8, 3, N)
    values = np.random.default_rng(1).normal(size=(chains, 60, 3, N))
    values += shift * np.random.default_rng(2).normal(size=(chains, 1, 3, N))
    drawn = xr.Dataset({"f_quantiles": (("chain", "draw", "q", "row"), values)})
    found.idata_ = xr.DataTree.from_dict({"posterior": drawn})
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always", ConvergenceWarning)
        found._check_convergence(Lengths(60, 12, chains, N, 5))
    said = [str(one.message) for one in seen]
    assert len(said) == bool(words)
    for message in said:
        assert "R-hat of f_quantiles" in message and words in message
        assert "plot_convergence" not in message
        assert ("chains=8" in message) is (words == "too few")
        assert ("chains=4 and draws=40" in message) is (chains == 2)


def test_until_looks_at_quantiles():
    until = {"ess": 5, "r_hat": 3.0, "draws": 8, "max_time": "10min"}
    found = pmt.BARTRegressor(noise="density", until=until, **SMALL | {"draws": None})
    found.fit(X, Y)
    assert '"of": ["f_quantiles"]' in found.idata_.attrs["sample_until"]


def test_one_value_of_y_and_few_rows():
    found = pmt.BARTRegressor(noise="density", **SMALL).fit(X[:3], [1.0, 1.0, 1.0])
    np.testing.assert_allclose(found.predict(X), 1.0, atol=1.5)
    with pytest.raises(ValueError, match="1 sample"):
        pmt.BARTRegressor(noise="density", **SMALL).fit(X[:1], [2.0])
    one = pmt.BARTRegressor(noise="constant", **SMALL).fit(X[:1], [2.0])
    assert np.isfinite(one.predict(X)).all()


def pinball(quantiles, y):
    """Mean over levels, of each row."""
    off = y[:, None] - quantiles
    return np.maximum(LEVELS * off, (LEVELS - 1) * off).mean(axis=1)


@pytest.mark.full
def test_two_modes_are_found():
    """Pinball on 1,000 new rows is below the noise forest's by more than 3 standard errors."""
    rng = np.random.default_rng(3)

    def drawn(n):
        X = rng.random((n, 2))
        up = rng.random(n) < X[:, 1]
        return X, np.where(up, 1 + X[:, 0], -1 - X[:, 0]) + 0.2 * rng.normal(size=n)

    (X, y), (new, y_new) = drawn(400), drawn(1000)
    lost = {}
    for noise in ("density", "forest"):
        made = pmt.BARTRegressor(
            20, noise=noise, scale_trees=10, draws=60, tune=100, cores=1, random_state=1
        )
        lost[noise] = pinball(made.fit(X, y).predict(new, quantiles=LEVELS)[1], y_new)
    gain = lost["forest"] - lost["density"]
    assert gain.mean() > 3 * gain.std() / np.sqrt(len(gain))


def by_cells(weight, mean, sd, levels):
    out, of_normal = np.empty((1, len(levels))), stats.norm.ppf(levels)
    start = np.array([0, len(weight)])
    mixtures.quantiles(start, weight, mean, sd, levels, of_normal, 1e-10, out)
    return out[0]


def by_predictors(weight, mean, sd, levels):
    given = weight[:, None], mean[:, None], sd[:, None]
    return np.array([laws._quantile(*given, level)[0] for level in levels])


def by_mondrian(weight, mean, sd, levels):
    parts, out = np.zeros((len(weight), 3)), np.empty((1, len(levels)))
    parts[:, predict.WEIGHT], parts[:, predict.MEAN] = weight, mean
    parts[:, predict.VAR] = sd**2
    start = np.array([0, len(weight)])
    predict.quantiles(parts, start, levels, stats.norm.ppf(levels), out)
    return out[0]


@pytest.mark.parametrize("quantiles_of", [by_cells, by_predictors, by_mondrian])
def test_quantiles_of_peaks_among_wide_components(quantiles_of, rng):
    """Newton's steps are short on a narrow peak, however far the quantile is."""
    K, levels = 12, np.arange(1, 100) / 100
    for _ in range(40):
        weight, mean = rng.dirichlet(np.ones(K)), rng.normal(0, 2, K)
        sd = 10.0 ** rng.uniform(-3, 0, K)
        found = quantiles_of(weight, mean, sd, levels)
        below = (weight * stats.norm.cdf((found[:, None] - mean) / sd)).sum(axis=1)
        np.testing.assert_allclose(below, levels, atol=2e-9)
