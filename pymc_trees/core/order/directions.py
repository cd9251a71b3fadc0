"""Columns in which a forest is monotone, and which leaf of a tree may not exceed which."""

from typing import NamedTuple

import numpy as np

from pymc_trees.core.columns.cells import LEFT, MAX_CUT, SET
from pymc_trees.core.compile.cache import njit
from pymc_trees.core.compile.dispatch import register
from pymc_trees.core.compile.lanes import copy_numbers
from pymc_trees.core.compile.pointer import by_pointer
from pymc_trees.core.forest.trees import SavedTree, make_saved_tree, make_trees, reserve_row_sets

# -------------------------- Which leaf of a tree may not exceed which, if its function is monotone
#
# A function is monotone in some columns, each with its direction, when f(x) <= f(x') for all x
# and x' that agree in every other column and have ``x_j <= x'_j`` in those that it rises in,
# ``x_j >= x'_j`` in those that it falls in. A missing cell agrees only with a missing cell, and
# is not ordered.
#
# A tree is constant on the boxes of its leaves. Leaf a may therefore not exceed leaf b if there
# are such an x in the box of a and an x' in that of b. With boxes ``(low, high]`` this means,
# column by column,
#
# - one that f is not monotone in: the boxes have a present cell in common, or both hold missing
#   rows;
# - one that it rises in: ``low_a < high_b``, both having present cells, or both hold missing rows;
# - one that it falls in: ``high_a > low_b``, likewise.
#
# At the split that separates two leaves, missing rows are on one side only. So a and b are
# ordered only if the split at which their paths diverge is in a column in which f is monotone,
# and then by their sides of it: a traversal that visits the lower side of every split first
# visits the lower of two ordered leaves first.
#
# Where no training cell is missing or a level, rules have no side for missing cells, and boxes hold
# none. Those of new rows go to a side by a coin of each node (`value.evaluate`), so that f may fall
# in a column where another cell is missing.


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
    low, high, levels, missing = -MAX_CUT, MAX_CUT, np.int64(1), branches.kinds.size > 0
    if missing and branches.kinds[column] != 0:
        levels = (np.int64(1) << abs(branches.kinds[column])) - 1
    parent = branches.parent[node]
    while parent >= 0:
        code = branches.column[parent]
        if code % p == column:
            rule_kind, cut, is_left = code // p, branches.cut[parent], branches.left[parent] == node
            if rule_kind >= SET:
                chosen = np.int64(cut)
                levels &= chosen if is_left else ~chosen
            elif is_left:
                high = min(high, cut)
            else:
                low = max(low, cut)
            missing = missing and (rule_kind & LEFT != 0) == is_left
        node, parent = parent, branches.parent[parent]
    return Extent(low, high, levels, missing)


@njit(cache=True)
def overlap(a, b, direction):
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
        own, other = extent_of(branches, p, a, column), extent_of(branches, p, b, column)
        if not overlap(own, other, directions[column]):
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


# --------------------------------- The leaves of one tree, lowest first, and their order relations


_ONE = np.uint64(1)


@by_pointer
class OrderedLeaves(NamedTuple):
    """Leaves of a tree in the order of `lower_first`; at most L, with D statistics."""

    n: np.ndarray
    """(1,) int64: their number."""
    node: np.ndarray
    """(L,) int32."""
    value: np.ndarray
    """(L,) float64."""
    stats: np.ndarray
    """(L, D) float64: statistics of their rows."""
    above: np.ndarray
    """(L, L / 64) uint64: bit b of row a says that leaf b may not lie below leaf a; b > a."""
    is_free: np.ndarray
    """(1,) bool: whether no pair is ordered, since no split is in a monotone column."""


@njit(cache=True)
def make_ordered_leaves(n_leaves, n_stats):
    """Arrays for a number of leaves."""
    return OrderedLeaves(
        np.zeros(1, dtype=np.int64),
        np.empty(n_leaves, dtype=np.int32),
        np.empty(n_leaves),
        np.empty((n_leaves, n_stats)),
        np.empty((n_leaves, (n_leaves + 63) // 64), dtype=np.uint64),
        np.zeros(1, dtype=np.bool_),
    )


@njit(cache=True)
def is_free(branches, directions, nodes, n):
    """Whether no split above some nodes is in a monotone column."""
    p = directions.size
    for k in range(n):
        node = branches.parent[nodes[k]]
        while node >= 0:
            if directions[branches.column[node] % p] != 0:
                return False
            node = branches.parent[node]
    return True


@njit(cache=True)
def order_leaves(leaves, branches, directions, root, stack):
    """Write the leaves of a tree, and which pairs are ordered."""
    n = lower_first(branches, directions, root, stack, leaves.node)
    leaves.n[0] = n
    leaves.is_free[0] = is_free(branches, directions, leaves.node, n)
    for a in range(n):
        for w in range((n + 63) // 64):
            leaves.above[a, w] = np.uint64(0)
        if leaves.is_free[0]:
            continue
        for b in range(a + 1, n):
            if is_below(branches, directions, leaves.node[a], leaves.node[b]):
                leaves.above[a, b >> 6] |= _ONE << np.uint64(b & 63)


@njit(cache=True)
def copy_statistics(leaves, stats):
    """Copy the statistics of the leaves from those of the nodes."""
    for k in range(leaves.n[0]):
        copy_numbers(stats[leaves.node[k]], leaves.stats[k])


@njit(cache=True)
def is_above(leaves, b, a):
    """Whether leaf b may not be below leaf a, which precedes it."""
    return (leaves.above[a, b >> 6] >> np.uint64(b & 63)) & _ONE != np.uint64(0)


@njit(cache=True)
def bounds_of(leaves, fixed, k):
    """Bounds of the value of leaf k, given the fixed values of other leaves."""
    low, high = -np.inf, np.inf
    for a in range(k):
        if fixed[a] and is_above(leaves, k, a):
            low = max(low, leaves.value[a])
    for b in range(k + 1, leaves.n[0]):
        if fixed[b] and is_above(leaves, b, k):
            high = min(high, leaves.value[b])
    return low, high


@njit(cache=True)
def fixed_in_order(leaves, fixed):
    """Whether the fixed values are in order."""
    if leaves.is_free[0]:
        return True
    for a in range(leaves.n[0]):
        if not fixed[a]:
            continue
        for b in range(a + 1, leaves.n[0]):
            if fixed[b] and is_above(leaves, b, a) and not leaves.value[a] <= leaves.value[b]:
                return False
    return True


@njit(cache=True)
def in_order(leaves):
    """Whether all values are in order."""
    return fixed_in_order(leaves, np.ones(leaves.n[0], dtype=np.bool_))


@njit(cache=True)
def copy_leaves(source, target):
    """Copy one list of leaves to another."""
    n = source.n[0]
    target.n[0], target.is_free[0] = n, source.is_free[0]
    for a in range(n):
        target.node[a], target.value[a] = source.node[a], source.value[a]
        copy_numbers(source.stats[a], target.stats[a])
        for w in range((n + 63) // 64):
            target.above[a, w] = source.above[a, w]


# -------------- Columns in which a forest is monotone, with or without arrays for one of its trees


@by_pointer
class Monotone(NamedTuple):
    """Directions, and arrays for one tree; N nodes of the pool."""

    directions: np.ndarray
    """(p,) int64: 1 where f rises in the column, -1 where it falls, else 0."""
    kinds: np.ndarray
    """As in `Branches`."""
    old: OrderedLeaves
    """Of the recorded tree."""
    new: OrderedLeaves
    """Of the changed tree."""
    fixed: np.ndarray
    """(L,) bool, overwritten: leaves whose values are bounds for others."""
    in_both: np.ndarray
    """(L,) bool, overwritten: leaves of the recorded tree that are leaves of the changed one."""
    stack: np.ndarray
    """(N,) int32, overwritten."""
    position: np.ndarray
    """(N,) int32: index of a node among the recorded leaves."""
    saved: SavedTree
    """The recorded tree."""


class Directions(NamedTuple):
    """Columns in which a declared forest is monotone, without arrays for a tree."""

    directions: np.ndarray
    """(p,) int64, as in `Monotone`."""
    kinds: np.ndarray
    """As in `Branches`."""

    def with_room(
        self, max_nodes: int, n_rows: int, n_stats: int, n_words: int | None = None
    ) -> Monotone:
        """With arrays for one tree, and for ``n_words`` of the rows of each node."""
        n_words = -(-n_rows // 64) if n_words is None else n_words
        n_leaves, sets = max_nodes // 2 + 1, reserve_row_sets(max_nodes, n_words)
        return Monotone(
            *self,
            make_ordered_leaves(n_leaves, n_stats),
            make_ordered_leaves(n_leaves, n_stats),
            np.zeros(n_leaves, dtype=np.bool_),
            np.zeros(n_leaves, dtype=np.bool_),
            np.zeros(max_nodes, dtype=np.int32),
            np.zeros(max_nodes, dtype=np.int32),
            make_saved_tree(make_trees(1, max_nodes, 1, n_rows), sets),
        )


@njit(cache=True)
def monotone_directions(constants, kinds):
    """`Directions` from the constants of a declaration."""
    return Directions(constants.astype(np.int64), kinds.astype(np.int64))


@njit(cache=True)
def branches_of(order, trees):
    """Rules and links of a forest."""
    return Branches(trees.column, trees.cut, trees.left, trees.right, trees.parent, order.kinds)


@njit(cache=True)
def tree_in_order(order, trees, tree, leaves, stack):
    """Whether the values of a tree are in order; ``leaves`` and ``stack`` are overwritten."""
    order_leaves(leaves, branches_of(order, trees), order.directions, trees.roots[tree], stack)
    for k in range(leaves.n[0]):
        leaves.value[k] = trees.values[leaves.node[k], 0]
    return in_order(leaves)


@njit(cache=True)
def _is_ordered(order, trees, tree):
    max_nodes = trees.column.size
    leaves = make_ordered_leaves(max_nodes // 2 + 1, 0)
    return tree_in_order(order, trees, tree, leaves, np.empty(max_nodes, dtype=np.int32))


register(Directions, is_ordered=_is_ordered)
