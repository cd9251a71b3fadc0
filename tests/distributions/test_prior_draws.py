"""Draws of the variable follow the stated prior, by enumeration of all trees.

Independent draws: of N, a structure of probability p is seen N p +- sqrt(N p (1 - p)) times. The
structures expected at least 5 times go into one chi-square; the seeds are fixed, and a right
program fails a level of 1e-4 once in 10,000 choices of seeds.
"""

from collections import Counter

import numpy as np
import pymc as pm
import pytest
from scipy import stats
from support import oracle as o
from support import twin
from support.tiers import tiers

import pymc_trees as pmt
from pymc_trees.distributions.tree_priors.read import make_grid

pytestmark = pytest.mark.usefixtures("quick_compile")
DRAWS = 4000


def structures(X, draws, layout):
    """Structure of the trees of each draw."""
    return [
        tuple(o.structure_of(twin.bare(t), X)[0] for t in twin.read_trees(value, layout))
        for value in draws
    ]


def chi_square(seen, expected):
    """P-value of counts against probabilities; small cells together."""
    total = sum(seen.values())
    assert set(seen) <= set(expected)
    large = [k for k, p in expected.items() if p * total >= 5]
    observed = [seen.get(k, 0) for k in large]
    wanted = [expected[k] * total for k in large]
    if total - sum(wanted) > 5:
        observed.append(total - sum(observed))
        wanted.append(total - sum(wanted))
    else:
        wanted = np.array(wanted) * sum(observed) / sum(wanted)
    return stats.chisquare(observed, wanted).pvalue


@pytest.mark.parametrize(
    "name",
    tiers(["binary_constant", "three_columns", "repeats", "grid"], quick=["binary_constant"]),
)
def test_one_tree(name):
    problem = o.datasets()[name]
    prior = dict(problem.prior)
    if prior.pop("cuts", None) is not None:
        prior["cuts"] = make_grid(problem.X, 2)
    trees = o.enumerate_trees(problem.X, **prior)
    expected = {info.structure: np.exp(log_prior) for log_prior, _, info in trees}
    assert abs(sum(expected.values()) - 1) < 1e-9
    with pm.Model():
        forest = pmt.Forest(
            "forest",
            problem.X,
            m=1,
            alpha=prior["alpha"],
            beta=prior["beta"],
            split_prior=prior.get("split_prior"),
            n_cuts=2 if "cuts" in prior else None,
            leaf=pmt.NormalLeaf(1.0, 2.0),
        )
    layout = forest.owner.op.layout
    draws = pm.draw(forest, DRAWS, random_seed=17)
    seen = Counter(s for (s,) in structures(problem.X, draws, layout))
    assert chi_square(seen, expected) > 1e-4
    values = [v[0] for d in draws for t in twin.read_trees(d, layout) for v in twin.leaf_values(t)]
    assert stats.kstest(values, stats.norm(1.0, 2.0).cdf).pvalue > 1e-4


def test_trees_of_a_sum_are_independent():
    problem = o.datasets()["gaps"]
    trees = o.enumerate_trees(problem.X, **problem.prior)
    leaves = {}
    for log_prior, partition, _ in trees:
        leaves[len(partition)] = leaves.get(len(partition), 0.0) + np.exp(log_prior)
    expected = {(a, b): leaves[a] * leaves[b] for a in leaves for b in leaves}
    with pm.Model():
        forest = pmt.Forest("forest", problem.X, m=2, leaf=pmt.NormalLeaf(0, 1), **problem.prior)
    layout = forest.owner.op.layout
    seen = Counter(
        tuple(len(twin.leaf_values(t)) for t in twin.read_trees(value, layout))
        for value in pm.draw(forest, DRAWS, random_seed=18)
    )
    assert chi_square(seen, expected) > 1e-4


def test_random_settings_are_drawn_with_the_trees():
    X = np.array([[0.0], [1.0]])
    with pm.Model():
        alpha = pm.Beta("alpha", 3, 2)
        mean = pm.Normal("mean", 2.0, 3.0)
        pmt.DecisionTree("mu", X, alpha=alpha, leaf=pmt.NormalLeaf(mean, 0.01), max_nodes=3)
        prior = pm.sample_prior_predictive(2000, random_seed=5)
    draws = prior.prior["mu_forest"].values[0]
    split = draws[:, 0, 0] == 0
    alphas = prior.prior["alpha"].values[0]
    # Two rows: the only tree beside the stump. Given alpha it splits with probability alpha.
    error = (split - alphas).sum() / np.sqrt((alphas * (1 - alphas)).sum())
    assert abs(error) < 4
    assert np.corrcoef(split, alphas)[0, 1] > 0.25
    np.testing.assert_allclose(
        prior.prior["mu"].values[0, :, 0], prior.prior["mean"].values[0], atol=0.06
    )


def test_outputs_that_share_trees():
    """One structure for all outputs, each with leaf values of its own prior: mean and sd of f."""
    X, m = np.linspace(0, 1, 6)[:, None], 3
    mean, sd = np.array([0.0, 2.0]), np.array([0.5, 1.0])
    with pm.Model() as model:
        leaf = pmt.NormalLeaf(mean, sd)
        f = pmt.BART("f", X, m=m, shape=(2, 6), separate_trees=False, leaf=leaf)
    assert len(model.free_RVs) == 1
    draws = pm.draw(f, draws=2000, random_seed=1)
    assert draws.shape == (2000, 2, 6)
    z = (draws - m * mean[:, None]) / (np.sqrt(m) * sd[:, None])
    assert np.abs(z.mean(axis=0)).max() < 5 / np.sqrt(2000)
    assert np.abs((z**2).mean(axis=0) - 1).max() < 5 * np.sqrt(2 / 2000)
