"""Fits that fail, settings and columns that files and predictors have to hold."""

import numpy as np
import pandas as pd
import polars as pl
import pymc as pm
import pytest
from sklearn.exceptions import NotFittedError

import pymc_trees as pmt

pytestmark = [
    pytest.mark.usefixtures("quick_compile"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]
SMALL = {"m": 4, "draws": 8, "tune": 10, "chains": 1, "random_state": 3, "progressbar": False}
N = 40
RNG = np.random.default_rng(2)
X = RNG.random((N, 2))
Y = 4 * X[:, 0] + RNG.normal(0, 0.1, N)


def test_a_fit_that_fails_leaves_nothing_half_new():
    """Neither labels of the new rows with forests of the old ones, nor the old rows in a file."""
    classifier = pmt.BARTClassifier(**SMALL).fit(X, Y > 2)
    classifier.predict(X[:1])
    labels = np.where(Y > 2, "a", "z")
    with pytest.raises(ValueError, match="draws=0"):
        classifier.set_params(draws=0).fit(X, labels)
    with pytest.raises(NotFittedError):
        classifier.predict(X)
    again = classifier.set_params(draws=8).fit(X, labels)
    assert np.mean(again.predict(X) == labels) > 0.8
    regressor = pmt.BARTRegressor(noise="constant", **SMALL).fit(X, Y)
    with pytest.raises(ValueError, match="NaN"):
        regressor.fit(X[:, :1], np.full(N, np.nan))
    with pytest.raises(NotFittedError):
        regressor.predict(X)


Z = np.resize([0.0, 1.0], N)
FITS = [
    (lambda: pmt.BARTClassifier(link="probit", **SMALL).fit(X, Y > 2), {"link": "logit"}),
    (lambda: pmt.BARTRegressor(noise="constant", **SMALL).fit(X, Y), {"noise": "density", "m": 5}),
    (
        lambda: pmt.causal.BayesianCausalForest(**SMALL, m_effect=2).fit(
            X, Y, Z, propensity=np.full(N, 0.5)
        ),
        {"forests": "one", "treatment": "dose"},
    ),
]


def answers(fitted):
    if hasattr(fitted, "sate"):
        return fitted.sate().to_numpy()
    return getattr(fitted, "predict_proba", fitted.predict)(X)


@pytest.mark.parametrize(("fit", "later"), FITS, ids=["link", "noise", "effects"])
def test_parameters_that_are_set_later_count_in_the_next_fit(fit, later, tmp_path):
    fitted = fit()
    before, densities = answers(fitted), fitted.model_.point_logps()
    fitted.set_params(**later)
    fitted.save(tmp_path / "fit.nc")
    again = type(fitted).load(tmp_path / "fit.nc")
    fitted._kept.clear()  # as after pickling
    for one in (fitted, again):
        np.testing.assert_allclose(answers(one), before)
        assert one.model_.point_logps() == densities
    assert {name: getattr(fitted, name) for name in later} == later


@pytest.mark.parametrize(
    "given",
    [
        {"split_prior": {0: 1.0, 1: 0.0}},
        {"split_prior": {np.int64(0): np.float64(1.0), 1: 0}, "split_rules": {1: "continuous"}},
    ],
)
def test_settings_by_number_of_a_column_come_back(given, tmp_path):
    fitted = pmt.BARTRegressor(noise="constant", **SMALL | given).fit(X, Y)
    fitted.save(tmp_path / "fit.nc")
    again = pmt.BARTRegressor.load(tmp_path / "fit.nc")
    for name, value in given.items():
        assert getattr(again, name) == value
    np.testing.assert_array_equal(again.predict(X), fitted.predict(X))
    assert again.model_.point_logps() == fitted.model_.point_logps()


class Sampled(Exception):
    """Chains would run."""


@pytest.mark.parametrize(
    "levels",
    [
        pd.cut(X[:, 1], 3),
        pd.Categorical(np.resize(pd.to_datetime(["2020-01-01", "2021-01-01"]), N)),
    ],
    ids=["intervals", "dates"],
)
def test_levels_that_predictors_cannot_hold_are_refused_before_chains_run(levels, monkeypatch):
    def sample(*args, **options):
        raise Sampled

    monkeypatch.setattr(pm, "sample", sample)
    frame = pd.DataFrame({"dose": X[:, 0], "level": levels})
    words = r"X has levels of type (Interval|Timestamp), which a predictor cannot hold"
    regressor = pmt.BARTRegressor(**SMALL)
    with pytest.raises(ValueError, match=words):
        regressor.fit(frame, Y)
    treatment = np.arange(N) % 2
    forest = pmt.causal.BayesianCausalForest(**SMALL)
    with pytest.raises(ValueError, match=words):
        forest.fit(frame, Y, treatment)
    with pytest.raises(Sampled):
        regressor.fit(frame.astype({"level": str}), Y)


@pytest.mark.parametrize(
    "y",
    [
        pd.Series(pd.date_range("2020", periods=N)),
        pl.Series(pd.date_range("2020", periods=N)),
        pd.Series(pd.to_timedelta(np.arange(N), "D")),
        Y.astype(str),
        pd.Series(Y.astype(str)),
        Y.astype(str).astype(object),
    ],
    ids=["pandas", "polars", "durations", "text", "series", "objects"],
)
def test_dates_and_text_are_no_outcomes(y):
    with pytest.raises(TypeError, match="y must hold numbers only"):
        pmt.BARTRegressor(**SMALL).fit(X, y)
