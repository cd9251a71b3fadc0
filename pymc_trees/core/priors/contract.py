"""Interface of a tree prior, dispatched on the type of its NamedTuple.

The cut is uniform on the column's extent in the node under every prior. Only `CGMPrior` supports
rules of levels and of missing cells (`core.columns.mixed`).
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numba import boolean, float64, int64

from pymc_trees.core.columns.mixed import DESIGN, column_of
from pymc_trees.core.columns.row_set import RowSet, list_rows
from pymc_trees.core.columns.rules import draw_set_rule, log_set_rule
from pymc_trees.core.compile.cache import njit
from pymc_trees.core.compile.dispatch import generic, registrar
from pymc_trees.core.compile.handle import GENERATOR, LIST, NODES, Role
from pymc_trees.core.forest.trees import Trees

PRIOR = Role("prior")


class Place(NamedTuple):
    """Data on a node that a prior uses."""

    depth: int
    time: float
    """Time of the parent's split; 0 for a root."""
    rate: float
    """Linear dimension of the box of its rows, for a Mondrian process; else unused."""
    unsplittable: bool
    """Whether its rows are all alike."""


@njit(cache=True)
def begin_of(trees, node):
    """Time of the parent's split; 0 for a root."""
    parent = trees.parent[node]
    return trees.time[parent] if parent >= 0 else 0.0


@njit(cache=True)
def place_of(trees, node):
    """Position of a node in a tree."""
    depth, time = np.int64(trees.depth[node]), begin_of(trees, node)
    return Place(depth, time, trees.rate[node], trees.unsplittable[node])


@generic("prior", args=(PRIOR, DESIGN, LIST, int64, int64), result=(boolean, float64))
def node_summary(prior, design, rows, start, stop):
    """Whether a node's rows are all alike, and its rate."""


@generic("prior", args=(PRIOR, Place), result=float64)
def log_split(prior, place):
    """Log probability that a node splits."""


@generic("prior", args=(PRIOR, Place), result=float64)
def log_stop(prior, place):
    """Log probability that a node is a leaf."""


@generic("prior", args=(GENERATOR, PRIOR, Place), result=float64)
def draw_time(rng, prior, place):
    """Time of a split."""


@generic("prior", args=(PRIOR, Place, float64), result=float64)
def log_split_at(prior, place, time):
    """Log density of a split at a time."""


@generic("prior", args=(GENERATOR, PRIOR, DESIGN, LIST, int64, int64), result=int64)
def draw_column(rng, prior, design, rows, start, stop):
    """Split column."""


@generic("prior", args=(PRIOR, DESIGN, int64, float64, float64, LIST, int64, int64), result=float64)
def log_column(prior, design, column, log_cut, rate, rows, start, stop):
    """Log probability of a split column."""


@generic("prior", args=(PRIOR, int64, float64), result=float64)
def column_weight(prior, column, extent):
    """Weight of a split column."""


@njit(cache=True)
def _weight(prior, column):
    return prior.weights[column]


@generic("prior", default=_weight, args=(PRIOR, int64), result=float64)
def split_weight(prior, column):
    """Split weight of a column."""


@njit(cache=True)
def _survey_list(prior, design, rows):
    return node_summary(prior, design, rows.index.listed, 0, list_rows(rows))


@njit(cache=True)
def _draw_of_list(rng, prior, design, rows):
    return draw_column(rng, prior, design, rows.index.listed, 0, list_rows(rows))


@njit(cache=True)
def _log_of_list(prior, design, column, log_cut, rate, rows):
    return log_column(prior, design, column, log_cut, rate, rows.index.listed, 0, list_rows(rows))


@generic("prior", default=_survey_list, args=(PRIOR, DESIGN, RowSet), result=(boolean, float64))
def node_summary_of_set(prior, design, rows):
    """`node_summary` of a `RowSet`."""


@generic("prior", default=_draw_of_list, args=(GENERATOR, PRIOR, DESIGN, RowSet), result=int64)
def draw_set_column(rng, prior, design, rows):
    """`draw_column` in a `RowSet`."""


@generic(
    "prior",
    default=_log_of_list,
    args=(PRIOR, DESIGN, int64, float64, float64, RowSet),
    result=float64,
)
def log_set_column(prior, design, column, log_cut, rate, rows):
    """`log_column` in a `RowSet`."""


@generic("prior")
def is_time(prior, place, time):
    """Whether a split may have a time."""


@generic("prior")
def add_time_terms(prior, trees, nodes, terms):
    """Add the terms of the times of all trees, for any settings."""


@generic("prior", args=(GENERATOR, PRIOR, Trees, NODES), result=None)
def renew_times(rng, prior, trees, nodes):
    """New times of all trees."""


# Several of the above in one call, which by address are dearer than what most of them do.


@njit(cache=True)
def _draw_set_split(rng, prior, design, rows):
    column = draw_set_column(rng, prior, design, rows)
    code, cut, log_cut = draw_set_rule(rng, design, column, rows)
    return column, code, cut, log_cut


@njit(cache=True)
def _log_set_split(prior, design, code, cut, rate, rows):
    log_cut = log_set_rule(design, code, cut, rows)
    if log_cut == -np.inf:
        return log_cut, 0.0
    column = column_of(design, code)
    return log_cut, log_set_column(prior, design, column, log_cut, rate, rows)


@njit(cache=True)
def _survey_both(prior, design, left, right):
    left_unsplittable, left_rate = node_summary_of_set(prior, design, left)
    right_unsplittable, right_rate = node_summary_of_set(prior, design, right)
    return left_unsplittable, left_rate, right_unsplittable, right_rate


@njit(cache=True)
def _log_stops(prior, left, right):
    return log_stop(prior, left), log_stop(prior, right)


@njit(cache=True)
def _log_growth(prior, place, left, right):
    return (
        log_split(prior, place)
        + log_stop(prior, left)
        + log_stop(prior, right)
        - log_stop(prior, place)
    )


@generic(
    "prior",
    default=_draw_set_split,
    args=(GENERATOR, PRIOR, DESIGN, RowSet),
    result=(int64, int64, float64, float64),
)
def draw_set_split(rng, prior, design, rows):
    """Split of a node: column, the two numbers of its rule, and the log density of the rule."""


@generic(
    "prior",
    default=_log_set_split,
    args=(PRIOR, DESIGN, int64, float64, float64, RowSet),
    result=(float64, float64),
)
def log_set_split(prior, design, code, cut, rate, rows):
    """Log density of a rule given its column, -inf if a side is empty, and of the column."""


@generic(
    "prior",
    default=_survey_both,
    args=(PRIOR, DESIGN, RowSet, RowSet),
    result=(boolean, float64, boolean, float64),
)
def node_summaries(prior, design, left, right):
    """`node_summary_of_set` of two sets."""


@generic("prior", default=_log_stops, args=(PRIOR, Place, Place), result=(float64, float64))
def log_stops(prior, left, right):
    """`log_stop` of two nodes."""


@generic("prior", default=_log_growth, args=(PRIOR, Place, Place, Place), result=float64)
def log_growth(prior, place, left, right):
    """Log of p(split, and two leaves below) over p(leaf)."""


class PriorKernels(NamedTuple):
    """Kernels of a tree prior, a NamedTuple with a field ``weights``, (p,): 0 excludes a column."""

    node_summary: Callable
    """``(prior, design, rows, start, stop)``: whether ``rows[start:stop]`` are all alike, and the
    node's rate (`Place`)."""
    log_split: Callable
    """``(prior, place)``: log probability that a node with a valid split splits."""
    log_stop: Callable
    """``(prior, place)``: log probability that a node is a leaf."""
    draw_time: Callable
    """``(rng, prior, place)``: time of a split, given that there is one."""
    log_split_at: Callable
    """``(prior, place, time)``: `log_split` and the log density of the time."""
    draw_column: Callable
    """``(rng, prior, design, rows, start, stop)``: split column of ``rows[start:stop]``; one must
    vary."""
    log_column: Callable
    """``(prior, design, column, log_cut, rate, rows, start, stop)``: log probability of that
    column, where cuts have a given log density."""
    column_weight: Callable
    """``(prior, column, extent)``: the same up to a factor, for proposals."""
    is_time: Callable
    """``(prior, place, time)``: whether a split may have that time, whatever the settings."""
    add_time_terms: Callable
    """``(prior, trees, nodes, terms)``: add to ``terms``, (3,) of zeros, what the times of all
    trees say of the prior with any settings (`core.value.fields`); ``nodes`` is overwritten."""
    renew_times: Callable
    """``(rng, prior, trees, nodes)``: times of all trees from their conditional given all else;
    ``nodes``, (max_nodes,), is overwritten."""
    node_summary_of_set: Callable | None = None
    """``(prior, design, rows)``: `node_summary` of a `RowSet`; of a list of its rows unless
    given."""
    draw_set_column: Callable | None = None
    """``(rng, prior, design, rows)``: `draw_column` in a `RowSet`; the same."""
    log_set_column: Callable | None = None
    """``(prior, design, column, log_cut, rate, rows)``: `log_column` in a `RowSet`; the same."""


register = registrar(PriorKernels)
"""Register the kernels of a tree prior."""
