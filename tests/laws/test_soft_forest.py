"""Sums of soft trees: their chains have the posteriors that quadrature finds.

One column with five rows. The shapes of up to three leaves are written out, and their cuts and
bandwidth integrated by Gauss-Legendre between the rows (where a steep gate steps); leaf values by
conjugacy, or by Gauss-Hermite for other likelihoods. The chain is compared on the draws with no
more leaves, so that larger trees need no account. Averages are compared at 5 standard errors by
batch means (100 batches); some 150 averages are looked at.
"""

import numpy as np
import pymc as pm
import pytest
from scipy import stats
from support.chains.soft_forest import (
    EQUAL,
    make_chain,
    run_joint,
    run_screened_soft,
    run_soft,
    soft_problem,
)
from support.laws.likelihoods import spoilt
from support.naive import soft_forest as naive
from support.naive.batches import batch_means, gap
from support.tiers import tiers

import pymc_trees as pmt
from pymc_trees.core.leaves.nonconjugate.gaussian import make_screen
from pymc_trees.core.leaves.normal import make_normal
from pymc_trees.core.soft_forest.trees import make_soft_trees
from pymc_trees.targets.choose import read_target

U = np.array([0.0, 0.25, 0.5, 0.75, 1.0])
Y = np.array([-0.9, -0.7, 0.4, 0.9, 0.7])
MEAN, SD, SIGMA = 0.1, 0.8, 0.5
ALPHA, BETA, BANDWIDTH = 0.7, 1.0, 0.1
SHAPES = "stump", "split", "left", "right"
Z = 5.0


def shapes_of(chain, t=0):
    """Place in `SHAPES` of each draw of a tree; -1 for more leaves."""
    size, column = chain.size[:, t], chain.column[:, t]
    found = np.full(len(size), -1)
    found[size == 1], found[size == 3] = 0, 1
    found[(size == 5) & (column[:, 1] >= 0)] = 2
    found[(size == 5) & (column[:, 1] < 0)] = 3
    return found


def ratio_gap(values, kept, exact, n_batches=100):
    """`Gap` of averages over the kept draws: of each batch the mean of its deviations."""
    values = np.asarray(values, dtype=float).reshape(len(kept), -1)
    deviations = (values - exact) * kept[:, None]
    return gap(batch_means(deviations, n_batches) / kept.mean(), 0.0)


def exact_posterior(answers_of, kinds, order=6):
    """Shapes' probabilities; mean of f, f^2 and the bandwidth."""
    total, parts = [], []
    for kind in kinds:
        atoms = naive.Atoms(kind, U, ALPHA, BETA, BANDWIDTH, order)
        log_m, f, f2 = answers_of(atoms.phi)
        weight = atoms.weight * np.exp(log_m)
        total.append(weight.sum())
        moments = np.concatenate([f, f2, atoms.tau[:, None]], axis=1)
        parts.append(weight @ moments)
    total = np.array(total)
    return total / total.sum(), np.sum(parts, axis=0) / total.sum()


def compare(chain, probabilities, moments, n_kinds):
    """Dict of what -> `Gap`, over draws of the first shapes."""
    shape = shapes_of(chain)
    kept = (shape >= 0) & (shape < n_kinds)
    values = np.concatenate([chain.f, chain.f**2, chain.bandwidth[:, :1]], axis=1)
    indicators = shape[:, None] == np.arange(n_kinds)
    return {
        "kept": float(kept.mean()),
        "shapes": ratio_gap(indicators, kept, probabilities),
        "moments": ratio_gap(values, kept, moments),
    }


def agrees(found):
    return found["kept"] > 0.5 and all(
        one.within(Z, 0.03) for key, one in found.items() if key != "kept"
    )


def gaussian(phi):
    return naive.gaussian_answers(phi, Y, MEAN, SD, SIGMA, 1)


def gaussian_chain(seed, draws=400_000, bandwidth=BANDWIDTH, weights=EQUAL, n_moves=3):
    problem = soft_problem(U[None], 1, ALPHA, BETA, bandwidth)
    leaf = make_normal(MEAN, SD, Y.copy(), SIGMA**-2, 10)
    chain = make_chain(draws, 1, len(Y))
    run_soft(np.random.default_rng(seed), problem, leaf, weights, n_moves, chain)
    return chain


def test_quadrature_has_converged():
    coarse, fine = (exact_posterior(gaussian, SHAPES, order) for order in (5, 7))
    for one, other in zip(coarse, fine, strict=True):
        assert np.abs(one - other).max() < 2e-4


def test_gaussian_rows():
    found = compare(gaussian_chain(1), *exact_posterior(gaussian, SHAPES), len(SHAPES))
    assert agrees(found), found


@pytest.mark.full
def test_other_weights_of_moves_have_the_same_posterior():
    weights = np.array([0.5, 0.1, 0.1, 0.1, 0.2])
    chain = gaussian_chain(2, weights=weights, n_moves=1)
    found = compare(chain, *exact_posterior(gaussian, SHAPES), len(SHAPES))
    assert agrees(found), found


def test_the_comparison_rejects_another_bandwidth():
    """A chain whose prior mean of the bandwidth is 0.13 and not 0.1."""
    chain = gaussian_chain(3, bandwidth=0.13)
    found = compare(chain, *exact_posterior(gaussian, SHAPES), len(SHAPES))
    assert found["moments"].z > 2 * Z


def test_two_trees():
    """Each of at most two leaves: sums over pairs of trees."""
    problem = soft_problem(U[None], 2, ALPHA, BETA, BANDWIDTH)
    leaf = make_normal(MEAN, SD, Y.copy(), SIGMA**-2, 10)
    chain = make_chain(400_000, 2, len(Y))
    run_soft(np.random.default_rng(4), problem, leaf, EQUAL, 3, chain)
    parts = [naive.Atoms(k, U, ALPHA, BETA, BANDWIDTH, 4, 2) for k in SHAPES[:2]]
    total, moments = np.zeros((2, 2)), 0.0
    for a, one in enumerate(parts):
        for b, other in enumerate(parts):
            i, j = (v.ravel() for v in np.indices((len(one.tau), len(other.tau))))
            phi = np.concatenate([one.phi[i], other.phi[j]], axis=2)
            log_m, f, f2 = naive.gaussian_answers(phi, Y, MEAN, SD, SIGMA, 2)
            weight = one.weight[i] * other.weight[j] * np.exp(log_m)
            total[a, b] = weight.sum()
            found = np.concatenate([f, f2, one.tau[i, None] * other.tau[j, None]], axis=1)
            moments = moments + weight @ found
    first, second = shapes_of(chain, 0), shapes_of(chain, 1)
    kept = (first >= 0) & (first < 2) & (second >= 0) & (second < 2)
    pair = (2 * first + second)[:, None] == np.arange(4)
    product = chain.bandwidth.prod(axis=1, keepdims=True)
    values = np.concatenate([chain.f, chain.f**2, product], axis=1)
    assert kept.mean() > 0.25
    shapes = ratio_gap(pair, kept, (total / total.sum()).ravel())
    others = ratio_gap(values, kept, moments / total.sum())
    assert shapes.within(Z, 0.03) and others.within(Z, 0.03), (shapes, others)


def target_of(likelihood):
    """Target and settings of a model over the five rows."""
    with pm.Model() as model:
        leaf = pmt.NormalLeaf(MEAN, SD)
        mu = pmt.SoftBART("mu", U[:, None], m=1, alpha=ALPHA, beta=BETA, leaf=leaf)
        likelihood(mu)
    target = read_target(model, model["mu_forest"])
    return target, *target.at(model.initial_point())


def test_probit_rows_by_latent_variables():
    y = np.array([0, 0, 1, 1, 1])
    target, settings, seen = target_of(
        lambda mu: pm.Bernoulli("y", pm.math.invprobit(mu), observed=y)
    )
    assert target.kind == "latent"
    rng = np.random.default_rng(5)
    leaf, _ = target.leaf_data(settings, seen, np.zeros((5, 1)), rng)
    problem = soft_problem(U[None], 1, ALPHA, BETA, BANDWIDTH)
    chain = make_chain(300_000, 1, 5)
    run_soft(rng, problem, leaf, EQUAL, 3, chain)

    def log_rows(f):
        return stats.norm.logcdf(np.where(y == 1, f, -f))

    def answers(phi):
        return naive.numeric_answers(phi, log_rows, MEAN, SD, 16)

    found = compare(chain, *exact_posterior(answers, SHAPES[:2]), 2)
    assert agrees(found), found


@pytest.mark.parametrize(
    ("local", "has_slopes"),
    tiers([(0.0, True), (0.5, True), (1.0, True), (0.5, False)], quick=[(0.5, True)]),
)
def test_poisson_rows_by_screened_visits(local, has_slopes):
    """Whatever the Gaussian rows: about anchors that are off, about the other trees, or both."""
    y = np.array([0, 1, 1, 3, 2])

    def likelihood(mu):
        pm.Poisson("y", pm.math.exp(mu), observed=y)
        if not has_slopes:
            pm.Potential("none", spoilt(mu, 5, 0.5))

    target, settings, seen = target_of(likelihood)
    assert target.kind == "rowwise"
    rng = np.random.default_rng(6)
    leaf, _ = target.leaf_data(settings, seen, np.zeros((5, 1)), rng)
    problem = soft_problem(U[None], 1, ALPHA, BETA, BANDWIDTH)
    anchor = np.array([0.5, -0.5, 0.5, 0.0, 1.0])[:, None]
    screen = make_screen(leaf.mean, leaf.sd, anchor, 0.5, local, 10)
    kept = make_soft_trees(1, problem.trees.column.shape[1])
    chain = make_chain(300_000, 1, 5)
    counts = run_screened_soft(rng, problem, leaf, screen, kept, EQUAL, 3, chain)
    assert 0.2 * counts[0, 5] < counts[1, 5] < counts[0, 5]

    def answers(phi):
        return naive.numeric_answers(phi, lambda f: y * f - np.exp(f), MEAN, SD, 16)

    found = compare(chain, *exact_posterior(answers, SHAPES[:2]), 2)
    assert agrees(found), found


def galton_watson(alpha, beta, depths=12):
    """Mean splits at each depth of one tree."""
    p = alpha * (1.0 + np.arange(depths)) ** -beta
    return 2.0 ** np.arange(depths) * np.cumprod(p)


def test_the_prior_is_kept_without_a_likelihood():
    """Three columns, of which one is hard and one excluded; rows of precision 0."""
    unit = np.random.default_rng(7).random((3, 4))
    weights = np.array([3.0, 1.0, 0.0])
    hard = np.array([False, True, False])
    problem = soft_problem(unit, 2, 0.8, 1.5, 0.2, weights, hard)
    leaf = make_normal(MEAN, SD, np.zeros(4), 0.0, 10)
    chain = make_chain(400_000, 2, 4)
    run_soft(np.random.default_rng(8), problem, leaf, EQUAL, 3, chain)
    is_split = chain.size > 1
    column, cut = chain.column[:, :, 0], chain.number[:, :, 0]
    second = is_split & (chain.column[:, :, 1] == column)  # the left child, on the same column
    share = np.where(second, chain.number[:, :, 1] / np.where(is_split, cut, 1.0), 0.5)
    mean_splits = galton_watson(0.8, 1.5).sum()
    value = np.where(is_split, np.nan, cut)
    stump = ~is_split
    wanted = {
        "splits": ((chain.size - 1) / 2, mean_splits),
        "stump": (stump, 0.2),
        "first column": (is_split & (column == 0), 0.8 * 0.75),
        "excluded column": (chain.column == 2, 0.0),
        "cut": (np.where(is_split, cut - 0.5, 0.0), 0.0),
        "cut squared": (np.where(is_split, (cut - 0.5) ** 2 - 1 / 12, 0.0), 0.0),
        "second cut": (share - 0.5, 0.0),
        "second cut squared": (np.where(second, (share - 0.5) ** 2 - 1 / 12, 0.0), 0.0),
        "left child split": (is_split & (chain.column[:, :, 1] >= 0), 0.8**2 * 2**-1.5),
        "bandwidth": (chain.bandwidth, 0.2),
        "bandwidth squared": (chain.bandwidth**2, 2 * 0.2**2),
        "bandwidth and stump": (chain.bandwidth * stump, 0.2 * 0.2),
        "value of a stump": (np.where(stump, value - MEAN, 0.0), 0.0),
        "its square": (np.where(stump, (value - MEAN) ** 2 - SD**2, 0.0), 0.0),
        "f": (chain.f - 2 * MEAN, 0.0),
    }
    found = {
        key: gap(batch_means(np.asarray(v, dtype=float).reshape(400_000, -1), 100), exact)
        for key, (v, exact) in wanted.items()
    }
    assert all(one.within(Z, 0.02) for one in found.values()), found


def test_joint_chain_with_random_sigma_and_split_weights_keeps_the_prior():
    """Geweke's test: the stationary law of parameters and data is their joint prior."""
    unit = np.random.default_rng(9).random((3, 6))
    concentration = np.array([0.7, 0.7, 1.4])
    problem = soft_problem(unit, 2, 0.8, 1.5, 0.2, concentration / concentration.sum())
    leaf = make_normal(0.0, SD, np.zeros(6), 1.0, 10)
    draws = 400_000
    chain, out, log_s = make_chain(draws, 2, 6), np.empty((draws, 2)), np.empty((draws, 3))
    shape, scale = 8.0, 4.0
    rng = np.random.default_rng(10)
    run_joint(rng, problem, leaf, concentration, shape, scale, EQUAL, 3, chain, out, log_s)
    s, total = np.exp(log_s), concentration.sum()
    expected = concentration / total
    variance = expected * (1 - expected) / (total + 1)
    mean_sigma2 = scale / (shape - 1)
    column, is_split = chain.column[:, 0, 0], chain.size[:, 0] > 1
    chosen = is_split[:, None] & (column[:, None] == np.arange(3))
    wanted = {
        "sigma2": (out[:, 0], mean_sigma2),
        "sigma2 squared": (out[:, 0] ** 2, mean_sigma2**2 * (1 + 1 / (shape - 2))),
        "leaves": (out[:, 1], 2 * (1 + galton_watson(0.8, 1.5).sum())),
        "weights": (s, expected),
        "weights squared": (s**2, variance + expected**2),
        "root column": (chosen, 0.8 * expected),
        "column and weight": (chosen * s, 0.8 * (variance + expected**2)),
        "bandwidth": (chain.bandwidth, 0.2),
        "bandwidth squared": (chain.bandwidth**2, 0.08),
        "f": (chain.f, 0.0),
        "f and sigma2": (chain.f[:, :1] * out[:, :1], 0.0),
    }
    found = {
        key: gap(batch_means(np.asarray(v, dtype=float).reshape(draws, -1), 100), exact)
        for key, (v, exact) in wanted.items()
    }
    assert all(one.within(Z, 0.05) for one in found.values()), found
