"""Predictors of Mondrian forests against the estimators, and their files."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import pymc_trees as pmt

CLOSE = {"rtol": 1e-12, "atol": 1e-13}
rng = np.random.default_rng(1)
N, P = 150, 3
X = rng.random((N, P)).round(2)
Y = np.sin(6 * X[:, 0]) + 0.1 * rng.normal(size=N)
LABELS = np.array(["a", "b", "c"])[(3 * X[:, 0] + 0.3 * rng.normal(size=N)).clip(0, 2).astype(int)]
NEW = np.concatenate([X[:20], rng.normal(0.5, 1, (40, P)), [[1e6] * P, [0.0] * P, [-1e200] * P]])

REGRESSORS = {
    "exact": {},
    "heuristic": {"hyperparameters": "heuristic"},
    "fast": {"posterior": "fast"},
    "a lifetime": {"lifetime": 3.0},
    "slow branching": {"gamma_2": 50.0, "noise_variance": 0.01},
    "few leaves": {"max_leaf_nodes": 5},
    "scaled": {"scaling": "first"},
    "a window": {"window": 40},
    "bounded": {"max_memory": 0.1},
}
CLASSIFIERS = {
    "shares": {},
    "Kneser-Ney": {"smoothing": "kneser-ney"},
    "concentration": {"concentration": 2.0, "gamma": 0.5},
    "a lifetime": {"lifetime": 2.0},
    "scaled": {"scaling": (-1.0, 3.0)},
    "a window": {"window": 40},
}


def grown(kind, y, settings):
    """A forest that has learnt in two parts, so that places were taken and given back."""
    forest = kind(n_estimators=15, random_state=1, progressbar=False, **settings)
    more = {"classes": np.unique(y)} if kind is pmt.MondrianForestClassifier else {}
    return forest.partial_fit(X[:100], y[:100], **more).partial_fit(X[100:], y[100:])


@pytest.mark.parametrize("name", REGRESSORS)
def test_regressors(name, tmp_path):
    forest = grown(pmt.MondrianForestRegressor, Y, REGRESSORS[name])
    predictor = pmt.load(forest.predictor().save(tmp_path / "fit.pmt"))
    mean, sd = forest.predict(NEW, return_std=True)
    # variances are differences of parts of gamma_1, which is large where trees end early
    gamma_1 = max(1.0, *predictor._arrays.get("forest0/prior", np.ones((1, 4)))[:, 1])
    close = {"rtol": 1e-12, "atol": 1e-13 * gamma_1}
    np.testing.assert_allclose(predictor.predict(NEW), mean, **close)
    np.testing.assert_allclose(predictor.predict(NEW, of="f"), mean, **close)
    # the estimator takes the variance as a difference of moments
    np.testing.assert_allclose(predictor.predict(NEW, "sd", of="y"), sd, rtol=1e-8, atol=1e-9)
    q = (0.01, 0.3, 0.95)
    found = predictor.predict(NEW, quantiles=q, of="y")
    np.testing.assert_allclose(found, forest.predict_quantiles(NEW, q), rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classifiers(name, tmp_path):
    forest = grown(pmt.MondrianForestClassifier, LABELS, CLASSIFIERS[name])
    predictor = pmt.load(forest.predictor().save(tmp_path / "fit.pmt"))
    np.testing.assert_allclose(predictor.predict_proba(NEW), forest.predict_proba(NEW), **CLOSE)
    assert (predictor.predict(NEW) == forest.predict(NEW)).all()
    np.testing.assert_allclose(predictor.predict(NEW, of="p"), forest.predict_proba(NEW), **CLOSE)
    with pytest.raises(ValueError, match="of='typo': choose from"):
        predictor.predict(NEW, of="typo")
    with pytest.raises(ValueError, match="of='p': a class is of the response"):
        predictor.predict(NEW, "class", of="p")


def test_draws_of_a_new_observation():
    forest = grown(pmt.MondrianForestRegressor, Y, {})
    predictor = forest.predictor()
    far = np.full((3000, P), 10.0)
    drawn = predictor.sample_y(far, random_seed=1)
    assert drawn.shape == (15, 3000)
    mean, sd = forest.predict(far[:1], return_std=True)
    n = drawn.size
    assert abs(drawn.mean() - mean[0]) < 5 * sd[0] / np.sqrt(n)  # standard errors of the mean
    assert abs(drawn.std() / sd[0] - 1) < 5 / np.sqrt(n)
    below = forest.predict_quantiles(X[:1], 0.3)
    drawn = predictor.sample_y(np.repeat(X[:1], 3000, axis=0), random_seed=2)
    assert abs((drawn < below).mean() - 0.3) < 5 * np.sqrt(0.21 / n)


def test_names_trees_and_what_is_refused():
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    forest = pmt.MondrianForestRegressor(n_estimators=4, random_state=1, progressbar=False)
    predictor = forest.fit(frame, Y).predictor()
    assert predictor.draws(frame)["f"].sizes == {"chain": 1, "draw": 4, "row": N}
    turned = predictor.predict(frame[["c", "a", "b"]])
    np.testing.assert_allclose(turned, forest.predict(frame), **CLOSE)
    two = forest.predictor(draws=2).predict(frame)
    expected = predictor.draws(frame)["f"].isel(draw=[0, 3]).mean(("chain", "draw"))
    np.testing.assert_allclose(two, expected, **CLOSE)
    with pytest.raises(ValueError, match="missing cells, which Mondrian forests do not take"):
        predictor.predict([{"a": None, "b": 1.0, "c": 0.5}])
    for refused in (predictor.to_onnx, lambda: predictor.to_sql("t"), predictor.to_json):
        with pytest.raises(ValueError, match="Mondrian trees, which a row may leave at any node"):
            refused()


def test_a_file_needs_numpy_alone(tmp_path):
    forest = grown(pmt.MondrianForestClassifier, LABELS, {})
    path = forest.predictor().save(tmp_path / "fit.pmt")
    code = (
        "import sys, pymc_trees as pmt\n"
        f"p = pmt.load({str(path)!r})\n"
        "print(p.predict_proba([[0.1, 0.2, 0.3]]).tolist())\n"
        "assert not {'numba', 'sklearn', 'pymc', 'scipy'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    [expected] = forest.predict_proba([[0.1, 0.2, 0.3]])
    np.testing.assert_allclose(eval(done.stdout)[0], expected, **CLOSE)
