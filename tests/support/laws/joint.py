"""Trees under Gaussian likelihoods that are not products over rows, in closed form.

``y ~ N(C f, S)`` with a matrix C or S that mixes rows: given the partitions, f is normal and so is
y, so that the posterior of one tree and of two follows from a list of partitions.
"""

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from numba import njit

import pymc_trees as pmt
from pymc_trees.core.forest.trees import make_saved_tree
from pymc_trees.core.leaves.normal import make_normal
from pymc_trees.core.moves.problem import Problem
from pymc_trees.core.samplers.joint_sweep import joint_sweep
from pymc_trees.targets.choose import read_target
from support import oracle as o
from support.chains import MOVE_SETS, make_setup, partition_of, record, run_guided
from support.laws.likelihoods import spoilt
from support.naive.batches import batch_means, frequencies, gap, law_gap
from support.naive.laws import PROBLEMS

BATCHES = 60
Z = 5.5
SIGMA = 0.8
MEAN, SD = 0.2, 1.0


def cumulated(mu, y):
    pm.Normal("y", pt.cumsum(mu), SIGMA, observed=y)


def correlated(mu, y):
    pm.MvNormal("y", mu, covariance(len(y)), observed=y)


def no_curvature(mu, y):
    cumulated(mu, y)
    pm.Potential("none", spoilt(pt.cumsum(mu), len(y), 1.5))


def no_slope(mu, y):
    cumulated(mu, y)
    pm.Potential("none", spoilt(pt.cumsum(mu), len(y), 0.5))


LIKELIHOODS = {
    "cumulated": cumulated,
    "correlated": correlated,
    "no_curvature": no_curvature,
    "no_slope": no_slope,
}


def covariance(n):
    return SIGMA**2 * 0.7 ** np.abs(np.subtract.outer(np.arange(n), np.arange(n)))


def matrices(name, n):
    if name != "correlated":
        return np.tril(np.ones((n, n))), SIGMA**2 * np.eye(n)
    return np.eye(n), covariance(n)


def exact(problem, y, name, m):
    """Law of the tuple of partitions; mean and covariance of f."""
    n = problem.n
    C, S = matrices(name, n)
    prior = o.partition_prior(problem.X, **problem.prior)
    same = {part: o.same_leaf(part, n) for part in prior}
    away = y - C @ np.full(n, m * MEAN)
    scores, means, seconds, keys = [], [], [], []
    for parts in product(prior, repeat=m):
        V = SD**2 * sum(same[part] for part in parts)
        total = C @ V @ C.T + S
        gain = V @ C.T @ np.linalg.inv(total)
        mean = m * MEAN + gain @ away
        score = sum(math.log(prior[part]) for part in parts)
        score -= 0.5 * (np.linalg.slogdet(total)[1] + away @ np.linalg.solve(total, away))
        scores.append(score)
        means.append(mean)
        seconds.append(V - gain @ C @ V + np.outer(mean, mean))
        keys.append(parts)
    weights = np.exp(np.array(scores) - max(scores))
    weights /= weights.sum()
    mean = weights @ np.array(means)
    second = np.tensordot(weights, np.array(seconds), axes=1)
    return dict(zip(keys, weights)), mean, second - np.outer(mean, mean)


@njit(cache=True)
def run_whole(
    rng, trees, design, prior, leaf, flat, moves, work, spare, draws, codes, depths, roots, fits
):
    counts = np.zeros((2, moves.weights.size), dtype=np.int64)
    problem = Problem(trees, design, prior, leaf)
    without_data = Problem(trees, design, prior, flat)
    for s in range(draws):
        if not joint_sweep(rng, problem, without_data, moves, work, spare, counts):
            raise ValueError("full")
        record(trees, work.nodes, s, codes, depths, roots, fits)
    return counts[1]


def of_all_rows(name, likelihood, moves, m):
    """A likelihood that is no product over rows, by moves or by two or three particles."""
    problem = PROBLEMS["gaps" if name == "four rows" else name]
    if name == "four rows":
        problem = replace(problem, X=problem.X[[0, 2, 3, 5]])
    n = problem.n
    C, _ = matrices(likelihood, n)
    y = C @ np.linspace(-1.0, 1.2, n) + np.cos(5.0 * np.arange(n)) * SIGMA
    law, mean, spread = exact(problem, y, likelihood, m)

    max_nodes = m * (2 * n - 1)
    with pm.Model() as model:
        mu = pmt.BART("mu", problem.X, m=m, leaf=pmt.NormalLeaf(MEAN, SD), max_nodes=max_nodes)
        LIKELIHOODS[likelihood](mu, y)
    target = read_target(model, model["mu_forest"])
    assert target.kind == "joint"
    setup = make_setup(problem, "normal", m=m)
    setup.trees.values[:m] = MEAN
    leaf, _ = target.leaf_data(*target.at(model.initial_point()), np.full((n, 1), m * MEAN))
    if moves.endswith("particles"):
        draws = 30_000
        particles = 2 if moves.startswith("two") else 3
        chain = run_guided(11, setup._replace(leaf=leaf), particles, "optimal", draws)
        codes, fits = chain.codes, chain.fits
        assert chain.accepted[0] > draws * m / 50
    else:
        draws = 60_000
        codes, fits = local_moves(setup, target, leaf, moves, draws)

    base = int(codes.max()) + 1
    found, shares = frequencies(codes @ base ** np.arange(m), BATCHES)
    states = []
    for code in found:
        parts = []
        for _ in range(m):
            code, one = divmod(int(code), base)
            parts.append(partition_of(one, n))
        states.append(tuple(parts))
    partitions = law_gap(states, shares, law, draws)
    assert partitions.within(Z, 0.03), partitions
    scaled = (fits[:, :, 0] - mean) / np.sqrt(np.diag(spread))
    first = gap(batch_means(scaled, BATCHES), 0.0)
    assert first.within(Z, 0.08), first
    correlation = spread / np.sqrt(np.outer(np.diag(spread), np.diag(spread)))
    moments = batch_means(scaled[:, :, None] * scaled[:, None, :], BATCHES)
    second = gap(moments.reshape(BATCHES, -1), correlation.reshape(-1))
    assert second.within(Z, 0.12), second


def local_moves(setup, target, leaf, moves, draws):
    """Partition codes and outputs of a chain of Metropolis moves."""
    m, n = setup.trees.leaf_of.shape
    flat = make_normal(0.0, 1.0, np.zeros(n), 0.0, setup.work.nodes.size)
    codes, depths, roots = np.empty((3, draws, m), dtype=np.int64)
    fits = np.empty((draws, n, 1))
    weights = MOVE_SETS[moves]
    accepted = run_whole(
        np.random.default_rng(11),
        setup.trees,
        setup.design,
        setup.prior,
        leaf,
        flat,
        weights,
        setup.work,
        make_saved_tree(setup.trees, np.empty_like(setup.work.sets)),
        draws,
        codes,
        depths,
        roots,
        fits,
    )
    assert accepted[:2].min() > draws / 100
    return codes, fits
