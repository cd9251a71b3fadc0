"""`rules` for rows kept as bits: the same draws of the same laws.

Columns of levels and of missing cells are asked of a list of the rows.
"""

import numpy as np

from pymc_trees.core.columns.design import Design, draw_cut
from pymc_trees.core.columns.mixed import SET, MixedDesign, rule_from_prior
from pymc_trees.core.columns.row_set import list_rows
from pymc_trees.core.columns.rules import LOG_2, draw_rule, log_rule
from pymc_trees.core.columns.set_range import set_range
from pymc_trees.core.compile.cache import njit
from pymc_trees.core.compile.dispatch import generic, register


@generic("design")
def draw_set_rule(rng, design, column, rows):
    """`rules.draw_rule` for a `RowSet` in which the column varies."""


@generic("design")
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
    if rule_from_prior(design, column):
        return draw_rule(rng, design, column, rows.listed, 0, list_rows(rows))
    code = column + design.columns.shape[0] * int(rng.random() < 0.5)
    low, high = set_range(design, column, rows)
    return code, draw_cut(rng, design, low, high), -LOG_2 - np.log(high - low)


@njit(cache=True)
def _log_mixed(design, code, cut, rows):
    p = design.columns.shape[0]
    column, way = code % p, code // p
    if rows.n < 2 or not design.varies[column]:
        return -np.inf
    if rule_from_prior(design, column) or way >= SET:
        return log_rule(design, code, cut, rows.listed, 0, list_rows(rows))
    low, high = set_range(design, column, rows)
    return -LOG_2 - np.log(high - low) if cut >= low and cut < high else -np.inf


register(Design, draw_set_rule=_draw_plain, log_set_rule=_log_plain)
register(MixedDesign, draw_set_rule=_draw_mixed, log_set_rule=_log_mixed)
