"""The training columns as the kernels read them.

A continuous design keeps the float64 columns; a grid design (``n_cuts``) keeps for each cell the
number of grid cuts below it, so that ``x <= grid[c]`` is ``code <= c`` and the cuts available to
a node are the whole numbers from its smallest code to one below its largest. Both cases then
share one rule: a column varies in a node when its extremes differ, and a cut has density
``1 / (max - min)`` there.
"""

from typing import NamedTuple

import numpy as np
from numba import boolean, float64, int64

from pymc_trees.core.columns.cells import MISSING
from pymc_trees.core.columns.mixed import DESIGN, MixedDesign, fill_mixed, make_mixed, side_cells
from pymc_trees.core.columns.table_file import release_pages, row_blocks
from pymc_trees.core.compile.cache import njit
from pymc_trees.core.compile.dispatch import generic, register
from pymc_trees.core.compile.handle import GENERATOR, LIST, ROW
from pymc_trees.core.compile.pointer import by_pointer


@by_pointer
class Design(NamedTuple):
    """Training columns; ``columns[j, i]`` is column j of row i."""

    columns: np.ndarray
    """(p, n) float64, or uint8 / uint16 codes for a grid design."""
    varies: np.ndarray
    """(p,) bool: the column has two different values over all rows."""
    low: np.ndarray
    """(p,) float64: smallest cell of the column over all rows."""
    high: np.ndarray
    """(p,) float64: largest cell."""
    grid: np.ndarray
    """Grid cuts of all columns, one after another; empty for a continuous design."""
    offsets: np.ndarray
    """(p + 1,) int64: column j's cuts are ``grid[offsets[j]:offsets[j + 1]]``."""
    is_grid: bool
    """Whether cells are grid codes."""


def make_design(
    X: np.ndarray, grid: list[np.ndarray] | None = None, kinds: np.ndarray | None = None
) -> Design | MixedDesign:
    """Design of a finite (n, p) float array.

    Parameters
    ----------
    X : (n, p) float array
        Training inputs.
    grid : list of p increasing float arrays, optional
        Cut values of each column; None for cuts anywhere between the extremes.
    kinds : (p,) array of int, optional
        As in `MixedDesign`, for an X with levels or missing cells; None where there are none.
    """
    if kinds is not None and len(kinds):
        return make_mixed(X, kinds, grid)
    n, p = X.shape
    if grid is None:
        columns = np.ascontiguousarray(X.T, dtype=np.float64)
        release_pages(X)
        flat, offsets = np.empty(0), np.zeros(p + 1, dtype=np.int64)
    else:
        dtype = np.uint8 if max(len(g) for g in grid) < 256 else np.uint16
        columns = np.empty((p, n), dtype=dtype)
        for rows, block in row_blocks(X):
            for j in range(p):
                columns[j, rows] = np.searchsorted(grid[j], block[:, j], side="left")
        flat = np.concatenate([np.asarray(g, dtype=np.float64) for g in grid])
        offsets = np.cumsum([0] + [len(g) for g in grid]).astype(np.int64)
    low, high = columns.min(axis=1).astype(np.float64), columns.max(axis=1).astype(np.float64)
    return Design(columns, low != high, low, high, flat, offsets, grid is not None)


@njit(cache=True)
def float_design(X, grid, offsets, weights):
    """`make_design` for compiled code: cells are floats, with or without a grid."""
    n, p = X.shape
    is_grid = offsets.size > 0
    columns = np.empty((p, n))
    varies = np.zeros(p, dtype=np.bool_)
    low, high = np.empty(p), np.empty(p)
    for j in range(p):
        for i in range(n):
            columns[j, i] = X[i, j]
            if is_grid:
                cuts = grid[offsets[j] : offsets[j + 1]]
                columns[j, i] = np.searchsorted(cuts, X[i, j])
        low[j], high[j] = columns[j].min(), columns[j].max()
        varies[j] = weights[j] > 0.0 and low[j] != high[j]
    return Design(columns, varies, low, high, grid, offsets, is_grid)


@generic("kinds")
def design_of(X, grid, offsets, kinds, weights):
    """`float_design`, or a `MixedDesign` with float cells unless ``kinds`` is None."""


@njit(cache=True)
def _plain_design(X, grid, offsets, kinds, weights):
    return float_design(X, grid, offsets, weights)


@njit(cache=True)
def _mixed_design(X, grid, offsets, kinds, weights):
    columns = np.empty((X.shape[1], X.shape[0]))
    return fill_mixed(X, grid, offsets, kinds, weights, columns, MISSING)


register(type(None), design_of=_plain_design)
register(np.ndarray, design_of=_mixed_design)


@njit(cache=True)
def _column_of(design, code):
    return code


@njit(cache=True)
def _n_codes(design):
    return design.columns.shape[0]


@njit(cache=True)
def _side_cells(design, code, cut, rows, start, stop):
    return design.columns[code], cut


@njit(cache=True)
def _no_rule_from_prior(design, column):
    return False


register(
    Design,
    column_of=_column_of,
    n_codes=_n_codes,
    side_cells=_side_cells,
    rule_from_prior=_no_rule_from_prior,
)


@njit(cache=True)
def cut_value(design, column, cut):
    """Convert a cut from the units of the design's cells to those of X."""
    if design.is_grid:
        return design.grid[design.offsets[column] + int(cut)]
    return cut


@njit(cache=True)
def cut_code(design, column, value):
    """Convert a cut from the units of X to those of the design's cells; -1 if off the grid."""
    if not design.is_grid:
        return value
    first, last = design.offsets[column], design.offsets[column + 1]
    k = first + np.searchsorted(design.grid[first:last], value)
    if k < last and design.grid[k] == value:
        return float(k - first)
    return -1.0


@njit(cache=True)
def _draw_cut(rng, design, low, high):
    cut = low + rng.random() * (high - low)
    if design.is_grid:
        cut = np.floor(cut)
    if cut >= high:  # rounding of an interval a few ulps wide
        cut = low
    return cut


@generic("design", default=_draw_cut, args=(GENERATOR, DESIGN, float64, float64), result=float64)
def draw_cut(rng, design, low, high):
    """Draw a cut uniformly from ``[low, high)``: a real number, or a whole one on a grid."""


@njit(cache=True)
def _varying(design):
    return design.varies


@generic("design", default=_varying, args=(DESIGN,), result=boolean[::1])
def varying(design):
    """Which columns vary over all rows, (p,) bool."""


@njit(cache=True)
def column_varies(design, column, rows, start, stop):
    """Whether ``rows[start:stop]`` contain two different values of a column."""
    if not design.varies[column]:
        return False
    columns = design.columns
    first = columns[column, rows[start]]
    for k in range(start + 1, stop):
        if columns[column, rows[k]] != first:
            return True
    return False


@njit(cache=True)
def any_column_varies(design, rows, start, stop):
    """Whether ``rows[start:stop]`` can be split at all."""
    if stop - start < 2:
        return False
    for j in range(design.columns.shape[0]):
        if column_varies(design, j, rows, start, stop):
            return True
    return False


@njit(cache=True)
def column_range(design, column, rows, start, stop):
    """Smallest and largest cell of a column among ``rows[start:stop]``, as floats."""
    cells = design.columns[column]
    if stop - start == cells.size:
        return design.low[column], design.high[column]
    low = cells[rows[start]]
    high = low
    low2, high2 = low, low
    k = start + 1
    while k + 1 < stop:  # two chains of comparisons at a time
        x, x2 = cells[rows[k]], cells[rows[k + 1]]
        low = x if x < low else low
        high = x if x > high else high
        low2 = x2 if x2 < low2 else low2
        high2 = x2 if x2 > high2 else high2
        k += 2
    if k < stop:
        x = cells[rows[k]]
        low = x if x < low else low
        high = x if x > high else high
    return float(min(low, low2)), float(max(high, high2))


@njit(cache=True)
def linear_dimension(design, rows, start, stop):
    """Sum of the sides of the box of ``rows[start:stop]``: the rate of a Mondrian process there."""
    total = 0.0
    for j in range(design.columns.shape[0]):
        if design.varies[j]:
            low, high = column_range(design, j, rows, start, stop)
            total += high - low
    return total


@njit(cache=True)
def _partition_rows(design, column, cut, rows, start, stop, buffer):
    cells, threshold = side_cells(design, column, cut, rows, start, stop)
    left, right = start, 0
    for k in range(start, stop):
        i = rows[k]
        goes_left = cells[i] <= threshold
        rows[left] = i
        buffer[right] = i
        left += goes_left
        right += not goes_left
    for k in range(right):
        rows[left + k] = buffer[k]
    return left


@generic(
    "design",
    default=_partition_rows,
    args=(DESIGN, int64, float64, LIST, int64, int64, LIST),
    result=int64,
)
def partition_rows(design, column, cut, rows, start, stop, buffer):
    """Move the rows that a rule sends left to the front, in order; return their end."""


@njit(cache=True)
def _write_cells(design, column, rows, start, stop, out):
    cells = design.columns[column]
    for k in range(start, stop):
        out[k - start] = cells[rows[k]]


@generic("design", default=_write_cells, args=(DESIGN, int64, LIST, int64, int64, ROW), result=None)
def write_cells(design, column, rows, start, stop, out):
    """Write the cells of a column in ``rows[start:stop]``, as floats."""
