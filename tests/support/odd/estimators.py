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

    def fit(said=None, holds=lambda f: np.isfinite(_numbers(f)).all(), X=X, y=y, **settings):
        return Odd(lambda: make(**settings).fit(X, y), said, holds)

    def after(call, said=None, holds=lambda r: True):
        return Odd(lambda: call(make().fit(X, y)), said, holds)

    return {
        "n_estimators zero": fit(r"n_estimators.*at least 1", n_estimators=0),
        "n_estimators text": fit(r"n_estimators.*'3'", n_estimators="3"),
        "n_estimators bool": fit(r"n_estimators.*True", n_estimators=True),
        "lifetime negative": fit(r"lifetime.*above 0", lifetime=-1),
        "lifetime zero": fit(r"lifetime.*above 0", lifetime=0),
        "lifetime NaN": fit(r"lifetime.*nan", lifetime=np.nan),
        "lifetime None": fit(r"lifetime.*None", lifetime=None),
        "lifetime tiny": fit(lifetime=1e-12),
        "min_samples_split one": fit(r"min_samples_split.*at least 2", min_samples_split=1),
        "min_samples_split fraction": fit(r"min_samples_split", min_samples_split=2.5),
        "max_leaf_nodes zero": fit(r"max_leaf_nodes.*at least 1", max_leaf_nodes=0),
        "max_leaf_nodes one": fit(max_leaf_nodes=1),
        "max_memory zero": fit(r"max_memory.*above 0", max_memory=0),
        "max_memory text": fit(r"max_memory.*'1 GB'", max_memory="1 GB"),
        "max_memory infinite": fit(r"max_memory.*finite", max_memory=np.inf),
        "max_memory tiny": fit(r"max_memory.*at least", max_memory=1e-9),
        "max_memory huge": fit(max_memory=1e200),
        "scaling word": fit(r"scaling.*'first'", scaling="minmax"),
        "scaling a number": fit(r"scaling.*pair", scaling=3),
        "scaling reversed": fit(r"scaling.*low < high", scaling=(1, 0)),
        "scaling too long": fit(r"scaling.*per feature", scaling=(np.zeros(3), np.ones(3))),
        "n_jobs zero": fit(n_jobs=1),
        "random_state text": fit(r"seed|random", random_state="x"),
        "X NaN": fit(r"NaN", X=with_entry(X, np.nan)),
        "X infinite": fit(r"infinity", X=with_entry(X, np.inf)),
        "X masked": fit(r"(?i)mask|NaN", X=np.ma.masked_array(X, X > 0.9)),
        "X text": fit(r"(?i)convert|numeric|string", X=FRAME),
        "X sparse": fit(r"(?i)toarray|dense|sparse", X=scipy.sparse.csr_array(X)),
        "X complex": fit(r"(?i)complex", X=X + 1j),
        "X vector": fit(r"2D|reshape", X=X[:, 0]),
        "X no rows": fit(r"minimum of 1|0 sample", X=X[:0], y=y[:0]),
        "X no columns": fit(r"0 feature", X=X[:, :0]),
        "X other length": fit(r"inconsistent|samples", X=X[:-1]),
        "X too wide": fit(r"(?i)rescale", X=np.where(X > 0.5, 1.7e308, -1.7e308)),
        "X None": fit(r"(?i)None|array|2D", X=None),
        "X constant": fit(X=np.ones((20, 2))),
        "X one row": fit(X=X[:1], y=y[:1]),
        "X a frame": Odd(lambda: make().fit(NAMED, y).predict(NAMED), holds=lambda p: len(p) == 20),
        "y None": fit(r"requires y|y ", y=None),
        "y a matrix": fit(r"(?i)1d|shape|multi", y=np.column_stack([y, y, y])),
        "predict before fit": Odd(lambda: make().predict(X), r"not fitted"),
        "sample before fit": Odd(lambda: make().sample_y(X), r"not fitted"),
        "apply before fit": Odd(lambda: make().apply(X), r"not fitted"),
        "density before fit": Odd(lambda: make().log_predictive_density(X, y), r"not fitted"),
        "arviz before fit": Odd(lambda: make().to_arviz(X), r"not fitted"),
        "predict other width": after(lambda f: f.predict(X[:, :1]), r"1 features.*2 features"),
        "predict NaN": after(lambda f: f.predict(with_entry(X, np.nan)), r"NaN"),
        "predict far": after(lambda f: f.predict(X + 1e150), holds=lambda p: len(p) == 20),
        "partial_fit other width": after(lambda f: f.partial_fit(X[:, :1], y), r"1 features"),
        "partial_fit too wide": after(
            lambda f: f.partial_fit(with_entry(X, 1.7e308), y), r"(?i)rescale|overflow|too large"
        ),
        "sample none": after(lambda f: f.sample_y(X, 0), r"n_samples.*at least 1"),
        "sample half": after(lambda f: f.sample_y(X, 0.5), r"n_samples"),
        "a failed fit keeps the forest": after(_failed_fit, holds=lambda same: same),
        "a failed first fit is no fit": Odd(
            lambda: _failed_first(make(lifetime=-1), y), r"not fit"
        ),
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


def fit_regressor(said=None, y=Y, **settings):
    """A row about the regressor alone."""
    return Odd(
        lambda: regressor(**settings).fit(X, y).predict(X),
        said,
        holds=lambda mean: np.isfinite(mean).all(),
    )


def regressing(call, said):
    """A row about a fitted regressor."""
    return Odd(lambda: call(regressor().fit(X, Y)), said)


REGRESSOR = both(regressor, Y) | {
    "y NaN": fit_regressor(r"NaN", y=with_entry(Y, np.nan)),
    "y text": fit_regressor(r"(?i)convert|numeric|string", y=["a"] * 20),
    "y complex": fit_regressor(r"(?i)complex", y=Y + 1j),
    "y dates": fit_regressor(r"(?i)y|date", y=np.arange("2020-01-01", "2020-01-21", dtype="M8[D]")),
    "y masked": fit_regressor(r"(?i)mask|NaN", y=np.ma.masked_array(Y, Y > 2)),
    "y huge": fit_regressor(r"(?i)y .*(rescale|large)", y=Y * 1e200),
    "y constant": fit_regressor(y=np.ones(20)),
    "y bools": fit_regressor(y=Y > 2),
    "posterior": fit_regressor(r"posterior.*'exact'", posterior="good"),
    "hyperparameters": fit_regressor(r"hyperparameters.*'heuristic'", hyperparameters="best"),
    "mean text": fit_regressor(r"mean.*finite", mean="x"),
    "gamma_1 zero": fit_regressor(r"gamma_1.*above 0", gamma_1=0),
    "gamma_2 infinite": fit_regressor(r"gamma_2.*finite", gamma_2=np.inf),
    "noise_variance negative": fit_regressor(r"noise_variance.*above 0", noise_variance=-1),
    "noise_variance bool": fit_regressor(r"noise_variance", noise_variance=True),
    "quantiles one": regressing(lambda f: f.predict_quantiles(X, 1.0), r"quantiles.*between"),
    "quantiles NaN": regressing(lambda f: f.predict_quantiles(X, [np.nan]), r"quantiles"),
    "quantiles text": regressing(lambda f: f.predict_quantiles(X, "median"), r"quantiles"),
    "density of text": regressing(
        lambda f: f.log_predictive_density(X, ["a"] * 20), r"(?i)convert|numeric|string"
    ),
    "settings at partial_fit": regressing(
        lambda f: f.set_params(posterior="nonsense").partial_fit(X, Y), r"posterior.*'exact'"
    ),
    "huge y at partial_fit": regressing(
        lambda f: f.partial_fit(X, Y * 1e200), r"(?i)y .*(rescale|large)"
    ),
}


def fit_classifier(said=None, y=CLASSES, holds=lambda p: np.allclose(p.sum(1), 1), **settings):
    """A row about the classifier alone."""
    return Odd(lambda: classifier(**settings).fit(X, y).predict_proba(X), said, holds)


def classifying(call, said=None, holds=lambda result: True):
    """A row about a fitted classifier."""
    return Odd(lambda: call(classifier().fit(X, CLASSES)), said, holds)


def _first(classes):
    return classifier().partial_fit(X, CLASSES, classes=classes)


CLASSIFIER = both(classifier, CLASSES) | {
    "y continuous": fit_classifier(r"(?i)unknown label|continuous", y=Y),
    "y one class": fit_classifier(y=["a"] * 20, holds=lambda p: (p == 1).all()),
    "y bools": fit_classifier(y=Y > 2),
    "y masked": fit_classifier(r"(?i)mask|NaN", y=np.ma.masked_array(Y > 2, Y > 3)),
    "gamma zero": fit_classifier(r"gamma.*above 0", gamma=0),
    "gamma infinite": fit_classifier(r"gamma.*finite", gamma=np.inf),
    "gamma text": fit_classifier(r"gamma", gamma="big"),
    "first without classes": Odd(lambda: classifier().partial_fit(X, CLASSES), r"classes must"),
    "no classes": Odd(lambda: _first([]), r"classes"),
    "classes that lack one": Odd(lambda: _first(["high"]), r"y has classes.*'low'"),
    "classes of another type": Odd(lambda: _first([0, 1]), r"y has classes"),
    "classes a matrix": Odd(lambda: _first([["high"], ["low"]]), r"classes"),
    "other classes later": classifying(
        lambda f: f.partial_fit(X, CLASSES, classes=["a", "b"]), r"classes=.*first call"
    ),
    "a new class later": classifying(
        lambda f: f.partial_fit(X, ["new"] * 20), r"y has classes.*'new'"
    ),
    "probabilities far away": classifying(
        lambda f: f.predict_proba(X + 1e150), holds=lambda p: np.allclose(p.sum(1), 1)
    ),
    "density of a class unknown": classifying(
        lambda f: f.log_predictive_density(X, ["new"] * 20), r"y has classes"
    ),
}
