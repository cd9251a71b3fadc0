"""The prior: samplers under a flat likelihood and direct draws both give back its exact law.

Frequencies: batch means (60 batches) at 5.5 standard errors, some 2,500 averages. Distances
between distributions: Kolmogorov-Smirnov at p > 1e-5, about 60 tests.
"""

import numpy as np
import pytest
from numba import njit
from scipy import stats
from support.chains import (
    CGM,
    MOVE_SETS,
    make_setup,
    partition_code,
    run_chain,
    with_float_cells,
)
from support.laws.prior import check_laws
from support.naive import slow
from support.naive.laws import EVERY, PROBLEMS
from support.tiers import tiers

from pymc_trees.core.forest.trees import make_stumps, make_trees, preorder
from pymc_trees.core.samplers.prior_draw import draw_forest

P = 1e-5
LEAVES = ("normal", "normal_gamma", "dirichlet")


# Every problem and every set of moves, not their product: what a move does at a node does not
# depend on more than the kinds of columns there, and posteriors are compared in all cases.
CASES = [("gaps", "cgm", 100_000), ("deep", "cgm", 100_000), ("levels", "cgm", 100_000)]
CASES += [("repeats", "grow_prune", 100_000), ("missing", "grow_prune", 100_000)]
CASES += [("binary_constant", "change_swap", 100_000), ("three_columns", "change_swap", 100_000)]
# The last mixes slowly: after 100,000 sweeps the standard error of a share is up to 0.007.
CASES += [("mixed_grid", "change_swap", 300_000)]
CASES += [(name, "all_moves", 300_000) for name in EVERY]
CASES += [(name, "restructure", 300_000) for name in ("deep", "grid", "levels", "missing")]
# Columns change by grow and prune alone, a fifth of the moves: errors up to 0.008 at 300,000.
CASES += [(name, "perturb", 1_500_000) for name in ("two_columns", "grid", "missing", "onehot")]
CASES += [(name, "rotate", 1_500_000) for name in ("deep", "grid", "levels", "mixed_grid")]
QUICK = [("deep", "cgm", 100_000), ("repeats", "grow_prune", 100_000)]
QUICK += [("binary_constant", "change_swap", 100_000)]
QUICK += [("mixed_grid", "all_moves", 300_000), ("deep", "restructure", 300_000)]


@pytest.mark.parametrize("name, moves, draws", tiers(CASES, QUICK))
def test_a_sampler_that_sees_no_data_draws_from_the_prior(name, moves, draws):
    setup = with_float_cells(make_setup(EVERY[name], "normal", data=False))
    chain = run_chain(10, setup, MOVE_SETS[moves], draws)
    check_laws(name, chain.codes[:, 0], chain.depths[:, 0], chain.roots[:, 0])


@njit(cache=True)
def draw_many(rng, draws, design, prior, leaf, work, n_values, codes, depths, roots, values):
    """Draw one-tree forests; record what `run_sweeps` records, and the values at row 0."""
    n, max_nodes = work.rows.size, work.nodes.size
    for s in range(draws):
        trees = make_stumps(max_nodes, n_values, np.empty((1, n), np.uint16))
        if not draw_forest(rng, trees, design, prior, leaf, work.nodes, work.rows, work.buffer):
            raise ValueError("full")
        codes[s] = partition_code(trees.leaf_of[0], n)
        roots[s] = trees.column[trees.roots[0]]
        values[s] = trees.values[trees.leaf_of[0, 0]]
        for k in range(preorder(trees, trees.roots[0], work.nodes)):
            depths[s] = max(depths[s], trees.depth[work.nodes[k]])


def direct_draws(problem, leaf_name, draws, seed):
    setup = make_setup(problem, leaf_name, data=False)
    k = setup.trees.values.shape[1]
    codes, depths, roots = np.zeros((3, draws), dtype=np.int64)
    values = np.empty((draws, k))
    rng = np.random.default_rng(seed)
    rest = (setup.design, setup.prior, setup.leaf, setup.work, k)
    draw_many(rng, draws, *rest, codes, depths, roots, values)
    return codes, depths, roots, values


@pytest.mark.parametrize("name", tiers(EVERY, quick=["deep", "binary_constant"]))
def test_direct_draws_come_from_the_prior(name):
    codes, depths, roots, _ = direct_draws(EVERY[name], "normal", 120_000, 11)
    check_laws(name, codes, depths, roots)


def check_values(problem, leaf_name, values):
    """KS of leaf values at one row, 20,000 independent ones."""
    if leaf_name == "normal":
        tests = [(values[:, 0], stats.norm(problem.mean, problem.sd))]
    elif leaf_name == "normal_gamma":
        mu, tau = values.T
        rate = problem.nu * problem.lam / 2
        tests = [
            (tau, stats.gamma(problem.nu / 2, scale=1 / rate)),
            (mu * np.sqrt(problem.a * tau), stats.norm()),
        ]
    else:
        each = problem.alpha_total / problem.n_classes
        assert np.abs(values.sum(axis=1) - 1).max() < 1e-12
        beta = stats.beta(each, problem.alpha_total - each)
        tests = [(values[:, k], beta) for k in range(problem.n_classes)]
    for sample, distribution in tests:
        assert stats.kstest(sample, distribution.cdf).pvalue > P


@pytest.mark.parametrize("leaf_name", LEAVES)
def test_leaf_values_have_their_prior_law(leaf_name):
    problem = PROBLEMS["gaps"]
    check_values(problem, leaf_name, direct_draws(problem, leaf_name, 20_000, 12)[3])
    # Without data each sweep draws the values afresh, whatever the tree: independent.
    setup = make_setup(problem, leaf_name, data=False)
    check_values(problem, leaf_name, run_chain(13, setup, CGM, 20_000, keep_fits=True).fits[:, 0])


@pytest.mark.parametrize("name", tiers(["gaps", "two_columns", "grid"], quick=["two_columns"]))
def test_cuts_are_uniform_between_the_extremes_of_their_node(name):
    """(cut - low) / (high - low) of every split node of 4,000 trees; on a grid, chi-square."""
    problem = PROBLEMS[name]
    setup = make_setup(problem, "normal", data=False)
    cells = setup.design.columns.T.astype(float)
    rng = np.random.default_rng(14)
    places, counts, expected = [], {}, {}
    for _ in range(4000):
        trees = make_trees(1, setup.work.nodes.size, 1, problem.n)
        work = (setup.work.nodes, setup.work.rows, setup.work.buffer)
        assert draw_forest(rng, trees, setup.design, setup.prior, setup.leaf, *work)
        for node, _, rows, _ in slow.visits(slow.read(trees, 0), cells):
            if isinstance(node, slow.Leaf):
                continue
            values = cells[list(rows), node.column]
            low, high = values.min(), values.max()
            places.append((node.cut - low) / (high - low))
            for cut in range(int(low), int(high)) if name == "grid" else []:
                key = (node.column, low, high, cut)
                expected[key] = expected.get(key, 0.0) + 1 / (high - low)
            key = (node.column, low, high, node.cut)
            counts[key] = counts.get(key, 0) + 1
    if name != "grid":
        assert stats.kstest(places, "uniform").pvalue > P
        return
    assert counts.keys() <= expected.keys()
    often = [key for key in expected if expected[key] > 20]
    chi2 = sum((counts.get(key, 0) - expected[key]) ** 2 / expected[key] for key in often)
    assert stats.chi2(len(often)).sf(chi2) > P  # conservative: fewer degrees of freedom are free


def test_the_comparison_rejects_a_prior_that_is_a_little_off():
    """A chain with alpha 3% smaller than the law it is compared with."""
    from dataclasses import replace

    problem = PROBLEMS["gaps"]
    off = replace(problem, prior=problem.prior | {"alpha": 0.97 * problem.prior["alpha"]})
    chain = run_chain(15, make_setup(off, "normal", data=False), CGM, 100_000)
    with pytest.raises(AssertionError):
        check_laws("gaps", chain.codes[:, 0], chain.depths[:, 0], chain.roots[:, 0])
