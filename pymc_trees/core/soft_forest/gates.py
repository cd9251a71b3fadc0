"""The weight of every leaf of a soft tree at every row.

At a node split at cut c in column j a row goes left with the weight (Linero and Yang 2018, eq. 3)

    psi(x) = 1 / (1 + exp(-(c - x_j) / tau)),

tau the tree's bandwidth, and right with 1 - psi; in a hard column psi is the indicator of
``x_j <= c``. The weight of a leaf is the product along its path.

A side that gets less than `TINY` of all weight gets none, and the other side what there was: a
subtree that a row does not reach is not computed for it. That changes f by no more than ``TINY``
times the range of the leaf values for each split of the path, so that 100 splits with leaf values
within 1 of each other change it by less than 1e-12. It is part of the model as computed: prior
draws, densities and predictions all have it.
"""

import math

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.soft_forest.trees import end_of

TINY = 1e-15
"""Share of a row's weight below which a side gets none."""
FAR = 35.0
"""Bandwidths from which on it does for certain: exp(-35) is 6e-16."""
BLOCK = 4096
"""Rows that all trees are added up at, before the next ones."""


@njit(cache=True)
def share_weight(x, cut, bandwidth, is_hard, weight, left, right):
    """Write what goes left and right of the weight of a node, row by row (eq. 3).

    ``right`` may be the memory of ``weight``.
    """
    if is_hard:
        for i in range(x.size):
            w = weight[i]
            left[i] = w if x[i] <= cut else 0.0
            right[i] = 0.0 if x[i] <= cut else w
        return
    for i in range(x.size):
        w, z = weight[i], (cut - x[i]) / bandwidth
        steep = abs(z)
        near, far = w, 0.0
        if steep < FAR and w > 0.0:
            tail = math.exp(-steep)
            over = w / (1.0 + tail)
            if tail * over > TINY:
                near, far = over, tail * over
        left[i] = near if z >= 0.0 else far
        right[i] = far if z >= 0.0 else near


@njit(cache=True)
def leaf_weights(column, number, bandwidth, node, unit, hard, path, out):
    """Write the weights of the leaves below a node, in preorder, to the rows of ``out``.

    Parameters
    ----------
    column, number, bandwidth
        Of the tree.
    unit : (p, n) float64
        Columns on the scale of `unit`.
    hard : (p,) bool
        Columns whose gates are indicators.
    path : (levels, n) float64
        ``path[0]`` holds the weight of the node; overwritten. As many levels as leaves are enough.
    """
    end, slot, leaf = end_of(column, node), 0, 0
    if column[node] < 0:
        out[0] = path[0]
        return
    # A split node's weight is in a slot, its left child's in the next, its right child's in its own
    for k in range(node, end):
        j = column[k]
        if j < 0:
            out[leaf] = path[slot]
            leaf += 1
            slot -= 1
            continue
        here, below = path[slot], path[slot + 1]
        share_weight(unit[j], number[k], bandwidth, hard[j], here, below, here)
        slot += 1


@njit(cache=True)
def add_tree(column, number, bandwidth, size, unit, hard, path, phi, total):
    """Add a tree's function ``sum_l phi_l mu_l`` at the rows of ``unit``."""
    if size == 1:
        for i in range(total.size):
            total[i] += number[0]
        return
    path[0, :] = 1.0
    leaf_weights(column, number, bandwidth, 0, unit, hard, path, phi)
    leaf = 0
    for k in range(size):
        if column[k] < 0:
            for i in range(total.size):
                total[i] += phi[leaf, i] * number[k]
            leaf += 1


@njit(cache=True)
def add_up(trees, unit, hard):
    """Sum of all trees at the rows of ``unit``, (n,)."""
    n = unit.shape[1]
    leaves, block = (trees.size.max() + 1) // 2, min(n, BLOCK)
    path, phi = np.empty((leaves, block)), np.empty((leaves, block))
    total = np.zeros(n)
    for start in range(0, n, BLOCK):
        stop = min(start + BLOCK, n)
        own, rows = unit[:, start:stop].copy(), stop - start
        for t in range(trees.size.size):
            add_tree(
                trees.column[t],
                trees.number[t],
                trees.bandwidth[t],
                trees.size[t],
                own,
                hard,
                path[:, :rows],
                phi[:, :rows],
                total[start:stop],
            )
    return total
