"""The leaves of a tree of an encoded forest, and the conditions on the path to each."""

from typing import NamedTuple

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.compile.pointer import by_pointer
from pymc_trees.core.value.evaluate import goes_left, links_of, rules_of
from pymc_trees.core.value.fields import LEAF

# ----------------------------- Sets of columns that lead a row to a leaf, as bits, and their counts


TABLE = 12
"""Number of columns up to which sets are counted in a table; above it by sorting."""


@njit(cache=True)
def write_sets(paths, leaf, sides, sets):
    """Write the set of columns that lead each row to the leaf, bit s for slot s of the path."""
    n_columns = paths.first_column[leaf + 1] - paths.first_column[leaf]
    all_columns = (np.uint64(1) << np.uint64(n_columns)) - np.uint64(1)
    sets[:] = all_columns
    for entry in range(paths.start[leaf], paths.start[leaf + 1]):
        without = all_columns ^ (np.uint64(1) << np.uint64(paths.slot[entry]))
        sent_left, left = sides[paths.split[entry]], paths.left[entry]
        for i in range(sets.size):
            if sent_left[i] != left:
                sets[i] &= without
    return n_columns


@njit(cache=True)
def unique_sets(sets, n_columns):
    """Distinct sets, the index of each row's set, and counts, as `numpy.unique`."""
    inverse = np.empty(sets.size, dtype=np.int64)
    if n_columns <= TABLE:
        position = np.full(1 << n_columns, -1, dtype=np.int64)
        unique = np.empty(min(sets.size, 1 << n_columns), dtype=np.uint64)
        n_unique = 0
        for i in range(sets.size):
            code = np.int64(sets[i])
            if position[code] < 0:
                position[code] = n_unique
                unique[n_unique] = sets[i]
                n_unique += 1
            inverse[i] = position[code]
        unique = unique[:n_unique]
    else:
        unique = np.unique(sets)
        for i in range(sets.size):
            inverse[i] = np.searchsorted(unique, sets[i])
    counts = np.zeros(unique.size)
    for i in range(sets.size):
        counts[inverse[i]] += 1.0
    return unique, inverse, counts


@njit(cache=True)
def contains(bits, slot):
    """Whether a column is in a set."""
    return (bits >> np.uint64(slot)) & np.uint64(1) == np.uint64(1)


# --------------------------------------------------------------------------------------------------


MAX_COLUMNS = 63
"""Most columns on the path of a leaf: one bit each."""


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
            position = 0
            while position < n_columns and columns[first + position] != column:
                position += 1
            if position == n_columns:
                columns[first + position] = column
                n_columns += 1
            split[entry + h], left[entry + h], slot[entry + h] = above[h], above_left[h], position
        if n_columns > MAX_COLUMNS:
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
    """(S, n) bool: whether each split node would send each row left."""
    left = np.empty((splits.size, X.shape[0]), dtype=np.bool_)
    for s in range(splits.size):
        k = splits[s]
        column = links.column[k]
        for i in range(X.shape[0]):
            left[s, i] = goes_left(X[i, column], value[k, 1], rules, k, column)
    return left


@njit(cache=True)
def centred(outputs, leaves):
    """(L, K) outputs of the leaves of a tree minus their mean.

    Quantities that ignore constants would otherwise lose digits where f is far from 0.
    """
    differences = np.empty((leaves.size, outputs.shape[1]))
    for k in range(outputs.shape[1]):
        for leaf in range(leaves.size):
            differences[leaf, k] = outputs[leaves[leaf], k]
        differences[:, k] -= differences[:, k].mean()
    return differences


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


# ------------------------- Columns of the splits of a forest, and pairs of columns on a common path


@njit(cache=True, nogil=True)
def count_choices(value, p, m, counts, pairs):
    """Count the split nodes of an encoded forest.

    Parameters
    ----------
    counts : (p,) int64
        Written: split nodes on each column.
    pairs : (p, p) or (0, 0) int64
        Written, unless empty: split nodes on the second column below one on the first.
    """
    counts[:] = 0
    pairs[:] = 0
    above = np.empty(value.shape[0], dtype=np.int64)
    left = np.empty(value.shape[0], dtype=np.bool_)
    row = 0
    for _ in range(m):
        height = 0
        while True:
            if value[row, 0] != LEAF:
                column = int(value[row, 0]) % p
                counts[column] += 1
                if pairs.size:
                    for h in range(height):
                        pairs[above[h], column] += 1
                above[height], left[height] = column, True
                height += 1
                row += 1
                continue
            row += 1
            while height > 0 and not left[height - 1]:
                height -= 1
            if height == 0:
                break
            left[height - 1] = False  # in preorder the right child follows the left subtree
