"""The prior: samplers under a flat likelihood and direct draws both give back its exact law.

Frequencies: batch means (60 batches) at 5.5 standard errors, some 3,000 averages. Distances
between distributions: Kolmogorov-Smirnov or chi-square at p > 1e-5, about 100 tests. The density of
a rule is summed over all rules there are, which must give 1 to rounding.
"""

import math
from dataclasses import replace

import numpy as np
import pytest
from numba import njit
from scipy import stats
from support.chains import (
    CGM,
    MOVE_SETS,
    design_of,
    make_setup,
    make_tools,
    partition_code,
    run_chain,
    run_particles,
    with_float_cells,
)
from support.chains.soft_forest import EQUAL, make_chain, run_soft, soft_problem
from support.laws import mondrian
from support.laws.prior import check_laws, galton_watson
from support.laws.soft import MEAN, SD, Z
from support.naive import slow
from support.naive.batches import batch_means, gap
from support.naive.laws import EVERY, PROBLEMS
from support.tiers import table, tiers

from pymc_trees.core.columns.cells import MAX_CUT as EVERY_CELL
from pymc_trees.core.columns.cells import MISSING
from pymc_trees.core.columns.rules import draw_rule, log_rule
from pymc_trees.core.forest.trees import make_stumps, make_trees, preorder
from pymc_trees.core.leaves.normal import make_normal
from pymc_trees.core.priors.contract import NodeContext
from pymc_trees.core.priors.mondrian import draw_time, make_mondrian, truncated_exponential
from pymc_trees.core.samplers.prior_draw import draw_forest

P = 1e-5
LEAVES = ("normal", "normal_gamma", "dirichlet")


def moves_without_data(name, moves, draws):
    setup = with_float_cells(make_setup(EVERY[name], "normal", data=False))
    chain = run_chain(10, setup, MOVE_SETS[moves], draws)
    check_laws(name, chain.codes[:, 0], chain.depths[:, 0], chain.roots[:, 0])


def particles_without_data(name, particles, proposal, scheme, share, n_bins):
    problem = PROBLEMS[name]
    setup = with_float_cells(make_setup(problem, "normal", data=False))
    tools = make_tools(setup, particles, proposal, scheme, share, n_bins)
    chain = run_particles(2, setup, tools, 30_000, keep_fits=True)
    check_laws(name, chain.codes[:, 0], chain.depths[:, 0], chain.roots[:, 0])
    values = (chain.fits[:, 0, 0] - problem.mean) / problem.sd  # drawn anew at every sweep
    assert stats.kstest(values, "norm").pvalue > P


def draws_of_process(name):
    """Of a Mondrian process, by themselves; its samplers are in `test_exact_posterior`."""
    exact = mondrian.exact(name, False)
    mondrian.check(exact, PROBLEMS[name].n, *mondrian.draws_of_process(name))


def soft_trees_without_data():
    """Three columns, of which one is hard and one excluded; rows of precision 0."""
    unit = np.random.default_rng(7).random((3, 4))
    weights = np.array([3.0, 1.0, 0.0])
    hard = np.array([False, True, False])
    problem = soft_problem(unit, 2, 0.8, 1.5, 0.2, weights, hard)
    leaf = make_normal(MEAN, SD, np.zeros(4), 0.0, 10)
    chain = make_chain(400_000, 2, 4)
    run_soft(np.random.default_rng(8), problem, leaf, EQUAL, 3, chain)
    is_split = chain.size > 1
    column, cut = chain.column[:, :, 0], chain.number[:, :, 0]
    second = is_split & (chain.column[:, :, 1] == column)  # the left child, on the same column
    share = np.where(second, chain.number[:, :, 1] / np.where(is_split, cut, 1.0), 0.5)
    mean_splits = galton_watson(0.8, 1.5).sum()
    value = np.where(is_split, np.nan, cut)
    stump = ~is_split
    wanted = {
        "splits": ((chain.size - 1) / 2, mean_splits),
        "stump": (stump, 0.2),
        "first column": (is_split & (column == 0), 0.8 * 0.75),
        "excluded column": (chain.column == 2, 0.0),
        "cut": (np.where(is_split, cut - 0.5, 0.0), 0.0),
        "cut squared": (np.where(is_split, (cut - 0.5) ** 2 - 1 / 12, 0.0), 0.0),
        "second cut": (share - 0.5, 0.0),
        "second cut squared": (np.where(second, (share - 0.5) ** 2 - 1 / 12, 0.0), 0.0),
        "left child split": (is_split & (chain.column[:, :, 1] >= 0), 0.8**2 * 2**-1.5),
        "bandwidth": (chain.bandwidth, 0.2),
        "bandwidth squared": (chain.bandwidth**2, 2 * 0.2**2),
        "bandwidth and stump": (chain.bandwidth * stump, 0.2 * 0.2),
        "value of a stump": (np.where(stump, value - MEAN, 0.0), 0.0),
        "its square": (np.where(stump, (value - MEAN) ** 2 - SD**2, 0.0), 0.0),
        "f": (chain.f - 2 * MEAN, 0.0),
    }
    found = {
        key: gap(batch_means(np.asarray(v, dtype=float).reshape(400_000, -1), 100), exact)
        for key, (v, exact) in wanted.items()
    }
    assert all(one.within(Z, 0.02) for one in found.values()), found


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
PARTICLES = [
    ("deep", 3, "prior", "multinomial", 1.0, 100),
    ("deep", 3, "empirical", "stratified", 1.0, 100),
    ("grid", 10, "optimal", "systematic", 1.0, 2),
    ("three_columns", 3, "optimal", "multinomial", 0.4, 100),
    ("repeats", 10, "empirical", "systematic", 1.0, 100),
    ("binary_constant", 2, "optimal", "multinomial", 0.6, 100),
]
SAMPLERS = [
    *table(moves_without_data, QUICK, CASES),
    *table(particles_without_data, [PARTICLES[2]], PARTICLES),
    *table(soft_trees_without_data, [()]),
    *table(draws_of_process, [], [(name,) for name in mondrian.LIFETIMES]),
]


@pytest.mark.parametrize("sampler, case", SAMPLERS)
def test_a_sampler_that_sees_no_data_draws_from_the_prior(sampler, case):
    sampler(*case)


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
    problem = PROBLEMS["gaps"]
    off = replace(problem, prior=problem.prior | {"alpha": 0.97 * problem.prior["alpha"]})
    chain = run_chain(15, make_setup(off, "normal", data=False), CGM, 100_000)
    with pytest.raises(AssertionError):
        check_laws("gaps", chain.codes[:, 0], chain.depths[:, 0], chain.roots[:, 0])


@njit(cache=True)
def density(design, codes, cuts, rows):
    out = np.empty(codes.size)
    for k in range(codes.size):
        out[k] = log_rule(design, codes[k], cuts[k], rows, 0, rows.size)
    return out


@njit(cache=True)
def rules(rng, design, column, rows, draws):
    codes, cuts, logs = np.empty(draws, dtype=np.int64), np.empty(draws), np.empty(draws)
    for k in range(draws):
        codes[k], cuts[k], logs[k] = draw_rule(rng, design, column, rows, 0, rows.size)
    return codes, cuts, logs


def every_set(design, column):
    """All rules of a column of levels, possible or not."""
    p, every = len(design.columns), 2 ** abs(design.kinds[column])
    ways = np.repeat([2, 3], every) * p + column
    return ways, np.tile(np.arange(every, dtype=float), 2)


def some_rows(rng, n):
    return np.sort(rng.choice(n, int(rng.integers(2, n + 1)), replace=False)).astype(np.uint32)


@pytest.mark.parametrize(
    "name", tiers(["levels", "onehot", "mixed_grid"], quick=["levels", "onehot"])
)
def test_the_density_of_sets_of_levels(name, rng):
    """Equal to the text of the prior, sums to 1, and draws follow it."""
    design = design_of(EVERY[name])
    cells = slow.cells_of(design)
    column = [j for j in range(len(design.columns)) if design.kinds[j] != 0][0]
    codes, cuts = every_set(design, column)
    tried = 0
    for _ in range(12):
        rows = some_rows(rng, cells.shape[0])
        if len({cells[i, column] for i in rows}) == 1:
            assert (density(design, codes, cuts, rows) == -np.inf).all()
            continue
        logs = density(design, codes, cuts, rows)
        exact = [slow.log_mixed_rule(cells, rows, *rule) for rule in zip(codes, cuts)]
        np.testing.assert_allclose(logs, exact, atol=1e-12)
        assert math.fsum(np.exp(logs)) == pytest.approx(1.0, abs=1e-12)
        found = rules(rng, design, column, rows, 20_000)
        np.testing.assert_allclose(density(design, *found[:2], rows), found[2], atol=1e-12)
        keys = [*zip(codes.tolist(), cuts.tolist())]
        place = {key: k for k, key in enumerate(keys)}
        counts = np.bincount(
            [place[k] for k in zip(*map(np.ndarray.tolist, found[:2]))], minlength=len(keys)
        )
        able = np.exp(logs) > 0
        assert counts[~able].sum() == 0
        if able.sum() > 1:
            assert stats.chisquare(counts[able], 20_000 * np.exp(logs[able])).pvalue > 1e-5
        tried += 1
    assert tried > 5


@pytest.mark.parametrize("name", ["missing", "mixed_grid"])
def test_the_density_of_cuts_beside_missing_cells(name, rng):
    """Missing against present as often as stated, sides by a coin, cuts uniform where they are."""
    design = design_of(EVERY[name])
    cells = slow.cells_of(design)
    p, tried = cells.shape[1], 0
    for _ in range(14):
        rows = some_rows(rng, len(cells))
        present = sorted({cells[i, 0] for i in rows} - {MISSING})
        any_missing = any(cells[i, 0] == MISSING for i in rows)
        if len(present) + any_missing < 2 or not present:
            continue
        codes, cuts, logs = rules(rng, design, 0, rows, 20_000)
        exact = [slow.log_mixed_rule(cells, rows, *rule) for rule in zip(codes[:300], cuts[:300])]
        np.testing.assert_allclose(logs[:300], exact, atol=1e-12)
        np.testing.assert_allclose(
            density(design, codes[:300], cuts[:300], rows), exact, atol=1e-12
        )
        left = codes >= p
        assert stats.binomtest(int(left.sum()), len(left)).pvalue > 1e-5
        apart = cuts == np.where(left, -EVERY_CELL, EVERY_CELL)
        chance = 0.0 if not any_missing else 1 / (1 + len(present)) if len(present) > 1 else 1.0
        assert stats.binomtest(int(apart.sum()), len(apart), chance).pvalue > 1e-5
        if len(present) > 1:
            where = (cuts[~apart] - present[0]) / (present[-1] - present[0])
            assert (where >= 0).all() and (where < 1).all()
            if not design.is_grid:
                assert stats.kstest(where, "uniform").pvalue > 1e-5
        tried += 1
    assert tried > 5


def test_rules_that_are_none(rng):
    """Sets that are no whole number, too large, or of the wrong kind of column."""
    design = design_of(EVERY["levels"])
    rows = np.arange(7, dtype=np.uint32)
    codes = np.array([4, 4, 4, 4, 0, 5, 1])
    cuts = np.array([1.5, 16.0, -1.0, np.nan, 1.0, 1.0, np.nan])
    assert (density(design, codes, cuts, rows) == -np.inf).all()
    assert density(design, np.array([1]), np.array([0.5]), rows)[0] == pytest.approx(
        math.log(0.5 / 2.5)
    )


@pytest.mark.parametrize("rate", [-40.0, -1.3, 0.0, 2.0, 60.0])
def test_truncated_exponential(rate, rng):
    """Density proportional to ``exp(-rate x)`` on (0, 0.7); KS of 4,000 draws at p > 1e-5."""
    draws = np.array([truncated_exponential(rng, rate, 0.7) for _ in range(4000)])
    assert draws.min() >= 0 and draws.max() <= 0.7

    def cdf(x):
        return x / 0.7 if rate == 0 else np.expm1(-rate * x) / np.expm1(-rate * 0.7)

    assert stats.kstest(draws, cdf).pvalue > 1e-5


def test_times_of_a_node_without_extent_or_room(rng):
    """A split within rounding of the lifetime stays in its interval."""
    prior = make_mondrian(1.0, 0.0, np.ones(1))
    late = np.nextafter(1.0, 0.0)
    for rate in (1e-300, 1.0, 1e300):
        assert late <= draw_time(rng, prior, NodeContext(3, late, rate, False)) <= 1.0
