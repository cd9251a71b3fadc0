"""Extent, levels and missing cells of a column among rows stored as bits."""

import numpy as np

from pymc_trees.core.columns.mixed import present_range
from pymc_trees.core.columns.row_set import has_row, list_rows, share_rows
from pymc_trees.core.compile.cache import njit
from pymc_trees.core.compile.cell_lanes import cell_range

_NEAR = 24
"""Ranks checked one by one from either end before a binary search."""


@njit(cache=True)
def _has_others(a, b):
    """Whether a has rows that are not in b."""
    for w in range(a.size):
        if a[w] & ~b[w] != np.uint64(0):
            return True
    return False


@njit(cache=True)
def _first_rank(words, order, before, step):
    """Rank of the smallest cell; the set is not empty."""
    for k in range(min(_NEAR, order.size)):
        if has_row(words, order[k]):
            return k
    low, high = 0, before.shape[0] - 1
    while low < high:  # the last set with no row before it
        middle = (low + high) >> 1
        if share_rows(words, before[middle + 1]):
            high = middle
        else:
            low = middle + 1
    k = low * step
    while not has_row(words, order[k]):
        k += 1
    return k


@njit(cache=True)
def _last_rank(words, order, before, step):
    """Rank of the largest cell; the set is not empty."""
    n = order.size
    for k in range(n - 1, max(n - 1 - _NEAR, -1), -1):
        if has_row(words, order[k]):
            return k
    low, high = 0, before.shape[0] - 1
    while low < high:  # the last set with a row after it
        middle = (low + high + 1) >> 1
        if _has_others(words, before[middle]):
            low = middle
        else:
            high = middle - 1
    k = min((low + 1) * step, n) - 1
    while not has_row(words, order[k]):
        k -= 1
    return k


@njit(cache=True)
def set_range(design, column, rows):
    """Smallest and largest cell of a column among rows of which none is missing, as floats."""
    index, words, cells = rows.index, rows.words, design.columns[column]
    if index.order.size == 0:
        least, largest = cell_range(words, cells)
        return float(least), float(largest)
    order = index.order[column]
    if rows.n == order.size:
        return float(cells[order[0]]), float(cells[order[rows.n - 1]])
    before, step = index.before[column], index.step
    low = cells[order[_first_rank(words, order, before, step)]]
    high = cells[order[_last_rank(words, order, before, step)]]
    return float(low), float(high)


@njit(cache=True)
def any_missing(design, column, rows):
    """Whether a cell is missing."""
    if not design.gaps[column]:
        return False
    index = rows.index
    return share_rows(rows.words, index.special[index.special_row[column]])


@njit(cache=True)
def set_numbers(design, column, rows):
    """`rules.numbers_present`: missing rows, distinct values where there are some, extent."""
    if any_missing(design, column, rows):
        return present_range(design, column, rows.index.listed, 0, list_rows(rows))
    low, high = set_range(design, column, rows)
    return 0, 0, low, high


@njit(cache=True)
def set_levels(design, column, rows):
    """`mixed.levels_present`: set of the levels, their number, and whether a row is missing."""
    index, words = rows.index, rows.words
    first = index.special_row[column]
    levels, n_levels = np.int64(0), 0
    for level in range(abs(design.kinds[column])):
        if share_rows(words, index.special[first + 1 + level]):
            levels |= np.int64(1) << level
            n_levels += 1
    return levels, n_levels, any_missing(design, column, rows)
