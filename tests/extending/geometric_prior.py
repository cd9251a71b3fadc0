"""A tree prior whose split probability falls geometrically: ``gamma**(1 + d)`` at depth d.

Rockova and Saha (2019) show that with ``gamma < 1/2`` the posterior of such trees concentrates at
nearly the best rate, which that of Chipman, George and McCulloch is not known to do.
"""

from typing import NamedTuple

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.priors.by_depth import register_by_depth


class GeometricPrior(NamedTuple):
    """Numbers of the prior."""

    gamma: float
    weights: np.ndarray
    """(p,) split weights; 0 excludes a column."""
    cumulative: np.ndarray
    """(p,) their running sums."""


def make_geometric(gamma, weights) -> GeometricPrior:
    """Prior with the given numbers."""
    return GeometricPrior(gamma, weights, np.cumsum(weights))


@njit(cache=True)
def _log_split(prior, place):
    return (1 + place.depth) * np.log(prior.gamma)


@njit(cache=True)
def _log_stop(prior, place):
    return 0.0 if place.unsplittable else np.log1p(-(prior.gamma ** (1 + place.depth)))


register_by_depth(GeometricPrior, log_split=_log_split, log_stop=_log_stop)
