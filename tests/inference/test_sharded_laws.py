"""Forests with rows in shards: the exact posterior, and the same draws however rows are dealt.

Tolerances. Shares of partitions are averages over `CHAINS` independent chains, so that their
standard errors, of a t law with 11 degrees of freedom, need no guess of what a chain remembers. The
file looks at some 100 averages; one of them is beyond 7 standard errors by chance in 500 runs of
the file with fresh seeds, and the seeds are fixed. The absolute tolerance, 0.03 on the probability
of a partition, is four to ten of these errors. The largest distances of all cases are 3.0 standard
errors and 0.015.
"""

from functools import cache

import numpy as np
import pytest
from support.chains.sharded import carry, make_driver, run_sharded
from support.laws.exact import partition_shares
from support.naive.batches import law_gap
from support.naive.laws import (
    PROBLEMS,
    law,
    leaf_of,
    partition_posterior,
    wrong_partition_prior,
)
from support.tiers import tiers

from pymc_trees.sharded.kernels.shard import square_sum, to_fixed, unit_of

CHAINS, BURN, Z = 12, 100, 7.0

# (problem, moves) -> draws of a chain; every move, and what is particular about a problem, once
CASES = {
    ("gaps", "cgm"): 2000,
    ("two_columns", "change_swap"): 2000,
    ("grid", "cgm"): 4000,
    ("deep", "cgm"): 8000,
    ("binary_constant", "change_swap"): 4000,
    ("repeats", "grow_prune"): 4000,
}


@cache
def shares_of_chains(name, moves, draws, data=True):
    """Partitions, and their shares in each of the chains."""
    problem, codes = PROBLEMS[name], []
    for k in range(CHAINS):
        chain = run_sharded(1000 + k, problem, moves, draws + BURN, n_shards=1 + k % 3, data=data)
        codes.append(chain.codes[BURN:])
    joined = chain._replace(codes=np.concatenate(codes))
    return partition_shares(joined, problem.n, CHAINS)


@pytest.mark.parametrize(
    ("name", "moves"), tiers(CASES, [("gaps", "cgm"), ("two_columns", "change_swap")])
)
def test_chains_agree_with_the_enumeration(name, moves):
    draws = CASES[name, moves]
    states, shares = shares_of_chains(name, moves, draws)
    found = law_gap(states, shares, law(name, "normal").partitions, CHAINS * draws)
    assert found.within(Z, 0.03), found


def test_the_comparison_rejects_a_wrong_prior():
    states, shares = shares_of_chains("gaps", "cgm", 2000)
    for mistake in ("alpha", "gaps"):
        prior = wrong_partition_prior(PROBLEMS["gaps"], mistake)
        wrong = partition_posterior(PROBLEMS["gaps"], "normal", prior)
        found = law_gap(states, shares, wrong, CHAINS * 2000)
        assert not found.within(Z, 0.03), (mistake, found)


def test_without_data_chains_follow_the_prior():
    states, shares = shares_of_chains("repeats", "cgm", 2000, data=False)
    prior = partition_posterior(PROBLEMS["repeats"], "flat")
    found = law_gap(states, shares, prior, CHAINS * 2000)
    assert found.within(Z, 0.03), found


def test_leaf_values_follow_their_conditional():
    """Given the partitions of the draws, standardised values are standard normal."""
    problem = PROBLEMS["gaps"]
    chain = run_sharded(5, problem, "cgm", 6000, n_shards=3)
    moments, known, z = leaf_of(problem, "normal").moments, {}, []
    states, _ = partition_shares(chain, problem.n)
    codes = np.unique(chain.codes[:, 0])
    for code, state in zip(codes, states, strict=True):
        known[code] = [(min(rows), *moments(rows)) for rows in state]
    for code, fit in zip(chain.codes[:, 0], chain.fits[:, :, 0], strict=True):
        z += [(fit[row] - mean) / np.sqrt(variance) for row, mean, variance in known[code]]
    z = np.array(z)
    assert abs(z.mean()) < 5 / np.sqrt(z.size)
    assert abs((z**2).mean() - 1) < 5 * np.sqrt(2 / z.size)


@pytest.mark.parametrize("m", [1, 3])
def test_draws_do_not_depend_on_how_rows_are_dealt(m):
    first, *others = (
        run_sharded(2, PROBLEMS["deep"], "cgm", 100, m=m, n_shards=k) for k in (1, 2, 3, 8)
    )
    assert (first.accepted[:3] > 0).all()
    for other in others:
        for a, b in zip(first, other, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("m", [1, 3])
def test_the_sum_of_squares_is_that_of_the_residual(m):
    driver, shards = make_driver(3, PROBLEMS["deep"], "cgm", m=m)
    for _ in range(10):
        carry(shards, driver.sweep(1.0))
        residual = carry(shards, driver.residual())
        assert driver.square_sum == sum(int(r) ** 2 for r in residual)


def test_what_nodes_keep_is_what_their_rows_say():
    """Counts, sums, varying columns, and terms of the prior, from the rows themselves."""
    problem = PROBLEMS["three_columns"]
    driver, shards = make_driver(4, problem, "change_swap", m=2, n_shards=3)
    trees, forest = driver.forest.trees, driver.forest
    for _ in range(60):
        carry(shards, driver.sweep(float(problem.sigma) ** -2))
        carry(shards, driver.residual())
        labels = np.concatenate([shard.rows[0].labels for shard in shards], axis=1)
        for t, root in enumerate(trees.roots):
            _check_below(problem, trees, forest, root, np.arange(problem.n), labels[t])


def _check_below(problem, trees, forest, node, rows, labels):
    cells = problem.X[rows]
    varies = forest.design.varies & (cells.min(axis=0) < cells.max(axis=0))
    assert trees.count[node] == len(rows)
    np.testing.assert_array_equal(forest.varies[node], varies)
    column = trees.column[node]
    if column < 0:
        assert (labels[rows] == node).all()
        assert trees.unsplittable[node] == (not varies.any())
        return
    column_cells, weights = cells[:, column], forest.prior.weights
    width = column_cells.max() - column_cells.min()
    assert trees.log_cut[node] == pytest.approx(-np.log(width))
    share = weights[column] / weights[varies].sum()
    assert trees.log_column[node] == pytest.approx(np.log(share))
    left = column_cells <= trees.cut[node]
    _check_below(problem, trees, forest, trees.left[node], rows[left], labels)
    _check_below(problem, trees, forest, trees.right[node], rows[~left], labels)


@pytest.mark.parametrize("size", [2**10, 2**31, 2**33, 2**52])
def test_square_sums_are_exact(size):
    residual = np.random.default_rng(1).integers(-size, size, 1000)
    high, low = square_sum(residual)
    assert (int(high) << 64) | int(low) == sum(int(r) ** 2 for r in residual)


def test_the_unit_leaves_room_for_sums_and_digits():
    for n in (1, 1000, 10**6, 10**9):
        unit = unit_of(3.7, n)
        assert np.log2(unit) == round(np.log2(unit))
        assert 2.0**58 >= n * 3.7 / unit, "16 times as much fits below 2**62"
        assert 3.7 / unit >= 2.0**27
        np.testing.assert_allclose(to_fixed([3.7, -1.2], unit) * unit, [3.7, -1.2], atol=unit / 2)
