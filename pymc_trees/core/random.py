"""Decisions by a random generator: a candidate, an acceptance, a draw by weight."""

import numpy as np

from pymc_trees.core.compile.cache import njit


@njit(cache=True)
def pick(rng, n):
    """Whole number uniform over ``0 .. n - 1``."""
    return min(int(rng.random() * n), n - 1)


@njit(cache=True)
def accepts(rng, log_ratio):
    """Metropolis-Hastings decision; a ratio that is NaN is refused."""
    return np.log(rng.random()) < log_ratio


@njit(cache=True)
def draw_by_weight(weights, first, end, point):
    """Place in ``first .. end - 1`` whose share of the weights, laid end to end, holds ``point``.

    The last positive weight takes what rounding leaves over; -1 where there is none.
    """
    drawn = -1
    for k in range(first, end):
        if weights[k] > 0.0:
            drawn = k
            point -= weights[k]
            if point < 0.0:
                break
    return drawn
