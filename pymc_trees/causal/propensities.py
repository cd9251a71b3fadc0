"""`propensity`: the probability of treatment given the covariates."""

from typing import Any

import numpy as np

from pymc_trees.causal.treatment import check_treatment
from pymc_trees.estimators.bart.classifier import BARTClassifier
from pymc_trees.estimators.bart.regressor import BARTRegressor


def propensity(X: Any, z: Any, *, treatment: str | None = None, **settings: Any) -> np.ndarray:
    """Posterior mean of the probability of treatment, by BART.

    A probit BART of a binary treatment (`BARTClassifier`); of a continuous one the expected dose
    (`BARTRegressor` with one sigma).

    Parameters
    ----------
    X : (n, p) array or frame
        Covariates measured before the treatment; text and missing cells are allowed.
    z : (n,) array
        0 and 1, or doses.
    treatment : {"binary", "dose"}, optional
        What z is, as for `BayesianCausalForest`.
    **settings
        Of the estimator: ``m``, ``draws``, ``tune``, ``chains``, ``random_state``,
        ``progressbar``, ...

    Returns
    -------
    (n,) array
        Probabilities, or doses.

    Raises
    ------
    ValueError
        For a treatment that does not vary, and for inputs that the estimator refuses.

    References
    ----------
    Hahn, Murray and Carvalho (2020). Bayesian regression tree models for causal inference:
    regularization, confounding, and heterogeneous effects. Bayesian Analysis 15(3), section 5.

    Examples
    --------
    >>> import numpy as np
    >>> from pymc_trees import causal
    >>> rng = np.random.default_rng(1)
    >>> X = rng.random((80, 2))
    >>> z = rng.random(80) < X[:, 0]
    >>> p = causal.propensity(X, z, draws=50, tune=50, chains=1, random_state=1)
    >>> bool(p[X[:, 0] > 0.8].mean() > p[X[:, 0] < 0.2].mean())
    True
    """
    known = check_treatment(z, len(X) if hasattr(X, "__len__") else None, treatment)
    return fitted_propensity(X, known, **settings)[1]


def fitted_propensity(X: Any, treatment, **settings: Any):
    """The estimator, and its propensity at the rows it was fitted to."""
    if treatment.binary:
        estimator = BARTClassifier(**settings).fit(X, treatment.arm)
        return estimator, estimator.predict_proba(X)[:, 1]
    regressor = BARTRegressor(noise="constant", **settings).fit(X, treatment.z)
    return regressor, regressor.predict(X)
