"""Mistakes that comparisons with exact posteriors have to find, at twice their bound or more.

A test that cannot fail says nothing: in each of these a chain is right and the law is not, or the
other way round. The samplers, the right laws and the bounds are those of `test_exact_posterior`.
"""

from dataclasses import replace

import numpy as np
import pytest
from support import oracle as o
from support.chains import (
    ALL_MOVES,
    CGM,
    MOVE_SETS,
    make_setup,
    run_chain,
    run_guided,
)
from support.laws import evidence, grid_step, nonconjugate, outputs, soft, sums
from support.laws import mondrian as processes
from support.laws.exact import BATCHES, Z, chain_of, compare, partition_shares
from support.laws.likelihoods import model_of, problem_of
from support.laws.mistaken_moves import MISTAKES as WRONG_MOVES
from support.laws.mistaken_moves import Mistaken, Rest
from support.naive.batches import batch_means, frequencies, gap, independent_se, law_gap
from support.naive.laws import (
    EVERY,
    MISTAKES,
    PROBLEMS,
    law,
    partition_posterior,
    wrong_partition_prior,
)
from support.oracle import MondrianLaw

import pymc_trees as pmt
from pymc_trees.core.leaves.latent.rows import no_latents
from pymc_trees.core.leaves.nonconjugate.gaussian import expand_at_anchors, fit_screen
from pymc_trees.core.moves.catalogue import MOVES
from pymc_trees.core.moves.contract import make_weighted_moves
from pymc_trees.core.moves.perturb import Perturb
from pymc_trees.core.samplers.top_down import UNFINISHED

pytestmark = pytest.mark.usefixtures("quick_compile")
OTHER_Z = nonconjugate.Z
"""Bound of likelihoods that do not integrate out, and of sums of trees."""


def test_the_floor_of_the_standard_error_is_that_of_independent_draws():
    assert independent_se(0.5, 100) == 0.05


def test_the_prior_that_mistakes_start_from_is_the_oracles():
    for problem in PROBLEMS.values():
        ours, theirs = wrong_partition_prior(problem), o.partition_prior(problem.X, **problem.prior)
        assert ours.keys() == theirs.keys()
        assert max(abs(ours[k] - theirs[k]) for k in ours) < 1e-12


# A problem on which the mistake moves the posterior by several per cent.
SHOWN_ON = {
    "alpha": "gaps",
    "beta": "deep",
    "depth": "deep",
    "alike": "repeats",
    "gaps": "gaps",
    "columns": "binary_constant",
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_wrong_target(mistake):
    """The same chain, z-score and threshold, with one mistake in the target: it must fail."""
    name = SHOWN_ON[mistake]
    problem = PROBLEMS[name]
    chain = chain_of(name, "normal", "cgm")
    states, shares = partition_shares(chain, problem.n)
    right = law_gap(states, shares, law(name, "normal").partitions, len(chain.codes))
    assert right.z < Z
    wrong = partition_posterior(problem, "normal", wrong_partition_prior(problem, mistake))
    found = law_gap(states, shares, wrong, len(chain.codes))
    assert found.z > 2 * Z, found


def test_a_wrong_likelihood():
    """Noise sd 10% too large or too small."""
    problem = PROBLEMS["gaps"]
    chain = chain_of("gaps", "normal", "cgm")
    states, shares = partition_shares(chain, problem.n)
    for wrong in (replace(problem, sigma=0.77), replace(problem, sigma=0.63)):
        found = law_gap(states, shares, partition_posterior(wrong, "normal"), len(chain.codes))
        assert found.z > 2 * Z, found


@pytest.mark.parametrize("name, mistake", [("levels", "onehot"), ("missing", "apart")])
def test_another_prior_of_rules(name, mistake):
    """One-hot for subsets; every gap beside missing rows in place of 1 / (1 + d)."""
    problem = EVERY[name]
    chain = chain_of(name, "normal", "cgm")
    states, shares = partition_shares(chain, problem.n)
    right = law_gap(states, shares, law(name, "normal").partitions, len(chain.codes))
    assert right.z < Z
    prior = dict(problem.prior)
    X = problem.X
    if mistake == "onehot":
        prior["kinds"] = ["onehot", "number"]
    else:  # the mistake of an imputation at the largest value
        X = np.where(np.isnan(X), 9.0, X)
    wrong = partition_posterior(problem, "normal", o.partition_prior(X, **prior))
    found = law_gap(states, shares, {**dict.fromkeys(states, 1e-12), **wrong}, len(chain.codes))
    assert found.z > 2 * Z, found


WITHOUT_REST = np.array([0.15, 0.05, 0.0, 0.0, 0.8, 0.0])
WITH_REST = np.array([0.1, 0.05, 0.0, 0.0, 0.25, 0.6])


def chain_with(move, name, weights):
    moves = make_weighted_moves((*MOVES, move, Rest()), weights)
    return run_chain(5, make_setup(EVERY[name], "normal"), moves, 240_000, keep_fits=True)


WRONG_RATIOS = [
    ("the choice of the move is left out", "gaps", WITH_REST),
    ("the prior of the nodes below is left out", "deep", WITHOUT_REST),
    ("steps grow with the cut", "gaps", WITHOUT_REST),
    (
        "a set of levels is replaced by any other, whatever its density",
        "mixed_grid",
        WITHOUT_REST,
    ),
]


@pytest.mark.full
@pytest.mark.parametrize("mistake, name, weights", WRONG_RATIOS)
def test_a_wrong_ratio(mistake, name, weights):
    with pytest.raises(AssertionError):
        compare(chain_with(Mistaken(WRONG_MOVES[mistake]), name, weights), name, "normal")


@pytest.mark.full
@pytest.mark.parametrize("name", ["gaps", "deep", "mixed_grid"])
@pytest.mark.parametrize("weights", [WITHOUT_REST, WITH_REST])
def test_the_same_chain_without_a_mistake_is_right(name, weights):
    """By the kernels of the chains with one."""
    compare(chain_with(Mistaken(0), name, weights), name, "normal")


@pytest.mark.full
def test_the_move_itself_beside_one_that_asks_for_more():
    """Where the choice ratio counts; without `Rest` the move is in `test_exact_posterior`."""
    compare(chain_with(Perturb(), "gaps", WITH_REST), "gaps", "normal")


@pytest.mark.full
def test_a_grid_finer_by_one_cut():
    """Draws under three quantile cuts per column against the posterior under four."""
    _, model = grid_step.grid_problem("deep", 3)
    f = grid_step.draws_of(model, pmt.ParticleGibbs(model=model, rng=1), 6000)
    states, place = grid_step.partitions_of(f)
    other, _ = grid_step.grid_problem("deep", 4)
    found = law_gap(
        states, frequencies(place, BATCHES)[1], partition_posterior(other, "normal"), len(f)
    )
    assert found.z > 2 * OTHER_Z


def test_wrong_noise_of_a_sum_of_trees():
    """The second moments of f, chain against the posterior at sigma + 15%."""
    problem = sums.tiny()
    wrong = sums.listed(problem, 2, sigma=0.8)
    chain = run_chain(3, make_setup(problem, "normal", m=2), CGM, 100_000, keep_fits=True)
    scaled = (chain.fits[:, :, 0] - wrong.mean) / wrong.sd
    assert gap(batch_means(scaled, BATCHES), 0.0).z > 2 * OTHER_Z
    assert gap(batch_means(scaled**2, BATCHES), 1.0).z > 2 * OTHER_Z


def poisson(seed):
    problem = problem_of("gaps", "poisson")
    kind = nonconjugate.RowwiseTarget
    return problem, nonconjugate.setup_of(problem, model_of(problem, "poisson"), seed, kind)[0]


def test_another_prior_under_a_poisson():
    """The posterior under a leaf sd 17% too large, or another alpha."""
    problem, setup = poisson(2)
    chain = run_chain(1, setup, ALL_MOVES, 50_000, keep_fits=True)
    for wrong in ({"sd": 1.4}, {"prior": {"alpha": 0.7, "beta": 1.0}}):
        found = nonconjugate.distances(chain, replace(problem, **wrong), "poisson")
        assert max(one.z for one in found) > 2 * OTHER_Z, found


@pytest.mark.full
def test_another_prior_of_guided_particles():
    problem, setup = poisson(2)
    chain = run_guided(1, setup, 3, "optimal", 50_000)
    found = nonconjugate.distances(chain, replace(problem, sd=1.4), "poisson")
    assert max(one.z for one in found) > 2 * OTHER_Z, found


def test_latent_variables_that_stay():
    """Drawn once, as if they were data."""
    problem = problem_of("gaps", "binomial")
    setup = nonconjugate.latent_setup(problem, "binomial", 1)
    setup = setup._replace(leaf=setup.leaf._replace(latent=no_latents()))
    moves = MOVE_SETS["three_a_visit"]
    chain = run_chain(2, setup, moves, nonconjugate.DRAWS, keep_fits=True)
    with pytest.raises(AssertionError, match="Gap"):
        nonconjugate.compare_one_tree(chain, problem, "binomial", 2 * OTHER_Z)


@pytest.mark.full
def test_a_screen_without_the_second_look():
    """The Gaussian rows taken for the likelihood itself."""
    problem = problem_of("gaps", "poisson")
    setup, screen = nonconjugate.screened_setup(problem, "poisson", 1, 0.7)
    fit_screen(setup.leaf, screen)
    expand_at_anchors(np.full((problem.n, 1), problem.mean), screen)
    near, moves = setup._replace(leaf=screen.gaussian), MOVE_SETS["three_a_visit"]
    chain = run_chain(2, near, moves, nonconjugate.DRAWS, keep_fits=True)
    with pytest.raises(AssertionError, match="Gap"):
        nonconjugate.compare_one_tree(chain, problem, "poisson", 2 * OTHER_Z)


@pytest.mark.full
def test_other_classes(monkeypatch):
    chain = run_guided(
        2, outputs.setup_of("softmax", outputs.RowwiseTarget, 1), 3, "optimal", 30_000
    )
    monkeypatch.setattr(outputs, "CLASSES", np.array([0, 2, 1, 1, 2]))
    outputs.exact.cache_clear()
    found = outputs.distances(chain, "softmax")
    outputs.exact.cache_clear()
    assert max(one.z for one in found) > 2 * outputs.Z, found


def test_another_bandwidth():
    """A chain whose prior mean of the bandwidth is 0.13 and not 0.1."""
    chain = soft.gaussian_chain(3, bandwidth=0.13)
    known = soft.exact_posterior(soft.gaussian, soft.SHAPES)
    assert soft.compare(chain, *known, len(soft.SHAPES))["moments"].z > 2 * soft.Z


def test_the_quadrature_of_soft_trees_has_converged():
    coarse, fine = (soft.exact_posterior(soft.gaussian, soft.SHAPES, order) for order in (5, 7))
    for one, other in zip(coarse, fine, strict=True):
        assert np.abs(one - other).max() < 2e-4


@pytest.mark.full
def test_another_lifetime():
    """Five per cent longer: the same draws must fail."""
    longer = MondrianLaw(PROBLEMS["two_columns"].X, 0.63).posterior(lambda rows: 0.0)
    records = processes.draws_of_process("two_columns")
    assert max(g.z for g in processes.worst(longer, 6, *records)) > 1.5 * processes.Z


@pytest.mark.full
def test_too_few_stages_of_top_down_smc():
    given = "deep", "normal", "prior", "node", "systematic", 0.5
    assert evidence.run(*given, max_stages=1)[0] == UNFINISHED
