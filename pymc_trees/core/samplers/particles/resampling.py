"""Ancestors of a new generation, given that child 0 has ancestor 0.

The conditional distribution of each scheme (Chopin and Singh 2015, section 4). Before a systematic
or stratified draw the particles are put in a random order: a child's ancestor is then distributed
by the weights, independently of the index of the reference. Given that child 0 copies particle 0,
the point that generated it is uniform over particle 0's share of the unit interval; it determines
the common uniform of a systematic draw, but only its own stratum of a stratified one. An ordinary
draw with particle 0 added would not be invariant.
"""

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.random import draw_by_weight, pick

MULTINOMIAL, SYSTEMATIC, STRATIFIED = 0, 1, 2
SCHEMES = ("multinomial", "systematic", "stratified")


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
