"""An index of the training rows by column: which rows lie below a cut, as bits.

A set of rows is an array of W = ceil(n / 64) words, row i being bit ``i % 64`` of word ``i // 64``.
For a column of numbers the index holds the rows in order, and of every STEP-th rank the set of rows
before it: the rows below a cut are such a set and at most STEP / 2 single bits more or less. Grid
codes need neither: comparing all of them is as fast (`core.compile.lanes`). For a column with
levels or missing cells the index holds the set of missing rows and those of each level.
"""

from typing import NamedTuple

import numpy as np

from pymc_trees.core.columns.mixed import MixedDesign
from pymc_trees.core.compile.pointer import by_pointer

STEP = 32
"""Ranks between two sets of a column, if memory allows."""
ROOM = 2**25
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
    special: np.ndarray
    """(q, W) uint64: of each column with levels or missing cells, missing rows, then each level."""
    special_row: np.ndarray
    """(p,) int64: first row of ``special``, or -1."""
    alike: np.ndarray
    """(p,) int64: most rows with equal cells; the column varies among any more rows."""
    least_alike: int
    """Minimum over the columns that vary; the number of rows if none does."""
    listed: np.ndarray
    """(n,) uint32, overwritten: rows of a set, as a list (`row_set.list_rows`)."""


def make_row_index(design) -> RowIndex:
    """Index of a design."""
    columns = design.columns
    p, n = columns.shape
    n_words = -(-n // 64)
    if columns.dtype.kind == "f":
        step, order, before = _order(columns, n_words)
        alike = np.array([_longest_run(columns[j, order[j]]) for j in range(p)])
    else:
        step, order, before = STEP, np.empty((0, 0), np.uint32), np.empty((0, 0, 0), np.uint64)
        alike = np.array([np.bincount(cells).max() for cells in columns])
    least_alike = int(alike[design.varies].min(initial=n))
    special: list = []
    special_row = np.full(p, -1)
    if isinstance(design, MixedDesign):
        for j in np.flatnonzero((design.kinds != 0) | design.gaps):
            special_row[j] = len(special)
            special.append(columns[j] == design.missing)
            special += [columns[j] == level for level in range(abs(design.kinds[j]))]
    sets = [words_of(rows) for rows in special]
    words = np.array(sets, dtype=np.uint64).reshape(-1, n_words)
    listed = np.zeros(n, dtype=np.uint32)
    return RowIndex(order, before, step, words, special_row, alike, least_alike, listed)


def _order(columns, n_words):
    """Rows sorted by each column, and the sets of the first ``b * step`` of them."""
    p, n = columns.shape
    step = max(STEP, -(-p * n * n_words * 8 // ROOM))
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
