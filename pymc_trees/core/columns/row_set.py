"""The training rows of a node as bits, an index of all rows by column, and queries on both.

A set of rows is an array of W = ceil(n / 64) words; row i is bit ``i % 64`` of word ``i // 64``.
For a column of numbers the index holds the rows in order and, at every ``step``-th rank, the set of
rows before it: the rows below a cut are such a set and at most ``step / 2`` single bits more or
less. Grid codes need neither, since comparing all of them is as fast (`core.compile.lanes`). For a
column with levels or missing cells the index holds the set of missing rows and that of each level.
Queries that are slow on bits use a list of the rows (`list_rows`).
"""

from typing import NamedTuple

import numpy as np
from numba import float64, int64

from pymc_trees.core.columns.cells import LEFT, SET
from pymc_trees.core.columns.design import Design
from pymc_trees.core.columns.mixed import DESIGN, MixedDesign, present_range
from pymc_trees.core.compile.cache import njit
from pymc_trees.core.compile.dispatch import generic, register
from pymc_trees.core.compile.handle import WORDS
from pymc_trees.core.compile.lanes import cell_range, lowest_bit, popcount, write_up_to
from pymc_trees.core.compile.pointer import by_pointer

STEP = 32
"""Ranks between two sets of a column, if memory allows."""
MAX_BYTES = 2**25
"""Memory limit, in bytes, for the sets of all columns; beyond it they are spaced further apart."""


@by_pointer
class RowIndex(NamedTuple):
    """Sets of training rows by column."""

    order: np.ndarray
    """(p, n) uint32: rows by the cells of a column, smallest first; (0, 0) for codes."""
    before: np.ndarray
    """(p, n // step + 1, W) uint64: rows of the first ``b * step`` ranks of a column; (0, 0, 0) for
    codes."""
    step: int
    level_sets: np.ndarray
    """(q, W) uint64: of each column with levels or missing cells, missing rows, then each level."""
    first_level_set: np.ndarray
    """(p,) int64: first row of ``level_sets``, or -1."""
    max_ties: np.ndarray
    """(p,) int64: largest number of rows with equal cells: in more rows the column varies."""
    min_ties: int
    """Smallest ``max_ties`` of the columns that vary; the number of rows if none does."""
    row_list: np.ndarray
    """(n,) uint32, overwritten: rows of a set, as a list (`list_rows`)."""
    first_word: int = 0
    """Words of a set before those of the rows that have a likelihood (`reference`): mostly none."""


def make_row_index(design) -> RowIndex:
    """Index of a design."""
    columns = design.columns
    p, n = columns.shape
    n_words = -(-n // 64)
    if columns.dtype.kind == "f":
        step, order, before = _order(columns, n_words)
        max_ties = np.array([_longest_run(columns[j, order[j]]) for j in range(p)])
    else:
        step, order, before = STEP, np.empty((0, 0), np.uint32), np.empty((0, 0, 0), np.uint64)
        max_ties = np.array([np.bincount(cells).max() for cells in columns])
    min_ties = int(max_ties[design.varies].min(initial=n))
    level_sets: list = []
    first_level_set = np.full(p, -1)
    if isinstance(design, MixedDesign):
        for j in np.flatnonzero((design.kinds != 0) | design.has_missing):
            first_level_set[j] = len(level_sets)
            level_sets.append(columns[j] == design.missing)
            level_sets += [columns[j] == level for level in range(abs(design.kinds[j]))]
    sets = [words_of(rows) for rows in level_sets]
    words = np.array(sets, dtype=np.uint64).reshape(-1, n_words)
    row_list = np.zeros(n, dtype=np.uint32)
    return RowIndex(order, before, step, words, first_level_set, max_ties, min_ties, row_list)


def _order(columns, n_words):
    """Rows sorted by each column, and the sets of the first ``b * step`` of them."""
    p, n = columns.shape
    step = max(STEP, -(-p * n * n_words * 8 // MAX_BYTES))
    order = np.empty((p, n), dtype=np.uint32)
    before = np.empty((p, n // step + 1, n_words), dtype=np.uint64)
    for j in range(p):
        order[j] = np.argsort(columns[j])
        below = np.zeros(n, dtype=bool)
        for b in range(before.shape[1]):
            below[order[j, max(b - 1, 0) * step : b * step]] = True
            before[j, b] = words_of(below)
    return step, order, before


def _longest_run(in_order) -> int:
    """Largest number of equal cells, given sorted cells."""
    starts = np.flatnonzero(np.append(True, in_order[1:] != in_order[:-1]))
    return int(np.diff(starts, append=len(in_order)).max())


def words_of(rows: np.ndarray) -> np.ndarray:
    """Set of rows, as words, of an (n,) bool array."""
    padded = np.zeros(-(-len(rows) // 64) * 64, dtype=bool)
    padded[: len(rows)] = rows
    return np.packbits(padded, bitorder="little").view("<u8").astype(np.uint64)


# ------------------------------------------------------------------------- Sets of rows, as bits


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
def write_rows(words, out, k):
    """Write the rows of a set to ``out``, increasing, from index k; return the end."""
    for w in range(words.size):
        word = words[w]
        while word != np.uint64(0):
            out[k] = (w << 6) + lowest_bit(word)
            k += 1
            word &= word - _ONE
    return k


@njit(cache=True)
def list_rows(rows):
    """Write the rows to ``rows.index.row_list``, increasing; return their number."""
    return write_rows(rows.words, rows.index.row_list, 0)


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
def _cells_differ(cells, words):
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
def _varies(design, column, rows):
    return design.varies[column] and (
        rows.n > rows.index.max_ties[column] or _cells_differ(design.columns[column], rows.words)
    )


@generic("design", default=_varies)
def varies_in_set(design, column, rows):
    """Whether a column varies among the rows; mostly decided by their number alone."""


@njit(cache=True)
def _any_column_differs(design, words):
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
def _any_varies(design, rows):
    return rows.n > rows.index.min_ties or _any_column_differs(design, rows.words)


@generic("design", default=_any_varies)
def any_varies_in_set(design, rows):
    """Whether the rows can be split at all."""


@njit(cache=True)
def own_words(words, index):
    """Words of the rows that have a likelihood: all, but in a `reference.ReferencedDesign`."""
    return words[index.first_word :]


@njit(cache=True)
def own_rows(rows):
    """`RowSet` of the rows that have a likelihood."""
    return RowSet(own_words(rows.words, rows.index), rows.n, rows.index)


@njit(cache=True)
def is_empty(rows):
    """Whether there is no row that rules see; `RowSet.n` counts those that have a likelihood."""
    first = rows.index.first_word
    if first == 0:
        return rows.n == 0
    for w in range(first):
        if rows.words[w] != np.uint64(0):
            return False
    return True


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
def any_common(a, b):
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
            max_code = 256.0**cells.itemsize - 1.0
            write_up_to(words, cells, cells.dtype.type(min(cut, max_code)), out)
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
    column, rule_kind = code % p, code // p
    words, level_sets, first = rows.words, rows.index.level_sets, rows.index.first_level_set[column]
    if rule_kind < SET:
        _rows_up_to(design, column, cut, rows, out)
    else:
        out[:] = np.uint64(0)
        levels, level = np.int64(cut), 0
        while levels >> level != 0:
            if (levels >> level) & 1:
                members = level_sets[first + 1 + level]
                for w in range(out.size):
                    out[w] |= words[w] & members[w]
            level += 1
    if first >= 0:
        missing = level_sets[first]
        for w in range(out.size):
            out[w] &= ~missing[w]
            if rule_kind & LEFT:
                out[w] |= words[w] & missing[w]
    return count_rows(out)


register(Design, left_rows=_left_plain)
register(MixedDesign, left_rows=_left_mixed)


# -------------------------- Extent, levels and missing cells of a column among rows stored as bits


N_LINEAR = 24
"""Ranks checked one by one from either end before a binary search."""


@njit(cache=True)
def _any_outside(a, b):
    """Whether a has rows that are not in b."""
    for w in range(a.size):
        if a[w] & ~b[w] != np.uint64(0):
            return True
    return False


@njit(cache=True)
def _first_rank(words, order, before, step):
    """Rank of the smallest cell; the set is not empty."""
    for k in range(min(N_LINEAR, order.size)):
        if has_row(words, order[k]):
            return k
    low, high = 0, before.shape[0] - 1
    while low < high:  # the last set with no row before it
        middle = (low + high) >> 1
        if any_common(words, before[middle + 1]):
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
    for k in range(n - 1, max(n - 1 - N_LINEAR, -1), -1):
        if has_row(words, order[k]):
            return k
    low, high = 0, before.shape[0] - 1
    while low < high:  # the last set with a row after it
        middle = (low + high + 1) >> 1
        if _any_outside(words, before[middle]):
            low = middle
        else:
            high = middle - 1
    k = min((low + 1) * step, n) - 1
    while not has_row(words, order[k]):
        k -= 1
    return k


PIECE = 64
"""Words of which the extremes are compared with those of all rows at a time."""


@njit(cache=True)
def _range_of_codes(words, cells, low, high):
    """Extremes of codes between two bounds; rows are left out once both have been met."""
    least, largest = high, low
    for start in range(0, words.size, PIECE):
        stop = min(start + PIECE, words.size)
        low_here, high_here = cell_range(words[start:stop], cells[start << 6 : stop << 6])
        least, largest = min(least, float(low_here)), max(largest, float(high_here))
        if least == low and largest == high:
            break
    return least, largest


@njit(cache=True)
def range_in_set(design, column, rows):
    """Smallest and largest cell of a column among rows of which none is missing, as floats."""
    index, words, cells = rows.index, rows.words, design.columns[column]
    if index.order.size == 0:
        return _range_of_codes(words, cells, design.low[column], design.high[column])
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
    if not design.has_missing[column]:
        return False
    index = rows.index
    return any_common(rows.words, index.level_sets[index.first_level_set[column]])


@njit(cache=True)
def numbers_in_set(design, column, rows):
    """`rules.numbers_present`: missing rows, distinct values where there are some, extent."""
    if any_missing(design, column, rows):
        return present_range(design, column, rows.index.row_list, 0, list_rows(rows))
    low, high = range_in_set(design, column, rows)
    return 0, 0, low, high


@njit(cache=True)
def levels_in_set(design, column, rows):
    """`mixed.levels_present`: set of the levels, their number, and whether a row is missing."""
    index, words = rows.index, rows.words
    first = index.first_level_set[column]
    levels, n_levels = np.int64(0), 0
    for level in range(abs(design.kinds[column])):
        if any_common(words, index.level_sets[first + 1 + level]):
            levels |= np.int64(1) << level
            n_levels += 1
    return levels, n_levels, any_missing(design, column, rows)
