"""Which leaf of a tree may not exceed which, if its function is monotone.

A function is monotone in some columns, each with its direction, when f(x) <= f(x') for all x and x'
that agree in every other column and have ``x_j <= x'_j`` in those that it rises in, ``x_j >= x'_j``
in those that it falls in. A missing cell agrees only with a missing cell, and is not ordered.

A tree is constant on the boxes of its leaves. Leaf a may therefore not exceed leaf b if there are
such an x in the box of a and an x' in that of b. With boxes ``(low, high]`` this means, column by
column,

- one that f is not monotone in: the boxes have a present cell in common, or both hold missing rows;
- one that it rises in: ``low_a < high_b``, both having present cells, or both hold missing rows;
- one that it falls in: ``high_a > low_b``, likewise.

At the split that separates two leaves, missing rows are on one side only. So a and b are ordered
only if the split at which their paths diverge is in a column in which f is monotone, and then by
their sides of it: a traversal that visits the lower side of every split first visits the lower of
two ordered leaves first.
"""

from typing import NamedTuple

import numpy as np

from pymc_trees.core.columns.mixed import EVERY, LEFT, SET
from pymc_trees.core.compile.cache import njit
from pymc_trees.core.compile.pointer import by_pointer


@by_pointer
class Branches(NamedTuple):
    """Rules and links of trees, by node."""

    column: np.ndarray
    """(N,) int32: first number of a rule (`columns.mixed`); -1 in a leaf."""
    cut: np.ndarray
    """(N,) float64: its second number, in any increasing function of the units of X."""
    left: np.ndarray
    """(N,) int32: left child."""
    right: np.ndarray
    """(N,) int32: right child."""
    parent: np.ndarray
    """(N,) int32: parent; -1 in a root."""
    kinds: np.ndarray
    """(p,) int64 as in `MixedDesign`; empty where no training cell is a level or missing."""


class Extent(NamedTuple):
    """Extent of a box in one column."""

    low: float
    high: float
    """Numbers in ``(low, high]``; empty if low >= high."""
    levels: int
    """Set of levels, as bits; 1 for numbers."""
    missing: bool
    """Whether missing rows are in it, according to the rules."""


@njit(cache=True)
def extent_of(branches, p, node, column):
    """`Extent` of the box of a node along a column."""
    low, high, levels, missing = -EVERY, EVERY, np.int64(1), branches.kinds.size > 0
    if missing and branches.kinds[column] != 0:
        levels = (np.int64(1) << abs(branches.kinds[column])) - 1
    parent = branches.parent[node]
    while parent >= 0:
        code = branches.column[parent]
        if code % p == column:
            way, cut, is_left = code // p, branches.cut[parent], branches.left[parent] == node
            if way >= SET:
                chosen = np.int64(cut)
                levels &= chosen if is_left else ~chosen
            elif is_left:
                high = min(high, cut)
            else:
                low = max(low, cut)
            missing = missing and (way & LEFT != 0) == is_left
        node, parent = parent, branches.parent[parent]
    return Extent(low, high, levels, missing)


@njit(cache=True)
def meet(a, b, direction):
    """Whether two extents hold an x and an x' as above; ``direction`` is 0, 1 or -1."""
    if a.missing and b.missing:
        return True
    if a.low >= a.high or b.low >= b.high:
        return False
    if direction == 0:
        return max(a.low, b.low) < min(a.high, b.high) and a.levels & b.levels != 0
    return a.low < b.high if direction > 0 else a.high > b.low


@njit(cache=True)
def is_below(branches, directions, a, b):
    """Whether leaf a of a tree may not exceed its leaf b.

    Columns on which the path of a does not split are unbounded in its box and do not matter.
    """
    p, node = directions.size, branches.parent[a]
    while node >= 0:
        column = branches.column[node] % p
        one, other = extent_of(branches, p, a, column), extent_of(branches, p, b, column)
        if not meet(one, other, directions[column]):
            return False
        node = branches.parent[node]
    return True


@njit(cache=True)
def lower_first(branches, directions, root, stack, out):
    """Write the leaves of a tree to ``out``, the lower side of every split first; their number."""
    height, n = 1, 0
    stack[0] = root
    while height > 0:
        height -= 1
        node = stack[height]
        if branches.column[node] < 0:
            out[n] = node
            n += 1
            continue
        left, right = branches.left[node], branches.right[node]
        falls = directions[branches.column[node] % directions.size] < 0
        stack[height], stack[height + 1] = (left, right) if falls else (right, left)
        height += 2
    return n
