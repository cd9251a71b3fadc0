"""Chains of a sampler on tiny data, run inside compiled code and reduced to counts."""

from typing import NamedTuple

import numpy as np
from numba import njit

from pymc_trees.core.columns.design import make_design
from pymc_trees.core.columns.mixed import MISSING, from_prior
from pymc_trees.core.forest.trees import make_trees, preorder
from pymc_trees.core.histograms.binning import make_bins
from pymc_trees.core.leaves.dirichlet import make_dirichlet
from pymc_trees.core.leaves.normal import make_normal
from pymc_trees.core.leaves.normal_gamma import make_normal_gamma
from pymc_trees.core.moves.catalogue import weighted
from pymc_trees.core.moves.problem import Problem
from pymc_trees.core.moves.workspace import make_workspace
from pymc_trees.core.priors.cgm import make_prior
from pymc_trees.core.samplers.metropolis.backfitting import sweep
from pymc_trees.core.samplers.particle_gibbs.sweep import Batch, particle_sweep
from pymc_trees.core.samplers.particles.growth import Growth
from pymc_trees.core.samplers.particles.optimal import make_look_ahead
from pymc_trees.core.samplers.particles.particles import make_particles
from pymc_trees.core.samplers.particles.proposals import PROPOSALS
from pymc_trees.core.samplers.particles.resampling import SCHEMES

CGM = weighted(np.array([0.25, 0.25, 0.4, 0.1]))
GROW_PRUNE = weighted(np.array([0.5, 0.5, 0.0, 0.0]))
# Mostly changes and swaps, so that an error in either cannot hide behind grow and prune.
CHANGE_SWAP = weighted(np.array([0.1, 0.1, 0.4, 0.4]))


class Setup(NamedTuple):
    """Everything a sweep takes but the generator."""

    trees: tuple
    design: tuple
    prior: tuple
    leaf: tuple
    work: tuple

    @property
    def problem(self):
        """What kernels take as one."""
        return Problem(*self[:4])


def weights_of(problem, p):
    """Split weights of an oracle problem."""
    given = problem.prior.get("split_prior")
    return np.full(p, 1 / p) if given is None else np.asarray(given, dtype=float)


def design_of(problem):
    """Design of an oracle problem."""
    names = problem.prior.get("kinds")
    cuts = problem.prior.get("cuts")
    if names is None:
        return make_design(problem.X, cuts)
    signs = {"number": 0, "subset": 1, "onehot": -1}
    sizes = [0 if name == "number" else 1 + np.nanmax(x) for name, x in zip(names, problem.X.T)]
    kinds = np.array([signs[name] * int(size) for name, size in zip(names, sizes)])
    return make_design(np.where(np.isnan(problem.X), MISSING, problem.X), cuts, kinds)


def float_cells(design):
    """The same design with float64 cells."""
    if hasattr(design, "sides"):
        design = design._replace(sides=design.sides.astype(np.float64))
    return design._replace(columns=design.columns.astype(np.float64))


def make_setup(problem, leaf_name, m=1, data=True):
    """Sampler arrays for an oracle problem; ``data=False`` for a flat likelihood."""
    n, p = problem.X.shape
    weights = weights_of(problem, p)
    design = design_of(problem)
    design = design._replace(varies=design.varies & (weights > 0))
    if leaf_name != "normal":  # codes as floats: the same numbers, one compilation less
        design = float_cells(design)
    max_nodes = m * (2 * n - 1)
    if leaf_name == "normal":
        precision = np.asarray(problem.sigma, dtype=float) ** -2.0 if data else 0.0
        residual = problem.y - m * problem.mean if data else np.zeros(n)
        leaf = make_normal(problem.mean, problem.sd, residual, precision, max_nodes)
        n_values, n_stats = 1, 2
    elif leaf_name == "normal_gamma":
        y = problem.y if data else np.empty(0)
        leaf = make_normal_gamma(problem.a, problem.nu, problem.lam, y)
        n_values, n_stats = 2, 3
    else:
        y = problem.labels if data else np.empty(0)
        leaf = make_dirichlet(problem.alpha_total, problem.n_classes, y)
        n_values = n_stats = problem.n_classes
    trees = make_trees(m, max_nodes, n_values, n)
    if leaf_name == "normal":
        trees.values[:m] = problem.mean
    trees.unsplittable[:m] = not design.varies.any()
    prior = make_prior(problem.prior["alpha"], problem.prior["beta"], weights)
    return Setup(trees, design, prior, leaf, make_workspace(max_nodes, n, n_stats))


@njit(cache=True)
def partition_code(leaf_of, base):
    """Whole number that names the partition of one tree: labels in order of appearance."""
    n = leaf_of.size
    labels = np.empty(n, dtype=np.int64)
    code, used = 0, 0
    for i in range(n):
        labels[i] = used
        for k in range(i):
            if leaf_of[k] == leaf_of[i]:
                labels[i] = labels[k]
                break
        used += labels[i] == used
        code = code * base + labels[i]
    return code


@njit(cache=True)
def record(trees, nodes, s, codes, depths, roots, fits):
    """Write draw ``s`` of what `run_sweeps` records."""
    m, n = trees.leaf_of.shape
    for t in range(m):
        codes[s, t] = partition_code(trees.leaf_of[t], n)
        deepest = 0
        for k in range(preorder(trees, trees.roots[t], nodes)):
            deepest = max(deepest, trees.depth[nodes[k]])
        depths[s, t] = deepest
        roots[s, t] = trees.column[trees.roots[t]]
    if fits.shape[0] > 0:
        fits[s] = 0.0
        for t in range(m):
            for i in range(n):
                fits[s, i] += trees.values[trees.leaf_of[t, i]]


@njit(cache=True)
def run_sweeps(rng, trees, design, prior, leaf, work, moves, draws, codes, depths, roots, fits):
    """Run sweeps; record partition codes, depths and root columns of all trees, and the outputs.

    ``codes``, ``depths``, ``roots`` are (draws, m); ``fits`` (draws, n, K) or (0, ..) to record
    none. The column of a root that is a leaf is -1.
    """
    counts = np.zeros((2, moves.weights.size), dtype=np.int64)
    for s in range(draws):
        if not sweep(rng, Problem(trees, design, prior, leaf), moves, work, counts):
            raise ValueError("full")
        record(trees, work.nodes, s, codes, depths, roots, fits)
    return counts


def partition_of(code, n):
    """Partition, as the oracle writes it, of a code."""
    labels = []
    for _ in range(n):
        code, label = divmod(int(code), n)
        labels.append(label)
    labels.reverse()
    groups = {}
    for row, label in enumerate(labels):
        groups.setdefault(label, []).append(row)
    return frozenset(frozenset(rows) for rows in groups.values())


class Chain(NamedTuple):
    """Record of a run."""

    codes: np.ndarray
    depths: np.ndarray
    roots: np.ndarray
    fits: np.ndarray
    proposed: np.ndarray
    accepted: np.ndarray


def run_chain(seed, setup, moves, draws, keep_fits=False):
    """Run a sampler from stumps."""
    m, n = setup.trees.leaf_of.shape
    codes, depths, roots = np.empty((3, draws, m), dtype=np.int64)
    k = setup.trees.values.shape[1]
    fits = np.empty((draws if keep_fits else 0, n, k))
    rng = np.random.default_rng(seed)
    record = (codes, depths, roots, fits)
    proposed, accepted = run_sweeps(rng, *setup, moves, draws, *record)
    return Chain(codes, depths, roots, fits, proposed, accepted)


class Tools(NamedTuple):
    """What particle Gibbs takes beside a `Setup`."""

    growth: Growth
    scheme: int
    surrogate: tuple | None

    @property
    def particles(self):
        return self.growth.particles


def make_tools(setup, particles, proposal, scheme, share=1.0, n_bins=100, guide=None):
    """Particles and a proposal; ``share`` of the columns looked at by the optimal one."""
    p, n = setup.design.columns.shape
    n_stats = setup.work.stats.shape[1]
    tabled = setup.leaf if guide is None else guide
    bins = make_bins(setup.design.columns, n_bins, from_prior(setup.design))
    growth = Growth(
        make_particles(particles, 2 * n - 1, n, n_stats),
        bins,
        make_look_ahead(tabled, bins, particles, 2 * n - 1, share),
        PROPOSALS.index(proposal),
        setup.work.buffer,
    )
    return Tools(growth, SCHEMES.index(scheme), guide)


def with_float_cells(setup):
    """The same setup with float64 cells: one compilation less."""
    return setup._replace(design=float_cells(setup.design))


@njit(cache=True)
def run_particle_sweeps(rng, setup, growth, scheme, surrogate, draws, records, outcome):
    """As `run_sweeps`, by particle Gibbs."""
    trees, design, prior, leaf, work = setup
    problem = Problem(trees, design, prior, leaf)
    codes, depths, roots, fits = records
    batch = Batch(0, trees.roots.size, False)
    for s in range(draws):
        if not particle_sweep(rng, problem, surrogate, growth, scheme, work, batch, outcome):
            raise ValueError("full")
        record(trees, work.nodes, s, codes, depths, roots, fits)


def run_particles(seed, setup, tools, draws, keep_fits=False):
    """Run particle Gibbs from stumps; ``accepted`` holds trees changed and summed ESS."""
    m, n = setup.trees.leaf_of.shape
    codes, depths, roots = np.empty((3, draws, m), dtype=np.int64)
    fits = np.empty((draws if keep_fits else 0, n, setup.trees.values.shape[1]))
    outcome = np.zeros(2)
    rng = np.random.default_rng(seed)
    run_particle_sweeps(rng, setup, *tools, draws, (codes, depths, roots, fits), outcome)
    return Chain(codes, depths, roots, fits, draws * m, outcome)


def run_guided(seed, setup, particles, proposal, draws, scheme="multinomial", n_bins=100):
    """Run particle Gibbs under a guide from stumps, with the outputs recorded."""
    n = setup.trees.leaf_of.shape[1]
    guide = make_normal(0.0, 1.0, np.zeros(n), np.ones(n), 1)
    tools = make_tools(setup, particles, proposal, scheme, n_bins=n_bins, guide=guide)
    return run_particles(seed, setup, tools, draws, keep_fits=True)
