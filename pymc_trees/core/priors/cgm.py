"""The tree prior of Chipman, George and McCulloch, conditional on the training rows.

A node at depth d with a valid split splits with probability ``alpha (1 + d)**-beta``
(Lakshminarayanan 2015, eq. 4); columns and cuts are those of `by_depth`.
"""

from typing import NamedTuple

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.priors.by_depth import register_by_depth


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
def log_split(prior, place):
    """Log probability that a node with a valid split splits, eq. 4."""
    depth = place.depth
    if depth < 64:
        return prior.log_splits[depth]
    return np.log(prior.alpha) - prior.beta * np.log1p(depth)


@njit(cache=True)
def log_stop(prior, place):
    """Log probability that a node is a leaf: 1 when it has no valid split."""
    depth = place.depth
    if place.unsplittable:
        return 0.0
    if depth < 64:
        return prior.log_stops[depth]
    return np.log1p(-prior.alpha * (1.0 + depth) ** -prior.beta)


register_by_depth(CGMPrior, log_split=log_split, log_stop=log_stop)
