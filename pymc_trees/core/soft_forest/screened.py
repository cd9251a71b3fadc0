"""One backfitting sweep over soft trees under any likelihood of rows, screened by Gaussian rows.

Given the other trees, let ``l_i`` be the log-likelihood of row i as a function of the tree's output
there, and ``l~_i`` that of a Gaussian row that does not depend on the current tree
(`leaves.nonconjugate.gaussian.screen`). Under

    p~(T, mu) = p(T) p(mu) exp(sum_i l~_i)

leaf values integrate out. A visit makes some moves of T reversible with respect to p~(T), and draws
all leaf values from ``p~(mu | T')``: together a proposal that is reversible with respect to p~. Its
ratio of Metropolis and Hastings under ``p exp(sum_i l_i)`` is what p~ lacks,

    min(1, exp(sum_i (l_i - l~_i)(T', mu') - sum_i (l_i - l~_i)(T, mu))),

whatever the Gaussian rows (Christen and Fox 2005; Liu 2001, section 9.4.3). The rows of a visit are
chosen at random, independently of the state, as in `samplers.metropolis.screened_sweep`.
"""

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.leaves.nonconjugate.gaussian.screen import aim_locally, aim_screen, fit_screen
from pymc_trees.core.leaves.nonconjugate.rowwise import evaluate_rows, keep_rows
from pymc_trees.core.random import accepts
from pymc_trees.core.soft_forest.moves import open_soft_tree
from pymc_trees.core.soft_forest.rows import SoftRows
from pymc_trees.core.soft_forest.sweep import add_open_tree, move_and_draw
from pymc_trees.core.soft_forest.work import LEAVES, make_soft_work


@njit(cache=True)
def log_gaussian_rows(near, f):
    """Sum of ``l~_i`` up to a constant, at the tree's outputs."""
    total = 0.0
    for i in range(f.size):
        distance = near.r[i] - f[i]
        total -= 0.5 * near.w[i] * distance * distance
    return total


@njit(cache=True)
def _copy_tree(source, s, target, t):
    size = source.size[s]
    target.size[t], target.bandwidth[t] = size, source.bandwidth[s]
    for k in range(size):
        target.column[t, k], target.number[t, k] = source.column[s, k], source.number[s, k]


@njit(cache=True, nogil=True)
def screened_soft_sweeps(
    rng, problem, leaf, screen, kept, weights, n_moves, n_sweeps, cease, counts
):
    """Update all trees so many times; False when the forest outgrew its room, or on ``cease``.

    Parameters
    ----------
    problem : SoftProblem
        Forest and prior.
    leaf : RowwiseData
        Likelihood, and the sum of all trees.
    screen : Screen
        Its Gaussian rows are computed here.
    kept : SoftTrees
        Of one tree, with the same capacity; overwritten.
    weights, n_moves, cease
        As for `sweep.soft_sweeps`.
    counts : (2, 6) int64
        Moves proposed and accepted, and in the last column visits and accepted visits. Moves of a
        refused visit count as refused.
    """
    trees, near, offset, log_rows = problem.trees, screen.near, leaf.offset, leaf.log_rows
    n = offset.shape[0]
    work = make_soft_work(trees.column.shape[1], LEAVES, n)
    rows = SoftRows(leaf.mean[0], leaf.sd[0], near.r, near.w)
    old, new, moved = np.empty(n), np.empty(n), np.zeros((2, weights.size), dtype=np.int64)
    fit_screen(leaf, screen)
    evaluate_rows(leaf)
    keep_rows(leaf)
    for _ in range(n_sweeps):
        for t in range(trees.size.size):
            if cease[0]:
                return False
            work = open_soft_tree(problem, t, work)
            old[:] = 0.0
            add_open_tree(problem, t, work, 1.0, old)
            for i in range(n):
                offset[i, 0] -= old[i]
            if rng.random() < screen.local[0]:
                aim_locally(leaf, screen, min(1.0, 2.0 * rng.random()))
            else:
                aim_screen(offset, screen)
            _copy_tree(trees, t, kept, 0)
            before = -log_gaussian_rows(near, old)
            for i in range(n):
                before += log_rows[i]
            moved[:] = 0
            work, fits = move_and_draw(rng, problem, t, rows, weights, n_moves, moved, work)
            if not fits:
                return False
            new[:] = 0.0
            add_open_tree(problem, t, work, 1.0, new)
            for i in range(n):
                offset[i, 0] += new[i]
            after = evaluate_rows(leaf) - log_gaussian_rows(near, new)
            counts[0, weights.size] += 1
            taken = accepts(rng, after - before)
            for k in range(weights.size):
                counts[0, k] += moved[0, k]
                counts[1, k] += moved[1, k] if taken else 0
            if taken:
                counts[1, weights.size] += 1
                keep_rows(leaf)
            else:
                for i in range(n):
                    offset[i, 0] += old[i] - new[i]
                _copy_tree(kept, 0, trees, t)
    return True
