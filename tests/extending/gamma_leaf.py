"""A leaf of counts: ``rate ~ Gamma(a, rate b)``, ``y_i ~ Poisson(rate)`` for the rows of the leaf.

With n rows of sum S, integrating the rate out,

    p(y) = b**a / Gamma(a) * Gamma(a + S) / (b + n)**(a + S) / prod y_i!
    rate | y ~ Gamma(a + S, rate b + n)

where the factorials do not depend on how the rows are shared out among leaves.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pymc as pm
from pytensor.tensor.random.basic import PoissonRV

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.leaves.contract import register_sums
from pymc_trees.distributions.leaves.contract import LeafPrior, check_positive, register_leaf
from pymc_trees.targets.likelihoods.contract import (
    ConjugateLikelihood,
    refusal,
    register_likelihood,
)
from pymc_trees.targets.likelihoods.expressions import unwrapped_column

# 1. What kernels answer: a NamedTuple whose type chooses them.


class GammaData(NamedTuple):
    """A gamma leaf and the counts it sees."""

    a: float
    b: float
    y: np.ndarray
    """(n,) counts; (0,) without data."""


@njit(cache=True)
def _n_stats(leaf):
    return 2  # n, S


@njit(cache=True)
def _add_row(leaf, i, stats):
    if leaf.y.size > 0:
        stats[0] += 1.0
        stats[1] += leaf.y[i]


@njit(cache=True)
def _log_row(leaf, i, output):
    if leaf.y.size == 0:
        return 0.0
    return leaf.y[i] * np.log(output[0]) - output[0] - math.lgamma(leaf.y[i] + 1.0)


@njit(cache=True)
def _log_marginal(leaf, stats):
    a, b, n, s = leaf.a, leaf.b, stats[0], stats[1]
    return a * np.log(b) - math.lgamma(a) + math.lgamma(a + s) - (a + s) * np.log(b + n)


@njit(cache=True)
def _draw_values(leaf, rng, stats, out):
    out[0] = rng.standard_gamma(leaf.a + stats[1]) / (leaf.b + stats[0])


def _log_constant(leaf):
    return -float(sum(math.lgamma(y + 1.0) for y in leaf.y))


register_sums(
    GammaData,
    n_stats=_n_stats,
    add_row=_add_row,
    log_row=_log_row,
    log_marginal=_log_marginal,
    draw_values=_draw_values,
    log_constant=_log_constant,
)


# 2. What a user writes: the settings, and the density of the values.


@njit(cache=True)
def _prior(a, b):
    return GammaData(a, b, np.empty(0))


@register_leaf
@dataclass(frozen=True, eq=False)
class GammaLeaf(LeafPrior):
    """Rate of each leaf of a single tree; ``a`` and ``b`` are positive numbers or variables."""

    a: Any
    b: Any

    name = "example_gamma"
    signatures = ("()", "()")
    prior = staticmethod(_prior)

    def __post_init__(self):
        check_positive(self, ["a", "b"])

    @property
    def parameters(self):
        """Inputs of the random variable."""
        return (self.a, self.b)

    @property
    def n_values(self):
        """Values per leaf."""
        return 1

    @staticmethod
    def logp(values, a, b):
        """Log-density of (L, 1) leaf values."""
        return pm.logp(pm.Gamma.dist(a, b), values[:, 0])

    @staticmethod
    def initial_value(k, a, b):
        """Where chains start."""
        return [a / b]

    @staticmethod
    def functions(outputs):
        """What `DecisionTree` returns."""
        return outputs[:, 0]


# 3. Which likelihood integrates the values out, read off the model.


@register_likelihood("example_gamma")
class PoissonLikelihood(ConjugateLikelihood):
    """``pm.Poisson(mu=rate)`` with the tree itself."""

    supported = "a GammaLeaf tree in pm.Poisson(mu=mu)"
    n_stats = 2

    def read(self, term):
        """The observed counts, when the mean is the tree and nothing else."""
        if not isinstance(term.rv.owner.op, PoissonRV):
            raise refusal(term.graph, f"{term.rv.name} is {term.distribution}")
        [rate], outputs = term.opened()
        if unwrapped_column(rate, outputs) != 0:
            raise refusal(term.graph, f"the mean of {term.rv.name} is not the tree itself")
        return [term.value], outputs

    def leaf_data(self, settings, seen, fit):
        """The leaf model at a point."""
        a, b = settings.leaf
        return GammaData(a, b, np.empty(0) if seen is None else self.rows(*seen)), None
