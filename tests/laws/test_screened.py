"""Moves screened by Gaussian rows: the posterior is the enumerated one, however bad the screen.

Likelihoods, quadrature and tolerances as in `test_any_likelihood`; some 600 averages are looked at.
For two trees the function at the rows is normal given the partitions, and the likelihood is
integrated over it by Gauss and Hermite (100 nodes an axis: the moments change by less than 0.002 of
an sd from 40 to 60).
"""

import zlib
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from support import oracle as o
from support.chains import MOVE_SETS, partition_of, run_chain
from support.chains.screened import run_screened, screen_of
from support.laws.likelihoods import (
    BATCHES,
    LIKELIHOODS,
    compare_one_tree,
    laplace_setup,
    model_of,
    problem_of,
)
from support.naive.batches import batch_means, frequencies, gap, law_gap
from support.tiers import tiers

from pymc_trees.core.leaves.nonconjugate.screen import aim_screen, fit_screen

Z = 5.5
DRAWS = 200_000
# (likelihood, problem, moves, how far anchors lie from the prior mean, share of flattened visits)
CASES = [
    ("poisson", "gaps", "three_a_visit", 0.7, 0.05),
    ("grouped", "gaps", "three_a_visit", 0.3, 0.05),
    ("logit", "deep", "perturb", 0.0, 0.05),
    ("logit", "deep", "rotate", 0.5, 0.05),
    ("student", "gaps", "three_a_visit", 0.4, 0.5),
    ("rowwise", "gaps", "three_a_visit", 0.4, 0.5),
    ("bounded", "gaps", "three_a_visit", 0.4, 0.5),
    ("gamma_shape", "gaps", "three_a_visit", 0.3, 0.2),
]
QUICK = [("poisson", "gaps", "three_a_visit", 0.7, 0.05)]


def setup_of(problem, likelihood, seed, away, flattened=0.05, m=1):
    """Arrays of a chain, and a screen whose anchors lie that far away to both sides in turn."""
    setup, _ = laplace_setup(problem, model_of(problem, likelihood, m), seed, m)
    setup.trees.values[:m] = problem.mean
    sides = np.resize([1.0, -1.0, 0.5], problem.n)
    return setup, screen_of(setup, m * problem.mean + away * sides, 0.5, flattened)


@pytest.mark.parametrize(("likelihood", "name", "moves", "away", "flattened"), tiers(CASES, QUICK))
def test_chain_agrees_with_the_enumeration(likelihood, name, moves, away, flattened):
    problem = problem_of(name, likelihood)
    seed = zlib.crc32(f"{likelihood} {name} {moves}".encode())
    setup, screen = setup_of(problem, likelihood, seed, away, flattened)
    chain = run_screened(seed, setup, screen, MOVE_SETS[moves], DRAWS)
    compare_one_tree(chain, problem, likelihood, Z)
    visits, taken = chain.proposed[-1], chain.accepted[-1]
    assert visits == DRAWS and 0.02 * visits < taken < visits


def two_trees(problem, likelihood, nodes=100):
    """Law of the pair of partitions, and first two moments of f."""
    log_row = LIKELIHOODS[likelihood][1]
    x, weight = np.polynomial.hermite_e.hermegauss(nodes)
    weight = weight / weight.sum()
    prior = o.partition_prior(problem.X, **problem.prior)
    n, law, moments = problem.n, {}, np.zeros((2, problem.n))
    for pair in product(prior, repeat=2):
        V = problem.sd**2 * sum(o.same_leaf(part, n).astype(float) for part in pair)
        size, axes = np.linalg.eigh(V)
        axes = axes[:, size > 1e-9] * np.sqrt(size[size > 1e-9])
        rank = axes.shape[1]
        z = np.stack(np.meshgrid(*[x] * rank, indexing="ij"), axis=-1).reshape(-1, rank)
        w = np.prod(np.stack(np.meshgrid(*[weight] * rank, indexing="ij")), axis=0).ravel()
        f = 2 * problem.mean + z @ axes.T
        terms = w * np.exp(sum(log_row(i, f[:, i]) for i in range(n)))
        share = prior[pair[0]] * prior[pair[1]]
        law[pair] = share * terms.sum()
        moments += share * np.array([terms @ f, terms @ f**2])
    total = sum(law.values())
    return {pair: share / total for pair, share in law.items()}, moments / total


@pytest.mark.parametrize("likelihood", ["poisson", "logit"])
def test_two_trees_agree_with_the_enumeration(likelihood):
    full = problem_of("gaps", likelihood)
    problem = replace(full, X=full.X[:3], y=full.y[:3])
    law, (mean, square) = two_trees(problem, likelihood)
    sd = np.sqrt(square - mean**2)
    setup, screen = setup_of(problem, likelihood, 5, 0.4, m=2)
    draws = 300_000
    chain = run_screened(3, setup, screen, MOVE_SETS["three_a_visit"], draws)
    keys = chain.codes[:, 0] * problem.n**problem.n + chain.codes[:, 1]
    found, shares = frequencies(keys, BATCHES)
    states = [
        tuple(partition_of(code, problem.n) for code in divmod(int(key), problem.n**problem.n))
        for key in found
    ]
    pairs = law_gap(states, shares, law, draws)
    assert pairs.within(Z, 0.03), pairs
    scaled = (chain.fits[:, :, 0] - mean) / sd
    first, second = (
        gap(batch_means(scaled, BATCHES), 0.0),
        gap(batch_means(scaled**2, BATCHES), 1.0),
    )
    assert first.within(Z, 0.05) and second.within(Z, 0.1), (first, second)


def test_without_the_second_look_the_comparison_fails():
    """The Gaussian rows taken for the likelihood itself."""
    problem = problem_of("gaps", "poisson")
    setup, screen = setup_of(problem, "poisson", 1, 0.7)
    fit_screen(setup.leaf, screen)
    aim_screen(np.zeros((problem.n, 1)), screen, problem.mean, 1.0)
    screen.near.r[:] -= problem.mean
    chain = run_chain(2, setup._replace(leaf=screen.near), MOVE_SETS["three_a_visit"], DRAWS, True)
    with pytest.raises(AssertionError, match="Gap"):
        compare_one_tree(chain, problem, "poisson", 2 * Z)
