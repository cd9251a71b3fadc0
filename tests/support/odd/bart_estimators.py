"""Odd inputs of the estimators with a PyMC model inside."""

import numpy as np
import scipy.sparse

import pymc_trees as pmt
from support.odd.table import FRAME, Odd, X, Y, with_entry

CLASSES = np.where(Y > 2, "high", "low")
SMALL = {"m": 2, "draws": 2, "tune": 2, "chains": 1, "cores": 1, "random_state": 1}


def _both(make, y):
    def fit(refused=None, X=X, y=y, sample_weight=None, **settings):
        return Odd(lambda: make(**SMALL | settings).fit(X, y, sample_weight=sample_weight), refused)

    return {
        "m zero": fit("m", m=0),
        "m text": fit("m", m="3"),
        "k zero": fit("k", k=0),
        "k NaN": fit("k", k=np.nan),
        "alpha above one": fit("alpha", alpha=1.5),
        "beta negative": fit("beta", beta=-1),
        "split_prior too long": fit("split_prior", split_prior=[1, 1, 1]),
        "n_cuts zero": fit("n_cuts", n_cuts=0),
        "draws zero": fit("draws", draws=0),
        "tune negative": fit("tune", tune=-1),
        "chains half": fit("chains", chains=0.5),
        "until text": fit("until", until="10min"),
        "until of a word": fit("until", until={"rhat": 1.1}),
        "until soon": fit("max_time", chains=2, until={"max_time": "soon", "draws": 4}),
        "random_state text": fit("seed", random_state="x"),
        "X infinite": fit("X", X=with_entry(X, np.inf)),
        "X sparse": fit(TypeError("X"), X=scipy.sparse.csr_array(X)),
        "X complex": fit("Complex", X=X + 1j),
        "X vector": fit("reshape", X=X[:, 0]),
        "X no rows": fit("minimum", X=X[:0], y=y[:0]),
        "X other length": fit("inconsistent", X=X[:-1]),
        "y None": fit("y", y=None),
        "y a matrix": fit("y", y=np.column_stack([y, y])),
        "weights negative": fit("sample_weight", sample_weight=-np.ones(20)),
        "weights zero": fit("non", sample_weight=np.zeros(20)),
        "weights too few": fit("sample_weight", sample_weight=np.ones(3)),
        "predict before fit": Odd(lambda: make(**SMALL).predict(X), "not"),
        "save before fit": Odd(lambda: make(**SMALL).save("none.nc"), "not"),
    }


def _after(make, call, refused):
    return Odd(lambda: call(make(**SMALL).fit(FRAME, CLASSES if "C" in str(make) else Y)), refused)


def _fit(make, refused, X=X, y=Y, **settings):
    return Odd(lambda: make(**SMALL | settings).fit(X, y), refused)


REGRESSOR = _both(pmt.BARTRegressor, Y) | {
    "noise": _fit(pmt.BARTRegressor, "noise", noise="gamma"),
    "scale_trees zero": _fit(pmt.BARTRegressor, "scale_trees", scale_trees=0),
    "y NaN": _fit(pmt.BARTRegressor, "y", y=with_entry(Y, np.nan)),
    "y constant": _fit(pmt.BARTRegressor, None, y=np.ones(20)),
    "other columns": _after(pmt.BARTRegressor, lambda f: f.predict(FRAME[["a"]]), "feature"),
    "quantiles one": _after(
        pmt.BARTRegressor, lambda f: f.predict(FRAME, quantiles=[1.0]), "quantiles"
    ),
    "no samples": _after(pmt.BARTRegressor, lambda f: f.sample_y(FRAME, 0), "n_samples"),
}
CLASSIFIER = _both(pmt.BARTClassifier, CLASSES) | {
    "link": _fit(pmt.BARTClassifier, "link", y=CLASSES, link="cauchit"),
    "y numbers": _fit(pmt.BARTClassifier, "continuous"),
    "y one class": _fit(pmt.BARTClassifier, "y", y=["a"] * 20),
    "y bools": _fit(pmt.BARTClassifier, None, y=Y > 2),
    "other columns": _after(pmt.BARTClassifier, lambda f: f.predict_proba(FRAME[["a"]]), "feature"),
}
