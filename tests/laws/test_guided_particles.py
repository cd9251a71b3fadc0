"""Particle Gibbs where leaf values do not integrate out, against the enumeration.

The exact posterior and the tolerances are those of `test_any_likelihood`: quadrature over leaf
values, averages in standard errors by batch means. The posterior must not move with the number of
particles or with how they grow.
"""

import zlib
from dataclasses import replace

import numpy as np
import pytest
from support import oracle as o
from support.chains import partition_of, run_guided
from support.laws.likelihoods import exact_law, model_of, problem_of, setup_of
from support.naive.batches import batch_means, frequencies, gap, independent_se, law_gap
from support.tiers import tiers

from pymc_trees.core.histograms.contract import pack_rows
from pymc_trees.core.leaves.normal import make_normal
from pymc_trees.targets.rowwise import KernelTarget, RowwiseTarget

BATCHES = 60
Z = 5.5
# Every number of particles and every proposal, not their product.
CASES = [
    ("poisson", "repeats", 10, "optimal"),
    ("logit", "two_columns", 2, "empirical"),
    ("student", "gaps", 3, "optimal"),
    ("flat", "gaps", 3, "optimal"),
    ("bounded", "gaps", 2, "optimal"),
    ("exposed", "gaps", 3, "optimal"),
    ("times", "gaps", 3, "prior"),
    ("switched", "gaps", 3, "optimal"),
    ("no_slope", "gaps", 2, "optimal"),
]
WRITTEN_OUT = "exposed", "times"


def distances(problem, likelihood, chain, draws):
    """Distances of partitions, pairs, means and second moments from the exact law."""
    partitions, mean, sd = exact_law(problem, likelihood)
    codes, shares = frequencies(chain.codes[:, 0], BATCHES)
    states = [partition_of(code, problem.n) for code in codes]
    above = np.triu_indices(problem.n, 1)
    same = np.array([o.same_leaf(state, problem.n)[above] for state in states])
    exact = sum(p * o.same_leaf(part, problem.n)[above] for part, p in partitions.items())
    scaled = (chain.fits[:, :, 0] - mean) / sd
    return [
        law_gap(states, shares, partitions, draws),
        gap(shares @ same, exact, independent_se(exact, draws)),
        gap(batch_means(scaled, BATCHES), 0.0),
        gap(batch_means(scaled**2, BATCHES), 1.0),
    ]


@pytest.mark.parametrize(
    ("likelihood", "name", "particles", "proposal"),
    tiers(CASES, quick=[("student", "gaps", 3, "optimal")]),
)
def test_chain_agrees_with_the_enumeration(likelihood, name, particles, proposal):
    problem = problem_of(name, likelihood)
    seed = zlib.crc32(f"{likelihood} {name} {particles} {proposal}".encode())
    kind = KernelTarget if likelihood in WRITTEN_OUT else RowwiseTarget
    setup, _ = setup_of(problem, model_of(problem, likelihood), seed + 1, kind)
    draws = 60_000 // (1 + (particles > 3))
    chain = run_guided(seed, setup, particles, proposal, draws)
    found = distances(problem, likelihood, chain, draws)
    limits = (0.06, 0.08, 0.2, 0.4)
    assert all(one.within(Z, limit) for one, limit in zip(found, limits, strict=True)), found
    assert chain.accepted[0] > draws / 20
    assert 1.0 < chain.accepted[1] / draws <= particles


def test_the_comparison_rejects_another_prior():
    """The same chain against the posterior under a leaf sd 17% too large."""
    problem = problem_of("gaps", "poisson")
    setup, _ = setup_of(problem, model_of(problem, "poisson"), 2, RowwiseTarget)
    chain = run_guided(1, setup, 3, "optimal", 50_000)
    found = distances(replace(problem, sd=1.4), "poisson", chain, 50_000)
    assert max(one.z for one in found) > 2 * Z, found


@pytest.mark.parametrize("rows", [2, 6, 7, 48])
def test_rows_that_are_all_alike_fit_their_cells(rows):
    """Equal rows fill a cell to the brim: its count must not catch what rounding spills."""
    for value in (2.0, -1.1, 1.0 / 3.0):
        leaf = make_normal(0.0, 1.0, np.full(rows, value), np.full(rows, 3.9999887677908124), 1)
        packed, unit = np.zeros((2, rows), dtype=np.int64), np.ones(3)
        pack_rows(leaf, packed, unit)
        total = int(packed[0].sum())
        shift = int(unit[2])
        count = (total + (1 << (shift - 1))) >> shift
        assert count == rows
        assert (total - (count << shift)) * unit[0] == pytest.approx(rows * leaf.w[0] * value)
