"""Data so small that every tree can be listed: each sampler finds the exact posterior.

One table for all samplers: a sampler is a function of `support.laws` that runs a chain and compares
it, a case its columns, its leaf or likelihood, and whatever else it takes. To add a sampler, add a
line. Cases cover pairs of a sampler's settings, not their product; those in quick tables are the
hardest of each kind. `test_mistakes` has what the comparisons have to find;
`test_tempering` and `test_tempering_step` have chains that exchange their states with others.

Tolerances. Averages of a chain are compared in standard errors by batch means
(`support.naive.batches`, 60 batches; soft trees 100). Conjugate leaves: some 14,000 averages, of
which at 6.0 standard errors, of a t law with 59 degrees of freedom, one fails by chance in 700 runs
of the file with fresh seeds. Others: some 5,000 at 5.5 (one in 300), soft trees 150 at 5.0. The
seeds are fixed. The absolute tolerances are three to five times the error measured at the lengths
of the chains: 0.03 on the probability of a partition is set by the longest memory met, grow and
prune alone on "repeats" (0.02); half of the chains are within 0.004.
"""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy import stats
from support.chains import (
    make_setup,
    make_tools,
    run_particles,
)
from support.laws import (
    evidence,
    exact,
    grid_step,
    joint,
    mondrian,
    nonconjugate,
    outputs,
    soft,
    sums,
)
from support.laws.exact import MOVES
from support.naive.laws import PROBLEMS
from support.tiers import table

from pymc_trees.core.samplers.particles import SCHEMES
from pymc_trees.core.samplers.proposals import PROPOSALS
from pymc_trees.core.samplers.top_down import EXPANSIONS

pytestmark = pytest.mark.usefixtures("quick_compile")

LEAVES = ("normal", "normal_gamma", "dirichlet")
# Every pair of a problem, a leaf and a set of moves: leaves by turns, all of them on the deepest
# trees. The noise of "noisy" is seen by the normal leaf only.
TURNS = [
    (name, "normal" if name == "noisy" else LEAVES[(i + j) % 3], moves)
    for i, name in enumerate(PROBLEMS)
    for j, moves in enumerate(MOVES)
]
ONE_TREE = [
    *table(
        exact.by_moves,
        quick=[  # deep trees under each leaf; columns that vary in some nodes only; ties; levels
            ("deep", "normal", "cgm"),
            ("deep", "normal_gamma", "cgm"),
            ("deep", "dirichlet", "cgm"),
            ("binary_constant", "normal", "change_swap"),
            ("noisy", "normal", "grow_prune"),
            ("repeats", "normal", "change_swap"),
            ("deep", "normal", "three_a_visit"),
            ("deep", "normal", "perturb"),
            ("deep", "normal", "rotate"),
            ("deep", "normal", "restructure"),
            ("repeats", "normal", "all_moves"),
            ("levels", "normal", "all_moves"),
            ("mixed_grid", "normal", "rotate"),
            ("onehot", "normal", "perturb"),
            ("missing", "normal", "restructure"),
        ],
        rest=[
            *TURNS,
            *(("deep", leaf, moves) for leaf in LEAVES for moves in MOVES),
            ("levels", "normal", "cgm"),
            ("levels", "normal", "restructure"),
            ("levels", "normal", "perturb"),
            ("onehot", "normal", "cgm"),
            ("onehot", "normal", "rotate"),
            ("missing", "normal", "grow_prune"),
            ("missing", "normal", "rotate"),
            ("mixed_grid", "normal", "cgm"),
            ("mixed_grid", "normal", "change_swap"),
            ("mixed_grid", "normal", "all_moves"),
        ],
    ),
    # The last is long enough to see (z = 8) stratified draws whose reference always comes first.
    *table(
        exact.by_particles,
        quick=[
            ("deep", "normal", 50, "optimal", "systematic"),
            ("three_columns", "normal", 3, "optimal", "stratified", 0.3, 100),
        ],
        rest=[
            ("deep", "normal", 3, "prior", "multinomial"),
            ("binary_constant", "normal", 3, "optimal", "multinomial"),
            ("grid", "normal", 10, "empirical", "multinomial"),
            ("grid", "normal", 3, "optimal", "systematic", 1.0, 2),
            ("deep", "normal", 2, "prior", "multinomial"),
            ("deep", "normal", 10, "prior", "multinomial"),
            ("deep", "normal", 50, "prior", "multinomial"),
            ("deep", "normal_gamma", 3, "empirical", "multinomial"),
            ("deep", "dirichlet", 10, "optimal", "stratified"),
            ("binary_constant", "normal_gamma", 50, "prior", "stratified"),
            ("binary_constant", "dirichlet", 2, "empirical", "systematic"),
            ("grid", "normal_gamma", 2, "optimal", "stratified"),
            ("grid", "dirichlet", 3, "prior", "systematic"),
            ("three_columns", "normal", 50, "empirical", "stratified"),
            ("three_columns", "normal_gamma", 10, "prior", "systematic"),
            ("three_columns", "dirichlet", 50, "optimal", "multinomial"),
            ("noisy", "normal", 10, "optimal", "multinomial"),
            ("three_columns", "normal_gamma", 10, "optimal", "systematic", 0.7, 100),
            ("binary_constant", "normal", 10, "optimal", "multinomial", 0.4, 100),
            ("grid", "dirichlet", 3, "optimal", "multinomial", 0.5, 2),
            ("deep", "normal", 3, "optimal", "multinomial", 1.0, 2),
            ("repeats", "dirichlet", 10, "optimal", "stratified", 0.5, 2),
            ("gaps", "normal", 3, "prior", "stratified", 1.0, 100, 400000),
            ("levels", "normal", 2, "optimal", "multinomial", 1.0),
            ("levels", "normal", 10, "empirical", "systematic", 1.0),
            ("missing", "normal", 10, "prior", "multinomial", 1.0),
            ("onehot", "normal", 3, "optimal", "stratified", 0.6),
            ("mixed_grid", "normal", 10, "optimal", "multinomial", 0.5),
            ("missing", "normal", 2, "optimal", "multinomial", 1.0),
        ],
    ),
    *table(
        grid_step.by_steps,
        quick=[],
        rest=[
            ("deep", 3, "optimal", "stratified", 3),
            ("repeats", 4, "prior", "multinomial", 10),
            ("three_columns", 255, "empirical", "systematic", 3),
        ],
    ),
    *table(exact.turned_round, [("mixed_grid",)], [("levels",)]),
    # Every move on every problem, with data and without by turns.
    *table(
        mondrian.mondrian_by_moves,
        quick=[],
        rest=[
            ("two_columns", "all_moves", True),
            ("repeats", "perturb", True),
            ("two_columns", "rotate", True),
            ("repeats", "restructure", True),
            ("binary_constant", "all_moves", False),
            *(
                (name, moves, (i + j) % 2 == 0)
                for i, name in enumerate(mondrian.LIFETIMES)
                for j, moves in enumerate(mondrian.DRAWS)
            ),
        ],
    ),
    *table(
        mondrian.mondrian_by_particles,
        quick=[],
        rest=[
            ("gaps", 2, "optimal", "multinomial"),
            ("two_columns", 10, "empirical", "multinomial"),
            ("repeats", 10, "optimal", "systematic"),
            ("binary_constant", 3, "prior", "stratified"),
        ],
    ),
]


SUMS = [
    # Every move, every problem, by turns: two moves a problem, and all of them on unequal noise.
    *table(
        sums.two_by_moves,
        quick=[("noisy", "three_a_visit")],
        rest=[
            ("three_columns", "change_swap"),
            ("noisy", "rotate"),
            ("noisy", "cgm"),
            ("noisy", "grow_prune"),
            ("noisy", "change_swap"),
            ("noisy", "all_moves"),
            ("noisy", "perturb"),
            ("noisy", "restructure"),
            ("gaps", "cgm"),
            ("gaps", "grow_prune"),
            ("binary_constant", "rotate"),
            ("binary_constant", "restructure"),
            ("three_columns", "grow_prune"),
            ("grid", "all_moves"),
            ("grid", "perturb"),
        ],
    ),
    *table(
        sums.three_by_moves,
        quick=[],
        rest=[
            ("all_moves",),
            ("cgm",),
            ("grow_prune",),
            ("three_a_visit",),
        ],
    ),
    *table(
        sums.two_by_particles,
        quick=[],
        rest=[
            ("three_columns", 25000, 10, "optimal", "systematic", 0.5),
            ("gaps", 100000, 3, "prior", "stratified", 1.0),
            ("binary_constant", 40000, 10, "prior", "multinomial", 1.0),
            ("grid", 70000, 2, "empirical", "multinomial", 1.0),
            ("noisy", 8000, 50, "optimal", "multinomial", 1.0),
        ],
    ),
]


OTHER_LIKELIHOODS = [
    # A density with two modes, and entries of y that see some rows twice and others never.
    *table(
        nonconjugate.proposed_values,
        quick=[
            ("gaps", "student", "perturb"),
            ("gaps", "grouped", "three_a_visit"),
            ("gaps", "switched", "cgm"),
        ],
        rest=[
            ("gaps", "poisson", "cgm"),
            ("repeats", "poisson", "grow_prune"),
            ("deep", "logit", "change_swap"),
            ("two_columns", "student", "grow_prune"),
            ("gaps", "rowwise", "cgm"),
            ("gaps", "flat", "cgm"),
            ("gaps", "bounded", "cgm"),
            ("gaps", "gamma_shape", "cgm"),
            ("deep", "logit", "perturb"),
            ("deep", "logit", "rotate"),
            ("deep", "logit", "restructure"),
            ("gaps", "exposed", "three_a_visit"),
            ("gaps", "times", "cgm"),
            ("gaps", "truncated", "cgm"),
            ("repeats", "no_curvature", "grow_prune"),
            ("gaps", "no_slope", "three_a_visit"),
            ("gaps", "positive", "cgm"),
            ("gaps", "inflated", "three_a_visit"),
        ],
    ),
    *table(nonconjugate.conjugate, [("gaps", "hurdle", "three_a_visit")]),
    *table(
        nonconjugate.guided_particles,
        quick=[],
        rest=[
            ("gaps", "student", 3, "optimal"),
            ("repeats", "poisson", 10, "optimal"),
            ("two_columns", "logit", 2, "empirical"),
            ("gaps", "flat", 3, "optimal"),
            ("gaps", "bounded", 2, "optimal"),
            ("gaps", "exposed", 3, "optimal"),
            ("gaps", "times", 3, "prior"),
            ("gaps", "switched", 3, "optimal"),
            ("gaps", "no_slope", 2, "optimal"),
            ("gaps", "inflated", 3, "optimal"),
        ],
    ),
    *table(
        nonconjugate.latent,
        quick=[
            ("gaps", "binomial", "perturb"),
            ("gaps", "ordered", "three_a_visit"),
            ("gaps", "quantile", "three_a_visit"),
            ("gaps", "censored", "three_a_visit"),
            ("gaps", "log_times", "three_a_visit"),
            ("gaps", "mixture", "three_a_visit"),
        ],
        rest=[
            ("gaps", "logit", "three_a_visit"),
            ("deep", "binomial", "change_swap"),
            ("deep", "probit", "grow_prune"),
            ("two_columns", "ordered", "rotate"),
            ("gaps", "student", "three_a_visit"),
            ("gaps", "rowwise", "cgm"),
            ("two_columns", "mixture", "cgm"),
            ("gaps", "share", "three_a_visit"),
            ("gaps", "cures", "cgm"),
            ("gaps", "uncured", "three_a_visit"),
        ],
    ),
    *table(
        nonconjugate.latent_particles,
        quick=[
            ("gaps", "binomial", "optimal"),
        ],
        rest=[
            ("gaps", "quantile", "prior"),
            ("gaps", "uncured", "optimal"),
        ],
    ),
    *table(nonconjugate.two_latent_trees, [("binomial",)], [("quantile",), ("uncured",)]),
    *table(
        nonconjugate.screened,
        quick=[
            ("gaps", "poisson", "three_a_visit", 0.7, 0.05),
        ],
        rest=[
            ("gaps", "poisson", "three_a_visit", 0.7, 1.0),
            ("deep", "logit", "perturb", 0.0, 0.05),
            ("deep", "logit", "rotate", 0.5, 0.05),
            ("deep", "exposed", "restructure", 0.4, 0.2),
            ("gaps", "student", "three_a_visit", 0.4, 0.5),
            ("gaps", "rowwise", "three_a_visit", 0.4, 0.5),
            ("gaps", "bounded", "three_a_visit", 0.4, 0.5),
            ("gaps", "gamma_shape", "three_a_visit", 0.3, 0.2),
            ("gaps", "times", "perturb", 0.4, 0.2),
            ("gaps", "inflated", "three_a_visit", 0.4, 0.2),
            ("gaps", "switched", "three_a_visit", 0.4, 0.2),
            ("gaps", "no_slope", "perturb", 0.4, 0.2),
        ],
    ),
    *table(
        nonconjugate.two_screened_trees, [], [("poisson",), ("logit",), ("exposed",), ("times",)]
    ),
    *table(
        joint.of_all_rows,
        quick=[],
        rest=[
            ("four rows", "correlated", "three_a_visit", 2),
            ("gaps", "cumulated", "cgm", 1),
            ("repeats", "correlated", "grow_prune", 1),
            ("gaps", "cumulated", "perturb", 1),
            ("gaps", "correlated", "rotate", 1),
            ("gaps", "correlated", "restructure", 1),
            ("four rows", "cumulated", "cgm", 2),
            ("gaps", "cumulated", "two particles", 1),
            ("four rows", "correlated", "three particles", 2),
            ("gaps", "no_curvature", "cgm", 1),
            ("four rows", "no_curvature", "three particles", 2),
            ("four rows", "no_slope", "cgm", 2),
            ("gaps", "no_slope", "two particles", 1),
        ],
    ),
    *table(
        outputs.screened_outputs,
        quick=[],
        rest=[
            ("softmax", 0.3, "three_a_visit"),
            ("softmax", 0.8, "perturb"),
            ("scale", 0.3, "perturb"),
            ("scale", 0.8, "three_a_visit"),
            ("hurdle", 0.3, "three_a_visit"),
        ],
    ),
    *table(
        outputs.guided_outputs,
        quick=[],
        rest=[
            ("softmax", "RowwiseTarget", "optimal"),
            ("scale", "RowwiseTarget", "prior"),
            ("scale", "JointTarget", "optimal"),
            ("hurdle", "SeparateTarget", "optimal"),
        ],
    ),
]


SOFT = [
    *table(soft.soft_tree, [()]),
    *table(soft.soft_tree_by_other_moves, [], [()]),
    *table(soft.two_soft_trees, [()]),
    *table(soft.latent_soft_tree, [()]),
    *table(
        soft.screened_soft_tree,
        quick=[
            (0.5, True),
        ],
        rest=[
            (0.0, True),
            (1.0, True),
            (0.5, False),
        ],
    ),
]


SETTINGS = [
    (
        ("gaps", "deep", "grid", "three_columns", "repeats", "binary_constant", "noisy")[k % 7],
        LEAVES[(k + k // 12) % 3],
        *settings,
        1.0 if settings[0] == "optimal" else (1.0, 0.5, 0.8)[k // 3 % 3],
    )
    for k, settings in enumerate(product(PROPOSALS, EXPANSIONS, SCHEMES))
]
"""Every proposal, expansion and scheme of sequential Monte Carlo; the rest by turns."""
EVIDENCE = [
    *table(evidence.top_down_resampled, [], SETTINGS),
    *table(
        evidence.top_down_coarse,
        quick=[],
        rest=[
            ("dirichlet",),
            ("normal",),
            ("normal_gamma",),
        ],
    ),
    *table(
        evidence.top_down,
        quick=[],
        rest=[
            ("levels", "normal", "optimal", "node", "stratified", 1.0),
            ("missing", "normal", "prior", "lowest", "stratified", 1.0),
            ("missing", "normal", "empirical", "node", "stratified", 1.0),
            ("onehot", "normal", "prior", "layer", "stratified", 1.0),
        ],
    ),
    *table(
        evidence.importance_sampling,
        quick=[],
        rest=[
            ("three_columns", "dirichlet", "prior", "layer", "multinomial"),
        ],
    ),
    *table(evidence.top_down_mondrian, [], [("gaps", "optimal")]),
]


@pytest.mark.parametrize("sampler, case", [*ONE_TREE, *SUMS, *OTHER_LIKELIHOODS, *SOFT, *EVIDENCE])
def test_the_posterior_is_exact(sampler, case):
    sampler(*case)


def test_leaf_values_are_drawn_anew_also_when_the_tree_stays():
    """All rows alike: a stump for ever, whose value has its conditional law in every draw."""
    problem = replace(PROBLEMS["gaps"], X=np.ones((6, 2)))
    setup = make_setup(problem, "normal")
    chain = run_particles(3, setup, make_tools(setup, 3, "prior", "multinomial"), 5000, True)
    assert (chain.depths == 0).all()
    mean, variance = problem.normal().moments(range(6))
    values = (chain.fits[:, 0, 0] - mean) / np.sqrt(variance)
    assert stats.kstest(values, "norm").pvalue > 1e-5
    assert abs(np.corrcoef(values[1:], values[:-1])[0, 1]) < 5 / np.sqrt(5000)
