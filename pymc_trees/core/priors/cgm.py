"""The tree prior of Chipman, George and McCulloch, and priors that share its columns and cuts.

A node at depth d with a valid split splits with probability ``alpha (1 + d)**-beta``
(Lakshminarayanan 2015, eq. 4). The column is drawn by weight among the columns that vary in the
node, its cut uniformly between the extremes of that column there (eq. 5); splits have no times.

Another split probability needs two kernels (`register_by_depth`): such a prior is a NamedTuple with
``weights``, (p,) split weights of which 0 excludes a column, ``cumulative``, their running sums,
and its own settings.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from pymc_trees.core.columns.design import any_column_varies, column_varies
from pymc_trees.core.columns.row_set import any_varies_in_set, varies_in_set
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
    return not any_varies_in_set(design, rows), 0.0


@njit(cache=True)
def _draw_set_column(rng, prior, design, rows):
    """`draw_column` for rows stored as bits."""
    weights, cumulative = prior.weights, prior.cumulative
    p = weights.size
    total = cumulative[p - 1]
    for _ in range(p):
        j = np.searchsorted(cumulative, rng.random() * total, side="right")
        if j < p and varies_in_set(design, j, rows):
            return j
    total, drawn = 0.0, -1
    for j in range(p):
        if varies_in_set(design, j, rows):
            total += weights[j]
    point = rng.random() * total
    for j in range(p):
        if weights[j] > 0.0 and varies_in_set(design, j, rows):
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
        if varies_in_set(design, j, rows):
            total += weights[j]
    return np.log(weights[column] / total)


@njit(cache=True)
def _no_time(rng, prior, context):
    return 0.0


@njit(cache=True)
def _log_split_at(prior, context, time):
    return log_split(prior, context)


@njit(cache=True)
def _log_column(prior, design, column, log_cut, rate, rows, start, stop):
    return log_column_probability(design, prior.weights, column, rows, start, stop)


@njit(cache=True)
def _column_weight(prior, column, extent):
    return prior.weights[column]


@njit(cache=True)
def _any_time(prior, context, time):
    return True


@njit(cache=True)
def _no_time_terms(prior, trees, nodes, terms):
    pass


@njit(cache=True)
def _resample_no_times(rng, prior, trees, nodes):
    pass


def register_by_depth(prior: type, *, log_split: Callable, log_stop: Callable) -> None:
    """Register the kernels of such a prior.

    Parameters
    ----------
    prior : NamedTuple type
        Its settings, with ``weights`` and ``cumulative``.
    log_split, log_stop : kernel
        ``(prior, context)``, as in `contract.PriorKernels`.
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
        is_valid_time=_any_time,
        add_time_terms=_no_time_terms,
        resample_times=_resample_no_times,
        node_summary_of_set=_node_summary_of_set,
        draw_set_column=_draw_set_column,
        log_set_column=_log_set_column,
    )


# --------------------- The prior of Chipman, George and McCulloch, conditional on the training rows


class CGMPrior(NamedTuple):
    """Settings, and log probabilities by depth."""

    alpha: float
    beta: float
    weights: np.ndarray
    """(p,) split weights, not necessarily normalised; 0 excludes a column."""
    cumulative: np.ndarray
    """(p,) their running sums."""
    log_splits: np.ndarray
    """(64,) log probability to split at each depth."""
    log_stops: np.ndarray
    """(64,) log probability to stop there although a split is valid."""


@njit(cache=True)
def make_prior(alpha, beta, weights):
    """Prior with these settings."""
    depth = np.arange(64)
    log_splits = np.log(alpha) - beta * np.log1p(depth)
    return CGMPrior(
        alpha, beta, weights, np.cumsum(weights), log_splits, np.log1p(-np.exp(log_splits))
    )


@njit(cache=True)
def _log_split(prior, context):
    """Log probability that a node with a valid split splits, eq. 4."""
    depth = context.depth
    if depth < 64:
        return prior.log_splits[depth]
    return np.log(prior.alpha) - prior.beta * np.log1p(depth)


@njit(cache=True)
def _log_stop(prior, context):
    """Log probability that a node is a leaf; without a valid split it must be one."""
    depth = context.depth
    if context.unsplittable:
        return 0.0
    if depth < 64:
        return prior.log_stops[depth]
    return np.log1p(-prior.alpha * (1.0 + depth) ** -prior.beta)


register_by_depth(CGMPrior, log_split=_log_split, log_stop=_log_stop)
