"""A conjugate leaf that is no part of the package: its kernels, its prior, its likelihood."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pymc as pm
import pytest
from pytensor.tensor.random.basic import PoissonRV
from support.small_models import sample, step_data

import pymc_trees as pmt
from pymc_trees.core.compile.cache import njit
from pymc_trees.core.leaves.contract import register
from pymc_trees.distributions.leaves.contract import LeafPrior, check_positive, register_leaf
from pymc_trees.targets.choose import read_target
from pymc_trees.targets.conjugate.columns import unwrapped_column
from pymc_trees.targets.conjugate.contract import ConjugateLikelihood, refusal, register_likelihood
from pymc_trees.targets.errors import NotConjugateError

pytestmark = pytest.mark.usefixtures("quick_compile")
X, _ = step_data(40)
Y = np.random.default_rng(1).poisson(np.where(X[:, 0] > 0.5, 9.0, 2.0))


class GammaData(NamedTuple):
    """``lam ~ Gamma(a, rate=b)``, ``y ~ Poisson(lam)``; statistics: rows, and their sum."""

    a: float
    b: float
    y: np.ndarray


@njit(cache=True)
def _prior(a, b):
    return GammaData(a, b, np.empty(0))


@njit(cache=True)
def _n_stats(leaf):
    return 2


@njit(cache=True)
def _next_tree(leaf, trees, old, new, nodes, n_nodes, stats):
    if new < 0:
        return
    for k in range(n_nodes):
        stats[nodes[k]] = 0.0
    for i in range(leaf.y.size):
        stats[trees.leaf_of[new, i], 0] += 1.0
        stats[trees.leaf_of[new, i], 1] += leaf.y[i]


@njit(cache=True)
def _add_rows(leaf, rows, start, stop, out):
    out[:] = 0.0
    if leaf.y.size > 0:
        for k in range(start, stop):
            out[0] += 1.0
            out[1] += leaf.y[rows[k]]


@njit(cache=True)
def _add_sides(leaf, cells, cut, rows, n, left, right):
    left[:] = 0.0
    right[:] = 0.0
    n_left = 0
    for k in range(n):
        is_left = cells[rows[k]] <= cut
        n_left += is_left
        if leaf.y.size > 0:
            out = left if is_left else right
            out[0] += 1.0
            out[1] += leaf.y[rows[k]]
    return n_left


@njit(cache=True)
def _log_marginal(leaf, stats):
    n, total = stats[0], stats[1]
    return (
        leaf.a * np.log(leaf.b)
        - math.lgamma(leaf.a)
        + math.lgamma(leaf.a + total)
        - (leaf.a + total) * np.log(leaf.b + n)
    )


@njit(cache=True)
def _draw_values(leaf, rng, stats, out):
    out[0] = rng.standard_gamma(leaf.a + stats[1]) / (leaf.b + stats[0])


@njit(cache=True)
def _log_likelihood(leaf, trees):
    total = 0.0
    for i in range(leaf.y.size):
        rate = trees.values[trees.leaf_of[0, i], 0]
        total += leaf.y[i] * np.log(rate) - rate - math.lgamma(leaf.y[i] + 1.0)
    return total


register(
    GammaData,
    n_stats=_n_stats,
    next_tree=_next_tree,
    add_rows=_add_rows,
    add_sides=_add_sides,
    log_marginal=_log_marginal,
    draw_values=_draw_values,
    log_likelihood=_log_likelihood,
)


@register_leaf
@dataclass(frozen=True, eq=False)
class GammaLeaf(LeafPrior):
    """Rate of each leaf."""

    a: Any
    b: Any

    name = "tests_gamma"
    signatures = ("()", "()")
    prior = staticmethod(_prior)

    def __post_init__(self):
        check_positive(self, ["a", "b"])

    @property
    def parameters(self):
        return (self.a, self.b)

    @property
    def n_values(self):
        return 1

    @staticmethod
    def logp(values, a, b):
        return pm.logp(pm.Gamma.dist(a, b), values[:, 0])

    @staticmethod
    def initial_value(k, a, b):
        return [a / b]

    @staticmethod
    def functions(outputs):
        return outputs[:, 0]


@register_likelihood("tests_gamma")
class PoissonLikelihood(ConjugateLikelihood):
    treated = "a GammaLeaf tree in pm.Poisson(mu=mu)"
    n_stats = 2

    def read(self, term):
        if not isinstance(term.rv.owner.op, PoissonRV):
            raise refusal(term.graph, f"{term.rv.name} is {term.says}")
        [rate], outputs = term.opened(2)
        if unwrapped_column(rate, outputs) != 0:
            raise refusal(term.graph, f"the mean of {term.rv.name} is not the tree itself")
        return [term.value], outputs

    def leaf_data(self, settings, seen, fit):
        a, b = settings.leaf
        return GammaData(a, b, np.empty(0) if seen is None else self.rows(*seen)), None


def test_it_is_sampled():
    with pm.Model() as model:
        rate = pmt.DecisionTree("rate", X, leaf=GammaLeaf(1.0, 0.2))
        pm.Poisson("y", rate, observed=Y)
        assert isinstance(read_target(model, model["rate_forest"]).likelihood, PoissonLikelihood)
        idata = sample(50, 50, step=[pmt.GrowPrune()])
    found = idata.posterior["rate"].mean(("chain", "draw")).values
    high = X[:, 0] > 0.5
    assert 6.0 < found[high].mean() < 12.0 and 1.0 < found[~high].mean() < 4.0


def test_its_refusal_says_what_is_treated():
    with pm.Model() as model:
        rate = pmt.DecisionTree("rate", X, leaf=GammaLeaf(1.0, 0.2))
        pm.Normal("y", rate, 1.0, observed=Y)
        with pytest.raises(NotConjugateError, match=r"y is pm.Normal.*a GammaLeaf tree in pm.Pois"):
            read_target(model, model["rate_forest"])


def test_a_leaf_of_a_single_tree():
    with pm.Model(), pytest.raises(ValueError, match="a GammaLeaf belongs to a single tree"):
        pmt.BART("rate", X, leaf=GammaLeaf(1.0, 0.2), m=2)


def test_a_leaf_without_a_likelihood():
    @register_leaf
    @dataclass(frozen=True, eq=False)
    class Lonely(GammaLeaf):
        name = "tests_lonely"

    with pm.Model() as model:
        rate = pmt.DecisionTree("rate", X, leaf=Lonely(1.0, 0.2))
        pm.Poisson("y", rate, observed=Y)
        with pytest.raises(NotConjugateError, match="no likelihood is registered for a Lonely"):
            read_target(model, model["rate_forest"])
