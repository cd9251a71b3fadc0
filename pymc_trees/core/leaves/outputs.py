"""Sums of the outputs of trees at each row, and the log likelihood."""

from typing import NamedTuple

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.leaves.contract import leaf_output, log_likelihood, register

# -------------------------------------------------------- Sums of the outputs of trees at each row


class ConstantLeaf(NamedTuple):
    """Leaf whose values are its outputs at every row, without prior or data."""

    n_values: int


@njit(cache=True)
def _n_stats(leaf):
    return 0


register(ConstantLeaf, n_stats=_n_stats)


@njit(cache=True)
def constant_leaf(n_values, X, constants):
    """`ConstantLeaf`, for any rows."""
    return ConstantLeaf(n_values)


@njit(cache=True)
def add_outputs(leaf, values, leaf_of, total):
    """Add the outputs of one tree at all rows to ``total``, (n, K).

    Parameters
    ----------
    values : (N, V) float64
        Leaf values.
    leaf_of : (n,) uint16 or uint32
        The tree's leaf of each row.
    """
    for i in range(leaf_of.size):
        output = leaf_output(leaf, values[leaf_of[i]], i)
        for k in range(total.shape[1]):
            total[i, k] += output[k]


@njit(cache=True)
def subtract_outputs(leaf, values, leaf_of, total):
    """Subtract the outputs of one tree at all rows from ``total``, (n, K)."""
    for i in range(leaf_of.size):
        output = leaf_output(leaf, values[leaf_of[i]], i)
        for k in range(total.shape[1]):
            total[i, k] -= output[k]


# --------------------------------------------------------- State after a sweep: the log likelihood


@njit(cache=True)
def log_likelihood_of(leaf, trees):
    """Log likelihood of all rows given the leaf values, between sweeps."""
    return log_likelihood(leaf, trees)
