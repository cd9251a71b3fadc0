"""Tree priors without split times: columns by weight, and a split probability for each node.

The column is drawn by weight among the columns that vary in the node, its cut uniformly between the
extremes of that column there (Lakshminarayanan 2015, eq. 5). Such a prior is a NamedTuple with
``weights``, (p,) split weights of which 0 excludes a column, ``cumulative``, their running sums,
and its own settings.
"""

from collections.abc import Callable

import numpy as np

from pymc_trees.core.columns.design import any_column_varies, column_varies
from pymc_trees.core.columns.row_set import any_set_varies, set_varies
from pymc_trees.core.columns.rules import log_column_probability
from pymc_trees.core.compile.cache import njit
from pymc_trees.core.priors.contract import log_split, register
from pymc_trees.core.random import draw_by_weight


@njit(cache=True)
def draw_column(rng, prior, design, rows, start, stop):
    """Column by weight among those that vary in ``rows[start:stop]``; at least one must.

    Rejection sampling from the unconditional weights; after p rejections the columns that vary are
    listed instead, which gives the same distribution.
    """
    weights, cumulative = prior.weights, prior.cumulative
    p = weights.size
    total = cumulative[p - 1]
    for _ in range(p):
        j = np.searchsorted(cumulative, rng.random() * total, side="right")
        if j < p and column_varies(design, j, rows, start, stop):
            return j
    total, varying = 0.0, np.zeros(p)
    for j in range(p):
        if column_varies(design, j, rows, start, stop):
            varying[j] = weights[j]
            total += weights[j]
    return draw_by_weight(varying, 0, p, rng.random() * total)


@njit(cache=True)
def _node_summary(prior, design, rows, start, stop):
    return not any_column_varies(design, rows, start, stop), 0.0


@njit(cache=True)
def _node_summary_of_set(prior, design, rows):
    return not any_set_varies(design, rows), 0.0


@njit(cache=True)
def _draw_set_column(rng, prior, design, rows):
    """`draw_column` for rows stored as bits."""
    weights, cumulative = prior.weights, prior.cumulative
    p = weights.size
    total = cumulative[p - 1]
    for _ in range(p):
        j = np.searchsorted(cumulative, rng.random() * total, side="right")
        if j < p and set_varies(design, j, rows):
            return j
    total, drawn = 0.0, -1
    for j in range(p):
        if set_varies(design, j, rows):
            total += weights[j]
    point = rng.random() * total
    for j in range(p):
        if weights[j] > 0.0 and set_varies(design, j, rows):
            drawn = j
            point -= weights[j]
            if point < 0.0:
                break
    return drawn


@njit(cache=True)
def _log_set_column(prior, design, column, log_cut, rate, rows):
    weights = prior.weights
    total = 0.0
    for j in range(weights.size):
        if set_varies(design, j, rows):
            total += weights[j]
    return np.log(weights[column] / total)


@njit(cache=True)
def _no_time(rng, prior, place):
    return 0.0


@njit(cache=True)
def _log_split_at(prior, place, time):
    return log_split(prior, place)


@njit(cache=True)
def _log_column(prior, design, column, log_cut, rate, rows, start, stop):
    return log_column_probability(design, prior.weights, column, rows, start, stop)


@njit(cache=True)
def _column_weight(prior, column, extent):
    return prior.weights[column]


@njit(cache=True)
def _any_time(prior, place, time):
    return True


@njit(cache=True)
def _no_time_terms(prior, trees, nodes, terms):
    pass


@njit(cache=True)
def _renew_no_times(rng, prior, trees, nodes):
    pass


def register_by_depth(prior: type, *, log_split: Callable, log_stop: Callable) -> None:
    """Register the kernels of such a prior.

    Parameters
    ----------
    prior : NamedTuple type
        Its settings, with ``weights`` and ``cumulative``.
    log_split, log_stop : kernel
        ``(prior, place)``, as in `contract.PriorKernels`.
    """
    register(
        prior,
        node_summary=_node_summary,
        log_split=log_split,
        log_stop=log_stop,
        draw_time=_no_time,
        log_split_at=_log_split_at,
        draw_column=draw_column,
        log_column=_log_column,
        column_weight=_column_weight,
        is_time=_any_time,
        add_time_terms=_no_time_terms,
        renew_times=_renew_no_times,
        node_summary_of_set=_node_summary_of_set,
        draw_set_column=_draw_set_column,
        log_set_column=_log_set_column,
    )
