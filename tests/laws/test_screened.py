"""Moves screened by Gaussian rows: the posterior is the enumerated one, however bad the screen.

Likelihoods, quadrature and tolerances as in `test_any_likelihood`; some 600 averages are looked at.
"""

import zlib
from dataclasses import replace

import numpy as np
import pytest
from support.chains import MOVE_SETS, run_chain
from support.chains.screened import run_screened, screen_of
from support.laws.likelihoods import (
    compare_one_tree,
    compare_two_trees,
    model_of,
    problem_of,
    setup_of,
)
from support.tiers import tiers

from pymc_trees.core.leaves.nonconjugate.gaussian import expand_at_anchors, fit_screen
from pymc_trees.targets.rowwise import KernelTarget, RowwiseTarget

Z = 5.5
DRAWS = 200_000
# (likelihood, problem, moves, how far anchors lie from the prior mean, share of local visits)
CASES = [
    ("poisson", "gaps", "three_a_visit", 0.7, 0.05),
    ("poisson", "gaps", "three_a_visit", 0.7, 1.0),
    ("logit", "deep", "perturb", 0.0, 0.05),
    ("logit", "deep", "rotate", 0.5, 0.05),
    ("exposed", "deep", "restructure", 0.4, 0.2),
    ("student", "gaps", "three_a_visit", 0.4, 0.5),
    ("rowwise", "gaps", "three_a_visit", 0.4, 0.5),
    ("bounded", "gaps", "three_a_visit", 0.4, 0.5),
    ("gamma_shape", "gaps", "three_a_visit", 0.3, 0.2),
    ("times", "gaps", "perturb", 0.4, 0.2),
    ("switched", "gaps", "three_a_visit", 0.4, 0.2),
    ("no_slope", "gaps", "perturb", 0.4, 0.2),
]
WRITTEN_OUT = "poisson", "exposed", "times"
QUICK = [("poisson", "gaps", "three_a_visit", 0.7, 0.05)]


def screened_setup(problem, likelihood, seed, away, local=0.05, m=1):
    """Arrays of a chain, and a screen whose anchors lie that far away to both sides in turn."""
    kind = KernelTarget if likelihood in WRITTEN_OUT else RowwiseTarget
    setup, _ = setup_of(problem, model_of(problem, likelihood, m), seed, kind, m)
    setup.trees.values[:m] = problem.mean
    sides = np.resize([1.0, -1.0, 0.5], problem.n)
    return setup, screen_of(setup, m * problem.mean + away * sides, 0.5, local)


@pytest.mark.parametrize(("likelihood", "name", "moves", "away", "local"), tiers(CASES, QUICK))
def test_chain_agrees_with_the_enumeration(likelihood, name, moves, away, local):
    problem = problem_of(name, likelihood)
    seed = zlib.crc32(f"{likelihood} {name} {moves}".encode())
    setup, screen = screened_setup(problem, likelihood, seed, away, local)
    chain = run_screened(seed, setup, screen, MOVE_SETS[moves], DRAWS)
    compare_one_tree(chain, problem, likelihood, Z)
    visits, taken = chain.proposed[-1], chain.accepted[-1]
    assert visits == DRAWS and 0.02 * visits < taken < visits


@pytest.mark.parametrize("likelihood", ["poisson", "logit", "exposed", "times"])
def test_two_trees_agree_with_the_enumeration(likelihood):
    full = problem_of("gaps", likelihood)
    problem = replace(full, X=full.X[:3], y=full.y[:3])
    setup, screen = screened_setup(problem, likelihood, 5, 0.4, m=2)
    chain = run_screened(3, setup, screen, MOVE_SETS["three_a_visit"], 300_000)
    compare_two_trees(chain, problem, likelihood, Z)


def test_without_the_second_look_the_comparison_fails():
    """The Gaussian rows taken for the likelihood itself."""
    problem = problem_of("gaps", "poisson")
    setup, screen = screened_setup(problem, "poisson", 1, 0.7)
    fit_screen(setup.leaf, screen)
    expand_at_anchors(np.full((problem.n, 1), problem.mean), screen)
    chain = run_chain(
        2, setup._replace(leaf=screen.gaussian), MOVE_SETS["three_a_visit"], DRAWS, True
    )
    with pytest.raises(AssertionError, match="Gap"):
        compare_one_tree(chain, problem, "poisson", 2 * Z)
