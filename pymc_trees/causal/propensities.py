"""`propensity`: the probability of treatment; `overlap`: where both treatments occur."""

import warnings
from typing import Any

import numpy as np
import xarray as xr

from pymc_trees.causal.models import (
    Treatment,
    check_group,
    check_propensity,
    check_treatment,
    is_binary,
)
from pymc_trees.estimators.classifier import BARTClassifier
from pymc_trees.estimators.regressor import BARTRegressor

# --------------------------------- `propensity`: the probability of treatment given the covariates


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


def fitted_propensity(X: Any, treatment, kept: str | None = None, **settings: Any):
    """The estimator, and its propensity at the rows it was fitted to.

    Its warnings say whose they are, and how the estimator is reached if it is ``kept``.
    """
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        if treatment.binary:
            estimator = BARTClassifier(**settings).fit(X, treatment.arm)
        else:
            estimator = BARTRegressor(noise="constant", **settings).fit(X, treatment.z)
    for one in told:
        message = f"In the model of the propensity: {one.message}"
        if kept is None:  # nothing to plot
            message, *_ = message.partition(" pymc_trees.plot_convergence(")
        message = message.replace("estimator.", f"{kept}.")
        warnings.warn(message, one.category, stacklevel=3)
    if treatment.binary:
        return estimator, estimator.predict_proba(X)[:, 1]
    return estimator, estimator.predict(X)


# ---------------------------------------------------------- `overlap`: where both treatments occur


def overlap(propensity: Any, z: Any, group: Any = None) -> xr.Dataset:
    """Find the rows without a counterpart under the other treatment.

    Effects at rows outside the range of propensities of the other arm are extrapolated: they come
    from the prior, not from data.

    Parameters
    ----------
    propensity : (n,) array
        Probability of treatment, from `propensity` say.
    z : (n,) array
        0 and 1.
    group : (n,) array, optional
        Names of groups; each should have rows of both arms.

    Returns
    -------
    xarray.Dataset
        ``propensity``, ``treated`` and ``outside``, whether the row lies beyond the range of
        propensities of the other arm, with the dimension row; with groups ``n_treated`` and
        ``n_control`` with the dimension group. `pymc_trees.plot_overlap` draws it.

    Raises
    ------
    ValueError
        For a treatment that is not binary or does not vary, and propensities that are not
        probabilities.

    References
    ----------
    Hill and Su (2013). Assessing lack of common support in causal inference using Bayesian
    nonparametrics. Annals of Applied Statistics 7(3).

    Examples
    --------
    >>> from pymc_trees import causal
    >>> found = causal.overlap([0.1, 0.4, 0.6, 0.5, 0.95], [0, 0, 0, 1, 1])
    >>> found["outside"].values.tolist()
    [True, True, False, False, True]
    """
    treatment = check_treatment(z, kind="dose")
    treatment = treatment._replace(binary=is_binary(treatment.z))
    if not treatment.binary:
        raise ValueError(
            "z is not binary: overlap compares the arms of a binary treatment. Give z as 0 and 1."
        )
    p = check_propensity(propensity, treatment, treatment.z.size)
    treated = treatment.arm == 1
    outside = np.empty(p.size, dtype=bool)
    for arm in (treated, ~treated):
        low, high = p[~arm].min(), p[~arm].max()
        outside[arm] = (p[arm] < low) | (p[arm] > high)
    variables = {
        "propensity": ("row", p),
        "treated": ("row", treated),
        "outside": ("row", outside),
    }
    if group is None:
        return xr.Dataset(variables, {"row": np.arange(p.size)})
    names, codes = check_group(group, p.size)
    for name, arm in (("n_treated", treated), ("n_control", ~treated)):
        variables[name] = ("group", np.bincount(codes[arm], minlength=names.size))
    return xr.Dataset(variables, {"row": np.arange(p.size), "group": names})


def warn_of_one_arm(treatment: Treatment, names: np.ndarray, codes: np.ndarray) -> None:
    """Warn of groups in which everybody or nobody was treated."""
    if not treatment.binary:
        return
    share = np.bincount(codes[treatment.arm == 1], minlength=names.size) / np.bincount(codes)
    alone = [name.item() for name in names[(share == 0) | (share == 1)]]
    if alone:
        warnings.warn(
            f"In the groups {alone[:10]} everybody or nobody was treated: their effects are "
            "extrapolated from other groups. causal.overlap() shows all of them.",
            UserWarning,
            stacklevel=3,
        )
