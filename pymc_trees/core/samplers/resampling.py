"""Ancestors of a new generation, given that child 0 has ancestor 0.

The conditional law of each scheme (Chopin and Singh 2015, section 4): systematic and stratified
draws are followed by a random cyclic shift, without which a child's ancestor would not have the
weights as its law, and the whole is conditioned on child 0 being a copy of particle 0. Pinning
particle 0 beside an ordinary draw is not invariant.
"""

import numpy as np
from numba import njit

from pymc_trees.core.moves.census import pick

MULTINOMIAL, SYSTEMATIC, STRATIFIED = 0, 1, 2
SCHEMES = ("multinomial", "systematic", "stratified")


@njit(cache=True)
def inverse_cdf(weights, point):
    """Particle whose share of the unit interval holds ``point``."""
    last = 0
    for c in range(weights.size):
        if weights[c] > 0.0:
            last = c
            point -= weights[c]
            if point < 0.0:
                break
    return last


@njit(cache=True)
def resample_given_first(rng, scheme, weights, ancestors):
    """Write ancestors of all children; ``ancestors[0]`` is 0.

    Parameters
    ----------
    scheme : int
        Index in `SCHEMES`.
    weights : (C,) float64
        Normalised; ``weights[0]`` is positive.
    ancestors : (C,) int64
        Overwritten.
    """
    n = weights.size
    if scheme == SYSTEMATIC:
        _systematic(rng, weights, ancestors)
    elif scheme == STRATIFIED:
        _stratified(rng, weights, ancestors)
    else:
        for c in range(n):
            ancestors[c] = inverse_cdf(weights, rng.random())
    ancestors[0] = 0


@njit(cache=True)
def _systematic(rng, weights, ancestors):
    # The common uniform U has density proportional to the children of particle 0 it gives:
    # floor(n w) + 1 for U below the fraction of n w, floor(n w) above.
    n = weights.size
    expected = n * weights[0]
    whole = np.floor(expected)
    fraction = expected - whole
    if rng.random() * expected < fraction * (whole + 1.0):
        u = rng.random() * fraction
    else:
        u = fraction + rng.random() * (1.0 - fraction)
    straight = np.empty(n, dtype=np.int64)
    children = 0
    for i in range(n):
        straight[i] = inverse_cdf(weights, (u + i) / n)
        children += straight[i] == 0
    if children == 0:  # rounding at the edge of particle 0's share
        straight[0] = 0
        children = 1
    # particle 0's children are the first ones: shift by one of them
    shift = pick(rng, children)
    for i in range(n):
        ancestors[i] = straight[(i + shift) % n]


@njit(cache=True)
def _stratified(rng, weights, ancestors):
    # Child 0 sits in stratum s with probability proportional to the part of the stratum that
    # belongs to particle 0; its point is uniform there, the other strata are free.
    n = weights.size
    expected = n * weights[0]
    place = rng.random() * expected
    stratum = min(int(place), n - 1)
    for i in range(1, n):
        s = (stratum + i) % n
        ancestors[i] = inverse_cdf(weights, (s + rng.random()) / n)
    ancestors[0] = 0
