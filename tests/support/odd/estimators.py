"""Odd inputs of the Mondrian forests."""

import numpy as np
import pandas as pd
import scipy.sparse

import pymc_trees as pmt
from support.odd.table import FRAME, Odd, X, Y, with_entry

CLASSES = np.where(Y > 2, "high", "low")
NAMED = pd.DataFrame(X, columns=["a", "b"])
SMALL = {"n_estimators": 3, "random_state": 1}


def regressor(**settings):
    """A small forest of numbers."""
    return pmt.MondrianForestRegressor(**SMALL | settings)


def classifier(**settings):
    """A small forest of classes."""
    return pmt.MondrianForestClassifier(**SMALL | settings)


def both(make, y):
    """Rows about settings and inputs that the two forests share."""

    def fit(refused=None, holds=lambda f: np.isfinite(_numbers(f)).all(), X=X, y=y, **settings):
        return Odd(lambda: make(**settings).fit(X, y), refused, holds)

    def after(call, refused=None, holds=lambda r: True):
        return Odd(lambda: call(make().fit(X, y)), refused, holds)

    return {
        "n_estimators zero": fit("n_estimators", n_estimators=0),
        "n_estimators text": fit("n_estimators", n_estimators="3"),
        "n_estimators bool": fit("n_estimators", n_estimators=True),
        "lifetime negative": fit("lifetime", lifetime=-1),
        "lifetime zero": fit("lifetime", lifetime=0),
        "lifetime NaN": fit("lifetime", lifetime=np.nan),
        "lifetime None": fit("lifetime", lifetime=None),
        "lifetime tiny": fit(lifetime=1e-12),
        "min_samples_split one": fit("min_samples_split", min_samples_split=1),
        "min_samples_split fraction": fit("min_samples_split", min_samples_split=2.5),
        "max_leaf_nodes zero": fit("max_leaf_nodes", max_leaf_nodes=0),
        "max_leaf_nodes one": fit(max_leaf_nodes=1),
        "max_memory zero": fit("max_memory", max_memory=0),
        "max_memory text": fit("max_memory", max_memory="1 GB"),
        "max_memory infinite": fit("max_memory", max_memory=np.inf),
        "max_memory tiny": fit("max_memory", max_memory=1e-9),
        "max_memory huge": fit(max_memory=1e200),
        "window zero": fit("window", window=0),
        "window half": fit("window", window=0.5),
        "window and max_memory": fit("window", window=10, max_memory=1),
        "scaling word": fit("scaling", scaling="minmax"),
        "scaling a number": fit("scaling", scaling=3),
        "scaling reversed": fit("scaling", scaling=(1, 0)),
        "scaling too long": fit("scaling", scaling=(np.zeros(3), np.ones(3))),
        "n_jobs zero": fit(n_jobs=1),
        "random_state text": fit("seed", random_state="x"),
        "X NaN": fit("X", X=with_entry(X, np.nan)),
        "X infinite": fit("X", X=with_entry(X, np.inf)),
        "X masked": fit("X", X=np.ma.masked_array(X, X > 0.9)),
        "X text": fit("X", X=FRAME),
        "X sparse": fit(TypeError("X"), X=scipy.sparse.csr_array(X)),
        "X complex": fit("Complex", X=X + 1j),
        "X vector": fit("reshape", X=X[:, 0]),
        "X no rows": fit("minimum", X=X[:0], y=y[:0]),
        "X no columns": fit("feature", X=X[:, :0]),
        "X other length": fit("samples", X=X[:-1]),
        "X too wide": fit("X", X=np.where(X > 0.5, 1.7e308, -1.7e308)),
        "X None": fit("array", X=None),
        "X constant": fit(X=np.ones((20, 2))),
        "X one row": fit(X=X[:1], y=y[:1]),
        "X a frame": Odd(lambda: make().fit(NAMED, y).predict(NAMED), holds=lambda p: len(p) == 20),
        "y None": fit("y", y=None),
        "y a matrix": fit("y", y=np.column_stack([y, y, y])),
        "predict before fit": Odd(lambda: make().predict(X), "not"),
        "sample before fit": Odd(lambda: make().sample_y(X), "not"),
        "apply before fit": Odd(lambda: make().apply(X), "not"),
        "density before fit": Odd(lambda: make().log_predictive_density(X, y), "not"),
        "arviz before fit": Odd(lambda: make().to_arviz(X), "not"),
        "predict other width": after(lambda f: f.predict(X[:, :1]), "features"),
        "predict NaN": after(lambda f: f.predict(with_entry(X, np.nan)), "X"),
        "predict far": after(lambda f: f.predict(X + 1e150), holds=lambda p: len(p) == 20),
        "partial_fit other width": after(lambda f: f.partial_fit(X[:, :1], y), "features"),
        "partial_fit too wide": after(lambda f: f.partial_fit(with_entry(X, 1.7e308), y), "X"),
        "sample none": after(lambda f: f.sample_y(X, 0), "n_samples"),
        "sample half": after(lambda f: f.sample_y(X, 0.5), "n_samples"),
        "a failed fit keeps the forest": after(_failed_fit, holds=lambda same: same),
        "a failed first fit is no fit": Odd(lambda: _failed_first(make(lifetime=-1), y), "fitted"),
    }


def _numbers(forest):
    return forest.predict_proba(X) if hasattr(forest, "classes_") else forest.predict(X)


def _failed_fit(forest):
    before = _numbers(forest)
    y = CLASSES if hasattr(forest, "classes_") else Y
    try:
        forest.set_params(lifetime=-1).fit(X[:, :1], y)
    except ValueError:
        pass
    return np.array_equal(_numbers(forest), before) and forest.n_features_in_ == 2


def _failed_first(forest, y):
    try:
        forest.fit(X, y)
    except ValueError:
        pass
    return forest.predict(X)


def fit_regressor(refused=None, y=Y, **settings):
    """A row about the regressor alone."""
    return Odd(
        lambda: regressor(**settings).fit(X, y).predict(X),
        refused,
        holds=lambda mean: np.isfinite(mean).all(),
    )


def regressing(call, refused):
    """A row about a fitted regressor."""
    return Odd(lambda: call(regressor().fit(X, Y)), refused)


REGRESSOR = both(regressor, Y) | {
    "y NaN": fit_regressor("y", y=with_entry(Y, np.nan)),
    "y text": fit_regressor("y", y=["a"] * 20),
    "y complex": fit_regressor("Complex", y=Y + 1j),
    "y dates": fit_regressor("y", y=np.arange("2020-01-01", "2020-01-21", dtype="M8[D]")),
    "y masked": fit_regressor("y", y=np.ma.masked_array(Y, Y > 2)),
    "y huge": fit_regressor("y", y=Y * 1e200),
    "y constant": fit_regressor(y=np.ones(20)),
    "y bools": fit_regressor(y=Y > 2),
    "posterior": fit_regressor("posterior", posterior="good"),
    "hyperparameters": fit_regressor("hyperparameters", hyperparameters="best"),
    "mean text": fit_regressor("mean", mean="x"),
    "gamma_1 zero": fit_regressor("gamma_1", gamma_1=0),
    "gamma_2 infinite": fit_regressor("gamma_2", gamma_2=np.inf),
    "noise_variance negative": fit_regressor("noise_variance", noise_variance=-1),
    "noise_variance bool": fit_regressor("noise_variance", noise_variance=True),
    "quantiles one": regressing(lambda f: f.predict_quantiles(X, 1.0), "quantiles"),
    "quantiles NaN": regressing(lambda f: f.predict_quantiles(X, [np.nan]), "quantiles"),
    "quantiles text": regressing(lambda f: f.predict_quantiles(X, "median"), "quantiles"),
    "density of text": regressing(lambda f: f.log_predictive_density(X, ["a"] * 20), "y"),
    "settings at partial_fit": regressing(
        lambda f: f.set_params(posterior="nonsense").partial_fit(X, Y), "posterior"
    ),
    "huge y at partial_fit": regressing(lambda f: f.partial_fit(X, Y * 1e200), "y"),
}


def fit_classifier(refused=None, y=CLASSES, holds=lambda p: np.allclose(p.sum(1), 1), **settings):
    """A row about the classifier alone."""
    return Odd(lambda: classifier(**settings).fit(X, y).predict_proba(X), refused, holds)


def classifying(call, refused=None, holds=lambda result: True):
    """A row about a fitted classifier."""
    return Odd(lambda: call(classifier().fit(X, CLASSES)), refused, holds)


def _first(classes):
    return classifier().partial_fit(X, CLASSES, classes=classes)


CLASSIFIER = both(classifier, CLASSES) | {
    "y continuous": fit_classifier("continuous", y=Y),
    "y one class": fit_classifier(y=["a"] * 20, holds=lambda p: (p == 1).all()),
    "y bools": fit_classifier(y=Y > 2),
    "y masked": fit_classifier("y", y=np.ma.masked_array(Y > 2, Y > 3)),
    "gamma zero": fit_classifier("gamma", gamma=0),
    "gamma infinite": fit_classifier("gamma", gamma=np.inf),
    "gamma text": fit_classifier("gamma", gamma="big"),
    "first without classes": Odd(lambda: classifier().partial_fit(X, CLASSES), "classes"),
    "no classes": Odd(lambda: _first([]), "classes"),
    "classes that lack one": Odd(lambda: _first(["high"]), "y"),
    "classes of another type": Odd(lambda: _first([0, 1]), "y"),
    "classes a matrix": Odd(lambda: _first([["high"], ["low"]]), "classes"),
    "other classes later": classifying(
        lambda f: f.partial_fit(X, CLASSES, classes=["a", "b"]), "classes"
    ),
    "a new class later": classifying(lambda f: f.partial_fit(X, ["new"] * 20), "y"),
    "probabilities far away": classifying(
        lambda f: f.predict_proba(X + 1e150), holds=lambda p: np.allclose(p.sum(1), 1)
    ),
    "density of a class unknown": classifying(
        lambda f: f.log_predictive_density(X, ["new"] * 20), "y"
    ),
}
