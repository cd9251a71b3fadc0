"""The leaves of a tree of an encoded forest, and the conditions on the path to each."""

from typing import NamedTuple

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.compile.pointer import by_pointer
from pymc_trees.core.value.evaluate import goes_left, links_of, rules_of

MOST_COLUMNS = 63
"""Columns on the path of a leaf: one bit each."""


@by_pointer
class Paths(NamedTuple):
    """Leaves and paths of one tree, in preorder."""

    leaves: np.ndarray
    """(L,) int64: row of each leaf in the value."""
    splits: np.ndarray
    """(S,) int64: row of each split node."""
    start: np.ndarray
    """(L + 1,) int64: where the path of each leaf starts among the entries."""
    split: np.ndarray
    """(entries,) int64: split nodes of the paths, as numbers in ``splits``."""
    left: np.ndarray
    """(entries,) bool: the path goes left there."""
    slot: np.ndarray
    """(entries,) int64: its column, as a number among those of the leaf's path."""
    first_column: np.ndarray
    """(L + 1,) int64: where the columns of each leaf's path start."""
    columns: np.ndarray
    """(at most entries,) int64: distinct columns of the paths."""


@njit(cache=True)
def paths_of(links, tree):
    """`Paths` of a tree, given the links of the rows of the value."""
    n_leaves, n_entries = _count(links, tree)
    leaves = np.empty(n_leaves, dtype=np.int64)
    splits = np.empty(max(n_leaves - 1, 0), dtype=np.int64)
    start = np.zeros(n_leaves + 1, dtype=np.int64)
    split = np.empty(n_entries, dtype=np.int64)
    left = np.empty(n_entries, dtype=np.bool_)
    slot = np.empty(n_entries, dtype=np.int64)
    first_column = np.zeros(n_leaves + 1, dtype=np.int64)
    columns = np.empty(n_entries, dtype=np.int64)
    above, above_left = np.empty(n_leaves, dtype=np.int64), np.empty(n_leaves, dtype=np.bool_)
    row, height, n_splits = links.roots[tree], 0, 0
    for leaf in range(n_leaves):
        while links.column[row] >= 0:
            splits[n_splits] = row
            above[height], above_left[height] = n_splits, True
            n_splits, height, row = n_splits + 1, height + 1, row + 1
        leaves[leaf] = row
        entry, first, n_columns = start[leaf], first_column[leaf], 0
        for h in range(height):
            column = links.column[splits[above[h]]]
            found = 0
            while found < n_columns and columns[first + found] != column:
                found += 1
            if found == n_columns:
                columns[first + found] = column
                n_columns += 1
            split[entry + h], left[entry + h], slot[entry + h] = above[h], above_left[h], found
        if n_columns > MOST_COLUMNS:
            raise ValueError("A tree has a path with more than 63 columns, too many to explain.")
        start[leaf + 1], first_column[leaf + 1] = entry + height, first + n_columns
        while height > 0 and not above_left[height - 1]:
            height -= 1
        if height > 0:
            above_left[height - 1] = False
        row += 1  # in preorder the right child follows the left subtree
    return Paths(leaves, splits, start, split, left, slot, first_column, columns)


@njit(cache=True)
def _count(links, tree):
    """Leaves of a tree, and the sum of their depths."""
    row, n_open, n_leaves, n_entries = links.roots[tree], 1, 0, 0
    depths = np.zeros(links.column.size + 1, dtype=np.int64)
    while n_open > 0:
        n_open -= 1
        depth = depths[n_open]
        if links.column[row] >= 0:
            depths[n_open], depths[n_open + 1] = depth + 1, depth + 1
            n_open += 2
        else:
            n_leaves, n_entries = n_leaves + 1, n_entries + depth
        row += 1
    return n_leaves, n_entries


@njit(cache=True)
def sides_of(value, X, links, rules, splits):
    """(S, n) bool: which rows each split node sends left, whether they reach it or not."""
    left = np.empty((splits.size, X.shape[0]), dtype=np.bool_)
    for s in range(splits.size):
        k = splits[s]
        column = links.column[k]
        for i in range(X.shape[0]):
            left[s, i] = goes_left(X[i, column], value[k, 1], rules, k, column)
    return left


@njit(cache=True)
def centred(outputs, leaves):
    """(L, K) what the leaves of a tree return, less their mean: f but for a constant.

    Without this, quantities that do not depend on a constant would lose digits where f is far from
    0.
    """
    found = np.empty((leaves.size, outputs.shape[1]))
    for k in range(outputs.shape[1]):
        for leaf in range(leaves.size):
            found[leaf, k] = outputs[leaves[leaf], k]
        found[:, k] -= found[:, k].mean()
    return found


@njit(cache=True, nogil=True)
def add_values(value, X, X_train, outputs, sizes, values):
    """Add the outputs of the trees at the rows of X, (n, K)."""
    links = links_of(value, sizes)
    rules = rules_of(value, X, X_train, sizes, links.column)
    for tree in range(sizes.m):
        for i in range(X.shape[0]):
            k = links.roots[tree]
            while links.column[k] >= 0:
                column = links.column[k]
                left = goes_left(X[i, column], value[k, 1], rules, k, column)
                k = k + 1 if left else links.right[k]
            values[i] += outputs[k]
