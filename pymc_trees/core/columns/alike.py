"""Cuts that partition the rows of a node as a given cut does: between two neighbouring cells.

Two nodes that share a rule share a set of levels, or of grid codes, with positive probability, but
a real-valued cut with probability 0; there, a copy of a cut is drawn from such an interval.
"""

import numpy as np
from numba import float64, int64

from pymc_trees.core.columns.design import Design
from pymc_trees.core.columns.mixed import DESIGN, EVERY, SET, MixedDesign
from pymc_trees.core.columns.row_set import RowSet, has_row
from pymc_trees.core.columns.set_range import set_range
from pymc_trees.core.compile.cache import njit
from pymc_trees.core.compile.dispatch import generic, register


@generic("design", args=(DESIGN, int64, float64, RowSet, RowSet), result=(float64, float64))
def alike_cuts(design, code, cut, left, right):
    """Interval of the cuts that separate two sets of rows as a rule does.

    Both ends are the rule's own value where it is a set of levels or splits off missing rows.
    """


@njit(cache=True)
def is_alike(cut, interval):
    """Whether a cut is one of `alike_cuts`."""
    low, high = interval
    return (low <= cut and cut < high) or (low == high and cut == low)


@njit(cache=True)
def log_alike(interval):
    """Log density of a draw among `alike_cuts`, whole numbers or real ones."""
    low, high = interval
    return -np.log(high - low) if low < high else 0.0


@njit(cache=True)
def _alike_plain(design, code, cut, left, right):
    return set_range(design, code, left)[1], set_range(design, code, right)[0]


@njit(cache=True)
def _alike_mixed(design, code, cut, left, right):
    p = design.columns.shape[0]
    column, way = code % p, code // p
    if way >= SET or abs(cut) == EVERY:
        return cut, cut
    if not design.gaps[column]:
        return _alike_plain(design, column, cut, left, right)
    low, high, cells = -np.inf, np.inf, design.columns[column]
    for i in range(cells.size):
        if cells[i] != design.missing:
            if has_row(left.words, i):
                low = max(low, float(cells[i]))
            elif has_row(right.words, i):
                high = min(high, float(cells[i]))
    if high - low == np.inf:  # one side has missing rows only: not a cut of the prior
        low = high = cut
    return low, high


register(Design, alike_cuts=_alike_plain)
register(MixedDesign, alike_cuts=_alike_mixed)
