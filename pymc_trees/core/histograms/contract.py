"""Statistics of a node's rows by the code of each column, and what a cut between codes would gain.

For proposals that look one split ahead. A table holds, for every column looked at and every code,
the sums of D numbers over the node's rows; the first plane tells which codes have rows. Tables add
and subtract: a child's table is its parent's less its sibling's. What is rounded here changes only
what is proposed, since the weight of a proposal is computed from its rows.

========================================== ========================================================
``pack_rows(leaf, packed, unit)``          write what a row adds, and the units it is counted in
``add_cells(leaf, packed, rows, start,     add ``rows[start:stop]`` to the (D, p, B) table of the
stop, codes, columns, n, table)``          first n of ``columns``
``tempering(leaf, rows, start, stop)``     power in (0, 1] of the likelihood to look ahead with
``weigh_cells(leaf, table, offsets,        write ``gain[a, k + 1]``, p(codes <= k) p(codes > k) over
columns, n, power, unit, room, gain,       p(all) and a factor, for n ``columns`` and
log_factor)``                              k = -1 .. codes - 1, and the logs of these factors
``prefix_stats(leaf, table, place, k,      write the statistics of the rows with codes up to k
unit, out)``
========================================== ========================================================
"""

import numpy as np

from pymc_trees.core.compile.dispatch import generic, kernel_of
from pymc_trees.core.histograms import dirichlet, normal, normal_gamma  # noqa: F401


def n_planes(leaf) -> int:
    """Numbers in a cell of a table."""
    return kernel_of(type(leaf), "table_layout")(leaf)[0]


def make_tables(leaf, n_tables: int, n_columns: int, n_codes: int) -> np.ndarray:
    """Tables of zeros, (n_tables, D, n_columns, n_codes)."""
    n_planes, dtype = kernel_of(type(leaf), "table_layout")(leaf)
    return np.zeros((n_tables, n_planes, n_columns, n_codes), dtype=dtype)


@generic("leaf")
def pack_rows(leaf, packed, unit):
    """What each row adds to a table."""


@generic("leaf")
def add_cells(leaf, packed, rows, start, stop, codes, columns, n, table):
    """Add rows to a table."""


@generic("leaf")
def tempering(leaf, rows, start, stop):
    """Power of the likelihood to look ahead with."""


@generic("leaf")
def weigh_cells(leaf, table, offsets, columns, n, power, unit, room, gain, log_factor):
    """Marginal likelihood of the two sides of each cut between codes."""


@generic("leaf")
def prefix_stats(leaf, table, place, k, unit, out):
    """Statistics of the rows with codes up to k."""
