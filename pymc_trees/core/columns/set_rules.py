"""`rules` for rows stored as bits: the same draws from the same distributions."""

import numpy as np
from numba import float64, int64

from pymc_trees.core.columns.design import Design, draw_cut
from pymc_trees.core.columns.mixed import DESIGN, SET, MixedDesign
from pymc_trees.core.columns.row_set import RowSet
from pymc_trees.core.columns.rules import draw_levels, draw_number, log_levels, log_number
from pymc_trees.core.columns.set_range import set_levels, set_numbers, set_range
from pymc_trees.core.compile.cache import njit
from pymc_trees.core.compile.dispatch import generic, register
from pymc_trees.core.compile.handle import GENERATOR


@generic("design", args=(GENERATOR, DESIGN, int64, RowSet), result=(int64, float64, float64))
def draw_set_rule(rng, design, column, rows):
    """`rules.draw_rule` for a `RowSet` in which the column varies."""


@generic("design", args=(DESIGN, int64, float64, RowSet), result=float64)
def log_set_rule(design, code, cut, rows):
    """`rules.log_rule` for a `RowSet`."""


@njit(cache=True)
def _draw_plain(rng, design, column, rows):
    low, high = set_range(design, column, rows)
    return column, draw_cut(rng, design, low, high), -np.log(high - low)


@njit(cache=True)
def _log_plain(design, code, cut, rows):
    if rows.n < 2 or not design.varies[code]:
        return -np.inf
    low, high = set_range(design, code, rows)
    return -np.log(high - low) if cut >= low and cut < high else -np.inf


@njit(cache=True)
def _draw_mixed(rng, design, column, rows):
    p, kind = design.columns.shape[0], design.kinds[column]
    side = int(rng.random() < 0.5)
    if kind != 0:
        levels, log_p = draw_levels(rng, kind, side, set_levels(design, column, rows))
        return column + p * (SET + side), levels, log_p
    cut, log_p = draw_number(rng, design, side, set_numbers(design, column, rows))
    return column + p * side, cut, log_p


@njit(cache=True)
def _log_mixed(design, code, cut, rows):
    p = design.columns.shape[0]
    column, way = code % p, code // p
    if rows.n < 2 or not design.varies[column] or (way >= SET) != (design.kinds[column] != 0):
        return -np.inf
    if way >= SET:
        found = set_levels(design, column, rows)
        return log_levels(design.kinds[column], way - SET, cut, found)
    return log_number(way, cut, set_numbers(design, column, rows))


register(Design, draw_set_rule=_draw_plain, log_set_rule=_log_plain)
register(MixedDesign, draw_set_rule=_draw_mixed, log_set_rule=_log_mixed)
