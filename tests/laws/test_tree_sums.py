"""Sums of two and three trees with normal leaves, against a list of all pairs and triples.

Batch means over 60 batches. The tests look at some 700 averages: at 5.5 standard errors (t law, 59
degrees of freedom) one fails by chance in 2,000 fresh runs. Absolute tolerances are three to five
times the error measured at these lengths.
"""

import numpy as np
import pytest
from support import oracle as o
from support.chains import (
    CGM,
    MOVE_SETS,
    make_setup,
    partition_of,
    run_chain,
    with_float_cells,
)
from support.naive.batches import batch_means, frequencies, gap, independent_se, law_gap
from support.naive.laws import PROBLEMS
from support.tiers import tiers

BATCHES = 60
Z = 5.5


def check(problem, m, moves, draws, seed):
    n = problem.n
    exact = o.tree_sum_posterior(
        m, problem.X, problem.y, problem.sigma, problem.mean, problem.sd, **problem.prior
    )
    setup = with_float_cells(make_setup(problem, "normal", m=m))
    chain = run_chain(seed, setup, moves, draws, keep_fits=True)

    scaled = (chain.fits[:, :, 0] - exact.mean) / exact.sd
    mean = gap(batch_means(scaled, BATCHES), 0.0)
    assert mean.within(Z, 0.05), mean
    moments = batch_means(scaled[:, :, None] * scaled[:, None, :], BATCHES)
    correlation = exact.covariance / np.outer(exact.sd, exact.sd)
    second = gap(moments.reshape(BATCHES, -1), correlation.reshape(-1))
    assert second.within(Z, 0.06), second

    codes, place = np.unique(chain.codes, return_inverse=True)
    place = place.reshape(chain.codes.shape)
    partitions = [partition_of(code, n) for code in codes]
    sizes = np.array([len(part) for part in partitions])
    totals, shares = frequencies(sizes[place].sum(axis=1), BATCHES)
    leaves = law_gap(totals.tolist(), shares, exact.leaf_counts, draws)
    assert leaves.within(Z, 0.03), leaves

    above = np.triu_indices(n, 1)
    same = np.array([o.same_leaf(part, n)[above] for part in partitions])
    batches = np.repeat(np.arange(BATCHES), draws // BATCHES)
    pairs = np.zeros((BATCHES, len(above[0])))
    for t in range(m):
        counts = np.bincount(batches * len(codes) + place[: len(batches), t])
        counts = np.resize(counts, BATCHES * len(codes)).reshape(BATCHES, -1)
        pairs += counts @ same / (m * (draws // BATCHES))
    found = gap(pairs, exact.pair_probabilities[above])
    assert found.within(Z, 0.03), found
    return partitions, place, exact


NAMES = ["gaps", "noisy", "binary_constant", "three_columns", "grid"]
# Every move, every problem, by turns: two moves a problem, and all of them on unequal noise.
MOVES = list(MOVE_SETS)
CASES = [("noisy", moves) for moves in MOVES] + [("three_columns", "change_swap")]
CASES += [(name, MOVES[k % len(MOVES)]) for i, name in enumerate(NAMES) for k in (3 * i, 3 * i + 1)]
CASES = list(dict.fromkeys(CASES))


@pytest.mark.parametrize(
    "name, moves",
    tiers(
        CASES,
        quick=[
            ("noisy", "three_a_visit"),
            ("three_columns", "change_swap"),
            ("noisy", "rotate"),
        ],
    ),
)
def test_two_trees_agree_with_the_listed_pairs(name, moves):
    problem, draws = PROBLEMS[name], 120_000
    partitions, place, exact = check(problem, 2, MOVE_SETS[moves], draws, 1)

    law = {}
    for pair, weight in exact.combinations:
        key = frozenset(pair)
        law[key] = law.get(key, 0.0) + weight
    low, high = place.min(axis=1), place.max(axis=1)
    codes, shares = frequencies(low * len(partitions) + high, BATCHES)
    states = [
        frozenset([partitions[code // len(partitions)], partitions[code % len(partitions)]])
        for code in codes
    ]
    pairs = law_gap(states, shares, law, draws)
    assert pairs.within(Z, 0.02), pairs


def tiny():
    """Four rows of "gaps"."""
    problem = PROBLEMS["gaps"]
    keep = [0, 2, 3, 5]
    from dataclasses import replace

    return replace(problem, X=problem.X[keep], y=problem.y[keep], labels=problem.labels[keep])


@pytest.mark.parametrize(
    "moves", tiers(["cgm", "grow_prune", "three_a_visit", "all_moves"], quick=["all_moves"])
)
def test_three_trees_agree_with_the_listed_triples(moves):
    check(tiny(), 3, MOVE_SETS[moves], 150_000, 2)


def test_the_comparison_rejects_wrong_noise():
    """The second moments of f, chain against the posterior at sigma + 15%."""
    problem, draws = tiny(), 100_000
    wrong = o.tree_sum_posterior(
        2, problem.X, problem.y, 0.8, problem.mean, problem.sd, **problem.prior
    )
    setup = make_setup(problem, "normal", m=2)
    chain = run_chain(3, setup, CGM, draws, keep_fits=True)
    scaled = (chain.fits[:, :, 0] - wrong.mean) / wrong.sd
    assert gap(batch_means(scaled, BATCHES), 0.0).z > 2 * Z
    assert gap(batch_means(scaled**2, BATCHES), 1.0).z > 2 * Z


def test_the_floor_of_the_standard_error_is_that_of_independent_draws():
    assert independent_se(0.5, 100) == 0.05
