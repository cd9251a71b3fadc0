"""Odd X and y: what a Mondrian forest makes of each, and what it says."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
from sklearn.exceptions import NotFittedError

import pymc_trees as pmt

RNG = np.random.default_rng(5)
X = RNG.random((40, 3))
Y = X[:, 0] + 0.1 * RNG.normal(size=40)
CODES = (Y > 0.5).astype(int)
DAYS = np.arange(40).astype("M8[D]")
HOLES = np.zeros((40, 3), dtype=bool)
HOLES[3, 1] = True


def forests():
    return pmt.MondrianForestRegressor(3, random_state=1), pmt.MondrianForestClassifier(3)


def masked(values, mask):
    return np.ma.MaskedArray(values, mask=mask)


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (scipy.sparse.csr_array(X), r"\.toarray\(\)"),
        (scipy.sparse.coo_matrix(X), r"\.toarray\(\)"),
        (masked(X, HOLES), "Input X contains NaN"),
        (masked((10 * X).astype(int), HOLES), "Input X contains NaN"),
        (masked(X.astype(object), HOLES), "Input X contains NaN"),
        (X + 1j, "Complex data"),
        (np.tile(DAYS[:, None], 3), "X holds dates"),
        (np.tile(DAYS[:, None] - DAYS[0], 3), "X holds time differences"),
        (X.astype(str), "X holds text"),
        (X.astype("S"), "X holds text"),
        (X.astype(str).astype(object), "X holds text"),
        (X.astype(str).tolist(), "X holds text"),
        (pd.DataFrame(X.astype(str)), "X holds text"),
        (pl.DataFrame(X.astype(str)), "X holds text"),
        (pd.DataFrame({"a": DAYS, "b": DAYS, "c": DAYS}), "X holds dates"),
        (np.full((40, 3), np.nan), "Input X contains NaN"),
        (np.full((40, 3), np.inf), "Input X contains infinity"),
        (X[:0], "0 sample"),
        (X[:, :0], "0 feature"),
        (X[0], "Expected 2D array"),
        (X[None], "dim 3"),
        (X[:-1], "inconsistent numbers of samples"),
        (3.0, "Expected 2D array"),
        ("X", "Expected 2D array|could not convert|string"),
        (None, "Expected 2D array|NoneType"),
        ([[1.0, 2.0], [3.0]], "inhomogeneous"),
    ],
    ids=lambda value: "",
)
def test_X_that_is_refused(bad, words):
    for forest, labels in zip(forests(), (Y, CODES)):
        with pytest.raises((ValueError, TypeError), match=words):
            forest.fit(bad, labels)
        with pytest.raises(NotFittedError):
            forest.predict(X)
        forest.fit(X, labels)
        before = forest.predict(X)
        with pytest.raises((ValueError, TypeError), match=words):
            forest.partial_fit(bad, labels)
        np.testing.assert_array_equal(forest.predict(X), before)


@pytest.mark.parametrize(
    "good",
    [
        masked(X, np.zeros_like(HOLES)),
        masked(X, False),
        X.tolist(),
        X.astype(object),
        np.asfortranarray(X),
        X[::-1][::-1],
        pl.DataFrame(X),
        X.astype(np.longdouble),
        pd.DataFrame(X).astype("Float64"),
    ],
    ids=lambda value: "",
)
def test_X_that_is_the_same_rows(good):
    for forest, labels in zip(forests(), (Y, CODES)):
        wanted = forest.set_params(random_state=1).fit(X, labels).predict(X)
        np.testing.assert_array_equal(forest.fit(good, labels).predict(good), wanted)


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (DAYS, "y holds dates"),
        (DAYS - DAYS[0], "y holds time differences"),
        (pd.Series(DAYS), "y holds dates"),
        (Y.astype(str), "y holds text"),
        (Y.astype(str).astype(object), "y holds text"),
        (pl.Series(Y.astype(str)), "y holds text"),
        (Y + 1j, "Complex data"),
        (masked(Y, HOLES[:, 1]), "Input y contains NaN"),
        (np.where(HOLES[:, 1], np.nan, Y), "Input y contains NaN"),
        (np.where(HOLES[:, 1], np.inf, Y), "Input y contains infinity"),
        (None, "requires y to be passed"),
        (np.stack([Y, Y], axis=1), "1d array"),
        (Y[:-1], "inconsistent numbers of samples"),
    ],
    ids=lambda value: "",
)
def test_numbers_that_are_refused(bad, words):
    forest, _ = forests()
    with pytest.raises(ValueError, match=words):
        forest.fit(X, bad)
    before = forest.fit(X, Y).predict(X)
    with pytest.raises(ValueError, match=words):
        forest.partial_fit(X, bad)
    np.testing.assert_array_equal(forest.predict(X), before)


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (Y, "Unknown label type"),
        (CODES + 1j, "Complex data"),
        (masked(CODES, HOLES[:, 1]), "y has 1 masked .missing. entries"),
        (masked(CODES.astype(str), HOLES[:, 1]), "y has . masked|y has .. masked"),
        (np.where(HOLES[:, 1], np.nan, CODES), "Input y contains NaN"),
        (None, "requires y to be passed"),
    ],
    ids=lambda value: "",
)
def test_classes_that_are_refused(bad, words):
    _, forest = forests()
    with pytest.raises(ValueError, match=words):
        forest.fit(X, bad)
    with pytest.raises(NotFittedError):
        forest.predict(X)
    forest.fit(X, CODES)
    with pytest.raises(ValueError, match=words):
        forest.partial_fit(X, bad)
    assert forest.n_samples_seen_ == 40


@pytest.mark.parametrize(
    "labels",
    [
        masked(CODES, False),
        CODES.astype(str),
        CODES.astype(str).astype(object),
        CODES.astype(bool),
        CODES.astype(float),
        DAYS[CODES],
        pd.Series(CODES, dtype="category"),
    ],
    ids=lambda value: "",
)
def test_classes_of_any_type(labels):
    """The numbers of the classes, and so all predictions, are those of 0 and 1."""
    _, forest = forests()
    wanted = forest.set_params(random_state=1).fit(X, CODES).predict_proba(X)
    np.testing.assert_array_equal(forest.fit(X, labels).predict_proba(X), wanted)
    assert (np.asarray(forest.predict(X)) == np.asarray(labels)).mean() > 0.9
    forest.partial_fit(X, labels, classes=np.unique(labels))
    assert forest.n_samples_seen_ == 80


@pytest.mark.parametrize("classes", [[], np.array([]), [np.nan, 1.0], masked([0, 1], [0, 1])])
def test_classes_must_be_some(classes):
    _, forest = forests()
    with pytest.raises(ValueError, match="classes"):
        forest.partial_fit(X, CODES, classes=classes)
    assert not hasattr(forest, "classes_")


@pytest.mark.parametrize("forest", forests(), ids=["numbers", "classes"])
def test_methods_of_an_unfitted_forest(forest):
    for name, more in (
        ("predict", ()),
        ("apply", ()),
        ("decision_path", ()),
        ("sample_y", ()),
        ("to_arviz", ()),
        ("log_predictive_density", (CODES,)),
        ("predict_proba", ()),
        ("predict_quantiles", ()),
    ):
        if hasattr(forest, name):
            with pytest.raises(NotFittedError, match="is not fitted yet"):
                getattr(forest, name)(X, *more)
    for name in ("n_samples_seen_", "n_features_in_", "feature_names_in_", "classes_"):
        assert not hasattr(forest, name)
