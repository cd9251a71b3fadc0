"""Ancestors of a new generation of particles.

Every scheme gives particle c, of normalised weight w_c, C w_c children on average, which suffices
for an unbiased evidence (Douc, Cappe and Moulines 2005). `resampling` has the schemes given a
reference particle.

multinomial
    C independent draws by weight.
systematic
    The points ``(c + u) / C`` of the cumulated weights, with one uniform u for all.
stratified
    The same, with a uniform of its own for each point.
residual
    The integer part of ``C w_c`` children for certain; the others by multinomial draws from the
    remaining weights.
"""

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.samplers.particles.resampling import MULTINOMIAL, SYSTEMATIC
from pymc_trees.core.samplers.particles.resampling import SCHEMES as CONDITIONAL

RESIDUAL = 3
SCHEMES = (*CONDITIONAL, "residual")


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
        left = np.empty(weights.size)
        certain = 0
        for c in range(weights.size):
            whole = min(int(n * weights[c]), n - certain)
            ancestors[certain : certain + whole] = c
            certain += whole
            left[c] = max(n * weights[c] - whole, 0.0)
        if certain < n:
            left /= left.sum()
            _multinomial(rng, left, ancestors[certain:])
    else:
        u = rng.random()
        c, reached = 0, weights[0]
        for k in range(n):
            if k > 0 and scheme != SYSTEMATIC:
                u = rng.random()
            while reached * n <= k + u and c < weights.size - 1:
                c += 1
                reached += weights[c]
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
