"""Sums of soft trees: their chains have the posteriors that quadrature finds.

One column with five rows. The shapes of up to three leaves are written out, and their cuts and
bandwidth integrated by Gauss-Legendre between the rows (where a steep gate steps); leaf values by
conjugacy, or by Gauss-Hermite for other likelihoods. The chain is compared on the draws with no
more leaves, so that larger trees need no account.
"""

import numpy as np
import pymc as pm
from scipy import stats

import pymc_trees as pmt
from pymc_trees.core.leaves.nonconjugate.gaussian import make_screen
from pymc_trees.core.leaves.normal import make_normal
from pymc_trees.core.soft_forest.trees import make_soft_trees
from pymc_trees.targets.choose import read_target
from support.chains.soft_forest import (
    EQUAL,
    make_chain,
    run_screened_soft,
    run_soft,
    soft_problem,
)
from support.laws.likelihoods import spoilt
from support.naive import soft_forest as naive
from support.naive.batches import batch_means, gap

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


def assert_agrees(found):
    assert found["kept"] > 0.5, found
    assert all(one.within(Z, 0.03) for key, one in found.items() if key != "kept"), found


def gaussian(phi):
    return naive.gaussian_answers(phi, Y, MEAN, SD, SIGMA, 1)


def gaussian_chain(seed, draws=400_000, bandwidth=BANDWIDTH, weights=EQUAL, n_moves=3):
    problem = soft_problem(U[None], 1, ALPHA, BETA, bandwidth)
    leaf = make_normal(MEAN, SD, Y.copy(), SIGMA**-2, 10)
    chain = make_chain(draws, 1, len(Y))
    run_soft(np.random.default_rng(seed), problem, leaf, weights, n_moves, chain)
    return chain


def soft_tree():
    compare_gaussian(gaussian_chain(1))


def soft_tree_by_other_moves():
    weights = np.array([0.5, 0.1, 0.1, 0.1, 0.2])
    compare_gaussian(gaussian_chain(2, weights=weights, n_moves=1))


def compare_gaussian(chain):
    assert_agrees(compare(chain, *exact_posterior(gaussian, SHAPES), len(SHAPES)))


def two_soft_trees():
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


def latent_soft_tree():
    """Probit rows."""
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

    assert_agrees(compare(chain, *exact_posterior(answers, SHAPES[:2]), 2))


def screened_soft_tree(local, has_slopes):
    """Poisson rows, whatever the Gaussian rows are about: anchors that are off, or other trees."""
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

    assert_agrees(compare(chain, *exact_posterior(answers, SHAPES[:2]), 2))
