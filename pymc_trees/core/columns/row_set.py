"""The training rows of a node as bits, and queries on them.

Queries that are slow on bits use a list of the rows (`list_rows`).
"""

from typing import NamedTuple

import numpy as np
from numba import float64, int64

from pymc_trees.core.columns.design import Design
from pymc_trees.core.columns.mixed import DESIGN, LEFT, SET, MixedDesign, present_range
from pymc_trees.core.columns.row_index import RowIndex
from pymc_trees.core.compile.cache import njit
from pymc_trees.core.compile.dispatch import generic, register
from pymc_trees.core.compile.handle import WORDS
from pymc_trees.core.compile.lanes import cell_range, lowest_bit, popcount, write_up_to

_ONE = np.uint64(1)


class RowSet(NamedTuple):
    """Some training rows."""

    words: np.ndarray
    """(W,) uint64."""
    n: int
    """Number of rows."""
    index: RowIndex
    """Of all training rows; `list_rows` overwrites its list."""


@njit(cache=True)
def has_row(words, i):
    """Whether row i is in a set."""
    return (words[i >> 6] >> np.uint64(i & 63)) & _ONE != np.uint64(0)


@njit(cache=True)
def write_rows(words, listed, k):
    """Write the rows of a set to ``listed``, increasing, from index k; return the end."""
    for w in range(words.size):
        word = words[w]
        while word != np.uint64(0):
            listed[k] = (w << 6) + lowest_bit(word)
            k += 1
            word &= word - _ONE
    return k


@njit(cache=True)
def list_rows(rows):
    """Write the rows to ``rows.index.listed``, increasing; return their number."""
    return write_rows(rows.words, rows.index.listed, 0)


@njit(cache=True)
def count_rows(words):
    """Number of rows of a set."""
    total = 0
    for w in range(words.size):
        total += popcount(words[w])
    return total


@njit(cache=True)
def remove_rows(words, part, out):
    """Write the rows of a set that are not in a subset."""
    for w in range(words.size):
        out[w] = words[w] ^ part[w]


@njit(cache=True)
def label_rows(words, label, labels):
    """Write a label for each row of a set."""
    for w in range(words.size):
        word = words[w]
        while word != np.uint64(0):
            labels[(w << 6) + lowest_bit(word)] = label
            word &= word - _ONE


@njit(cache=True)
def label_new_rows(words, old, label, labels):
    """Write a label for each row of a set that was not in the old one."""
    for w in range(words.size):
        word = words[w] & ~old[w]
        while word != np.uint64(0):
            labels[(w << 6) + lowest_bit(word)] = label
            word &= word - _ONE


@njit(cache=True)
def _search_two(cells, words):
    """Whether two cells differ among the rows."""
    first = -1
    for w in range(words.size):
        word = words[w]
        while word != np.uint64(0):
            i = (w << 6) + lowest_bit(word)
            if first < 0:
                first = i
            elif cells[i] != cells[first]:
                return True
            word &= word - _ONE
    return False


@njit(cache=True)
def set_varies(design, column, rows):
    """Whether a column varies among the rows; mostly decided by their number alone."""
    return design.varies[column] and (
        rows.n > rows.index.alike[column] or _search_two(design.columns[column], rows.words)
    )


@njit(cache=True)
def any_set_varies(design, rows):
    """Whether the rows can be split at all."""
    return rows.n > rows.index.least_alike or _search_any(design, rows.words)


@njit(cache=True)
def _search_any(design, words):
    columns, varies = design.columns, design.varies
    first = -1
    for w in range(words.size):
        word = words[w]
        while word != np.uint64(0):
            i = (w << 6) + lowest_bit(word)
            if first < 0:
                first = i
            else:
                for j in range(columns.shape[0]):
                    if varies[j] and columns[j, i] != columns[j, first]:
                        return True
            word &= word - _ONE
    return False


@njit(cache=True)
def same_rows(a, b):
    """Whether two sets are the same."""
    for w in range(a.size):
        if a[w] != b[w]:
            return False
    return True


@njit(cache=True)
def count_changed(a, b):
    """Number of rows in exactly one of two sets."""
    total = 0
    for w in range(a.size):
        total += popcount(a[w] ^ b[w])
    return total


@njit(cache=True)
def share_rows(a, b):
    """Whether two sets have a row in common."""
    for w in range(a.size):
        if a[w] & b[w] != np.uint64(0):
            return True
    return False


@generic("design", args=(DESIGN, int64, float64, RowSet, WORDS), result=int64)
def left_rows(design, code, cut, rows, out):
    """Write the rows that a rule sends left to ``out``, (W,); return their number."""


@njit(cache=True)
def _rows_up_to(design, column, cut, rows, out):
    """Rows whose cell is at most the cut, with or without those whose cell is missing."""
    words, index, cells = rows.words, rows.index, design.columns[column]
    if index.order.size == 0:
        if cut < 0.0:
            out[:] = np.uint64(0)
        else:
            most = 256.0**cells.itemsize - 1.0
            write_up_to(words, cells, cells.dtype.type(min(cut, most)), out)
        return
    order, before, step = index.order[column], index.before[column], index.step
    low, high = 0, order.size
    while low < high:
        middle = (low + high) >> 1
        if cells[order[middle]] <= cut:
            low = middle + 1
        else:
            high = middle
    rank = low
    block = min((rank + (step >> 1)) // step, before.shape[0] - 1)
    nearest = before[block]
    for w in range(words.size):
        out[w] = words[w] & nearest[w]
    for k in range(block * step, rank):
        i = order[k]
        out[i >> 6] |= words[i >> 6] & (_ONE << np.uint64(i & 63))
    for k in range(rank, block * step):
        i = order[k]
        out[i >> 6] &= ~(_ONE << np.uint64(i & 63))


@njit(cache=True)
def _left_plain(design, code, cut, rows, out):
    _rows_up_to(design, code, cut, rows, out)
    return count_rows(out)


@njit(cache=True)
def _left_mixed(design, code, cut, rows, out):
    p = design.columns.shape[0]
    column, way = code % p, code // p
    words, special, first = rows.words, rows.index.special, rows.index.special_row[column]
    if way < SET:
        _rows_up_to(design, column, cut, rows, out)
    else:
        out[:] = np.uint64(0)
        levels, level = np.int64(cut), 0
        while levels >> level != 0:
            if (levels >> level) & 1:
                members = special[first + 1 + level]
                for w in range(out.size):
                    out[w] |= words[w] & members[w]
            level += 1
    if first >= 0:
        missing = special[first]
        for w in range(out.size):
            out[w] &= ~missing[w]
            if way & LEFT:
                out[w] |= words[w] & missing[w]
    return count_rows(out)


register(Design, left_rows=_left_plain)
register(MixedDesign, left_rows=_left_mixed)


# -------------------------- Extent, levels and missing cells of a column among rows stored as bits


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
