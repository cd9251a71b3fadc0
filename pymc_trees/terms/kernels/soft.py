"""Weights of the leaves of soft trees, and their cross products with sparse columns."""

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.soft_forest.trees import leaf_weights


@njit(cache=True)
def fill_weights(trees, unit, hard, by, block):
    """Write the weight of each leaf at some rows, times a number for each row.

    Parameters
    ----------
    trees : SoftTrees
    unit, hard
        As in `core.soft_forest.trees.sum_trees`.
    by : (n,) float64
    block : (p, n) float64
        Leaves in preorder, tree by tree.
    """
    n, first = by.size, 0
    path = np.empty(((trees.size.max() + 1) // 2 + 1, n))
    for t in range(trees.size.size):
        end = first + (trees.size[t] + 1) // 2
        path[0, :] = 1.0
        out = block[first:end]
        leaf_weights(trees.column[t], trees.number[t], trees.bandwidth[t], 0, unit, hard, path, out)
        for a in range(first, end):
            for i in range(n):
                block[a, i] *= by[i]
        first = end


@njit(cache=True)
def add_dense_cross(block, column, factor, cross):
    """Add to B'WG: row i of (p, n) ``block`` has ``factor[i]`` in the entry ``column[i]``."""
    for a in range(block.shape[0]):
        for i in range(column.size):
            cross[a, column[i]] += block[a, i] * factor[i]
