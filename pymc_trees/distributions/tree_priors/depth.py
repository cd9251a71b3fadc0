"""The default tree prior: split probabilities that fall with depth (Chipman 1998)."""

from dataclasses import dataclass
from typing import Any

import pytensor.tensor as pt

from pymc_trees.core.priors.cgm import make_prior
from pymc_trees.distributions.capacity import default_max_nodes
from pymc_trees.distributions.tree_priors.contract import TreePrior, register_tree_prior


@register_tree_prior
@dataclass(frozen=True, eq=False)
class DepthPrior(TreePrior):
    """A node at depth d that has a valid split splits with probability ``alpha (1 + d)**-beta``."""

    alpha: Any
    beta: Any

    name = "depth"
    kernel = staticmethod(make_prior)

    @property
    def parameters(self):
        """Alpha and beta."""
        return self.alpha, self.beta

    @staticmethod
    def logp(counts, first, second):
        """``sum_d S_d log p_d + sum_d O_d log(1 - p_d)`` (Lakshminarayanan 2015, eq. 4)."""
        depth = pt.arange(counts.splits.shape[0]).astype("float64")
        log_p = pt.log(first) - second * pt.log1p(depth)
        stops = pt.sum(counts.splittable_leaves * pt.log1p(-pt.exp(log_p)))
        return pt.sum(counts.splits * log_p) + stops

    @staticmethod
    def conditions(first, second):
        """Probabilities that do not grow with depth."""
        return [first > 0, first < 1, second >= 0], "0 < alpha < 1, beta >= 0"

    def max_nodes(self, m, X):
        """Three times the prior mean, or what so many rows are worth."""
        return default_max_nodes(m, len(X), self.alpha, self.beta)
