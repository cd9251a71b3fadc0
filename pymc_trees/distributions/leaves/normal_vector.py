"""K normal values a leaf: outputs that share their trees."""

from dataclasses import dataclass

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.graph.basic import Variable

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.leaves.normal_vector import NormalVectorPrior
from pymc_trees.distributions.leaves.contract import LeafPrior, register_leaf


@njit(cache=True)
def _prior(mean, sd):
    return NormalVectorPrior(np.ascontiguousarray(mean), np.ascontiguousarray(sd))


@register_leaf
@dataclass(frozen=True, eq=False)
class NormalVectorLeaf(LeafPrior):
    """`NormalLeaf` of K outputs that share their trees, as the random variable takes it."""

    mean: Variable
    sd: Variable
    k: int

    name = "normal_vector"
    signatures = ("(k)", "(k)")
    prior = staticmethod(_prior)
    in_sums = any_likelihood = True

    @classmethod
    def of(cls, mean, sd, n_outputs: int) -> "NormalVectorLeaf":
        """For all outputs, from one setting for all of them or one for each."""
        return cls(for_each(mean, n_outputs), for_each(sd, n_outputs), n_outputs)

    @property
    def parameters(self) -> tuple:
        """Inputs of the random variable."""
        return (self.mean, self.sd)

    @property
    def n_values(self) -> int:
        """Values per leaf."""
        return self.k

    @staticmethod
    def logp(values, mean, sd):
        """Log-density of leaf values."""
        return pm.logp(pm.Normal.dist(mean, sd), values)

    @staticmethod
    def initial_value(k, mean, sd):
        """Their means."""
        return [mean[j] for j in range(k)]

    @staticmethod
    def initial_spread(k, mean, sd):
        """Their sds."""
        return [sd[j] for j in range(k)]

    @staticmethod
    def functions(outputs):
        """One function, (K, n)."""
        return outputs.T


def for_each(value, n_values):
    """A setting as a vector: one for all, or one for each."""
    if isinstance(value, Variable):
        return value if value.ndim else pt.full((n_values,), value)
    return pt.constant(np.full(n_values, value, dtype=np.float64))
