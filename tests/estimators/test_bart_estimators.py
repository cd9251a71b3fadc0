"""`BARTRegressor` and `BARTClassifier`: their models, and what scikit-learn asks of them."""

import json
import logging
import pickle
import subprocess
import sys
import warnings
from functools import cache

import numpy as np
import pandas as pd
import pymc as pm
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import pymc_trees as pmt
from pymc_trees.estimators import base as estimators_base
from pymc_trees.estimators.mixture import Mixture
from pymc_trees.estimators.models import least_noise
from pymc_trees.inference.chains import lengths as lengths_of_chains
from pymc_trees.targets.choose import read_target
from pymc_trees.targets.rowwise import KernelTarget

pytestmark = [
    pytest.mark.usefixtures("quick_compile"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]
# Softmax compiles kernels of its own.
THREE_CLASSES = pytest.param("probit", 3, marks=pytest.mark.full)

SMALL = {"m": 6, "draws": 8, "tune": 10, "chains": 2, "cores": 1, "random_state": 3}
N = 40
RNG = np.random.default_rng(2)
X = RNG.random((N, 3))
Y = 10 + 4 * X[:, 0] + (0.1 + X[:, 1]) * RNG.normal(size=N)
FRAME = pd.DataFrame(X, columns=["dose", "age", "weight"])
FRAME["site"] = RNG.choice(["north", "south", "west"], N)
FRAME.loc[::7, "age"] = np.nan
FRAME.loc[3, "site"] = None
KINDS = np.array(["low", "mid", "high"])[np.digitize(X[:, 0], [0.3, 0.6])]


@cache
def regressor(noise="forest", **given):
    return pmt.BARTRegressor(noise=noise, scale_trees=4, **SMALL | given).fit(X, Y)


@cache
def classifier(link="probit", classes=2):
    labels = KINDS if classes == 3 else KINDS == "low"
    return pmt.BARTClassifier(link=link, **SMALL).fit(X, labels)


def by_hand(noise):
    """The regressor's model, as a user would write it."""
    left = np.sqrt(np.sum((Y - LinearRegression().fit(X, Y).predict(X)) ** 2) / (N - 4))
    centre, spread = (Y.max() + Y.min()) / 2, (Y.max() - Y.min()) / 4
    with pm.Model() as model:
        data = pmt.Data("X", X)
        f = pmt.BART("f", data, m=6, leaf=pmt.NormalLeaf(centre / 6, spread / np.sqrt(6)))
        if noise == "forest":
            spread = pm.HalfNormal("log_sigma_sd", 1)
            leaf = pmt.NormalLeaf((np.log(left) - 1.0344) / 4, spread / np.sqrt(4))
            sigma = pm.math.exp(pmt.BART("log_sigma", data, leaf=leaf, m=4))
        else:
            sigma = pm.HalfNormal("sigma", left)
        if noise == "student":
            nu = pm.Gamma("nu", 2, 0.1)
            pm.StudentT("y", nu=nu, mu=f, sigma=sigma, observed=Y, shape=f.shape)
        else:
            pm.Normal("y", f, sigma, observed=Y, shape=f.shape)
    return model


def at_point(model, name):
    """A function of the model at its initial point."""
    [values] = model.replace_rvs_by_values([model[name]])
    compiled = model.compile_fn(values, inputs=model.value_vars, on_unused_input="ignore")
    return compiled(model.initial_point())


def sampled(model):
    options = {"draws": 8, "tune": 10, "chains": 2, "cores": 1, "random_seed": 3}
    return pm.sample(**options, model=model, progressbar=False, compute_convergence_checks=False)


@pytest.mark.parametrize("noise", ["forest", "constant", "student"])
def test_draws_are_those_of_the_model_written_by_hand(noise):
    ours, wanted = regressor(noise).idata_.posterior, sampled(by_hand(noise)).posterior
    assert set(ours) == set(wanted)
    for name in set(wanted) - {"f_forest", "log_sigma_forest"}:  # which hold the time they took
        np.testing.assert_allclose(ours[name], wanted[name], rtol=1e-9, err_msg=name)


@pytest.mark.parametrize(("link", "classes"), [("probit", 2), ("logit", 2), THREE_CLASSES])
def test_classes_have_the_model_written_by_hand(link, classes):
    found = classifier(link, classes)
    codes = np.searchsorted(found.classes_, KINDS if classes == 3 else KINDS == "low")
    leaf = pmt.NormalLeaf(0.0, 1.5 / np.sqrt(6))
    with pm.Model() as model:
        if classes == 3:
            f = pmt.BART("f", pmt.Data("X", X), m=6, leaf=leaf, shape=(3, N))
            pm.Categorical("y", p=pm.math.softmax(f, axis=0).T, observed=codes)
        else:
            f = pmt.BART("f", pmt.Data("X", X), m=6, leaf=leaf)
            one = {"logit_p": f} if link == "logit" else {"p": pm.math.invprobit(f)}
            pm.Bernoulli("y", **one, observed=codes, shape=f.shape)
    wanted = sampled(model).posterior
    np.testing.assert_allclose(found.idata_.posterior["f"], wanted["f"], rtol=1e-9)


@pytest.mark.parametrize("noise", ["forest", "constant", "student"])
def test_predictions_are_those_of_pymc(noise):
    found = regressor(noise)
    new = np.random.default_rng(5).random((7, 3))
    model, posterior = by_hand(noise), found.idata_
    names = ["f"] + ["log_sigma"] * (noise == "forest")
    with model:
        pmt.set_data({"X": new})
        drawn = pm.sample_posterior_predictive(posterior, var_names=names, progressbar=False)
    f = drawn.posterior_predictive["f"].to_numpy().reshape(-1, 7)
    if noise == "forest":
        scale = np.exp(drawn.posterior_predictive["log_sigma"].to_numpy().reshape(-1, 7))
    else:
        scale = posterior.posterior["sigma"].to_numpy().reshape(-1, 1) * np.ones((1, 7))
    law = stats.norm(f, scale)
    if noise == "student":
        law = stats.t(posterior.posterior["nu"].to_numpy().reshape(-1, 1), f, scale)
    mean, std, quantiles = found.predict(new, return_std=True, quantiles=[0.05, 0.5, 0.95])
    np.testing.assert_allclose(mean, f.mean(axis=0), rtol=1e-10)
    moments = law.var() + (f - f.mean(axis=0)) ** 2
    np.testing.assert_allclose(std, np.sqrt(moments.mean(axis=0)), rtol=1e-9)
    for k, q in enumerate((0.05, 0.5, 0.95)):
        np.testing.assert_allclose(law.cdf(quantiles[:, k]).mean(axis=0), q, atol=1e-8)
    exact = found.predict_dist(new)
    y = f[0]
    np.testing.assert_allclose(exact.logpdf(y), np.log(law.pdf(y).mean(axis=0)), rtol=1e-9)
    np.testing.assert_allclose(exact.cdf(y), law.cdf(y).mean(axis=0), rtol=1e-9)


def test_probabilities_are_means_over_draws():
    found = classifier("logit")
    p = 1 / (1 + np.exp(-found.idata_.posterior["f"].to_numpy().reshape(-1, N)))
    np.testing.assert_allclose(found.predict_proba(X)[:, 1], p.mean(axis=0), rtol=1e-10)
    np.testing.assert_allclose(found.sample_proba(X)[..., 1], p, rtol=1e-10)
    three = classifier(classes=3)
    f = np.moveaxis(three.idata_.posterior["f"].to_numpy().reshape(-1, 3, N), 1, -1)
    wanted = np.exp(f) / np.exp(f).sum(axis=-1, keepdims=True)
    np.testing.assert_allclose(three.predict_proba(X), wanted.mean(axis=0), rtol=1e-10)
    assert list(three.predict(X)) == list(three.classes_[wanted.mean(axis=0).argmax(axis=1)])


def test_a_mixture_is_its_components():
    rng = np.random.default_rng(1)
    loc, scale = rng.normal(size=(6, 4)), rng.uniform(0.1, 3, (6, 4))
    law = Mixture(loc, scale)
    grid = np.linspace(-40, 40, 80_001)
    for j in range(4):
        density = stats.norm(loc[:, j, None], scale[:, j, None]).pdf(grid).mean(axis=0)
        mean = np.trapezoid(grid * density, grid)
        assert law.mean()[j] == pytest.approx(mean, abs=1e-8)
        second = np.trapezoid((grid - mean) ** 2 * density, grid)
        assert law.std()[j] == pytest.approx(np.sqrt(second), abs=1e-7)
    for q in (1e-6, 0.3, 1 - 1e-6):
        np.testing.assert_allclose(law.cdf(law.ppf(q)), q, rtol=0, atol=2e-10)
    drawn = law.rvs(20_000, 3)
    # 4.5 standard errors; a mean and a share below the third decile.
    np.testing.assert_allclose(drawn.mean(axis=1), law.mean(), atol=4.5 * law.std().max() / 141)
    below = (drawn < law.ppf(0.3)[:, None]).mean(axis=1)
    np.testing.assert_allclose(below, 0.3, atol=4.5 * np.sqrt(0.21 / 20_000))
    heavy = Mixture(loc, scale, np.full((6, 1), 1.5))
    assert np.isinf(heavy.std()).all()
    for q in (0.0, 1.0, np.nan, []):
        with pytest.raises(ValueError, match="quantiles="):
            law.ppf(q)


def test_far_apart_components_have_quantiles_between():
    law = Mixture(np.array([[-50.0], [50.0]]), np.full((2, 1), 1e-3))
    assert law.ppf(0.25)[0] == pytest.approx(-50.0, abs=1e-6)
    assert -50.1 < law.ppf(0.5)[0] < 50.1


def test_rounding_is_the_least_noise():
    """Whole numbers: the variance of a uniform law of width 1 is added."""
    y, weights = np.round(3 * Y), np.linspace(0.2, 3.0, N)
    found = pmt.BARTRegressor(scale_trees=4, **SMALL).fit(X, y, weights)
    assert isinstance(read_target(found.model_, found.model_["log_sigma_forest"]), KernelTarget)
    point = found.model_.initial_point()
    ours = found.model_.compile_logp(found.model_["y"], sum=False)(point)[0]
    f, log_sigma = (at_point(found.model_, name) for name in ("f", "log_sigma"))
    sd = np.sqrt((np.exp(2 * log_sigma) + 1 / 12) / weights)
    np.testing.assert_allclose(ours, stats.norm(f, sd).logpdf(y), rtol=1e-9)
    drawn = found.idata_.posterior
    law = found.predict_dist(X)
    wanted = np.sqrt(np.exp(2 * drawn["log_sigma"].to_numpy().reshape(-1, N)) + 1 / 12)
    np.testing.assert_allclose(law.scale, wanted, rtol=1e-9)
    assert least_noise(Y, 1.0) == 0.0 == least_noise(np.ones(4), 1.0)
    assert least_noise(0.1 * np.arange(4), 1.0) == pytest.approx(0.1 / np.sqrt(12))


@pytest.mark.parametrize("noise", ["forest", "student"])
def test_weights_enter_the_likelihood(noise):
    weights = np.linspace(0.2, 3.0, N)
    found = pmt.BARTRegressor(noise=noise, scale_trees=4, **SMALL).fit(X, Y, weights)
    model = found.model_
    point = model.initial_point()
    ours = model.compile_logp(model["y"], sum=False)(point)[0]
    f = at_point(model, "f")
    scale = np.exp(at_point(model, "log_sigma") if noise == "forest" else point["sigma_log__"])
    scale = scale / np.sqrt(weights)
    law = stats.norm(f, scale)
    if noise == "student":
        law = stats.t(np.exp(point["nu_log__"]), f, scale)
    np.testing.assert_allclose(ours, law.logpdf(Y), rtol=1e-9)


@pytest.mark.parametrize("classes", [2, pytest.param(3, marks=pytest.mark.full)])
@pytest.mark.parametrize("link", ["probit", "logit"])
def test_weights_multiply_log_probabilities(link, classes):
    labels = KINDS if classes == 3 else KINDS == "low"
    weights = np.linspace(0.2, 3.0, N)
    found = pmt.BARTClassifier(link=link, **SMALL).fit(X, labels, weights)
    model = found.model_
    value = found.predict_proba(X).mean()  # draws exist
    assert 0 < value < 1
    f = at_point(model, "f")
    codes = np.searchsorted(found.classes_, labels)
    if classes == 3:
        p = np.exp(f) / np.exp(f).sum(axis=0)
        own = p[codes, np.arange(N)]
    else:
        p = stats.norm.cdf(f) if link == "probit" else 1 / (1 + np.exp(-f))
        own = np.where(codes == 1, p, 1 - p)
    ours = model.compile_logp(model["y"], sum=False)(model.initial_point())[0]
    np.testing.assert_allclose(ours, weights * np.log(own), rtol=1e-8)


@pytest.mark.full
def test_rows_of_weight_0_are_left_out():
    kept = np.arange(N) % 4 > 0
    one = pmt.BARTRegressor(**SMALL).fit(FRAME, Y, kept.astype(float))
    other = pmt.BARTRegressor(**SMALL).fit(FRAME[kept], Y[kept])
    np.testing.assert_array_equal(one.predict(FRAME), other.predict(FRAME))


@pytest.mark.full
def test_frames_with_levels_and_missing_cells():
    found = pmt.BARTRegressor(**SMALL).fit(FRAME, Y)
    assert list(found.feature_names_in_) == list(FRAME)
    assert found.model_["X"].get_value().shape == (N, 4)
    new = FRAME.iloc[:5].copy()
    np.testing.assert_allclose(found.predict(new), found.predict(FRAME)[:5], rtol=1e-14)
    new["site"] = "east"  # no training row had it
    with pytest.warns(UserWarning, match="site"):
        assert np.isfinite(found.predict(new)).all()
    with pytest.raises(ValueError, match="feature names"):
        found.predict(FRAME.rename(columns={"age": "years"}))


def test_polars_frames():
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame({"dose": X[:, 0], "site": FRAME["site"].fillna("none").to_list()})
    given = SMALL | {"noise": "constant"}
    found = pmt.BARTRegressor(**given).fit(frame, Y, np.arange(N) % 5)
    pandas = pd.DataFrame(frame.to_dict(as_series=False))
    same = pmt.BARTRegressor(**given).fit(pandas, Y, np.arange(N) % 5)
    np.testing.assert_array_equal(found.predict(frame), same.predict(pandas))


@pytest.mark.full
def test_what_scikit_learn_does_with_them():
    model = make_pipeline(StandardScaler(), pmt.BARTRegressor(**SMALL, scale_trees=3))
    search = GridSearchCV(model, {"bartregressor__m": [2, 4]}, cv=2).fit(X, Y)
    assert search.best_params_["bartregressor__m"] in (2, 4)
    labels = KINDS == "low"
    p = cross_val_predict(
        pmt.BARTClassifier(**SMALL), X, labels, cv=2, method="predict_proba", n_jobs=1
    )
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    twin = clone(regressor()).set_params(random_state=3)
    np.testing.assert_array_equal(twin.fit(X, Y).predict(X), regressor().predict(X))


@pytest.mark.full
def test_pickled_and_written_estimators_predict_alike(tmp_path):
    fitted = {
        "frame": (
            pmt.BARTRegressor(**SMALL, split_rules={"weight": "continuous"}).fit(FRAME, Y),
            FRAME,
        ),
        "weighted": (pmt.BARTRegressor(**SMALL).fit(X, Y, 1 + X[:, 0]), X),
        "student": (regressor("student"), X),
        "classes": (classifier(classes=3), X),
    }
    for name, (found, rows) in fitted.items():
        path = tmp_path / f"{name}.nc"
        found.save(path)
        for again in (type(found).load(path), pickle.loads(pickle.dumps(found))):
            np.testing.assert_array_equal(again.predict(rows), found.predict(rows))
            assert again.get_params() == found.get_params()
            assert str(again.model_["y"].owner) == str(found.model_["y"].owner)
    assert list(type(found).load(path).classes_) == ["high", "low", "mid"]
    with pytest.raises(ValueError, match=r"BARTClassifier\.load"):
        pmt.BARTRegressor.load(path)
    load = f"p.BARTClassifier.load({str(path)!r})"
    code = f"import pymc_trees as p; print({load}.predict([[0, .5, .5]])[0])"
    elsewhere = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert elsewhere.stdout.strip() == found.predict([[0, 0.5, 0.5]])[0]


def test_other_files_are_refused(tmp_path):
    regressor().idata_.to_netcdf(tmp_path / "draws.nc", engine="h5netcdf")
    with pytest.raises(ValueError, match="holds no estimator"):
        pmt.BARTRegressor.load(tmp_path / "draws.nc")
    with pytest.raises(NotFittedError):
        pmt.BARTRegressor().save(tmp_path / "nothing.nc")
    with pytest.raises(NotFittedError):
        pmt.BARTRegressor().model_  # noqa: B018
    assert not (tmp_path / "nothing.nc").exists()


def test_draws_answer_to_the_functions_of_the_package():
    found = regressor()
    effect = pmt.partial_dependence(found.idata_, found.model_, 0, var_name="f")
    assert effect["average"].sizes["chain"] == 2
    mean = pmt.predictions(found.idata_, found.model_, X, var_name="f")["prediction"]
    np.testing.assert_allclose(mean.mean(("chain", "draw")), found.predict(X), rtol=1e-10)


def test_chains_that_disagree_are_named():
    with pytest.warns(
        ConvergenceWarning, match=r"R-hat of f is up to .*: 2 chains of 6 draws.*chains=4 "
    ):
        pmt.BARTRegressor(m=20, draws=6, tune=0, chains=2, cores=1, random_state=1).fit(X, Y)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        pmt.BARTRegressor(**SMALL | {"chains": 1}).fit(X, Y)  # nothing to compare


def test_samples_are_of_the_predictive_law():
    found = regressor()
    drawn = found.sample_y(X[:3], 4000, random_state=1)
    assert drawn.shape == (3, 4000)
    law = found.predict_dist(X[:3])
    share = (drawn < law.ppf(0.8)[:, None]).mean(axis=1)
    np.testing.assert_allclose(share, 0.8, atol=4.5 * np.sqrt(0.16 / 4000))
    np.testing.assert_array_equal(drawn, found.sample_y(X[:3], 4000, random_state=1))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"noise": "gamma"}, "noise='gamma'"),
        ({"m": 0}, "m=0"),
        ({"k": -1.0}, "k=-1.0"),
        ({"scale_trees": 1.5}, "scale_trees=1.5"),
        ({"draws": 0}, "draws=0"),
        ({"chains": 0}, "chains=0"),
        ({"alpha": 2.0}, "alpha"),
        ({"split_prior": [1.0]}, "split_prior"),
    ],
)
def test_settings_out_of_range_are_named(given, words):
    logger = logging.getLogger("pymc.sampling.mcmc")
    level = logger.level
    with pytest.raises(ValueError, match=words):
        pmt.BARTRegressor(**SMALL | given, progressbar=False).fit(X, Y)
    assert logger.level == level


def test_inputs_out_of_range_are_named():
    with pytest.raises(ValueError, match="one class"):
        pmt.BARTClassifier(**SMALL).fit(X, np.ones(N, dtype=int))
    with pytest.raises(ValueError, match="link='cloglog'"):
        pmt.BARTClassifier(**SMALL, link="cloglog").fit(X, KINDS)
    with pytest.raises(ValueError, match="sample_weight has negative"):
        pmt.BARTRegressor(**SMALL).fit(X, Y, -np.ones(N))
    with pytest.raises(ValueError, match="non-zero number"):
        pmt.BARTRegressor(**SMALL).fit(X, Y, np.zeros(N))
    with pytest.raises(ValueError, match="NaN"):
        pmt.BARTRegressor(**SMALL).fit(X, np.where(X[:, 0] < 0.5, np.nan, Y))
    with pytest.raises(ValueError, match="infinity"):
        pmt.BARTRegressor(**SMALL).fit(np.where(X < 0.01, np.inf, X), Y)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_weights_that_sum_far_from_the_rows_are_named():
    """They multiply log-likelihoods; whole numbers are counts of rows, and stay unsaid."""
    weights = np.linspace(0.001, 0.003, N)
    with pytest.warns(UserWarning, match=r"sample_weight sums to .* over"):
        pmt.BARTRegressor(**SMALL).fit(X, Y, weights)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        pmt.BARTRegressor(**SMALL).fit(X, Y, weights / weights.mean())
        pmt.BARTRegressor(**SMALL).fit(X, Y, np.full(N, 7.0))
    with pytest.raises(ValueError, match="one class, 'low' among rows with a positive"):
        kinds = np.where(np.arange(N) < 3, "high", "low")
        pmt.BARTClassifier(**SMALL).fit(X, kinds, (kinds == "low").astype(float))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("classifier", [pmt.BARTClassifier, pmt.MondrianForestClassifier])
def test_nullable_labels_keep_their_type(classifier):
    made = classifier(**SMALL) if classifier is pmt.BARTClassifier else classifier(random_state=1)
    for labels, dtype in ((X[:, 0] > 0.5, "boolean"), (1 + (X[:, 0] > 0.5), "Int64")):
        found = made.fit(X, pd.Series(labels, dtype=dtype))
        assert found.classes_.dtype == labels.dtype == found.predict(X[:3]).dtype
    missing = pd.Series(X[:, 0] > 0.5, dtype="boolean")
    missing[3] = pd.NA
    with pytest.raises(ValueError, match="y has missing labels"):
        made.fit(X, missing)


def test_one_value_of_y_and_few_rows():
    found = pmt.BARTRegressor(**SMALL).fit(X[:3], [1.0, 1.0, 1.0])
    np.testing.assert_allclose(found.predict(X), 1.0, atol=1.0)
    assert np.isfinite(pmt.BARTRegressor(**SMALL).fit(X[:1], [2.0]).predict(X)).all()


# scikit-learn looks for whole numbers in y before it refuses infinite ones.
CAST = "ignore:invalid value encountered in cast:RuntimeWarning"
MCMC = "draws depend on the number of rows: equal posteriors, not equal draws"
FAILS = {"check_sample_weight_equivalence_on_dense_data": MCMC}
OF_WEIGHTS = dict.fromkeys(
    ["check_sample_weights_list", "check_sample_weights_not_overwritten"],
    "a density takes weights of 0 and 1",
)


@pytest.mark.full
@pytest.mark.filterwarnings(CAST)
@pytest.mark.parametrize(
    ("estimator", "given", "fails"),
    [
        (pmt.BARTRegressor, {}, FAILS),
        (pmt.BARTClassifier, {}, FAILS),
        (pmt.BARTRegressor, {"noise": "density", "m": 2, "scale_trees": 2}, FAILS | OF_WEIGHTS),
    ],
)
def test_checks_of_scikit_learn(estimator, given, fails):
    found = check_estimator(
        estimator(**SMALL | {"chains": 1, "draws": 20, "tune": 20} | given),
        expected_failed_checks=fails,
        on_skip=None,
    )
    failed = {one["check_name"] for one in found if one["status"] == "xfail"}
    assert failed == set(fails)


def test_the_step_methods_are_there_without_the_public_names():
    code = (
        "from pymc_trees.estimators.classifier import BARTClassifier as B; import numpy as np;"
        "X = np.arange(20.0)[:, None]; y = X[:, 0] > 9;"
        "found = B(m=5, draws=20, tune=20, chains=1, cores=1, random_state=1).fit(X, y);"
        "print(found.predict_proba(X)[-1, 1] > 0.7)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "True"


@pytest.mark.parametrize("kind", ["regressor", pytest.param("classifier", marks=pytest.mark.full)])
def test_functions_that_are_too_large_to_record_come_from_the_trees(kind, monkeypatch):
    recorded = regressor() if kind == "regressor" else classifier("probit", 3)
    answer = recorded.predict if kind == "regressor" else recorded.predict_proba
    monkeypatch.setattr(estimators_base, "MOST_RECORDED", 0)
    lean = clone(recorded).fit(X, Y if kind == "regressor" else KINDS)
    assert "f" in recorded.idata_["posterior"] and "f" not in lean.idata_["posterior"]
    again = lean.predict if kind == "regressor" else lean.predict_proba
    np.testing.assert_allclose(again(X), answer(X), rtol=1e-12)
    some = np.array([0, 7, 30])
    np.testing.assert_allclose(lean._watched(some), recorded._watched(some), rtol=1e-12)


def test_a_fit_that_ends_by_itself(tmp_path):
    until = {"ess": 30, "r_hat": 1.5, "draws": 8, "max_time": "10min"}
    made = {"m": 10, "noise": "constant", "tune": 20, "chains": 2, "cores": 1, "random_state": 1}
    fitted = pmt.BARTRegressor(until=until, progressbar=False, **made)
    assert clone(fitted).get_params()["until"] == until
    fitted.fit(X, Y)
    said = json.loads(fitted.idata_.attrs["sample_until"])
    assert said["ended"] == "reached" and said["asked"]["ess"] == 30
    n = fitted.idata_.posterior.sizes["draw"]
    same = pmt.BARTRegressor(draws=n, **made).fit(X, Y)
    np.testing.assert_array_equal(fitted.idata_.posterior["sigma"], same.idata_.posterior["sigma"])
    fitted.save(tmp_path / "fit.nc")
    read = pmt.BARTRegressor.load(tmp_path / "fit.nc")
    assert read.until == until and read.idata_.attrs["sample_until"] == json.dumps(said)
    np.testing.assert_array_equal(read.predict(X[:3]), fitted.predict(X[:3]))
    del made["noise"]
    classes = pmt.BARTClassifier(until=until | {"ess": 9, "r_hat": 3.0}, **made)
    classes.fit(X, Y > np.median(Y))
    assert json.loads(classes.idata_.attrs["sample_until"])["asked"]["of"] == ["f"]


def test_chains_are_shorter_where_rows_are_many(monkeypatch, caplog):
    """Lengths that are not given follow from rows and trees, are said once, and are stored."""
    monkeypatch.setattr(lengths_of_chains, "SWEPT", 20)
    monkeypatch.setattr(lengths_of_chains, "FEWEST", 7)
    caplog.set_level(logging.INFO, "pymc.trees")
    made = {"m": 5, "noise": "constant", "cores": 1, "random_state": 1, "progressbar": False}
    fitted = pmt.BARTRegressor(**made).fit(X, Y)
    draws = max(round(1000 * 20 / (N * 5)), 7)
    assert dict(fitted.idata_.posterior["sigma"].sizes) == {"chain": 4, "draw": draws}
    stored = {"draws": draws, "tune": draws, "chains": 4, "rows": N, "trees": 5}
    assert json.loads(fitted.idata_.attrs["chains_by_size"]) == stored
    said = [r.getMessage() for r in caplog.records if "BARTRegressor: 4 chains" in r.getMessage()]
    assert len(said) == 1 and f"{N} rows and 5 trees" in said[0]
    assert fitted.get_params()["draws"] is None and clone(fitted).chains is None
    given = pmt.BARTRegressor(**made, draws=9, tune=3, chains=1).fit(X, Y)
    assert dict(given.idata_.posterior["sigma"].sizes) == {"chain": 1, "draw": 9}
