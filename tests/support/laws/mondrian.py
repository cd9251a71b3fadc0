"""Trees whose prior is a Mondrian process, against `support.oracle.mondrian`."""

import zlib
from functools import cache

import numpy as np
from numba import njit

from pymc_trees.core.forest.trees import make_stumps
from pymc_trees.core.moves.problem import Problem
from pymc_trees.core.priors.mondrian import make_mondrian
from pymc_trees.core.samplers.backfitting import sweep
from pymc_trees.core.samplers.particle_gibbs import Batch, particle_sweep
from pymc_trees.core.samplers.prior_draw import draw_forest
from support.chains import (
    MOVE_SETS,
    make_setup,
    make_tools,
    partition_of,
    record,
    with_float_cells,
)
from support.naive.batches import batch_means, frequencies, gap, law_gap
from support.naive.laws import PROBLEMS
from support.oracle import MondrianLaw

BATCHES = 60
Z = 6.0
LIFETIMES = {"gaps": 0.4, "two_columns": 0.6, "repeats": 0.7, "binary_constant": 0.8}
DRAWS = {
    "cgm": 200_000,
    "grow_prune": 200_000,
    "change_swap": 150_000,
    "all_moves": 200_000,
    "perturb": 300_000,
    "rotate": 300_000,
    "restructure": 300_000,
}


@cache
def exact(name, data=True):
    """Exact laws of a problem under a Mondrian process."""
    problem = PROBLEMS[name]
    leaf = problem.normal() if data else (lambda rows: 0.0)
    return MondrianLaw(problem.X, LIFETIMES[name]).posterior(leaf)


def timed_setup(name, data=True):
    """`make_setup` with a Mondrian process as prior."""
    setup = with_float_cells(make_setup(PROBLEMS[name], "normal", data=data))
    setup.trees.rate[0] = np.ptp(PROBLEMS[name].X, axis=0).sum()
    p = PROBLEMS[name].X.shape[1]
    return setup._replace(prior=make_mondrian(LIFETIMES[name], 0.0, np.full(p, 1 / p)))


@njit(cache=True)
def run_moves(rng, trees, design, prior, leaf, work, moves, draws, codes, depths, roots, times):
    """Sweeps of moves, as `chains.run_sweeps`, with the time of the root's split."""
    counts = np.zeros((2, moves.weights.size), dtype=np.int64)
    for s in range(draws):
        if not sweep(rng, Problem(trees, design, prior, leaf), moves, work, counts):
            raise ValueError("full")
        record(trees, work.nodes, s, codes, depths, roots, np.empty((0, 1, 1)))
        times[s] = trees.time[trees.roots[0]]


@njit(cache=True)
def run_whole_trees(rng, setup, growth, scheme, draws, records):
    """The same by particle Gibbs."""
    trees, design, prior, leaf, work = setup
    problem = Problem(trees, design, prior, leaf)
    codes, depths, roots, times = records
    batch, outcome = Batch(0, 1, False), np.zeros(2)
    for s in range(draws):
        if not particle_sweep(rng, problem, problem, None, growth, scheme, work, batch, outcome):
            raise ValueError("full")
        record(trees, work.nodes, s, codes, depths, roots, np.empty((0, 1, 1)))
        times[s] = trees.time[trees.roots[0]]


@njit(cache=True)
def draw_many(rng, draws, design, prior, leaf, work, codes, depths, roots, times):
    """Independent draws from the prior."""
    for s in range(draws):
        trees = make_stumps(work.nodes.size, 1, np.empty((1, work.rows.size), np.uint16))
        if not draw_forest(rng, trees, design, prior, leaf, work.nodes, work.rows, work.buffer):
            raise ValueError("full")
        record(trees, work.nodes, s, codes, depths, roots, np.empty((0, 1, 1)))
        times[s] = trees.time[trees.roots[0]]


def room(draws):
    return *(np.empty((draws, 1), dtype=np.int64) for _ in range(3)), np.empty(draws)


def worst(laws, n, codes, depths, roots, times):
    """Largest distances from exact laws: of partitions, depths, root columns and root times."""
    draws = len(codes)
    partitions, exact_depths, exact_roots, root, _ = laws
    found, shares = frequencies(codes[:, 0], BATCHES)
    gaps = [law_gap([partition_of(code, n) for code in found], shares, partitions, draws)]
    for record_, law in ((depths, exact_depths), (roots, exact_roots)):
        keys, shares = frequencies(record_[:, 0], BATCHES)
        gaps.append(law_gap(keys.tolist(), shares, law, draws))
    split = roots[:, 0] >= 0
    at = np.column_stack([np.where(split, times**k, 0.0) for k in (1, 2)])
    moments = batch_means(at, BATCHES) / [root.mean, root.square]
    gaps.append(gap(moments, 1.0))
    return gaps


def check(laws, n, *records, absolute=0.04):
    gaps = worst(laws, n, *records)
    assert all(g.within(Z, absolute) for g in gaps), gaps


def mondrian_by_moves(name, moves, data):
    """The posterior, and the prior where there are no data."""
    weights, draws = MOVE_SETS[moves], DRAWS[moves]
    rng = np.random.default_rng(zlib.crc32(f"{name} {moves} {data}".encode()))
    records = room(draws)
    run_moves(rng, *timed_setup(name, data), weights, draws, *records)
    # Grow and prune alone hardly ever change the root's column: 0.08 seen on "binary_constant".
    absolute = 0.15 if moves in ("grow_prune", "perturb", "rotate", "restructure") else 0.04
    check(exact(name, data), PROBLEMS[name].n, *records, absolute=absolute)


def mondrian_by_particles(name, particles, proposal, scheme):
    draws = {2: 50_000, 3: 40_000, 10: 20_000}[particles]
    setup = timed_setup(name)
    tools = make_tools(setup, particles, proposal, scheme, 0.5 if name == "repeats" else 1.0)
    rng = np.random.default_rng(zlib.crc32(f"{name} {particles} {proposal}".encode()))
    records = room(draws)
    run_whole_trees(rng, setup, *tools[:2], draws, records)
    check(exact(name), PROBLEMS[name].n, *records)


def draws_of_process(name):
    """Independent draws of the process."""
    records = room(60_000)
    setup = timed_setup(name, False)
    given = setup.design, setup.prior, setup.leaf, setup.work
    draw_many(np.random.default_rng(7), 60_000, *given, *records)
    return records
