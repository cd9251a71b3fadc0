"""The distribution of a rule given its node and column: draw one, and its log density.

Numbers without missing cells: the cut is uniform between the extremes of the node's rows
(Lakshminarayanan 2015, eq. 5). In a `MixedDesign` furthermore, for a column with d distinct present
values among the node's rows,

- the side of missing rows is a fair coin flip, even if the node has none;
- if there are any, the split is missing against present with probability ``1 / (1 + d)``, or 1 if d
  = 1;
- otherwise a set of levels is uniform over those that separate the levels present (``2**d - 2``),
  or over the d single levels, and every level absent from the node goes to either side by a fair
  coin (to the right when the set is a single level).

Sides of levels and of missing cells that do not occur in the node are part of the rule: a
prediction may need them. Moves that draw a rule draw them too, and moves that change the rows of a
node account for their new density.
"""

import numpy as np
from numba import float64, int64

from pymc_trees.core.columns.cells import MAX_CUT, SET
from pymc_trees.core.columns.design import (
    Design,
    column_range,
    column_varies,
    cut_code,
    cut_value,
    draw_cut,
)
from pymc_trees.core.columns.mixed import (
    DESIGN,
    MixedDesign,
    levels_present,
    nth_level,
    present_range,
)
from pymc_trees.core.columns.row_set import RowSet, levels_in_set, numbers_in_set, range_in_set
from pymc_trees.core.compile.cache import njit
from pymc_trees.core.compile.dispatch import generic, register
from pymc_trees.core.compile.handle import GENERATOR, LIST
from pymc_trees.core.random import pick

LOG_2 = np.log(2.0)


@generic(
    "design", args=(GENERATOR, DESIGN, int64, LIST, int64, int64), result=(int64, float64, float64)
)
def draw_rule(rng, design, column, rows, start, stop):
    """Rule of a column that varies in ``rows[start:stop]``: two numbers, and log density."""


@generic("design", args=(DESIGN, int64, float64, LIST, int64, int64), result=float64)
def log_rule(design, code, cut, rows, start, stop):
    """Log density of a rule given its column; -inf if it, or any rule, leaves a side empty."""


@generic("design")
def rule_value(design, code, cut):
    """Convert a cut from the units of the design's cells to those of X."""


@generic("design")
def rule_code(design, code, value):
    """Convert a cut from the units of X to those of the design's cells; -1 if off the grid."""


@generic("design", args=(GENERATOR, DESIGN, int64), result=int64)
def draw_side(rng, design, column):
    """First number of a rule of a column of numbers: a fair coin sets the side of missing rows."""


@generic("design", args=(DESIGN,), result=float64, constant=True)
def log_side(design):
    """Log probability of the side that `draw_side` draws."""


@njit(cache=True)
def _draw_plain(rng, design, column, rows, start, stop):
    low, high = column_range(design, column, rows, start, stop)
    return column, draw_cut(rng, design, low, high), -np.log(high - low)


@njit(cache=True)
def _log_plain(design, code, cut, rows, start, stop):
    if stop - start < 2 or not column_varies(design, code, rows, start, stop):
        return -np.inf
    low, high = column_range(design, code, rows, start, stop)
    return -np.log(high - low) if cut >= low and cut < high else -np.inf


@njit(cache=True)
def _plain_side(rng, design, column):
    return column


@njit(cache=True)
def _no_side(design):
    return 0.0


@njit(cache=True)
def _mixed_value(design, code, cut):
    p = design.columns.shape[0]
    if code >= SET * p or abs(cut) == MAX_CUT:
        return cut
    return cut_value(design, code % p, cut)


@njit(cache=True)
def _mixed_code(design, code, value):
    p = design.columns.shape[0]
    if code >= SET * p or abs(value) == MAX_CUT:
        return value
    return cut_code(design, code % p, value)


@njit(cache=True)
def _mixed_side(rng, design, column):
    return column + design.columns.shape[0] * (rng.random() < 0.5)


@njit(cache=True)
def _log_side(design):
    return -LOG_2


@njit(cache=True)
def numbers_present(design, column, rows, start, stop):
    """`present_range`, of any column of numbers."""
    if design.has_missing[column]:
        return present_range(design, column, rows, start, stop)
    low, high = column_range(design, column, rows, start, stop)
    return 0, 0, low, high


@njit(cache=True)
def _draw_mixed(rng, design, column, rows, start, stop):
    p = design.columns.shape[0]
    side = int(rng.random() < 0.5)
    if design.kinds[column] != 0:
        summary = levels_present(design, column, rows, start, stop)
        levels, log_p = draw_levels(rng, design.kinds[column], side, summary)
        return column + p * (SET + side), levels, log_p
    summary = numbers_present(design, column, rows, start, stop)
    cut, log_p = draw_number(rng, design, side, summary)
    return column + p * side, cut, log_p


@njit(cache=True)
def _log_mixed(design, code, cut, rows, start, stop):
    p = design.columns.shape[0]
    column, rule_kind = code % p, code // p
    if (
        stop - start < 2
        or not design.varies[column]
        or (rule_kind >= SET) != (design.kinds[column] != 0)
    ):
        return -np.inf
    if rule_kind >= SET:
        summary = levels_present(design, column, rows, start, stop)
        return log_levels(design.kinds[column], rule_kind - SET, cut, summary)
    return log_number(rule_kind, cut, numbers_present(design, column, rows, start, stop))


@njit(cache=True)
def draw_number(rng, design, side, summary):
    """Cut of a column of numbers, and log density, the coin of the side included.

    ``summary`` is from `numbers_present`.
    """
    n_missing, distinct, low, high = summary
    log_p = -LOG_2
    if n_missing > 0:
        if distinct == 1 or rng.random() * (1 + distinct) < 1.0:
            return -MAX_CUT if side == 1 else MAX_CUT, log_p + log_p_missing_split(distinct)
        log_p += log_p_other_rule(distinct)
    return draw_cut(rng, design, low, high), log_p - np.log(high - low)


@njit(cache=True)
def log_number(side, cut, summary):
    """Log density of a cut of a numeric column; -inf if it leaves one side empty."""
    n_missing, distinct, low, high = summary
    log_p = -LOG_2
    if n_missing > 0:
        if distinct == 0:
            return -np.inf
        if cut == (-MAX_CUT if side == 1 else MAX_CUT):
            return log_p + log_p_missing_split(distinct)
        if distinct == 1:
            return -np.inf
        log_p += log_p_other_rule(distinct)
    return log_p - np.log(high - low) if cut >= low and cut < high else -np.inf


@njit(cache=True)
def log_p_missing_split(distinct):
    """Log probability that the rule splits missing against present cells."""
    return 0.0 if distinct == 1 else -np.log1p(distinct)


@njit(cache=True)
def log_p_other_rule(distinct):
    """Log probability of any other rule, given at least two values."""
    return np.log(distinct / (1.0 + distinct))


@njit(cache=True)
def log_p_level_set(kind, n_present):
    """Log probability of a set that separates the levels present, with sides of absent ones."""
    if kind < 0:
        return -np.log(n_present)
    log_n_sets = n_present * LOG_2 + np.log1p(-(2.0 ** (1 - n_present)))
    return -log_n_sets - (kind - n_present) * LOG_2


@njit(cache=True)
def draw_levels(rng, kind, side, summary):
    """Set of levels, as a float, and log density, the coin of the side included.

    ``summary`` is from `levels_present`.
    """
    n_levels = abs(kind)
    present, n_present, any_missing = summary
    log_p = -LOG_2
    if any_missing:
        if n_present == 1 or rng.random() * (1 + n_present) < 1.0:
            all_levels = (np.int64(1) << n_levels) - 1
            return 0.0 if side == 1 else float(all_levels), log_p + log_p_missing_split(n_present)
        log_p += log_p_other_rule(n_present)
    log_p += log_p_level_set(kind, n_present)
    if kind < 0:
        return float(nth_level(present, pick(rng, n_present))), log_p
    while True:
        levels = np.int64(0)
        for level in range(n_levels):
            levels |= np.int64(rng.random() < 0.5) << level
        if (levels & present) != 0 and (levels & present) != present:
            return float(levels), log_p


@njit(cache=True)
def log_levels(kind, side, cut, summary):
    """Log density of a set of levels; -inf if it is invalid or leaves one side empty."""
    n_levels = abs(kind)
    all_levels = (np.int64(1) << n_levels) - 1
    if not (cut >= 0.0 and cut <= all_levels and cut == np.floor(cut)):
        return -np.inf
    levels = np.int64(cut)
    present, n_present, any_missing = summary
    if n_present == 0:
        return -np.inf
    log_p = -LOG_2
    if any_missing:
        if levels == (0 if side == 1 else all_levels):
            return log_p + log_p_missing_split(n_present)
        if n_present == 1:
            return -np.inf
        log_p += log_p_other_rule(n_present)
    inside = levels & present
    if inside == 0 or inside == present:
        return -np.inf
    if kind < 0 and levels & (levels - 1) != 0:
        return -np.inf
    return log_p + log_p_level_set(kind, n_present)


@njit(cache=True)
def log_column_probability(design, weights, column, rows, start, stop):
    """Log of ``weights[column]`` over the sum of the weights of the columns that vary in a node."""
    total = 0.0
    for j in range(weights.size):
        if column_varies(design, j, rows, start, stop):
            total += weights[j]
    return np.log(weights[column] / total)


register(
    Design,
    draw_rule=_draw_plain,
    log_rule=_log_plain,
    rule_value=cut_value,
    rule_code=cut_code,
    draw_side=_plain_side,
    log_side=_no_side,
)
register(
    MixedDesign,
    draw_rule=_draw_mixed,
    log_rule=_log_mixed,
    rule_value=_mixed_value,
    rule_code=_mixed_code,
    draw_side=_mixed_side,
    log_side=_log_side,
)


# --------------------------------------------------- The same distributions for rows stored as bits


@generic("design", args=(GENERATOR, DESIGN, int64, RowSet), result=(int64, float64, float64))
def draw_set_rule(rng, design, column, rows):
    """`draw_rule` for a `RowSet` in which the column varies."""


@generic("design", args=(DESIGN, int64, float64, RowSet), result=float64)
def log_set_rule(design, code, cut, rows):
    """`log_rule` for a `RowSet`."""


@njit(cache=True)
def _draw_plain_set(rng, design, column, rows):
    low, high = range_in_set(design, column, rows)
    return column, draw_cut(rng, design, low, high), -np.log(high - low)


@njit(cache=True)
def _log_plain_set(design, code, cut, rows):
    if rows.n < 2 or not design.varies[code]:
        return -np.inf
    low, high = range_in_set(design, code, rows)
    return -np.log(high - low) if cut >= low and cut < high else -np.inf


@njit(cache=True)
def _draw_mixed_set(rng, design, column, rows):
    p, kind = design.columns.shape[0], design.kinds[column]
    side = int(rng.random() < 0.5)
    if kind != 0:
        levels, log_p = draw_levels(rng, kind, side, levels_in_set(design, column, rows))
        return column + p * (SET + side), levels, log_p
    cut, log_p = draw_number(rng, design, side, numbers_in_set(design, column, rows))
    return column + p * side, cut, log_p


@njit(cache=True)
def _log_mixed_set(design, code, cut, rows):
    p = design.columns.shape[0]
    column, rule_kind = code % p, code // p
    if rows.n < 2 or not design.varies[column] or (rule_kind >= SET) != (design.kinds[column] != 0):
        return -np.inf
    if rule_kind >= SET:
        summary = levels_in_set(design, column, rows)
        return log_levels(design.kinds[column], rule_kind - SET, cut, summary)
    return log_number(rule_kind, cut, numbers_in_set(design, column, rows))


register(Design, draw_set_rule=_draw_plain_set, log_set_rule=_log_plain_set)
register(MixedDesign, draw_set_rule=_draw_mixed_set, log_set_rule=_log_mixed_set)
