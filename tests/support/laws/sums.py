"""Sums of two and three trees with normal leaves, against a list of all pairs and triples."""

from dataclasses import replace

import numpy as np

from support import oracle as o
from support.chains import (
    MOVE_SETS,
    make_setup,
    make_tools,
    partition_of,
    run_chain,
    run_particles,
    with_float_cells,
)
from support.naive.batches import RARE, batch_means, frequencies, gap, law_gap
from support.naive.laws import PROBLEMS

BATCHES = 60
Z = 5.5


def tiny():
    """Four rows of "gaps"."""
    problem = PROBLEMS["gaps"]
    keep = [0, 2, 3, 5]
    return replace(problem, X=problem.X[keep], y=problem.y[keep], labels=problem.labels[keep])


def listed(problem, m, sigma=None):
    sigma = problem.sigma if sigma is None else sigma
    return o.tree_sum_posterior(
        m, problem.X, problem.y, sigma, problem.mean, problem.sd, **problem.prior
    )


def compare(chain, problem, m, limits):
    """Function, leaves, pairs of rows and, of two trees, pairs of partitions."""
    exact, draws, n = listed(problem, m), len(chain.codes), problem.n
    scaled = (chain.fits[:, :, 0] - exact.mean) / exact.sd
    mean = gap(batch_means(scaled, BATCHES), 0.0)
    assert mean.within(Z, limits[0]), mean
    moments = batch_means(scaled[:, :, None] * scaled[:, None, :], BATCHES)
    correlation = exact.covariance / np.outer(exact.sd, exact.sd)
    second = gap(moments.reshape(BATCHES, -1), correlation.reshape(-1))
    assert second.within(Z, limits[1]), second

    codes, place = np.unique(chain.codes, return_inverse=True)
    place = place.reshape(chain.codes.shape)
    partitions = [partition_of(code, n) for code in codes]
    sizes = np.array([len(part) for part in partitions])
    totals, shares = frequencies(sizes[place].sum(axis=1), BATCHES)
    leaves = law_gap(totals.tolist(), shares, exact.leaf_counts, draws)
    assert leaves.within(Z, limits[2]), leaves

    above = np.triu_indices(n, 1)
    same = np.array([o.same_leaf(part, n)[above] for part in partitions])
    batches = np.repeat(np.arange(BATCHES), draws // BATCHES)
    pairs = np.zeros((BATCHES, len(above[0])))
    for t in range(m):
        counts = np.bincount(batches * len(codes) + place[: len(batches), t])
        counts = np.resize(counts, BATCHES * len(codes)).reshape(BATCHES, -1)
        pairs += counts @ same / (m * (draws // BATCHES))
    found = gap(pairs, exact.pair_probabilities[above])
    assert found.within(Z, limits[2]), found
    if m == 2:
        _compare_pairs(partitions, place, exact, draws, limits[3])


def _compare_pairs(partitions, place, exact, draws, limit):
    law = {}
    for pair, weight in exact.combinations:
        key = frozenset(pair)
        law[key] = law.get(key, 0.0) + weight
    if max(law.values()) * draws < RARE:
        return  # pairs too many to be counted one by one
    low, high = place.min(axis=1), place.max(axis=1)
    codes, shares = frequencies(low * len(partitions) + high, BATCHES)
    states = [
        frozenset([partitions[code // len(partitions)], partitions[code % len(partitions)]])
        for code in codes
    ]
    pairs = law_gap(states, shares, law, draws)
    assert pairs.within(Z, limit), pairs


def two_by_moves(name, moves):
    problem = PROBLEMS[name]
    setup = with_float_cells(make_setup(problem, "normal", m=2))
    chain = run_chain(1, setup, MOVE_SETS[moves], 120_000, keep_fits=True)
    compare(chain, problem, 2, (0.05, 0.06, 0.03, 0.02))


def three_by_moves(moves):
    problem = tiny()
    setup = with_float_cells(make_setup(problem, "normal", m=3))
    chain = run_chain(2, setup, MOVE_SETS[moves], 150_000, keep_fits=True)
    compare(chain, problem, 3, (0.05, 0.06, 0.03))


def two_by_particles(name, draws, particles, proposal, scheme, share):
    problem = PROBLEMS[name]
    setup = with_float_cells(make_setup(problem, "normal", m=2))
    tools = make_tools(setup, particles, proposal, scheme, share)
    chain = run_particles(1, setup, tools, draws, keep_fits=True)
    compare(chain, problem, 2, (0.1, 0.15, 0.06, 0.04))
