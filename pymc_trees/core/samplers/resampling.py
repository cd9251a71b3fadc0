"""Weights of particles on the log scale, and the ancestors of a new generation.

A scheme gives particle c, of normalised weight w_c, C w_c children on average, which suffices for
an unbiased evidence (Douc, Cappe and Moulines 2005).

multinomial
    C independent draws by weight.
systematic
    The points ``(c + u) / C`` of the cumulative weights, with one uniform u for all.
stratified
    The same, with a separate uniform for each point.
residual
    The integer part of ``C w_c`` children for certain, and multinomial draws from the remaining
    weights for the rest; not implemented given a reference particle.
"""

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.random import draw_by_weight, pick

MULTINOMIAL, SYSTEMATIC, STRATIFIED, RESIDUAL = 0, 1, 2, 3
SCHEMES = ("multinomial", "systematic", "stratified", "residual")
CONDITIONAL_SCHEMES = SCHEMES[:RESIDUAL]
"""Schemes of `resample_given_first`."""


@njit(cache=True)
def log_sum_exp(log_w):
    """Log of the sum of exponentials; -inf if every term is -inf."""
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
def draw_ancestors(rng, scheme, weights, ancestors):
    """Write the ancestors of ``ancestors.size`` children, in no particular order.

    Parameters
    ----------
    scheme : int
        Index in `SCHEMES`.
    weights : (C,) float64
        Normalised.
    ancestors : (N,) int64
        Overwritten.
    """
    n = ancestors.size
    if scheme == MULTINOMIAL:
        _multinomial(rng, weights, ancestors)
    elif scheme == RESIDUAL:
        remainder = np.empty(weights.size)
        n_fixed = 0
        for c in range(weights.size):
            n_copies = min(int(n * weights[c]), n - n_fixed)
            ancestors[n_fixed : n_fixed + n_copies] = c
            n_fixed += n_copies
            remainder[c] = max(n * weights[c] - n_copies, 0.0)
        if n_fixed < n:
            remainder /= remainder.sum()
            _multinomial(rng, remainder, ancestors[n_fixed:])
    else:
        u = rng.random()
        c, cumulative = 0, weights[0]
        for k in range(n):
            if k > 0 and scheme != SYSTEMATIC:
                u = rng.random()
            while cumulative * n <= k + u and c < weights.size - 1:
                c += 1
                cumulative += weights[c]
            while weights[c] == 0.0:  # rounding at the very end
                c -= 1
            ancestors[k] = c


@njit(cache=True)
def _multinomial(rng, weights, ancestors):
    cumulative = np.cumsum(weights)
    total = cumulative[-1]
    for k in range(ancestors.size):
        c = np.searchsorted(cumulative, rng.random() * total, side="right")
        while c >= weights.size or weights[c] == 0.0:  # rounding
            c -= 1
        ancestors[k] = c


# ------------------------------------------------ Conditional SMC: particle 0 is the reference tree


@njit(cache=True)
def resample_given_first(rng, scheme, weights, ancestors):
    """Write ancestors of all children given that ``ancestors[0]`` is 0.

    Each scheme is drawn from its conditional distribution (Chopin and Singh 2015, section 4); an
    ordinary draw with particle 0 added would not be invariant. Before a systematic or stratified
    draw the particles are put in a random order, so that a child's ancestor follows the weights
    whatever the index of the reference. Given that child 0 copies particle 0, the point that
    generated it is uniform over particle 0's share of the unit interval; it determines the common
    uniform of a systematic draw, but only its own stratum of a stratified one.

    Parameters
    ----------
    scheme : int
        Index in `CONDITIONAL_SCHEMES`.
    weights : (C,) float64
        Normalised; ``weights[0]`` is positive.
    ancestors : (C,) int64
        Overwritten.
    """
    n = weights.size
    ancestors[0] = 0
    if scheme == MULTINOMIAL:
        for c in range(1, n):
            ancestors[c] = draw_by_weight(weights, 0, n, rng.random())
        return
    order = np.arange(n)
    for c in range(n - 1):
        other = c + pick(rng, n - c)
        order[c], order[other] = order[other], order[c]
    ordered = weights[order]
    before = 0.0
    for c in range(n):
        if order[c] == 0:
            break
        before += ordered[c]
    point = n * (before + rng.random() * weights[0])
    stratum = min(int(point), n - 1)
    for c in range(1, n):
        u = point - stratum if scheme == SYSTEMATIC else rng.random()
        point_c = ((stratum + c) % n + u) / n
        ancestors[c] = order[draw_by_weight(ordered, 0, n, point_c)]


@njit(cache=True)
def forced_move(rng, weights):
    """Particle 0, or another one drawn so that the weights stay invariant.

    Metropolised Gibbs: a particle k other than 0 is proposed by weight and accepted with
    probability ``min(1, (1 - w_0) / (1 - w_k))``. This leaves particle 0 at least as often as a
    draw by weight does (Chopin and Singh 2015, section 3; Liu 1996); with two particles it is the
    Metropolis-Hastings decision ``min(1, w_1 / w_0)``.
    """
    others = 1.0 - weights[0]
    if not others > 0.0:
        return 0
    k = draw_by_weight(weights, 1, weights.size, rng.random() * others)
    if k < 0 or rng.random() * (1.0 - weights[k]) >= others:
        return 0
    return k
