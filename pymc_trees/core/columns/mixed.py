"""Training columns with categories or missing cells, and which way a rule sends their rows.

The rule of a split node is two numbers. With p columns, the first is ``column + p * rule_kind``:

========= ======================== ===============================
rule_kind sends left               and a row whose cell is missing
========= ======================== ===============================
0         ``x <= cut``             right
1         ``x <= cut``             left
2         the levels in ``cut``    right
3         the levels in ``cut``    left
========= ======================== ===============================

Levels are the whole numbers 0, 1, 2 and so on; a set of them is a whole number whose bit l stands
for level l. The split of missing against present rows sends every present cell to the other side:
cut `MAX_CUT` with missing rows right, its negative with missing rows left, and the sets of all
levels and of none. In a `Design` (`design`), without levels and missing cells, a rule is column and
cut.

Functions here and in `rules` take either type of design.
"""

from typing import NamedTuple

import numpy as np
from numba import boolean, int64

from pymc_trees.core.columns.cells import LEFT, MISSING, SET
from pymc_trees.core.columns.table_file import release_pages
from pymc_trees.core.compile.cache import njit
from pymc_trees.core.compile.dispatch import generic, register
from pymc_trees.core.compile.handle import Role
from pymc_trees.core.compile.pointer import by_pointer

DESIGN = Role("design")


@by_pointer
class MixedDesign(NamedTuple):
    """As `Design`, where a column may have levels or missing cells."""

    columns: np.ndarray
    """(p, n) cells: float64, or uint8 / uint16 for a grid design; levels as whole numbers."""
    varies: np.ndarray
    """(p,) bool: two values, or both missing and present cells."""
    low: np.ndarray
    """(p,) float64: smallest present cell."""
    high: np.ndarray
    """(p,) float64: largest present cell."""
    grid: np.ndarray
    offsets: np.ndarray
    is_grid: bool
    kinds: np.ndarray
    """(p,) int64: 0 for numbers; L for subsets of L levels; -L for one level against the rest."""
    has_missing: np.ndarray
    """(p,) bool: the column has missing cells."""
    missing: float
    """Code of a missing cell."""
    rank: np.ndarray
    """(q, n) uint32: rank of each cell among the distinct ones, by column with missing cells."""
    rank_row: np.ndarray
    """(p,) int64: row of ``rank``, or -1."""
    visited: np.ndarray
    """For each rank, the last epoch in which `present_range` counted it."""
    epoch: np.ndarray
    """(1,) int64: number of counts of distinct values so far."""
    sides: np.ndarray
    """(n,) as cells, overwritten: 0 for rows that go left, 1 for the others."""


def make_mixed(X: np.ndarray, kinds: np.ndarray, grid: list[np.ndarray] | None) -> MixedDesign:
    """Design of an (n, p) array in which `MISSING` stands for missing cells."""
    n, p = X.shape
    dtype, flat, offsets = np.float64, np.empty(0), np.empty(0, dtype=np.int64)
    if grid is not None:
        dtype = np.uint8 if max(len(g) for g in grid) < 255 else np.uint16
        flat = np.concatenate([np.asarray(g, dtype=np.float64) for g in grid])
        offsets = np.cumsum([0] + [len(g) for g in grid]).astype(np.int64)
    missing = MISSING if grid is None else float(np.iinfo(dtype).max)
    columns = np.empty((p, n), dtype=dtype)
    kinds = np.asarray(kinds, dtype=np.int64)
    cells = np.ascontiguousarray(X, dtype=np.float64)
    design = fill_mixed(cells, flat, offsets, kinds, np.ones(p), columns, missing)
    release_pages(X)
    return design


@njit(cache=True)
def fill_mixed(X, grid, offsets, kinds, weights, columns, missing):
    """`MixedDesign` whose cells are written to ``columns``; weight 0 excludes a column."""
    n, p = X.shape
    is_grid = offsets.size > 0
    varies, has_missing = np.zeros(p, dtype=np.bool_), np.zeros(p, dtype=np.bool_)
    low, high = np.zeros(p), np.zeros(p)
    rank_row = np.full(p, -1)
    n_with_missing = 0
    for j in range(p):
        for i in range(n):
            if X[i, j] == MISSING:
                has_missing[j] = True
                columns[j, i] = missing
            elif is_grid and kinds[j] == 0:
                columns[j, i] = np.searchsorted(grid[offsets[j] : offsets[j + 1]], X[i, j])
            else:
                columns[j, i] = X[i, j]
        any_present = False
        for i in range(n):
            cell = float(columns[j, i])
            varies[j] |= columns[j, i] != columns[j, 0]
            if cell != missing:
                low[j] = min(low[j], cell) if any_present else cell
                high[j] = max(high[j], cell) if any_present else cell
                any_present = True
        varies[j] &= weights[j] > 0.0
        if has_missing[j]:
            rank_row[j] = n_with_missing
            n_with_missing += 1
    rank = np.zeros((n_with_missing, n), dtype=np.uint32)
    max_rank = 0
    for j in range(p):
        if not has_missing[j]:
            continue
        order = np.argsort(columns[j])
        value_rank = 0
        for k in range(1, n):
            value_rank += columns[j, order[k]] != columns[j, order[k - 1]]
            rank[rank_row[j], order[k]] = value_rank
        max_rank = max(max_rank, value_rank)
    return MixedDesign(
        columns,
        varies,
        low,
        high,
        grid,
        offsets,
        is_grid,
        kinds,
        has_missing,
        missing,
        rank,
        rank_row,
        np.zeros(max_rank + 1, dtype=np.int64),
        np.zeros(1, dtype=np.int64),
        np.zeros_like(columns[0]),
    )


def rules_from_prior(design) -> np.ndarray | None:
    """(p,) bool: columns with levels or missing cells, whose rules come from the prior, or None."""
    return (design.kinds != 0) | design.has_missing if isinstance(design, MixedDesign) else None


@njit(cache=True)
def present_range(design, column, rows, start, stop):
    """Missing rows, distinct values and extent of a numeric column among some rows."""
    cells, missing = design.columns[column], design.missing
    rank, visited = design.rank[design.rank_row[column]], design.visited
    design.epoch[0] += 1
    epoch = design.epoch[0]
    n_missing, distinct = 0, 0
    low, high = 0.0, 0.0
    for k in range(start, stop):
        i = rows[k]
        cell = float(cells[i])
        if cell == missing:
            n_missing += 1
            continue
        if distinct == 0:
            low, high = cell, cell
        low, high = min(low, cell), max(high, cell)
        distinct += visited[rank[i]] != epoch
        visited[rank[i]] = epoch
    return n_missing, distinct, low, high


@njit(cache=True)
def levels_present(design, column, rows, start, stop):
    """Set of the levels among some rows, their number, and whether a row is missing."""
    cells, missing = design.columns[column], design.missing
    levels, n_levels, any_missing = np.int64(0), 0, False
    for k in range(start, stop):
        cell = float(cells[rows[k]])
        if cell == missing:
            any_missing = True
            continue
        bit = np.int64(1) << np.int64(cell)
        n_levels += (levels & bit) == 0
        levels |= bit
    return levels, n_levels, any_missing


@njit(cache=True)
def nth_level(levels, k):
    """The k-th level of a set, from 0, as a set of its own."""
    level = np.int64(1)
    while True:
        if levels & level:
            if k == 0:
                return level
            k -= 1
        level <<= 1


@generic("design", args=(DESIGN, int64), result=int64)
def column_of(design, code):
    """Column of the first number of a rule."""


@generic("design")
def n_codes(design):
    """One more than the largest first number of a rule."""


@generic("design")
def side_cells(design, code, cut, rows, start, stop):
    """Cells and a threshold: rows with ``cells[i] <= threshold`` go left."""


@generic("design", args=(DESIGN, int64), result=boolean)
def rule_from_prior(design, column):
    """Whether a column has levels or missing cells: its rules come from the prior."""


@njit(cache=True)
def _column_of(design, code):
    return code % design.columns.shape[0]


@njit(cache=True)
def _n_codes(design):
    return 4 * design.columns.shape[0]


@njit(cache=True)
def _side_cells(design, code, cut, rows, start, stop):
    p = design.columns.shape[0]
    column, rule_kind = code % p, code // p
    cells = design.columns[column]
    if rule_kind < SET and not design.has_missing[column]:
        return cells, cut
    sides, missing = design.sides, design.missing
    missing_side = 0 if rule_kind & LEFT else 1
    if rule_kind < SET:
        for k in range(start, stop):
            i = rows[k]
            cell = float(cells[i])
            sides[i] = missing_side if cell == missing else int(cell > cut)
        return sides, 0.5
    levels = np.int64(cut)
    for k in range(start, stop):
        i = rows[k]
        cell = float(cells[i])
        if cell == missing:
            sides[i] = missing_side
        else:
            sides[i] = 1 - ((levels >> np.int64(cell)) & 1)
    return sides, 0.5


@njit(cache=True)
def _rule_from_prior(design, column):
    return design.kinds[column] != 0 or design.has_missing[column]


register(
    MixedDesign,
    column_of=_column_of,
    n_codes=_n_codes,
    side_cells=_side_cells,
    rule_from_prior=_rule_from_prior,
)
