"""Columns of a row that lead to a leaf, as bits, and counts of rows with equal bits."""

import numpy as np

from pymc_trees.core.compile.cache import njit

TABLE = 12
"""Number of columns up to which sets are counted in a table; beyond it by sorting."""


@njit(cache=True)
def agree(paths, leaf, sides, sets):
    """Write the set of the path's columns, bit s for slot s, that lead each row to the leaf."""
    n_columns = paths.first_column[leaf + 1] - paths.first_column[leaf]
    every = (np.uint64(1) << np.uint64(n_columns)) - np.uint64(1)
    sets[:] = every
    for entry in range(paths.start[leaf], paths.start[leaf + 1]):
        without = every ^ (np.uint64(1) << np.uint64(paths.slot[entry]))
        way, left = sides[paths.split[entry]], paths.left[entry]
        for i in range(sets.size):
            if way[i] != left:
                sets[i] &= without
    return n_columns


@njit(cache=True)
def distinct(sets, n_columns):
    """Distinct sets, the index of each row's set, and the number of rows with each."""
    kind = np.empty(sets.size, dtype=np.int64)
    if n_columns <= TABLE:
        place = np.full(1 << n_columns, -1, dtype=np.int64)
        known = np.empty(min(sets.size, 1 << n_columns), dtype=np.uint64)
        n_known = 0
        for i in range(sets.size):
            at = np.int64(sets[i])
            if place[at] < 0:
                place[at] = n_known
                known[n_known] = sets[i]
                n_known += 1
            kind[i] = place[at]
        known = known[:n_known]
    else:
        known = np.unique(sets)
        for i in range(sets.size):
            kind[i] = np.searchsorted(known, sets[i])
    counts = np.zeros(known.size)
    for i in range(sets.size):
        counts[kind[i]] += 1.0
    return known, kind, counts


@njit(cache=True)
def size_of(bits):
    """Number of columns in a set."""
    n = 0
    while bits:
        bits &= bits - np.uint64(1)
        n += 1
    return n


@njit(cache=True)
def holds(bits, slot):
    """Whether a column is in a set."""
    return (bits >> np.uint64(slot)) & np.uint64(1) == np.uint64(1)
