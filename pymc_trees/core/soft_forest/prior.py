"""The prior of a soft tree (Linero and Yang 2018, section 3).

A node at depth d splits with probability ``alpha (1 + d)^-beta``, independently of the rows; its
column is drawn by the split weights among all p, its cut uniformly between the bounds set by the
splits above it on the same column, 0 and 1 without any. The bandwidth of a tree is exponential.
"""

import math
from typing import NamedTuple

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.compile.pointer import by_pointer
from pymc_trees.core.random import draw_by_weight


@by_pointer
class SoftPrior(NamedTuple):
    """Settings of the prior of the trees."""

    alpha: float
    beta: float
    weights: np.ndarray
    """(p,) split weights, 0 for excluded columns; not necessarily normalised."""
    total: float
    """Their sum."""
    bandwidth: float
    """Prior mean of a bandwidth."""


@njit(cache=True)
def make_soft_prior(alpha, beta, weights, bandwidth):
    """Prior with these settings; the sum of the weights includes underflows."""
    total = 0.0
    for j in range(weights.size):
        total += weights[j]
    return SoftPrior(alpha, beta, weights, total, bandwidth)


@njit(cache=True)
def split_probability(prior, depth):
    """Probability that a node at a depth splits."""
    return prior.alpha * (1.0 + depth) ** -prior.beta


@njit(cache=True)
def log_split_ratio(prior, depth):
    """Log probability that a node splits into two leaves, minus that of one leaf there."""
    here, below = split_probability(prior, depth), split_probability(prior, depth + 1)
    return math.log(here) + 2.0 * math.log1p(-below) - math.log1p(-here)


@njit(cache=True)
def bounds_of(column, number, parent, node, j):
    """Bounds of a cut in column j at a node, from the splits above it."""
    low, high = 0.0, 1.0
    while parent[node] >= 0:
        q = parent[node]
        if column[q] == j:
            if node == q + 1:
                high = min(high, number[q])
            else:
                low = max(low, number[q])
        node = q
    return low, high


@njit(cache=True)
def log_cuts(column, number, parent, first, last):
    """Log density of the cuts of the split nodes among ``first .. last - 1``, -inf outside."""
    total = 0.0
    for k in range(first, last):
        if column[k] >= 0:
            low, high = bounds_of(column, number, parent, k, column[k])
            if not low < number[k] < high:
                return -np.inf
            total -= math.log(high - low)
    return total


@njit(cache=True)
def draw_column(rng, prior):
    """Column by the split weights."""
    return draw_by_weight(prior.weights, 0, prior.weights.size, rng.random() * prior.total)


@njit(cache=True)
def draw_cut(rng, column, number, parent, node, j):
    """Cut in column j at a node."""
    low, high = bounds_of(column, number, parent, node, j)
    return low + (high - low) * rng.random()


@njit(cache=True)
def draw_bandwidth(rng, prior):
    """Bandwidth of a tree; never 0."""
    return prior.bandwidth * max(rng.standard_exponential(), 1e-100)
