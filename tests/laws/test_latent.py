"""Rows that are Gaussian given latent variables: the posterior is the enumerated one.

Problems, quadrature and tolerances as in `test_any_likelihood`; some 1,000 averages are looked at.
"""

import zlib
from dataclasses import replace

import pytest
from support.chains import MOVE_SETS, make_tools, run_chain, run_particles
from support.laws.likelihoods import (
    compare_one_tree,
    compare_two_trees,
    model_of,
    problem_of,
    setup_of,
)
from support.tiers import tiers

from pymc_trees.core.leaves.latent.rows import no_latents
from pymc_trees.targets.conjugate import LatentTarget

Z = 5.5
DRAWS = 200_000
CASES = [
    ("logit", "gaps", "three_a_visit"),
    ("binomial", "gaps", "perturb"),
    ("binomial", "deep", "change_swap"),
    ("probit", "deep", "grow_prune"),
    ("ordered", "gaps", "three_a_visit"),
    ("ordered", "two_columns", "rotate"),
    ("student", "gaps", "three_a_visit"),
    ("rowwise", "gaps", "cgm"),
    ("quantile", "gaps", "three_a_visit"),
    ("censored", "gaps", "three_a_visit"),
    ("log_times", "gaps", "three_a_visit"),
    ("mixture", "gaps", "three_a_visit"),
    ("mixture", "two_columns", "cgm"),
]
QUICK = [
    ("binomial", "gaps", "perturb"),
    ("ordered", "gaps", "three_a_visit"),
    ("quantile", "gaps", "three_a_visit"),
    ("censored", "gaps", "three_a_visit"),
    ("log_times", "gaps", "three_a_visit"),
    ("mixture", "gaps", "three_a_visit"),
]


def latent_setup(problem, likelihood, seed, m=1):
    setup, _ = setup_of(problem, model_of(problem, likelihood, m), seed, LatentTarget, m)
    setup.trees.values[:m] = problem.mean
    return setup


@pytest.mark.parametrize(("likelihood", "name", "moves"), tiers(CASES, QUICK))
def test_chain_agrees_with_the_enumeration(likelihood, name, moves):
    problem = problem_of(name, likelihood)
    seed = zlib.crc32(f"latent {likelihood} {name} {moves}".encode())
    setup = latent_setup(problem, likelihood, seed)
    chain = run_chain(seed, setup, MOVE_SETS[moves], DRAWS, keep_fits=True)
    compare_one_tree(chain, problem, likelihood, Z)


@pytest.mark.parametrize(
    ("likelihood", "proposal"),
    tiers([("binomial", "optimal"), ("quantile", "prior")], [("binomial", "optimal")]),
)
def test_particle_gibbs_agrees_with_the_enumeration(likelihood, proposal):
    problem = problem_of("gaps", likelihood)
    setup = latent_setup(problem, likelihood, 3)
    tools = make_tools(setup, 3, proposal, "multinomial")
    chain = run_particles(4, setup, tools, 100_000, keep_fits=True)
    compare_one_tree(chain, problem, likelihood, Z)


@pytest.mark.parametrize(
    "likelihood",
    tiers(["binomial", "quantile"], ["quantile"]),
)
def test_two_trees_agree_with_the_enumeration(likelihood):
    """Latent variables given a sum of trees, which is handed to all kinds of them alike."""
    full = problem_of("gaps", likelihood)
    problem = replace(full, X=full.X[:3], y=full.y[:3])
    setup = latent_setup(problem, likelihood, 5, m=2)
    chain = run_chain(6, setup, MOVE_SETS["three_a_visit"], 300_000, keep_fits=True)
    compare_two_trees(chain, problem, likelihood, Z)


def test_latent_variables_that_stay_are_found_out():
    """Drawn once, as if they were data."""
    problem = problem_of("gaps", "binomial")
    setup = latent_setup(problem, "binomial", 1)
    setup = setup._replace(leaf=setup.leaf._replace(latent=no_latents()))
    chain = run_chain(2, setup, MOVE_SETS["three_a_visit"], DRAWS, keep_fits=True)
    with pytest.raises(AssertionError, match="Gap"):
        compare_one_tree(chain, problem, "binomial", 2 * Z)
