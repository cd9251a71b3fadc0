"""What a sweep leaves behind: the fitted function and its log likelihood."""

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.leaves.contract import log_likelihood, n_outputs
from pymc_trees.core.value.encode import fit_of


@njit(cache=True)
def log_likelihood_of(leaf, trees):
    """Log likelihood of all rows given the leaf values, between sweeps."""
    return log_likelihood(leaf, trees)


def fitted_values(leaf, trees, target):
    """(n, K) outputs at the training rows: target minus residual, or the trees' own sum.

    The residual is the quick way; ``target`` is None where there is none, or where it would have
    lost the trees to rounding.
    """
    if target is not None:
        return (target - leaf.r)[:, None]
    fit = np.empty((trees.leaf_of.shape[1], n_outputs(leaf, trees.values.shape[1])))
    fit_of(leaf, trees, fit)
    return fit
