"""A tree prior whose split probability falls geometrically: ``gamma**(1 + d)`` at depth d.

Rockova and Saha (2019) show that with ``gamma < 1/2`` the posterior of such trees concentrates at
nearly the best rate, which that of Chipman, George and McCulloch is not known to do.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytensor.tensor as pt

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.priors.cgm import register_by_depth
from pymc_trees.distributions.capacity import default_room
from pymc_trees.distributions.tree_priors.contract import TreePrior, register_tree_prior

# 1. What kernels answer: a NamedTuple whose type chooses them.


class GeometricPrior(NamedTuple):
    """Numbers of the prior."""

    gamma: float
    weights: np.ndarray
    """(p,) split weights; 0 excludes a column."""
    cumulative: np.ndarray
    """(p,) their running sums."""


@njit(cache=True)
def make_geometric(gamma, unused, weights):
    """Prior with the given numbers; a tree prior has two."""
    return GeometricPrior(gamma, weights, np.cumsum(weights))


@njit(cache=True)
def _log_split(prior, context):
    return (1 + context.depth) * np.log(prior.gamma)


@njit(cache=True)
def _log_stop(prior, context):
    return 0.0 if context.unsplittable else np.log1p(-(prior.gamma ** (1 + context.depth)))


register_by_depth(GeometricPrior, log_split=_log_split, log_stop=_log_stop)


# 2. What a user writes: the setting, and the log-probability that PyMC sees.


@register_tree_prior
@dataclass(frozen=True, eq=False)
class Geometric(TreePrior):
    """A node at depth d that has a valid split splits with probability ``gamma**(1 + d)``."""

    gamma: Any

    name = stamp = "example_geometric"
    kernel = staticmethod(make_geometric)

    @property
    def parameters(self):
        """Gamma; the second is not used."""
        return self.gamma, 0.0

    @staticmethod
    def logp(counts, first, second):
        """``sum_d S_d log p_d + sum_d O_d log(1 - p_d)`` with p_d = gamma**(1 + d)."""
        log_p = (1.0 + pt.arange(counts.splits.shape[0])) * pt.log(first)
        stops = pt.sum(counts.splittable_leaves * pt.log1p(-pt.exp(log_p)))
        return pt.sum(counts.splits * log_p) + stops

    @staticmethod
    def conditions(first, second):
        """A probability."""
        return [first > 0, first < 1], "0 < gamma < 1"

    def max_nodes(self, m, X):
        """Room for three times the mean of a process that never runs out of rows, if finite."""
        return default_room(m, len(X), 2.0 * len(X) - 1.0)
