"""One tree under likelihoods whose leaf values do not integrate out, against the enumeration.

The leaf values are integrated by Gauss-Legendre quadrature, leaf by leaf, so that the exact
posterior is known for any likelihood; the chain draws leaf values from an approximation and
corrects for it. Tolerances as in `test_exact_posterior`: averages in standard errors by batch means
over 60 batches; some 1,000 averages are looked at, of which at 5.5 standard errors (t law, 59
degrees of freedom) one fails by chance in 1,000 fresh runs; the seeds are fixed.
"""

import zlib
from dataclasses import replace

import pytest
from support.chains import ALL_MOVES, MOVE_SETS, partition_of, run_chain
from support.laws.likelihoods import (
    BATCHES,
    compare_one_tree,
    exact_law,
    model_of,
    problem_of,
    setup_of,
)
from support.naive.batches import batch_means, frequencies, gap, law_gap
from support.tiers import tiers

from pymc_trees.targets.rowwise import KernelTarget, RowwiseTarget

Z = 5.5
# Every likelihood and every set of moves, not their product.
CASES = [
    ("poisson", "gaps", "cgm"),
    ("poisson", "repeats", "grow_prune"),
    ("grouped", "gaps", "three_a_visit"),
    ("logit", "deep", "change_swap"),
    ("student", "two_columns", "grow_prune"),
    ("rowwise", "gaps", "cgm"),
    ("flat", "gaps", "cgm"),
    ("bounded", "gaps", "cgm"),
    ("gamma_shape", "gaps", "cgm"),
    ("student", "gaps", "perturb"),
    ("logit", "deep", "perturb"),
    ("logit", "deep", "rotate"),
    ("logit", "deep", "restructure"),
    ("exposed", "gaps", "three_a_visit"),
    ("times", "gaps", "cgm"),
    ("truncated", "gaps", "cgm"),
    ("switched", "gaps", "cgm"),
    ("no_curvature", "repeats", "grow_prune"),
    ("no_slope", "gaps", "three_a_visit"),
]
WRITTEN_OUT = "exposed", "times", "truncated"


# A density with two modes, and entries of y that see some rows twice and others never.
QUICK = [
    ("student", "gaps", "perturb"),
    ("grouped", "gaps", "three_a_visit"),
    ("switched", "gaps", "cgm"),
]


@pytest.mark.parametrize(("likelihood", "name", "moves"), tiers(CASES, QUICK))
def test_chain_agrees_with_the_enumeration(likelihood, name, moves):
    problem = problem_of(name, likelihood)
    seed = zlib.crc32(f"{likelihood} {name} {moves}".encode())
    kind = KernelTarget if likelihood in WRITTEN_OUT else RowwiseTarget
    setup, _ = setup_of(problem, model_of(problem, likelihood), seed + 1, kind)
    draws = 50_000
    chain = run_chain(seed, setup, MOVE_SETS[moves], draws, keep_fits=True)
    compare_one_tree(chain, problem, likelihood, Z)


@pytest.mark.parametrize("wrong", [{"sd": 1.4}, {"prior": {"alpha": 0.7, "beta": 1.0}}])
def test_the_comparison_rejects_another_prior(wrong):
    """The same chain against the posterior under a leaf sd 17% too large, or another alpha."""
    problem = problem_of("gaps", "poisson")
    partitions, mean, sd = exact_law(replace(problem, **wrong), "poisson")
    setup, _ = setup_of(problem, model_of(problem, "poisson"), 2, RowwiseTarget)
    chain = run_chain(1, setup, ALL_MOVES, 50_000, keep_fits=True)
    scaled = (chain.fits[:, :, 0] - mean) / sd
    first = gap(batch_means(scaled, BATCHES), 0.0)
    second = gap(batch_means(scaled**2, BATCHES), 1.0)
    codes, shares = frequencies(chain.codes[:, 0], BATCHES)
    states = [partition_of(code, problem.n) for code in codes]
    third = law_gap(states, shares, partitions, 50_000)
    assert max(first.z, second.z, third.z) > 2 * Z, (first, second, third)
