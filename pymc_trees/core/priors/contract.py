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


class NodeContext(NamedTuple):
    """What a prior uses of a node."""

    depth: int
    time: float
    """Time of the parent's split; 0 for a root."""
    rate: float
    """Linear dimension of the box of its rows, for a Mondrian process; else unused."""
    unsplittable: bool
    """Whether its rows are all alike."""


@njit(cache=True)
def parent_time_of(trees, node):
    """Time of the parent's split; 0 for a root."""
    parent = trees.parent[node]
    return trees.time[parent] if parent >= 0 else 0.0


@njit(cache=True)
def context_of(trees, node):
    """`NodeContext` of a node."""
    return context_with(trees, node, trees.rate[node], trees.unsplittable[node])


@njit(cache=True)
def context_with(trees, node, rate, unsplittable):
    """`NodeContext` of a node for other rows than its current ones."""
    depth, time = np.int64(trees.depth[node]), parent_time_of(trees, node)
    return NodeContext(depth, time, rate, unsplittable)


@generic("prior", args=(PRIOR, DESIGN, LIST, int64, int64), result=(boolean, float64))
def node_summary(prior, design, rows, start, stop):
    """Whether a node's rows are all alike, and its rate."""


@generic("prior", args=(PRIOR, NodeContext), result=float64)
def log_split(prior, context):
    """Log probability that a node splits."""


@generic("prior", args=(PRIOR, NodeContext), result=float64)
def log_stop(prior, context):
    """Log probability that a node is a leaf."""


@generic("prior", args=(GENERATOR, PRIOR, NodeContext), result=float64)
def draw_time(rng, prior, context):
    """Time of a split."""


@generic("prior", args=(PRIOR, NodeContext, float64), result=float64)
def log_split_at(prior, context, time):
    """Log density of a split at a time."""


@njit(cache=True)
def log_time(prior, context, time):
    """Log density of the time of a split, given that there is one."""
    return log_split_at(prior, context, time) - log_split(prior, context)


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
def _summary_of_list(prior, design, rows):
    return node_summary(prior, design, rows.index.row_list, 0, list_rows(rows))


@njit(cache=True)
def _draw_of_list(rng, prior, design, rows):
    return draw_column(rng, prior, design, rows.index.row_list, 0, list_rows(rows))


@njit(cache=True)
def _log_of_list(prior, design, column, log_cut, rate, rows):
    return log_column(prior, design, column, log_cut, rate, rows.index.row_list, 0, list_rows(rows))


@generic("prior", default=_summary_of_list, args=(PRIOR, DESIGN, RowSet), result=(boolean, float64))
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
def is_valid_time(prior, context, time):
    """Whether a split may have a time."""


@generic("prior")
def add_time_terms(prior, trees, nodes, terms):
    """Add the terms of the times of all trees, for any settings."""


@generic("prior", args=(GENERATOR, PRIOR, Trees, NODES), result=None)
def resample_times(rng, prior, trees, nodes):
    """New times of all trees."""


# Several of the above in one call: a call by address costs more than what most of them compute.


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
def _summaries(prior, design, left, right):
    left_unsplittable, left_rate = node_summary_of_set(prior, design, left)
    right_unsplittable, right_rate = node_summary_of_set(prior, design, right)
    return left_unsplittable, left_rate, right_unsplittable, right_rate


@njit(cache=True)
def _log_stops(prior, left, right):
    return log_stop(prior, left), log_stop(prior, right)


@njit(cache=True)
def _log_growth(prior, context, left, right):
    return (
        log_split(prior, context)
        + log_stop(prior, left)
        + log_stop(prior, right)
        - log_stop(prior, context)
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
    default=_summaries,
    args=(PRIOR, DESIGN, RowSet, RowSet),
    result=(boolean, float64, boolean, float64),
)
def node_summaries(prior, design, left, right):
    """`node_summary_of_set` of two sets."""


@generic(
    "prior", default=_log_stops, args=(PRIOR, NodeContext, NodeContext), result=(float64, float64)
)
def log_stops(prior, left, right):
    """`log_stop` of two nodes."""


@generic(
    "prior",
    default=_log_growth,
    args=(PRIOR, NodeContext, NodeContext, NodeContext),
    result=float64,
)
def log_growth(prior, context, left, right):
    """Log of p(split, and two leaves below) over p(leaf)."""


class PriorKernels(NamedTuple):
    """Kernels of a tree prior, a NamedTuple with a field ``weights``, (p,): 0 excludes a column."""

    node_summary: Callable
    """``(prior, design, rows, start, stop)``: whether ``rows[start:stop]`` are all alike, and the
    node's rate (`NodeContext`)."""
    log_split: Callable
    """``(prior, context)``: log probability that a node with a valid split splits."""
    log_stop: Callable
    """``(prior, context)``: log probability that a node is a leaf."""
    draw_time: Callable
    """``(rng, prior, context)``: time of a split, given that there is one."""
    log_split_at: Callable
    """``(prior, context, time)``: `log_split` and the log density of the time."""
    draw_column: Callable
    """``(rng, prior, design, rows, start, stop)``: split column of ``rows[start:stop]``; one must
    vary."""
    log_column: Callable
    """``(prior, design, column, log_cut, rate, rows, start, stop)``: log probability of that
    column, where cuts have a given log density."""
    column_weight: Callable
    """``(prior, column, extent)``: the same up to a factor, for proposals."""
    is_valid_time: Callable
    """``(prior, context, time)``: whether a split may have that time, whatever the settings."""
    add_time_terms: Callable
    """``(prior, trees, nodes, terms)``: add to ``terms``, (3,) of zeros, what the times of all
    trees contribute to the log prior under any settings (`core.value.fields`); ``nodes`` is
    overwritten."""
    resample_times: Callable
    """``(rng, prior, trees, nodes)``: times of all trees from their conditional given all else;
    ``nodes``, (max_nodes,), is overwritten."""
    node_summary_of_set: Callable | None = None
    """``(prior, design, rows)``: `node_summary` of a `RowSet`. Default: from a list of its
    rows."""
    draw_set_column: Callable | None = None
    """``(rng, prior, design, rows)``: `draw_column` in a `RowSet`. Default: likewise."""
    log_set_column: Callable | None = None
    """``(prior, design, column, log_cut, rate, rows)``: `log_column` in a `RowSet`. Default:
    likewise."""


register = registrar(PriorKernels)
"""Register the kernels of a tree prior."""
