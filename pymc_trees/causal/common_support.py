"""`overlap`: where both treatments occur."""

import warnings
from typing import Any

import numpy as np
import xarray as xr

from pymc_trees.causal.treatment import (
    Treatment,
    check_group,
    check_propensity,
    check_treatment,
    is_binary,
)


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
    found = {
        "propensity": ("row", p),
        "treated": ("row", treated),
        "outside": ("row", outside),
    }
    if group is None:
        return xr.Dataset(found, {"row": np.arange(p.size)})
    names, codes = check_group(group, p.size)
    for name, arm in (("n_treated", treated), ("n_control", ~treated)):
        found[name] = ("group", np.bincount(codes[arm], minlength=names.size))
    return xr.Dataset(found, {"row": np.arange(p.size), "group": names})


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
