"""Weights of particles, on the log scale."""

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.random import draw_by_weight


@njit(cache=True)
def log_sum_exp(log_w):
    """Log of the sum of exponentials; -inf when all are."""
    largest = log_w.max()
    if largest == -np.inf:
        return -np.inf
    total = 0.0
    for c in range(log_w.size):
        total += np.exp(log_w[c] - largest)
    return largest + np.log(total)


@njit(cache=True)
def normalise(log_w, weights):
    """Write the normalised weights; return the log of their sum."""
    log_total = log_sum_exp(log_w)
    for c in range(log_w.size):
        weights[c] = np.exp(log_w[c] - log_total)
    return log_total


@njit(cache=True)
def effective_size(weights):
    """Effective number of particles of normalised weights."""
    total = 0.0
    for c in range(weights.size):
        total += weights[c] * weights[c]
    return 1.0 / total


@njit(cache=True)
def forced_move(rng, weights):
    """Particle 0, or another one drawn so that the weights stay invariant.

    Metropolised Gibbs: a particle k other than 0 is proposed by weight and taken with probability
    ``min(1, (1 - w_0) / (1 - w_k))``. It leaves particle 0 at least as often as a draw by weight
    does (Chopin and Singh 2015, section 3; Liu 1996); with two particles it is the
    Metropolis-Hastings decision ``min(1, w_1 / w_0)``.
    """
    others = 1.0 - weights[0]
    if not others > 0.0:
        return 0
    k = draw_by_weight(weights, 1, weights.size, rng.random() * others)
    if k < 0 or rng.random() * (1.0 - weights[k]) >= others:
        return 0
    return k
