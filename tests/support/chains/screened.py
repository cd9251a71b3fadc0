"""Chains of screened sweeps."""

import numpy as np
from numba import njit

from pymc_trees.core.forest.trees import make_saved_tree
from pymc_trees.core.leaves.nonconjugate.gaussian import fit_screen, make_screen
from pymc_trees.core.leaves.nonconjugate.rowwise import evaluate_rows, store_log_rows
from pymc_trees.core.samplers.screened_sweep import screened_sweep

from .local_moves import called
from .record import Chain, record


@njit(cache=True)
def run_screened_sweeps(
    rng, problem, screened, work, screen, kept, moves, draws, codes, depths, roots, fits
):
    """As `run_sweeps`, the Gaussian rows being found once."""
    counts = np.zeros((2, moves.weights.size + 1), dtype=np.int64)
    leaf = problem.leaf
    fit_screen(leaf, screen)
    evaluate_rows(leaf)
    store_log_rows(leaf)
    for s in range(draws):
        if not screened_sweep(rng, problem, screened, screen, moves, work, kept, counts):
            raise ValueError("full")
        record(problem.trees, work.nodes, s, codes, depths, roots, fits)
    return counts


def screen_of(setup, anchor, spread, local):
    """Screen of a setup with anchors at each row, the same for all outputs unless (n, K)."""
    leaf, places = setup.leaf, setup.trees.column.size
    anchor = np.broadcast_to(np.reshape(anchor, (len(anchor), -1)), leaf.offset.shape)
    return make_screen(leaf.mean, leaf.sd, anchor, spread, local, places)


def run_screened(seed, setup, screen, moves, draws):
    """Run a sampler from stumps of the value 0, which must be what ``leaf.offset`` adds up to."""
    m, n = setup.trees.leaf_of.shape
    codes, depths, roots = np.empty((3, draws, m), dtype=np.int64)
    fits = np.empty((draws, n, setup.trees.values.shape[1]))
    kept = make_saved_tree(setup.trees, np.empty_like(setup.work.sets))
    rng = np.random.default_rng(seed)
    gaussian = setup.problem._replace(leaf=screen.gaussian)
    screened, work, moves = called(gaussian, setup.work, moves)
    problem = screened._replace(leaf=setup.leaf)
    given = (work, screen, kept, moves, draws, codes, depths, roots, fits)
    proposed, accepted = run_screened_sweeps(rng, problem, screened, *given)
    return Chain(codes, depths, roots, fits, proposed, accepted)
