"""Chains of Metropolis moves, run inside compiled code."""

import numpy as np
from numba import njit

from pymc_trees.core.moves.by_address import ByAddress
from pymc_trees.core.moves.catalogue import MOVES, OPTIONAL_MOVES, standard_moves
from pymc_trees.core.samplers.backfitting import sweep

from .record import Chain, record


def with_weights(*weights):
    """All moves, the last ones without a weight: one compilation serves every set."""
    return standard_moves(np.array(weights + (0.0,) * (len(MOVES + OPTIONAL_MOVES) - len(weights))))


CGM = with_weights(0.25, 0.25, 0.4, 0.1)
GROW_PRUNE = with_weights(0.5, 0.5)
# Mostly changes and swaps, so that an error in either cannot hide behind grow and prune.
CHANGE_SWAP = with_weights(0.1, 0.1, 0.4, 0.4)
ALL_MOVES = with_weights(0.15, 0.2, 0.1, 0.05, 0.25, 0.15, 0.1)
# Small steps of rules, rotations, or other trees with the same leaves, and hardly anything else.
PERTURB = with_weights(0.1, 0.1, 0.0, 0.0, 0.8)
ROTATE = with_weights(0.2, 0.2, 0.0, 0.0, 0.0, 0.6)
RESTRUCTURE = with_weights(0.2, 0.2, 0.0, 0.0, 0.0, 0.0, 0.6)
# Each proposal after the first starts from what the one before it left behind.
THREE_A_VISIT = ALL_MOVES._replace(per_visit=3)

MOVE_SETS = {
    "cgm": CGM,
    "grow_prune": GROW_PRUNE,
    "change_swap": CHANGE_SWAP,
    "three_a_visit": THREE_A_VISIT,
    "all_moves": ALL_MOVES,
    "perturb": PERTURB,
    "rotate": ROTATE,
    "restructure": RESTRUCTURE,
}


@njit(cache=True)
def run_sweeps(rng, problem, work, moves, draws, codes, depths, roots, fits):
    """Run sweeps; record partition codes, depths and root columns of all trees, and the outputs.

    ``codes``, ``depths``, ``roots`` are (draws, m); ``fits`` (draws, n, K) or (0, ..) to record
    none. The column of a root that is a leaf is -1.
    """
    counts = np.zeros((2, moves.weights.size), dtype=np.int64)
    for s in range(draws):
        if not sweep(rng, problem, moves, work, counts):
            raise ValueError("full")
        record(problem.trees, work.nodes, s, codes, depths, roots, fits)
    return counts


_MAKERS: dict = {}


def called(problem, work, moves):
    """Problem, workspace and moves as steps pass them to sweeps: model and moves by address."""
    _, maker = _MAKERS.setdefault(id(work), (work, ByAddress(always=True)))
    problem, moves = maker(problem, work, moves)
    return problem, work, moves


def sweep_on(rng, problem, moves, work, draws=1):
    """So many sweeps; counts of moves.

    By the kernel of the chains: `backfitting.sweep` on its own would be one more to compile.
    """
    codes = np.empty((3, draws, problem.trees.roots.size), dtype=np.int64)
    return run_sweeps(rng, *called(problem, work, moves), draws, *codes, np.empty((0, 1, 1)))


def run_chain(seed, setup, moves, draws, keep_fits=False):
    """Run a sampler from stumps."""
    m, n = setup.trees.leaf_of.shape
    codes, depths, roots = np.empty((3, draws, m), dtype=np.int64)
    k = setup.trees.values.shape[1]
    fits = np.empty((draws if keep_fits else 0, n, k))
    rng = np.random.default_rng(seed)
    record = (codes, depths, roots, fits)
    given = called(setup.problem, setup.work, moves)
    proposed, accepted = run_sweeps(rng, *given, draws, *record)
    return Chain(codes, depths, roots, fits, proposed, accepted)
