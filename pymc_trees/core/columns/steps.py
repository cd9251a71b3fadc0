"""A small symmetric step of a rule: a step and its reverse have the same probability.

The column stays. The distribution of the step depends on the column and on the rows of the node,
which a new rule does not change, and never on the current rule:

- a cut moves by a number uniform on ``(-w, w)``, with ``w`` log-uniform between ``3 / n`` and a
  largest share of the column's range over all rows; on a grid, by that number rounded away from 0;
- in a set of levels, one level that is present in the node changes side; a single level is replaced
  by another that is present;
- if the node has missing cells, the step is, with probability 1/2 each, either that or a change of
  side of the missing rows. The split of missing against present rows is then reversed; it has no
  other step in numeric columns and for single levels;
- if none is missing, the sides of missing rows and of absent levels are redrawn from their prior
  (`rules`).

A step may lead to a rule that leaves one side empty, whose density is 0.
"""

import numpy as np
from numba import float64, int64

from pymc_trees.core.columns.cells import LEFT, MAX_CUT, SET
from pymc_trees.core.columns.design import Design
from pymc_trees.core.columns.mixed import DESIGN, MixedDesign, nth_level
from pymc_trees.core.columns.row_set import (
    RowSet,
    any_missing,
    has_row,
    levels_in_set,
    range_in_set,
)
from pymc_trees.core.compile.cache import njit
from pymc_trees.core.compile.dispatch import generic, register
from pymc_trees.core.compile.handle import GENERATOR
from pymc_trees.core.random import pick


@generic(
    "design", args=(GENERATOR, DESIGN, int64, float64, float64, RowSet), result=(int64, float64)
)
def step_rule(rng, design, code, cut, largest, rows):
    """Rule of a node with the rows of a `RowSet` after one step; ``largest`` is at most 1."""


@njit(cache=True)
def draw_step(rng, design, column, largest):
    """Displacement of a cut: symmetric, with the same distribution at every cut."""
    smallest = min(3.0 / design.columns.shape[1], largest)
    share = smallest * np.exp(rng.random() * np.log(largest / smallest))
    step = share * (design.high[column] - design.low[column]) * (2.0 * rng.random() - 1.0)
    if design.is_grid:
        step = np.copysign(np.ceil(abs(step)), step)
    return step


@njit(cache=True)
def _step_plain(rng, design, code, cut, largest, rows):
    return code, cut + draw_step(rng, design, code, largest)


@njit(cache=True)
def _step_mixed(rng, design, code, cut, largest, rows):
    p = design.columns.shape[0]
    column, rule_kind = code % p, code // p
    if rule_kind >= SET:
        summary = levels_in_set(design, column, rows)
        side, levels = step_levels(
            rng, design.kinds[column], rule_kind - SET, np.int64(cut), summary
        )
        return column + p * (SET + side), float(levels)
    step = draw_step(rng, design, column, largest)
    if not any_missing(design, column, rows):
        return column + p * pick(rng, 2), cut + step
    is_missing_split = abs(cut) == MAX_CUT
    if pick(rng, 2) == 0:
        return column + p * (rule_kind ^ LEFT), -cut if is_missing_split else cut
    return code, cut if is_missing_split else cut + step


@njit(cache=True)
def step_levels(rng, kind, side, levels, summary):
    """Side of missing rows and set of levels after a step; ``summary`` is from `levels_in_set`."""
    present, n_present, is_missing = summary
    all_levels = (np.int64(1) << abs(kind)) - 1
    missing_split = np.int64(0) if side == 1 else all_levels
    if is_missing and pick(rng, 2) == 0:
        return side ^ LEFT, all_levels ^ levels if levels == missing_split else levels
    if kind > 0:
        levels ^= nth_level(present, pick(rng, n_present))
    elif n_present > 1 and not (is_missing and levels == missing_split):
        levels = nth_level(present & ~levels, pick(rng, n_present - 1))
    if not is_missing:
        side = pick(rng, 2)
        if kind > 0:
            levels ^= np.int64(rng.random() * (all_levels + 1)) & all_levels & ~present
    return side, levels


register(Design, step_rule=_step_plain)
register(MixedDesign, step_rule=_step_mixed)


# ------ Cuts that partition the rows of a node as a given cut does: between two neighbouring cells
#
# Two nodes that share a rule share a set of levels, or of grid codes, with positive probability,
# but a real-valued cut with probability 0; there, a copy of a cut is drawn from such an interval.


@generic("design", args=(DESIGN, int64, float64, RowSet, RowSet), result=(float64, float64))
def equivalent_cuts(design, code, cut, left, right):
    """Interval of the cuts that separate two sets of rows as a rule does.

    Both ends are the rule's own value if it is a set of levels or splits off missing rows.
    """


@njit(cache=True)
def is_equivalent(cut, interval):
    """Whether a cut is one of `equivalent_cuts`."""
    low, high = interval
    return (low <= cut and cut < high) or (low == high and cut == low)


@njit(cache=True)
def log_equivalent(interval):
    """Log density of a draw among `equivalent_cuts`, whole numbers or real ones."""
    low, high = interval
    return -np.log(high - low) if low < high else 0.0


@njit(cache=True)
def _equivalent_plain(design, code, cut, left, right):
    return range_in_set(design, code, left)[1], range_in_set(design, code, right)[0]


@njit(cache=True)
def _equivalent_mixed(design, code, cut, left, right):
    p = design.columns.shape[0]
    column, rule_kind = code % p, code // p
    if rule_kind >= SET or abs(cut) == MAX_CUT:
        return cut, cut
    if not design.has_missing[column]:
        return _equivalent_plain(design, column, cut, left, right)
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


register(Design, equivalent_cuts=_equivalent_plain)
register(MixedDesign, equivalent_cuts=_equivalent_mixed)
