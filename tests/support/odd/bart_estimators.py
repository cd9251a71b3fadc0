"""Odd inputs of the estimators with a PyMC model inside."""

import numpy as np
import scipy.sparse

import pymc_trees as pmt
from support.odd.table import FRAME, Odd, X, Y, with_entry

CLASSES = np.where(Y > 2, "high", "low")
SMALL = {"m": 2, "draws": 2, "tune": 2, "chains": 1, "cores": 1, "random_state": 1}


def _both(make, y):
    def fit(said=None, X=X, y=y, sample_weight=None, **settings):
        return Odd(lambda: make(**SMALL | settings).fit(X, y, sample_weight=sample_weight), said)

    return {
        "m zero": fit(r"m=0", m=0),
        "m text": fit(r"m='3'", m="3"),
        "k zero": fit(r"k=0", k=0),
        "k NaN": fit(r"k=nan", k=np.nan),
        "alpha above one": fit(r"alpha", alpha=1.5),
        "beta negative": fit(r"beta", beta=-1),
        "split_prior too long": fit(r"split_prior", split_prior=[1, 1, 1]),
        "n_cuts zero": fit(r"n_cuts", n_cuts=0),
        "draws zero": fit(r"draws=0", draws=0),
        "tune negative": fit(r"tune=-1", tune=-1),
        "chains half": fit(r"chains=0.5", chains=0.5),
        "random_state text": fit(r"seed", random_state="x"),
        "X infinite": fit(r"infinity", X=with_entry(X, np.inf)),
        "X sparse": fit(r"(?i)toarray|dense|sparse", X=scipy.sparse.csr_array(X)),
        "X complex": fit(r"(?i)complex", X=X + 1j),
        "X vector": fit(r"2D|reshape", X=X[:, 0]),
        "X no rows": fit(r"minimum of 1|0 sample", X=X[:0], y=y[:0]),
        "X other length": fit(r"inconsistent", X=X[:-1]),
        "y None": fit(r"requires y|y ", y=None),
        "y a matrix": fit(r"(?i)1d|shape", y=np.column_stack([y, y])),
        "weights negative": fit(r"sample_weight has negative", sample_weight=-np.ones(20)),
        "weights zero": fit(r"non-zero", sample_weight=np.zeros(20)),
        "weights too few": fit(r"sample_weight", sample_weight=np.ones(3)),
        "predict before fit": Odd(lambda: make(**SMALL).predict(X), r"not fitted"),
        "save before fit": Odd(lambda: make(**SMALL).save("none.nc"), r"not fitted"),
    }


def _after(make, call, said):
    return Odd(lambda: call(make(**SMALL).fit(FRAME, CLASSES if "C" in str(make) else Y)), said)


def _fit(make, said, X=X, y=Y, **settings):
    return Odd(lambda: make(**SMALL | settings).fit(X, y), said)


REGRESSOR = _both(pmt.BARTRegressor, Y) | {
    "noise": _fit(pmt.BARTRegressor, r"noise='gamma'.*'student'", noise="gamma"),
    "scale_trees zero": _fit(pmt.BARTRegressor, r"scale_trees=0", scale_trees=0),
    "y NaN": _fit(pmt.BARTRegressor, r"NaN", y=with_entry(Y, np.nan)),
    "y constant": _fit(pmt.BARTRegressor, None, y=np.ones(20)),
    "other columns": _after(pmt.BARTRegressor, lambda f: f.predict(FRAME[["a"]]), r"feature"),
    "quantiles one": _after(
        pmt.BARTRegressor, lambda f: f.predict(FRAME, quantiles=[1.0]), r"quantiles.*between"
    ),
    "no samples": _after(pmt.BARTRegressor, lambda f: f.sample_y(FRAME, 0), r"n_samples"),
}
CLASSIFIER = _both(pmt.BARTClassifier, CLASSES) | {
    "link": _fit(pmt.BARTClassifier, r"link='cauchit'.*'logit'", y=CLASSES, link="cauchit"),
    "y numbers": _fit(pmt.BARTClassifier, r"(?i)unknown label|continuous"),
    "y one class": _fit(pmt.BARTClassifier, r"y has one class, 'a'", y=["a"] * 20),
    "y bools": _fit(pmt.BARTClassifier, None, y=Y > 2),
    "other columns": _after(
        pmt.BARTClassifier, lambda f: f.predict_proba(FRAME[["a"]]), r"feature"
    ),
}
