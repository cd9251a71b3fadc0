"""Summaries, probabilities, new observations and functions of draws that a predictor gives."""

import numpy as np
import pandas as pd
import pymc as pm
import pymc.dims as pmd
import pytest
from scipy import special, stats
from support import predictor_models as models

import pymc_trees as pmt
from pymc_trees.predictors import evaluation as home
from pymc_trees.predictors.laws import LAWS
from pymc_trees.predictors.rows import Data, _beside
from pymc_trees.predictors.special import erf, erfc, erfcx

CLASSES = {"categorical": "expected", "ordered logistic": "y_probs", "ordered probit": "y_probs"}


@pytest.mark.parametrize("law", models.LAWS)
def test_mean_of_the_response_is_the_models(law):
    case = models.response(law)
    predictor = pmt.predictor(case.idata, case.model)
    name = CLASSES.get(law, "expected")
    found = pmt.predictions(
        case.idata, case.model, case.new, var_name=name, progressbar=False, summary=None
    )["prediction"]
    expected = found.transpose("chain", "draw", "row", ...).mean(("chain", "draw")).to_numpy()
    if law in CLASSES:
        np.testing.assert_allclose(predictor.predict_proba(case.new), expected, rtol=1e-11)
        assert (predictor.predict(case.new) == expected.argmax(axis=1)).all()
    else:
        np.testing.assert_allclose(predictor.predict(case.new), expected, rtol=1e-12, atol=1e-12)
    drawn = predictor.sample_y(case.new, random_seed=1)
    assert drawn.shape == (2 * models.DRAWS, 30)
    assert (drawn == predictor.sample_y(case.new, random_seed=1)).all()


class _TwoNormals:
    """Of weights 0.3 and 0.7."""

    parts = np.array([[0.3, 1.0, 0.25], [0.7, -1.0, 1.0]])

    def mean(self):
        return 0.3 - 0.7

    def var(self):
        return 0.3 * 1.25 + 0.7 * 2.0 - 0.4**2

    def std(self):
        return np.sqrt(self.var())

    def cdf(self, x):
        return 0.3 * stats.norm(1, 0.5).cdf(x) + 0.7 * stats.norm(-1, 1).cdf(x)


PARAMETERS = {
    "normal": ((1.0, 2.0), stats.norm(1, 2)),
    "lognormal": ((0.1, 0.4), stats.lognorm(0.4, scale=np.exp(0.1))),
    "studentt": ((6.0, 1.0, 2.0), stats.t(6, 1, 2)),
    "bernoulli": ((0.3,), stats.bernoulli(0.3)),
    "poisson": ((2.5,), stats.poisson(2.5)),
    "negative_binomial": ((3.0, 0.4), stats.nbinom(3, 0.4)),
    "gamma": ((2.0, 0.7), stats.gamma(2, scale=0.7)),
    "exponential": ((0.7,), stats.expon(scale=0.7)),
    "weibull": ((1.7, 2.5), stats.weibull_min(1.7, scale=2.5)),
    "normal_mixture": ((_TwoNormals.parts,), _TwoNormals()),
    "categorical": (
        (np.array([0.2, 0.5, 0.3]),),
        stats.rv_discrete(values=([0, 1, 2], [0.2, 0.5, 0.3])),
    ),
}


@pytest.mark.parametrize("name", LAWS)
def test_moments_and_draws_of_a_law(name):
    numbers, exact = PARAMETERS[name]
    parameters = [np.broadcast_to(p, (1, *np.shape(p))) for p in numbers]
    law, n = LAWS[name], 200_000
    np.testing.assert_allclose(law.mean(*parameters), [exact.mean()], rtol=1e-12)
    np.testing.assert_allclose(law.variance(*parameters), [exact.var()], rtol=1e-10)
    many = [np.broadcast_to(p, (n, *np.shape(p))) for p in numbers]
    drawn = law.draw(np.random.default_rng(1), (n,), *many)
    # five standard errors of the mean
    assert abs(drawn.mean() - exact.mean()) < 5 * exact.std() / np.sqrt(n)
    below = exact.mean() + 0.1
    share = exact.cdf(below)
    assert abs((drawn <= below).mean() - share) < 5 * np.sqrt(share * (1 - share) / n)


def test_quantiles_of_a_new_normal_observation_are_exact():
    case = models.response("noise forest")
    predictor = pmt.predictor(case.idata, case.model)
    loc, scale = (
        pmt.predictions(case.idata, case.model, case.new, var_name=name, progressbar=False)[
            "prediction"
        ].to_numpy()
        for name in ("f", "g")
    )
    s = case.idata["posterior"]["s"].to_numpy()[..., None]
    q = (0.001, 0.3, 0.95)
    found = predictor.predict(case.new, quantiles=q, of="y")
    for k, one in enumerate(q):
        below = stats.norm(loc, s * np.exp(scale)).cdf(found[:, k]).mean(axis=(0, 1))
        np.testing.assert_allclose(below, one, rtol=1e-10)
    interval = predictor.predict(case.new, "interval", level=0.9, of="y")
    tails = predictor.predict(case.new, quantiles=(0.05, 0.95), of="y")
    np.testing.assert_allclose(interval, tails, rtol=1e-12)
    sd = np.sqrt(((s * np.exp(scale)) ** 2).mean(axis=(0, 1)) + loc.var(axis=(0, 1)))
    np.testing.assert_allclose(predictor.predict(case.new, "sd", of="y"), sd, rtol=1e-12)


def test_summaries_are_those_of_the_draws():
    case = models.expressions()
    predictor = pmt.predictor(case.idata, case.model)
    rate = predictor.draws(case.new)["rate"]
    for kind, expected in {
        "mean": rate.mean(("chain", "draw")),
        "sd": rate.std(("chain", "draw")),
        "interval": rate.quantile([0.1, 0.9], ("chain", "draw")).T,
    }.items():
        found = predictor.predict(case.new, kind, level=0.8, of="rate")
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def _asked(case, name=None):
    found = pmt.predictions(case.idata, case.model, case.new, var_name=name, progressbar=False)[
        "prediction"
    ]
    return found.transpose("chain", "draw", "row", ...)


def test_a_response_of_several_outputs():
    with pm.Model() as model:
        f = pmt.BART("f", pmt.Data("X", models.X), leaf=models.LEAF, m=3, shape=(3, models.N))
        s = pm.HalfNormal("s", 1, shape=3)
        pm.Normal("y", f, s[:, None], observed=np.zeros((3, models.N)), shape=f.shape)
    case = models.drawn(model, models.new_array(7))
    predictor, f = pmt.predictor(case.idata, case.model), _asked(case)
    mean = f.mean(("chain", "draw"))
    np.testing.assert_allclose(predictor.predict(case.new), mean, rtol=1e-12)
    noise = (case.idata["posterior"]["s"].to_numpy() ** 2).mean(axis=(0, 1))
    sd = np.sqrt(noise + f.var(("chain", "draw")).to_numpy())
    np.testing.assert_allclose(predictor.predict(case.new, "sd", of="y"), sd, rtol=1e-12)
    assert predictor.sample_y(case.new).shape == (2 * models.DRAWS, 7, 3)
    assert predictor.predict(case.new, "interval", of="y").shape == (7, 3, 2)


def test_a_forest_without_a_deterministic():
    with pm.Model() as model:
        forest = pmt.Forest("trees", models.X, m=3, leaf=models.LEAF)
        rate = pm.math.exp(pmt.evaluate(forest, models.X))
        pm.Poisson("y", rate, observed=models.COUNTS)
    case = models.drawn(model, models.new_array(7))
    predictor, f = pmt.predictor(case.idata, case.model), _asked(case)
    mean = np.exp(f).mean(("chain", "draw"))
    np.testing.assert_allclose(predictor.predict(case.new), mean, rtol=1e-12)
    np.testing.assert_allclose(predictor.draws(case.new)["trees"], f, rtol=1e-12)


def test_named_dimensions_and_numbers_of_training_rows():
    coords = {"obs": range(models.N), "col": range(3)}
    with pm.Model(coords=coords) as model:
        X = pmd.Data("X", models.X, dims=("obs", "col"))
        f = pmt.BART("f", X, leaf=models.LEAF, m=3, dims="obs")
        pmd.Normal("latent", 0.0, 1.0, dims="obs")
        y = pmd.as_xtensor(models.Y, dims=("obs",))
        pmd.Normal("y", f, pmd.HalfNormal("s", 1.0), observed=y, dims="obs")
    case = models.drawn(model, models.new_array(7))
    predictor = pmt.predictor(case.idata, case.model)
    mean = _asked(case, "f").mean(("chain", "draw"))
    np.testing.assert_allclose(predictor.predict(case.new), mean, rtol=1e-12)
    assert list(predictor.parameters) == ["s"]  # none with an entry for each training row
    assert predictor.draws(case.new)["f"].dims == ("chain", "draw", "row")


def test_a_function_takes_parameters_by_name():
    case = models.expressions()
    predictor = pmt.predictor(case.idata, case.model)
    found = predictor.function(case.new, lambda f, scale, effect: f * scale + effect.sum())
    drawn, posterior = predictor.draws(case.new), case.idata["posterior"]
    expected = drawn["f"] * posterior["scale"] + posterior["effect"].sum("group")
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert found.dims == ("chain", "draw", "row")
    assert predictor.parameters["effect"].shape == (2, models.DRAWS, 4)
    with pytest.raises(ValueError, match="func has the arguments"):
        predictor.function(case.new, lambda nothing: nothing)


def test_blocks_threads_and_thinning_change_nothing(monkeypatch):
    case = models.mixed()
    predictor = pmt.predictor(case.idata, case.model)
    rows = pd.concat([case.new] * 12, ignore_index=True)
    whole = predictor.draws(rows)["f"]
    monkeypatch.setattr(home, "BLOCK", 2 * models.DRAWS * 50)
    np.testing.assert_allclose(predictor.draws(rows)["f"], whole, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(predictor.draws(rows, n_jobs=3)["f"], whole, rtol=1e-12, atol=1e-13)
    fewer = predictor.thinned(4)
    assert (fewer.draws(rows)["f"] == whole.isel(draw=[0, models.DRAWS - 1])).all()
    again = pmt.predictor(case.idata, case.model, draws=4)
    assert (again.draws(rows)["f"] == fewer.draws(rows)["f"]).all()


def test_rows_as_json_has_them():
    case = models.mixed()
    predictor = pmt.predictor(case.idata, case.model)
    records = case.new.astype(object).where(case.new.notna(), None).to_dict("records")
    expected = predictor.predict(case.new, "sd")
    assert (predictor.predict(records, "sd") == expected).all()
    columns = {name: [row[name] for row in records] for name in records[0]}
    assert (predictor.predict(columns, "sd") == expected).all()
    with pytest.raises(ValueError, match="lacks the columns"):
        predictor.predict([{"a": 1.0}])


def test_columns_with_masks_without_rows_and_with_dates():
    case = models.forest(models.FRAME[["a", "b"]], models.new_frame()[["a", "b"]])
    predictor, rows = pmt.predictor(case.idata, case.model), case.new.fillna(0.3)
    columns = {name: rows[name].to_numpy() for name in rows}
    hidden = np.arange(len(rows)) % 3 == 0
    for kind in (float, object):
        masked = np.ma.array(np.where(hidden, 99.0, columns["a"]).astype(kind), mask=hidden)
        found = predictor.predict({**columns, "a": masked})
        assert (found == predictor.predict(rows.assign(a=rows["a"].mask(hidden)))).all()
        assert not np.allclose(found, predictor.predict({**columns, "a": masked.data}))
    assert (predictor.predict({"a": columns["a"], "b": [0.3]})
            == predictor.predict(rows.assign(b=0.3))).all()  # fmt: skip
    with pytest.raises(ValueError, match=r"different numbers, \{'a': 0, 'b': 1\}"):
        predictor.predict({"a": [], "b": [3.0]})
    with pytest.raises(ValueError, match="evaluated at no rows"):
        predictor.predict({"a": [], "b": []})
    for unit in ("M8[ns]", "M8[D]", "m8[s]"):
        with pytest.raises(ValueError, match="not numeric, text or categories: 'a'|'0'"):
            predictor.predict({"a": np.zeros(2, int).astype(unit), "b": [1.0, 2.0]})


def test_masked_data_beside_a_table_are_refused():
    data = Data("g", "int32", (-1,), ("u", "v"))
    given = np.ma.array([0, 1], mask=[True, False])
    assert _beside(np.ma.array([0, 1]), data, 2).tolist() == [[0, 1]]
    for masked in (given, given.astype(float)):
        with pytest.raises(ValueError, match="cannot hold what it is given"):
            _beside(masked, data, 2)
    names = np.ma.array(["u", "v"], dtype=object, mask=[True, False])
    with pytest.raises(ValueError, match="cannot hold what it is given"):
        _beside(names, data, 2)


@pytest.mark.parametrize("noise", ["forest", "constant", "student"])
def test_regressors(noise):
    X, y = models.FRAME, models.Y
    settings = {"m": 5, "draws": 3, "tune": 3, "chains": 2, "cores": 1, "random_state": 1}
    regressor = pmt.BARTRegressor(noise=noise, scale_trees=4, progressbar=False, **settings)
    regressor.fit(X, y)
    predictor = regressor.predictor()
    mean, sd, quantiles = regressor.predict(X, return_std=True, quantiles=[0.1, 0.9])
    np.testing.assert_allclose(predictor.predict(X), mean, rtol=1e-12)
    np.testing.assert_allclose(predictor.predict(X, "sd", of="y"), sd, rtol=1e-12)
    f = pmt.predictions(regressor.idata_, regressor.model_, X, var_name="f", progressbar=False)
    expected = f["prediction"].mean(("chain", "draw"))
    np.testing.assert_allclose(mean, expected, rtol=1e-12)
    fewer = predictor.thinned(2).predict(X)
    np.testing.assert_allclose(regressor.predict(X, draws=2, n_jobs=2), fewer, rtol=1e-12)
    if noise != "student":
        found = predictor.predict(X, quantiles=[0.1, 0.9], of="y")
        np.testing.assert_allclose(found, quantiles, rtol=1e-8)


@pytest.mark.parametrize(("link", "classes"), [("probit", 2), ("logit", 2), ("probit", 3)])
def test_classifiers(link, classes):
    X, y = models.FRAME, np.array(["low", "mid", "top"])[models.COUNTS % classes]
    settings = {"m": 5, "draws": 3, "tune": 3, "chains": 2, "cores": 1, "random_state": 1}
    classifier = pmt.BARTClassifier(link=link, progressbar=False, **settings).fit(X, y)
    predictor = classifier.predictor()
    expected = classifier.predict_proba(X)
    np.testing.assert_allclose(predictor.predict_proba(X), expected, rtol=1e-12)
    f = pmt.predictions(classifier.idata_, classifier.model_, X, var_name="f", progressbar=False)
    f = f["prediction"].transpose("chain", "draw", "row", ...).to_numpy()
    p = special.softmax(f, axis=-1) if classes > 2 else special.expit(f)
    p = special.ndtr(f) if (link, classes) == ("probit", 2) else p
    p = p if classes > 2 else np.stack([1 - p, p], axis=-1)
    np.testing.assert_allclose(expected, p.mean(axis=(0, 1)), rtol=1e-12)
    fewer = predictor.thinned(2).predict_proba(X)
    found = classifier.predict_proba(X, draws=2, n_jobs=2)
    np.testing.assert_allclose(found, fewer, rtol=1e-12)
    assert (predictor.predict(X) == classifier.predict(X)).all()


def test_error_function():
    x = np.concatenate([np.linspace(-25, 25, 20_001), [0.0, 1e-300, -1e-20, 0.46875, 4.0]])
    for ours, theirs in ((erf, special.erf), (erfc, special.erfc), (erfcx, special.erfcx)):
        np.testing.assert_allclose(ours(x), theirs(x), rtol=2e-13)
    assert (erf(np.array([-np.inf, np.inf])) == [-1, 1]).all()
    assert (erfc(np.array([-np.inf, np.inf])) == [2, 0]).all()
    assert np.isnan(erf(np.array([np.nan]))).all() and np.isnan(erfcx(np.array([np.nan]))).all()
