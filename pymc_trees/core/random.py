"""Decisions by a random generator: a candidate, an acceptance."""

import numpy as np

from pymc_trees.core.compile.cache import njit


@njit(cache=True, inline="always")
def pick(rng, n):
    """Whole number uniform over ``0 .. n - 1``."""
    return min(int(rng.random() * n), n - 1)


@njit(cache=True, inline="always")
def accepts(rng, log_ratio):
    """Metropolis-Hastings decision; a ratio that is NaN is refused."""
    return np.log(rng.random()) < log_ratio
