"""Geweke's joint test: parameters given data, then data given parameters, for ever.

One iteration is one sweep of the sampler given y (and sigma), sigma from its conditional, and a
new y from the model. If every part is right, the chain's stationary law is the joint prior of
forest, sigma and y, whose moments are known exactly:

    E leaves, P(stump), P(rows i and j share a leaf)      listing of the prior
    f_i:      mean m * mean, Cov(f_i, f_j) = m sd^2 P(same leaf)
    sigma^2:  inverse gamma
    y:        Var y_i = Var f_i + E sigma^2

Averages of (value - mean) / sd over 100 batches are compared with 0, and of its square with 1, at
5 standard errors (t law with 99 degrees of freedom; 60 averages: one chance failure in 5,000).
"""

from typing import NamedTuple

import numpy as np
import pymc as pm
import pytest
from numba import njit
from support import oracle as o
from support.chains import CGM, MOVE_SETS, make_setup
from support.chains.local_moves import called
from support.chains.soft_forest import EQUAL, make_chain, run_joint, soft_problem
from support.laws.prior import galton_watson
from support.laws.soft import SD
from support.naive.batches import batch_means, gap
from support.naive.laws import PROBLEMS, law
from support.tiers import table

import pymc_trees as pmt
from pymc_trees.core.forest.trees import preorder
from pymc_trees.core.leaves.normal import make_normal
from pymc_trees.core.samplers.backfitting import sweep

BATCHES = 100
Z = 5.0
SHAPE, SCALE = 8.0, 4.0  # of the inverse gamma of sigma^2: eight moments exist
M = 3


@njit(cache=True)
def count_leaves(trees, nodes):
    leaves = 0
    for t in range(trees.roots.size):
        leaves += (preorder(trees, trees.roots[t], nodes) + 1) // 2
    return leaves


@njit(cache=True)
def normal_joint(rng, problem, work, moves, leaf, shape, scale, out, fs, ys):
    """Joint chain of a sum of trees; ``out`` rows: leaves, stump, sigma^2."""
    counts = np.zeros((2, moves.weights.size), dtype=np.int64)
    trees, n = problem.trees, leaf.r.size
    f, y = np.zeros(n), np.zeros(n)
    for s in range(out.shape[0]):
        if not sweep(rng, problem, moves, work, counts):
            raise ValueError("full")
        f[:] = 0.0
        for t in range(trees.roots.size):
            for i in range(n):
                f[i] += trees.values[trees.leaf_of[t, i], 0]
        total = 0.0
        for i in range(n):
            total += leaf.r[i] ** 2  # the sampler's own residual: y - f
        sigma2 = (scale + 0.5 * total) / rng.standard_gamma(shape + 0.5 * n)
        for i in range(n):
            y[i] = f[i] + np.sqrt(sigma2) * rng.standard_normal()
            leaf.r[i] = y[i] - f[i]
        leaf.w[0] = 1.0 / sigma2
        out[s, 0] = count_leaves(trees, work.nodes)
        out[s, 1] = trees.column[trees.roots[0]] < 0
        out[s, 2] = sigma2
        fs[s], ys[s] = f, y


class Record(NamedTuple):
    leaves: np.ndarray
    stump: np.ndarray
    sigma2: np.ndarray
    f: np.ndarray
    y: np.ndarray


def run_normal(problem, moves, draws, seed, m=M):
    setup, n = make_setup(problem, "normal", m=m), problem.n
    leaf = make_normal(problem.mean, problem.sd, np.zeros(n), 2.0, setup.work.nodes.size)
    out, fs, ys = np.empty((draws, 3)), np.empty((draws, n)), np.empty((draws, n))
    rng = np.random.default_rng(seed)
    given = called(setup.problem._replace(leaf=leaf), setup.work, moves)
    normal_joint(rng, *given, leaf, SHAPE, SCALE, out, fs, ys)
    return Record(*out.T, fs, ys)


def distances(record, name, m=M):
    """dict of what -> `Gap`, in units of the exact sd."""
    problem, flat = PROBLEMS[name], law(name, "flat")
    sizes = np.array(list(flat.leaf_counts))
    chances = np.array(list(flat.leaf_counts.values()))
    mean_leaves = sizes @ chances
    sd_leaves = np.sqrt(m * ((sizes - mean_leaves) ** 2 @ chances))
    mean_sigma2 = SCALE / (SHAPE - 1)
    sd_sigma2 = mean_sigma2 / np.sqrt(SHAPE - 2)
    centre, sd_f = m * problem.mean, np.sqrt(m) * problem.sd
    f = (record.f - centre) / sd_f
    y = (record.y - centre) / np.sqrt(sd_f**2 + mean_sigma2)
    leaves = (record.leaves - m * mean_leaves) / sd_leaves
    sigma2 = (record.sigma2 - mean_sigma2) / sd_sigma2
    stump = 1 - problem.prior["alpha"]
    wanted = {
        "leaves": (leaves, 0.0),
        "leaves squared": (leaves**2, 1.0),
        "stump": (record.stump, stump),
        "sigma2": (sigma2, 0.0),
        "sigma2 squared": (sigma2**2, 1.0),
        "f": (f, 0.0),
        "f squared": (f**2, 1.0),
        "f first and last": (f[:, 0] * f[:, -1], flat.pairs[0, -1]),
        "f first and second": (f[:, 0] * f[:, 1], flat.pairs[0, 1]),
        "y": (y, 0.0),
        "y squared": (y**2, 1.0),
        "leaves and sigma2": (leaves * sigma2, 0.0),
        "f and sigma2": (f[:, 2] * sigma2, 0.0),
    }
    return {key: gap(batch_means(value, BATCHES), exact) for key, (value, exact) in wanted.items()}


def sum_of_trees(name, moves):
    record = run_normal(PROBLEMS[name], MOVE_SETS[moves], 200_000, 20)
    found = distances(record, name)
    assert all(value.within(Z, 0.1) for value in found.values()), found


@pytest.mark.parametrize("wrong", [{"beta": 1.2}, {"alpha": 0.76}])
def test_the_joint_test_rejects_another_tree_prior(wrong):
    """A chain with beta 0.2 too large, or alpha 5% too small."""
    from dataclasses import replace

    problem = PROBLEMS["gaps"]
    off = replace(problem, prior=problem.prior | wrong)
    found = distances(run_normal(off, CGM, 300_000, 21), "gaps")
    assert max(value.z for value in found.values()) > 2 * Z


@njit(cache=True)
def single_joint(rng, problem, work, moves, leaf, is_classes, centre, out, values):
    """Joint chain of one tree whose leaves hold (mu, tau) or class probabilities."""
    trees = problem.trees
    counts = np.zeros((2, moves.weights.size), dtype=np.int64)
    for s in range(out.shape[0]):
        if not sweep(rng, problem, moves, work, counts):
            raise ValueError("full")
        for i in range(leaf.y.size):
            value = trees.values[trees.leaf_of[0, i]]
            if is_classes:
                u, k = rng.random(), 0
                while k < value.size - 1 and u >= value[k]:
                    u -= value[k]
                    k += 1
                leaf.y[i] = k
            else:
                leaf.y[i] = value[0] + rng.standard_normal() / np.sqrt(value[1]) - centre
        out[s, 0] = count_leaves(trees, work.nodes)
        out[s, 1] = trees.column[trees.roots[0]] < 0
        out[s, 2] = trees.leaf_of[0, 0] == trees.leaf_of[0, leaf.y.size - 1]
        values[s] = trees.values[trees.leaf_of[0, 0]]


def one_tree(leaf_name):
    name, draws = "gaps", 300_000
    problem, flat = PROBLEMS[name], law(name, "flat")
    setup = make_setup(problem, leaf_name)
    out = np.empty((draws, 3))
    values = np.empty((draws, setup.trees.values.shape[1]))
    is_classes = leaf_name == "dirichlet"
    centre = 0.0 if is_classes else setup.leaf.centre
    given = (setup.leaf, is_classes, centre, out, values)
    single_joint(np.random.default_rng(22), *called(setup.problem, setup.work, CGM), *given)

    mean_leaves = sum(k * p for k, p in flat.leaf_counts.items())
    wanted = [
        (out[:, 0], mean_leaves),
        (out[:, 0] ** 2, sum(k**2 * p for k, p in flat.leaf_counts.items())),
        (out[:, 1], 1 - problem.prior["alpha"]),
        (out[:, 2], flat.pairs[0, -1]),
    ]
    if is_classes:
        q, total = 1 / problem.n_classes, problem.alpha_total
        scaled = (values - q) / np.sqrt(q * (1 - q) / (total + 1))
        wanted += [(scaled, 0.0), (scaled**2, 1.0)]
    else:
        mu, tau = values.T
        z = mu * np.sqrt(problem.a * tau)  # N(0, 1), where mu itself has no fourth moment
        tau = (tau - 1 / problem.lam) / (np.sqrt(2 / problem.nu) / problem.lam)
        wanted += [(z, 0.0), (z**2, 1.0), (tau, 0.0), (tau**2, 1.0), (z**2 * tau, 0.0)]
    found = [gap(batch_means(value, BATCHES), exact) for value, exact in wanted]
    assert all(value.within(Z, 0.15) for value in found), found


STEPS = {
    "cgm": lambda mu: pmt.CGM([mu], rng=1),
    "wtw": lambda mu: pmt.RestructureCGM([mu], rng=1),
    "prior": lambda mu: pmt.ParticleGibbs([mu], num_particles=5, rng=1),
    "empirical": lambda mu: pmt.ParticleGibbs(
        [mu], num_particles=3, proposal="empirical", resampling="systematic", rng=1
    ),
    "optimal": lambda mu: pmt.ParticleGibbs(
        [mu], num_particles=3, proposal="optimal", resampling="stratified", rng=1
    ),
    "hybrid": lambda mu: pmt.Hybrid([mu], local_sweeps=2, moves_per_visit=2, rng=1),
    "half": lambda mu: pmt.ParticleGibbs([mu], num_particles=3, batch=(1.0, 0.5), rng=1),
}


def step_joint(make_step, draws, alpha=0.8, noise=pm.Slice):
    """Joint chain through public step objects: ``make_step`` for the forest, ``noise`` for sigma.

    Returns
    -------
    dict
        What -> `Gap`, over 30 batches.
    """
    problem, m = PROBLEMS["gaps"], 2
    rng = np.random.default_rng(23)
    with pm.Model() as model:
        y = pm.Data("y_data", np.zeros(problem.n))
        leaf = pmt.NormalLeaf(problem.mean, problem.sd)
        mu = pmt.BART("mu", problem.X, m=m, leaf=leaf, alpha=alpha, beta=1.0, max_nodes=22)
        sigma = pm.Gamma("sigma", 4.0, 4.0)
        pm.Normal("y", mu, sigma, observed=y, shape=mu.shape)
        forest_step = make_step(mu)
        sigma_step = noise([sigma], rng=2)
    for step in (forest_step, sigma_step):
        step.stop_tuning()
    point = model.initial_point(random_seed=24)
    out, f = np.empty((draws, 3)), np.empty((draws, problem.n))
    evaluate = model.compile_fn(mu, inputs=[model["mu_forest"]], point_fn=False)
    for s in range(draws):
        point, stats = forest_step.step(point)
        point, _ = sigma_step.step(point)
        value = np.exp(point["sigma_log__"])
        f[s] = np.asarray(evaluate(point["mu_forest"])).reshape(-1)
        data = rng.normal(f[s], value)
        model.set_data("y_data", data)
        out[s] = stats[0]["n_leaves"], value, data[0]

    flat = law("gaps", "flat")
    mean_leaves = m * sum(k * p for k, p in flat.leaf_counts.items())
    centre, sd_f = m * problem.mean, np.sqrt(m) * problem.sd
    f = (f - centre) / sd_f
    sigma, y0 = (out[:, 1] - 1.0) / 0.5, (out[:, 2] - centre) / np.sqrt(sd_f**2 + 1.25)
    wanted = {
        "leaves": (out[:, 0], mean_leaves),
        "f": (f, 0.0),
        "f squared": (f**2, 1.0),
        "f first and last": (f[:, 0] * f[:, -1], flat.pairs[0, -1]),
        "sigma": (sigma, 0.0),
        "sigma squared": (sigma**2, 1.0),
        "y": (y0, 0.0),
        "y squared": (y0**2, 1.0),
        "f and sigma": (f[:, 0] * sigma, 0.0),
    }
    return {key: gap(batch_means(value, 30), exact) for key, (value, exact) in wanted.items()}


def steps_of_pymc(step, noise="Slice"):
    """The same through the `step` of `CGM` and `ParticleGibbs`, sigma by another.

    4.5 standard errors of a t law with 29 degrees of freedom, 19 averages for each step: one chance
    failure in 500.
    """
    found = step_joint(STEPS[step], 8000, noise=getattr(pm, noise, None) or pmt.NoiseScale)
    assert all(value.z < 4.5 for value in found.values()), found


def soft_trees():
    """With random sigma and split weights."""
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


JOINT_CHAINS = [
    *table(
        sum_of_trees,
        [("repeats", "cgm"), ("repeats", "restructure")],
        [("gaps", "grow_prune"), ("gaps", "all_moves")],
    ),
    *table(one_tree, [("dirichlet",)], [("normal_gamma",)]),
    *table(steps_of_pymc, [("hybrid", "NoiseScale")], [(step,) for step in STEPS]),
    *table(soft_trees, [], [()]),
]


@pytest.mark.parametrize("sampler, case", JOINT_CHAINS)
def test_the_joint_chain_keeps_the_prior(sampler, case):
    sampler(*case)


@pytest.mark.full
def test_the_pymc_level_joint_test_rejects_another_tree_prior():
    """Particle Gibbs with alpha 10% too small."""
    found = step_joint(STEPS["prior"], 8000, alpha=0.72)
    assert max(value.z for value in found.values()) > 9, found


def test_the_listing_counts_trees_as_the_oracle_does():
    """The exact moments above rest on the flat law; it is the oracle's prior."""
    problem = PROBLEMS["gaps"]
    prior = o.partition_prior(problem.X, **problem.prior)
    flat = law("gaps", "flat").partitions
    assert max(abs(flat[part] - prior[part]) for part in prior) < 1e-12
