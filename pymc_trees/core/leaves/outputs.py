"""Sums over trees of what their leaves return at each row."""


from pymc_trees.core.compile.cache import njit
from pymc_trees.core.leaves.contract import leaf_output


@njit(cache=True)
def add_outputs(leaf, values, leaf_of, total):
    """Add the outputs of one tree at all rows to ``total``, (n, K).

    Parameters
    ----------
    values : (N, V) float64
        Leaf values.
    leaf_of : (n,) uint32
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
