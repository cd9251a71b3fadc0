"""Working arrays of a forest of soft trees, and links between the nodes of a tree.

Every tree is in preorder: the left child of split node k is k + 1, the right one follows the left
subtree. Soft trees have few nodes: a change rewrites the tree.
"""

import math
from typing import NamedTuple

import numpy as np

from pymc_trees.core.columns.cells import MISSING
from pymc_trees.core.compile.cache import njit
from pymc_trees.core.compile.pointer import by_pointer

# -------------- Columns mapped to [0, 1] by the training rows, so that one bandwidth suits them all
#
# A column goes through its empirical distribution function (Linero and Yang 2018, section 3.1),
# with tied rows at the middle of their step, scaled so that the smallest training value is 0 and
# the largest 1. It is linear between two values, and 0 or 1 beyond them; a constant column is 0.
# The map uses as few equidistant quantiles as the data allow, because the steps of the empirical
# function are noise, which would make a smooth f rough.


BAND = 1.36
"""Times ``n**-0.5``, the largest distance of the map from the empirical distribution function.

A sample of n rows exceeds this distance from its true distribution with probability 0.05
(Kolmogorov).
"""


@by_pointer
class UnitMap(NamedTuple):
    """The map of p columns."""

    knots: np.ndarray
    """Distinct training values or quantiles of each column in order, one column after another."""
    heights: np.ndarray
    """Their images."""
    offsets: np.ndarray
    """(p + 1,) int64: where the knots of each column begin."""


def make_unit_map(X: np.ndarray) -> UnitMap:
    """The map by (n, p) training rows."""
    knots, heights = [], []
    for column in X.T:
        values, counts = np.unique(column, return_counts=True)
        middle = np.cumsum(counts) - 0.5 * counts
        middle -= middle[0]
        if len(values) > 1:
            middle /= middle[-1]
        values, middle = _fewest_quantiles(values, middle, BAND / np.sqrt(len(column)))
        knots.append(values)
        heights.append(middle)
    offsets = np.cumsum([0, *map(len, knots)]).astype(np.int64)
    return UnitMap(np.concatenate(knots), np.concatenate(heights), offsets)


def _fewest_quantiles(values, heights, band):
    """Quantiles at the fewest of 1, 2, 4, ... steps that stay within the band, or all values."""
    steps = 1
    while steps + 1 < len(values):
        even = np.linspace(0.0, 1.0, steps + 1)
        quantiles, first = np.unique(np.interp(even, heights, values), return_index=True)
        if np.abs(np.interp(values, quantiles, even[first]) - heights).max() <= band:
            return quantiles, even[first]
        steps *= 2
    return values, heights


@njit(cache=True)
def check_cells(X):
    """Refuse rows with a cell that is not a number."""
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            if not np.isfinite(X[i, j]) or X[i, j] == MISSING:
                raise ValueError(
                    "X holds NaN or infinite values: soft trees take none. Remove or impute those "
                    "rows before predicting."
                )


@njit(cache=True)
def to_unit(X, knots, heights, offsets):
    """(p, rows) contiguous columns of X on the scale of the map.

    Raises
    ------
    ValueError
        Wrong number of columns, or a cell that is not finite.
    """
    n, p = X.shape
    if p != offsets.size - 1:
        raise ValueError(
            "X has another number of columns than the X the forest was declared with: "
            "give it the same columns in the same order."
        )
    check_cells(X)
    out = np.empty((p, n))
    for j in range(p):
        first, last = offsets[j], offsets[j + 1] - 1
        for i in range(n):
            x = X[i, j]
            if x <= knots[first]:
                out[j, i] = heights[first]
            elif x >= knots[last]:
                out[j, i] = heights[last]
            else:
                a = first + np.searchsorted(knots[first : last + 1], x, side="right") - 1
                share = (x - knots[a]) / (knots[a + 1] - knots[a])
                out[j, i] = heights[a] + share * (heights[a + 1] - heights[a])
    return out


# -------------------------------------------------------------------------------------------------


@by_pointer
class SoftTrees(NamedTuple):
    """m trees, with capacity for R nodes each."""

    size: np.ndarray
    """(m,) int64: nodes."""
    column: np.ndarray
    """(m, R) int32: split column; -1 for a leaf."""
    number: np.ndarray
    """(m, R) float64: cut in [0, 1], or leaf value."""
    bandwidth: np.ndarray
    """(m,) float64."""


@njit(cache=True)
def make_soft_trees(m, max_nodes):
    """Stumps with the value 0, with capacity for any forest of a number of nodes."""
    room = max_nodes - m + 1
    return SoftTrees(
        np.ones(m, dtype=np.int64),
        np.full((m, room), np.int32(-1)),
        np.zeros((m, room)),
        np.ones(m),
    )


class Links(NamedTuple):
    """Links of the nodes of one tree, with capacity for R."""

    parent: np.ndarray
    """(R,) int32; -1 for the root."""
    right: np.ndarray
    """(R,) int32: right child of a split node."""
    depth: np.ndarray
    """(R,) int32."""
    leaf: np.ndarray
    """(R + 1,) int32: leaves before the node; last the number of leaves."""


@njit(cache=True)
def make_links(room):
    """Links without content."""
    return Links(
        np.empty(room, dtype=np.int32),
        np.empty(room, dtype=np.int32),
        np.empty(room, dtype=np.int32),
        np.empty(room + 1, dtype=np.int32),
    )


@njit(cache=True)
def read_links(column, size, links):
    """Write the links of a tree; return its number of leaves."""
    parent, right, depth, leaf = links.parent, links.right, links.depth, links.leaf
    n_leaves = 0
    parent[0], depth[0] = -1, 0
    for k in range(size):
        leaf[k] = n_leaves
        if column[k] >= 0:
            parent[k + 1], depth[k + 1] = k, depth[k] + 1
            right[k] = -1
            continue
        n_leaves += 1
        if k + 1 < size:  # the next node is the right child of the last split without one
            q = parent[k]
            while right[q] >= 0:
                q = parent[q]
            right[q] = k + 1
            parent[k + 1], depth[k + 1] = q, depth[q] + 1
    leaf[size] = n_leaves
    return n_leaves


@njit(cache=True)
def subtree_end(column, node):
    """Node after the subtree of a node."""
    open_nodes, k = 1, node
    while open_nodes > 0:
        open_nodes += 1 if column[k] >= 0 else -1
        k += 1
    return k


@njit(cache=True)
def has_two_leaves(column, node):
    """Whether a node is split into two leaves."""
    return column[node] >= 0 and column[node + 1] < 0 and column[node + 2] < 0


# ------------------------------------------------------------ The weight of every leaf at every row
#
# At a node split at cut c in column j a row goes left with the weight (Linero and Yang 2018, eq.
# 3)
#
#     psi(x) = 1 / (1 + exp(-(c - x_j) / tau)),
#
# tau the tree's bandwidth, and right with 1 - psi; in a hard column psi is the indicator of ``x_j
# <= c``. The weight of a leaf is the product along its path.
#
# A side that would get less than `TINY` of the total weight gets none, and the other side gets
# all, so a row is in few leaves. This changes f by at most ``TINY`` times the range of the leaf
# values for each split of the path: by less than 1e-12 for 100 splits and a range of 1. It is part
# of the model: prior draws, densities and predictions use the same weights. Computing several rows
# at a time without branches is faster than skipping rows whose weight vanishes.


TINY = 1e-15
"""Share of a row's weight below which a side gets none."""
FAR = 38.0
"""Distance in bandwidths beyond which a side gets none: exp(-38) is 3e-17."""
PARTS = 64.0
"""A power of 2, see `write_tails`."""
TAYLOR = tuple((-1.0) ** k / math.factorial(k) for k in range(16))
"""Coefficients of exp(-t); for t below FAR / PARTS the remainder is less than 1e-17."""
BLOCK = 4096
"""Rows per block in which all trees are summed."""


@njit(cache=True, error_model="numpy")
def write_tails(x, cut, bandwidth, out):
    """Write ``exp(-|cut - x| / bandwidth)`` as ``exp(-./64)**64``, with an error below 2e-15.

    Without branches and calls, the processor computes several rows at a time.
    """
    scale, most = 1.0 / (PARTS * bandwidth), FAR / PARTS
    for i in range(x.size):
        t = min(abs(cut - x[i]) * scale, most)
        p = TAYLOR[15] * t + TAYLOR[14]
        p = (p * t + TAYLOR[13]) * t + TAYLOR[12]
        p = (p * t + TAYLOR[11]) * t + TAYLOR[10]
        p = (p * t + TAYLOR[9]) * t + TAYLOR[8]
        p = (p * t + TAYLOR[7]) * t + TAYLOR[6]
        p = (p * t + TAYLOR[5]) * t + TAYLOR[4]
        p = (p * t + TAYLOR[3]) * t + TAYLOR[2]
        p = (p * t + TAYLOR[1]) * t + TAYLOR[0]
        p = p * p
        p = p * p
        p = p * p
        p = p * p
        p = p * p
        out[i] = p * p


@njit(cache=True, error_model="numpy")
def share_weight(x, cut, bandwidth, is_hard, weight, left, right, tail):
    """Write the weights that go left and right at a node, row by row (eq. 3).

    ``right`` may be the memory of ``weight``; ``tail`` (n,) is overwritten.
    """
    if is_hard:
        for i in range(x.size):
            w = weight[i]
            left[i] = w if x[i] <= cut else 0.0
            right[i] = 0.0 if x[i] <= cut else w
        return
    write_tails(x, cut, bandwidth, tail)
    for i in range(x.size):
        w = weight[i]
        near = w / (1.0 + tail[i])
        far = tail[i] * near
        near = w if far < TINY else near
        far = 0.0 if far < TINY else far
        left[i] = near if x[i] <= cut else far
        tail[i] = far if x[i] <= cut else near
    right[:] = tail


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
        ``path[0]`` holds the weight of the node; overwritten. It needs one more level than leaves.
    """
    end, slot, leaf, tail = subtree_end(column, node), 0, 0, path[path.shape[0] - 1]
    if column[node] < 0:
        out[0] = path[0]
        return
    # The left child of a node takes the next slot of ``path``, the right child the node's own
    for k in range(node, end):
        j = column[k]
        if j < 0:
            out[leaf] = path[slot]
            leaf += 1
            slot -= 1
            continue
        here, below = path[slot], path[slot + 1]
        share_weight(unit[j], number[k], bandwidth, hard[j], here, below, here, tail)
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
def sum_trees(trees, unit, hard):
    """Sum of all trees at the rows of ``unit``, (n,)."""
    n = unit.shape[1]
    leaves, block = (trees.size.max() + 1) // 2, min(n, BLOCK)
    path, phi = np.empty((leaves + 1, block)), np.empty((leaves, block))
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
