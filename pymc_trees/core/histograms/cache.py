"""Tables of codes kept for the nodes of particles, so that few rows are read twice.

Table 0 is the root's and is shared by all particles, table 1 is room for a node that has none;
the others belong to a particle each. When a node with a table is split, that of its smaller child
is added up from the rows and that of the larger one is the difference.
"""

from typing import NamedTuple

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.histograms.binning import Bins
from pymc_trees.core.histograms.contract import add_cells, make_tables, pack_rows

ROOT, SCRATCH, NO_TABLE = 0, 1, -1
_MOST_BYTES = 64e6
_EACH = 4


class Tables(NamedTuple):
    """Tables, and what the rows add to them."""

    packed: np.ndarray
    """(D, n) int64."""
    unit: np.ndarray
    """(3,) float64."""
    cells: np.ndarray
    """(2 + C S, D, p, B): by table, number, place of a column, code."""
    table_of: np.ndarray
    """(C, M) int32: table of each node of each particle, or -1."""
    taken: np.ndarray
    """(C, S) bool: tables in use of those that belong to a particle."""


def make_node_tables(leaf, bins: Bins, n_particles: int, max_nodes: int) -> Tables:
    """Room for the tables of ``n_particles``."""
    n, p = bins.codes.shape
    n_codes = int(np.diff(bins.offsets).max())
    one = make_tables(leaf, 1, p, n_codes)
    each = int(min(_EACH, _MOST_BYTES // (one.nbytes * n_particles)))
    cells = make_tables(leaf, 2 + n_particles * each, p, n_codes)
    return Tables(
        np.zeros((cells.shape[1], n), dtype=np.int64),
        np.ones(3),
        cells,
        np.full((n_particles, max(max_nodes, 1)), NO_TABLE, dtype=np.int32),
        np.zeros((n_particles, each), dtype=np.bool_),
    )


@njit(cache=True)
def _clear(cells, table, n):
    cells[table, :, :n, :] = 0


@njit(cache=True)
def fill_root(tables, bins, leaf, columns, n, rows):
    """Pack the rows and add up the root's table, before any particle grows."""
    table_of, taken = tables.table_of, tables.taken
    pack_rows(leaf, tables.packed, tables.unit)
    _clear(tables.cells, ROOT, n)
    add_cells(leaf, tables.packed, rows, 0, rows.size, bins.codes, columns, n, tables.cells[ROOT])
    for c in range(taken.shape[0]):
        taken[c] = False
        table_of[c, 0] = ROOT


@njit(cache=True)
def forget_tables(tables, c):
    """Particle ``c`` has become a copy of another one: its nodes have no tables."""
    tables.taken[c] = False
    tables.table_of[c] = NO_TABLE


@njit(cache=True)
def table_for(tables, bins, leaf, columns, n, c, node, rows, start, stop):
    """Table of a node: its own, or one added up on the spot."""
    table = tables.table_of[c, node]
    if table == NO_TABLE:
        table = SCRATCH
        _clear(tables.cells, table, n)
        add_cells(
            leaf, tables.packed, rows, start, stop, bins.codes, columns, n, tables.cells[table]
        )
    return table


@njit(cache=True)
def _take(taken, c):
    each = taken.shape[1]
    for s in range(each):
        if not taken[c, s]:
            taken[c, s] = True
            return 2 + c * each + s
    return NO_TABLE


@njit(cache=True)
def release_table(tables, c, node):
    """The node is a leaf now, or its children need no table."""
    table = tables.table_of[c, node]
    if table > SCRATCH:
        tables.taken[c, table - 2 - c * tables.taken.shape[1]] = False
    tables.table_of[c, node] = NO_TABLE


@njit(cache=True)
def divide_table(
    tables, bins, leaf, columns, n, c, node, left, rows, start, middle, stop, unsplittable
):
    """Tables of the children of a node that was split, as far as there is room for them.

    Parameters
    ----------
    unsplittable : bool
        Whether neither child can be split.
    """
    table_of, taken, cells = tables.table_of, tables.taken, tables.cells
    right = left + 1
    table_of[c, left] = NO_TABLE
    table_of[c, right] = NO_TABLE
    whole = table_of[c, node]
    if whole == NO_TABLE:
        return
    part = NO_TABLE if unsplittable else _take(taken, c)
    if part == NO_TABLE:
        release_table(tables, c, node)
        return
    left_is_smaller = middle - start <= stop - middle
    smaller, larger = (left, right) if left_is_smaller else (right, left)
    first, last = (start, middle) if left_is_smaller else (middle, stop)
    _clear(cells, part, n)
    add_cells(leaf, tables.packed, rows, first, last, bins.codes, columns, n, cells[part])
    rest = _take(taken, c) if whole == ROOT else whole
    table_of[c, node] = NO_TABLE
    table_of[c, smaller] = part
    if rest == NO_TABLE:
        return
    table_of[c, larger] = rest
    for d in range(cells.shape[1]):
        for a in range(n):
            for b in range(cells.shape[3]):
                cells[rest, d, a, b] = cells[whole, d, a, b] - cells[part, d, a, b]
