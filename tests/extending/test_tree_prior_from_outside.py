"""A tree prior in one file outside the package: drawn, sampled by moves and read from a value.

Three rows of one column: the root splits with probability gamma, one of its children, at depth 1,
has two distinct values left and splits with gamma**2. So trees have 1, 2 and 3 leaves with
probabilities ``1 - gamma``, ``gamma (1 - gamma**2)`` and ``gamma**3``. A chi-square test at
p > 1e-5 of 4,000 prior draws, and of 4,000 sweeps under no likelihood, every fifth of them.
"""

import numpy as np
import pymc as pm
import pytest
from scipy import stats
from support.chains import CGM

import pymc_trees as pmt
from extending.geometric_prior import Geometric, make_geometric
from pymc_trees.core.columns.design import make_design
from pymc_trees.core.forest.trees import make_trees, preorder
from pymc_trees.core.leaves.normal import make_normal
from pymc_trees.core.moves.problem import Problem, make_workspace
from pymc_trees.core.samplers.backfitting import sweep
from pymc_trees.core.samplers.prior_draw import draw_tree
from pymc_trees.core.value.encode import decode, encode
from pymc_trees.core.value.fields import Layout, sizes

X = np.array([[0.0], [1.0], [2.0]])
GAMMA = 0.6
EXACT = np.array([1 - GAMMA, GAMMA * (1 - GAMMA**2), GAMMA**3])
DRAWS = 4_000


@pytest.fixture(scope="module")
def problem():
    leaf = make_normal(0.0, 1.0, np.zeros(3), 0.0, 5)
    return Problem(
        make_trees(1, 5, 1, 3), make_design(X), make_geometric(GAMMA, 0.0, np.ones(1)), leaf
    )


def leaves(trees, work):
    nodes = work.nodes
    return (preorder(trees, 0, nodes) + 1) // 2


def agrees(found):
    counts = np.bincount(found, minlength=4)[1:]
    assert stats.chisquare(counts, EXACT * counts.sum()).pvalue > 1e-5


def test_draws_have_the_prior(problem, rng):
    work = make_workspace(5, 2, problem.design)
    found = []
    for _ in range(DRAWS):
        trees = make_trees(1, 5, 1, 3)
        assert draw_tree(rng, trees, 0, problem.design, problem.prior, work.rows, work.buffer)
        found.append(leaves(trees, work))
    agrees(found)


@pytest.mark.full
def test_moves_leave_it_invariant(problem, rng):
    work, counts = (
        make_workspace(5, 2, problem.design),
        np.zeros((2, len(CGM.moves)), dtype=np.int64),
    )
    found = []
    for _ in range(5 * DRAWS):
        assert sweep(rng, problem, CGM, work, counts)
        found.append(leaves(problem.trees, work))
    agrees(found[::5])


def test_a_value_gives_the_trees_back(problem, rng):
    trees, design, prior, _ = problem
    layout, work = Layout(1, 5, 1, 3), make_workspace(5, 2, design)
    value = encode(trees, design, prior, sizes(layout), 7.0, work.nodes)
    again = make_trees(1, 5, 1, 3)
    assert decode(value, design, prior, sizes(layout), again, work.rows, work.buffer)
    assert encode(again, design, prior, sizes(layout), 7.0, work.nodes).tobytes() == (
        value.tobytes()
    )


@pytest.mark.usefixtures("quick_compile")
def test_a_model_declares_it():
    """The log-probability that PyMC sees is that of the three kinds of trees."""
    with pm.Model() as model:
        gamma = pm.Uniform("gamma", 0.0, 1.0)
        pmt.Forest("trees", X, m=1, leaf=pmt.NormalLeaf(0.0, 1.0), tree_prior=Geometric(gamma))
    logp = model.compile_logp(vars=[model["trees"]])
    values = pm.draw(model["trees"], 200, random_seed=1)
    fixed = {"gamma_interval__": np.log(GAMMA / (1.0 - GAMMA))}
    seen = set()
    for value in values:
        kinds = value[:5, 0]
        n_leaves = int((kinds == -1).sum())
        of_leaves = stats.norm.logpdf(value[:5, 1][kinds == -1]).sum()
        cuts = {1: 0.0, 2: -np.log(2.0), 3: -np.log(2.0)}[n_leaves]  # the last has an extent of 1
        found = logp({"trees": value, **fixed}) - of_leaves - cuts
        assert np.isclose(found, np.log(EXACT[n_leaves - 1])), n_leaves
        seen.add(n_leaves)
    assert seen == {1, 2, 3}


@pytest.mark.full
@pytest.mark.usefixtures("quick_compile")
def test_pymc_samples_with_it():
    with pm.Model():
        prior = Geometric(pm.Beta("gamma", 2.0, 2.0))
        mu = pmt.BART("mu", X, [0.0, 0.1, 1.0], m=2, tree_prior=prior)
        pm.Normal("y", mu, 0.1, observed=[0.0, 0.1, 1.0], shape=mu.shape)
        step = pmt.ParticleGibbs()  # moves are seen above
        idata = pm.sample(
            5, tune=5, chains=1, step=step, progressbar=False, compute_convergence_checks=False
        )
    assert idata.posterior["mu"].shape == (1, 5, 3)
