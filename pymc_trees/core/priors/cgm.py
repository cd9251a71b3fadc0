"""The tree prior of Chipman, George and McCulloch, conditional on the training rows.

A node at depth d with a valid split splits with probability ``alpha (1 + d)**-beta``
(Lakshminarayanan 2015, eq. 4); its column is drawn by weight among the columns that vary in the
node, its cut uniformly between the extremes of that column there (eq. 5).
"""

from typing import NamedTuple

import numpy as np

from pymc_trees.core.columns.design import any_column_varies, column_varies, parts_vary
from pymc_trees.core.columns.rules import log_column_probability
from pymc_trees.core.compile.cache import njit
from pymc_trees.core.priors.contract import register
from pymc_trees.core.random import draw_by_weight


class CGMPrior(NamedTuple):
    """Numbers of the prior."""

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
    """Prior with the given numbers."""
    depth = np.arange(64)
    log_splits = np.log(alpha) - beta * np.log1p(depth)
    return CGMPrior(
        alpha, beta, weights, np.cumsum(weights), log_splits, np.log1p(-np.exp(log_splits))
    )


@njit(cache=True)
def log_split(prior, depth):
    """Log probability that a node with a valid split splits, eq. 4."""
    if depth < 64:
        return prior.log_splits[depth]
    return np.log(prior.alpha) - prior.beta * np.log1p(depth)


@njit(cache=True)
def log_stop(prior, depth, unsplittable):
    """Log probability that a node is a leaf: 1 when it has no valid split."""
    if unsplittable:
        return 0.0
    if depth < 64:
        return prior.log_stops[depth]
    return np.log1p(-prior.alpha * (1.0 + depth) ** -prior.beta)


@njit(cache=True)
def draw_column(rng, prior, design, rows, start, stop):
    """Column by weight among those that vary in ``rows[start:stop]``; at least one must.

    Refused draws of the unconditional weights leave exactly the conditional ones; after p
    refusals the columns that vary are listed instead, which has the same distribution.
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
def _survey(prior, design, rows, start, stop):
    return not any_column_varies(design, rows, start, stop), 0.0


@njit(cache=True)
def _survey_sides(prior, design, cells, threshold, rows, n):
    left, right = parts_vary(design, cells, threshold, rows, n)
    return not left, not right, 0.0, 0.0


@njit(cache=True)
def _log_split(prior, place):
    return log_split(prior, place.depth)


@njit(cache=True)
def _log_stop(prior, place):
    return log_stop(prior, place.depth, place.unsplittable)


@njit(cache=True)
def _no_time(rng, prior, place):
    return 0.0


@njit(cache=True)
def _log_split_at(prior, place, time):
    return log_split(prior, place.depth)


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


register(
    CGMPrior,
    survey=_survey,
    survey_sides=_survey_sides,
    log_split=_log_split,
    log_stop=_log_stop,
    draw_time=_no_time,
    log_split_at=_log_split_at,
    draw_column=draw_column,
    log_column=_log_column,
    column_weight=_column_weight,
    is_time=_any_time,
    add_time_terms=_no_time_terms,
    renew_times=_renew_no_times,
)
