"""A conjugate leaf that is no part of the package: exact, refused and sampled like those of it."""

from dataclasses import dataclass

import numpy as np
import pymc as pm
import pytest
from scipy import stats
from support import oracle as o
from support.chains import CGM, Setup, design_of, partition_of, run_chain, weights_of
from support.naive.batches import batch_means, frequencies, gap, law_gap
from support.naive.laws import PROBLEMS
from support.small_models import sample, step_data

import pymc_trees as pmt
from extending.gamma_leaf import GammaData, GammaLeaf, PoissonLikelihood
from pymc_trees.core.forest.trees import make_trees
from pymc_trees.core.moves.problem import make_workspace
from pymc_trees.core.priors.cgm import make_prior
from pymc_trees.distributions.leaves.contract import register_leaf
from pymc_trees.targets.choose import read_target
from pymc_trees.targets.graph import NotConjugateError

X, _ = step_data(40)
Y = np.random.default_rng(1).poisson(np.where(X[:, 0] > 0.5, 9.0, 2.0))
A, B, BATCHES = 1.5, 0.4, 60


def log_evidence(counts):
    """Log p(counts) of a leaf, by the chain rule: each count is negative binomial given the others.

    An independent way to the formula of the example.
    """
    total = 0.0
    for k, count in enumerate(counts):
        a, b = A + sum(counts[:k]), B + k
        total += stats.nbinom.logpmf(count, a, b / (b + 1.0))
    return total


@pytest.mark.full
def test_it_leaves_the_listed_posterior_invariant():
    """60,000 sweeps; thresholds as in `laws/test_exact_posterior`."""
    problem = PROBLEMS["gaps"]
    n = problem.n
    counts = np.random.default_rng(2).poisson(np.linspace(1.0, 6.0, n)).astype(float)
    prior = o.partition_prior(problem.X, **problem.prior)
    log_p = {
        state: np.log(p) + sum(log_evidence([counts[i] for i in sorted(rows)]) for rows in state)
        for state, p in prior.items()
    }
    largest = max(log_p.values())
    total = sum(np.exp(v - largest) for v in log_p.values())
    exact = {state: float(np.exp(v - largest)) / total for state, v in log_p.items()}

    trees = make_trees(1, 2 * n - 1, 1, n)
    trees.values[0] = 1.0
    weights = weights_of(problem, problem.X.shape[1])
    tree_prior = make_prior(problem.prior["alpha"], problem.prior["beta"], weights)
    leaf = GammaData(A, B, counts)
    design = design_of(problem)
    setup = Setup(trees, design, tree_prior, leaf, make_workspace(2 * n - 1, 2, design))
    chain = run_chain(5, setup, CGM, 60_000, keep_fits=True)

    codes, shares = frequencies(chain.codes[:, 0], BATCHES)
    found = law_gap([partition_of(code, n) for code in codes], shares, exact, len(chain.codes))
    assert found.within(6.0, 0.03), found
    means = np.zeros(n)
    for state, p in exact.items():
        for rows in state:
            value = (A + counts[list(rows)].sum()) / (B + len(rows))
            means[list(rows)] += p * value
    found = gap(batch_means(chain.fits[:, :, 0], BATCHES), means)
    assert found.within(6.0, 0.1), found


@pytest.mark.full
@pytest.mark.usefixtures("quick_compile")
def test_it_is_sampled():
    with pm.Model() as model:
        rate = pmt.DecisionTree("rate", X, leaf=GammaLeaf(1.0, 0.2))
        pm.Poisson("y", rate, observed=Y)
        assert isinstance(read_target(model, model["rate_forest"]).likelihood, PoissonLikelihood)
        idata = sample(50, 50, step=[pmt.GrowPrune()])
    found = idata.posterior["rate"].mean(("chain", "draw")).values
    high = X[:, 0] > 0.5
    assert 6.0 < found[high].mean() < 12.0 and 1.0 < found[~high].mean() < 4.0


@pytest.mark.usefixtures("quick_compile")
def test_its_refusal_says_what_is_treated():
    with pm.Model() as model:
        rate = pmt.DecisionTree("rate", X, leaf=GammaLeaf(1.0, 0.2))
        pm.Normal("y", rate, 1.0, observed=Y)
        with pytest.raises(NotConjugateError, match=r"y is pm.Normal.*a GammaLeaf tree in pm.Pois"):
            read_target(model, model["rate_forest"])


def test_a_leaf_of_a_single_tree():
    with pm.Model(), pytest.raises(ValueError, match="a GammaLeaf is for a single tree"):
        pmt.BART("rate", X, leaf=GammaLeaf(1.0, 0.2), m=2)


@pytest.mark.usefixtures("quick_compile")
def test_a_leaf_without_a_likelihood():
    @register_leaf
    @dataclass(frozen=True, eq=False)
    class Lonely(GammaLeaf):
        name = "example_lonely"

    with pm.Model() as model:
        rate = pmt.DecisionTree("rate", X, leaf=Lonely(1.0, 0.2))
        pm.Poisson("y", rate, observed=Y)
        with pytest.raises(NotConjugateError, match="no likelihood is registered for a Lonely"):
            read_target(model, model["rate_forest"])
