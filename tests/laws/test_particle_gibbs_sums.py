"""Particle Gibbs on sums of two trees, against a list of all pairs; and without data.

Batch means over 60 batches. Some 600 averages: at 5.5 standard errors (t law, 59 degrees of
freedom) one fails by chance in 2,000 fresh runs. Absolute tolerances are three to five times the
error measured at these lengths. Kolmogorov-Smirnov at p > 1e-5.
"""

import numpy as np
import pytest
from scipy import stats
from support import oracle as o
from support.chains import make_setup, make_tools, partition_of, run_particles, with_float_cells
from support.laws.prior import check_laws
from support.naive.batches import RARE, batch_means, frequencies, gap, law_gap
from support.naive.laws import PROBLEMS
from support.tiers import tiers

BATCHES = 60
Z = 5.5


def run(seed, name, draws, *tools, leaf="normal", m=2, data=True, **more):
    setup = with_float_cells(make_setup(PROBLEMS[name], leaf, m=m, data=data))
    return run_particles(seed, setup, make_tools(setup, *tools, **more), draws, keep_fits=True)


PAIRS = [
    ("gaps", 100_000, 3, "prior", "stratified", 1.0),
    ("three_columns", 25_000, 10, "optimal", "systematic", 0.5),
    ("binary_constant", 40_000, 10, "prior", "multinomial", 1.0),
    ("grid", 70_000, 2, "empirical", "multinomial", 1.0),
    ("noisy", 8_000, 50, "optimal", "multinomial", 1.0),
]


@pytest.mark.parametrize(
    "name, draws, particles, proposal, scheme, share",
    tiers(PAIRS, quick=[("three_columns", 25_000, 10, "optimal", "systematic", 0.5)]),
)
def test_two_trees_agree_with_the_listed_pairs(name, draws, particles, proposal, scheme, share):
    problem = PROBLEMS[name]
    exact = o.two_tree_posterior(
        problem.X, problem.y, problem.sigma, problem.mean, problem.sd, **problem.prior
    )
    chain = run(1, name, draws, particles, proposal, scheme, share=share)

    scaled = (chain.fits[:, :, 0] - exact.mean) / exact.sd
    mean = gap(batch_means(scaled, BATCHES), 0.0)
    assert mean.within(Z, 0.1), mean
    moments = batch_means(scaled[:, :, None] * scaled[:, None, :], BATCHES)
    correlation = exact.covariance / np.outer(exact.sd, exact.sd)
    second = gap(moments.reshape(BATCHES, -1), correlation.reshape(-1))
    assert second.within(Z, 0.15), second

    codes, place = np.unique(chain.codes, return_inverse=True)
    place = place.reshape(chain.codes.shape)
    partitions = [partition_of(code, problem.n) for code in codes]
    sizes = np.array([len(part) for part in partitions])
    totals, shares = frequencies(sizes[place].sum(axis=1), BATCHES)
    leaves = law_gap(totals.tolist(), shares, exact.leaf_counts, draws)
    assert leaves.within(Z, 0.06), leaves

    law = {}
    for pair, weight in exact.combinations:
        key = frozenset(pair)
        law[key] = law.get(key, 0.0) + weight
    if max(law.values()) * draws < RARE:
        return  # pairs too many to be counted one by one
    low, high = place.min(axis=1), place.max(axis=1)
    keys, shares = frequencies(low * len(partitions) + high, BATCHES)
    states = [
        frozenset([partitions[key // len(partitions)], partitions[key % len(partitions)]])
        for key in keys
    ]
    pairs = law_gap(states, shares, law, draws)
    assert pairs.within(Z, 0.04), pairs


ALONE = [
    ("deep", 3, "prior", "multinomial", 1.0, 100),
    ("deep", 3, "empirical", "stratified", 1.0, 100),
    ("grid", 10, "optimal", "systematic", 1.0, 2),
    ("three_columns", 3, "optimal", "multinomial", 0.4, 100),
    ("repeats", 10, "empirical", "systematic", 1.0, 100),
    ("binary_constant", 2, "optimal", "multinomial", 0.6, 100),
]


@pytest.mark.parametrize(
    "name, particles, proposal, scheme, share, n_bins",
    tiers(ALONE, quick=[("grid", 10, "optimal", "systematic", 1.0, 2)]),
)
def test_without_data_it_draws_from_the_prior(name, particles, proposal, scheme, share, n_bins):
    chain = run(
        2, name, 30_000, particles, proposal, scheme, m=1, data=False, share=share,
        n_bins=n_bins,
    )  # fmt: skip
    check_laws(name, chain.codes[:, 0], chain.depths[:, 0], chain.roots[:, 0])
    problem = PROBLEMS[name]
    values = (chain.fits[:, 0, 0] - problem.mean) / problem.sd  # drawn anew at every sweep
    assert stats.kstest(values, "norm").pvalue > 1e-5


def test_leaf_values_are_drawn_anew_also_when_the_tree_stays():
    """All rows alike: a stump for ever, whose value has its conditional law in every draw."""
    from dataclasses import replace

    problem = replace(PROBLEMS["gaps"], X=np.ones((6, 2)))
    setup = make_setup(problem, "normal")
    chain = run_particles(3, setup, make_tools(setup, 3, "prior", "multinomial"), 5000, True)
    assert (chain.depths == 0).all()
    mean, variance = problem.normal().moments(range(6))
    values = (chain.fits[:, 0, 0] - mean) / np.sqrt(variance)
    assert stats.kstest(values, "norm").pvalue > 1e-5
    assert abs(np.corrcoef(values[1:], values[:-1])[0, 1]) < 5 / np.sqrt(5000)
