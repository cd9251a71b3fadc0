"""One backfitting sweep over soft trees: every tree once, given the residual of the others.

As Chipman, George and McCulloch (2010, eq. 12-13) and Linero and Yang (2018, section 3.2): some
moves of tree t with its leaf values integrated out, each of which leaves p(tree t | the other
trees, y) invariant, then its leaf values from their conditional.
"""

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.leaves.contract import resample_latents
from pymc_trees.core.leaves.nonconjugate.gaussian import (
    expand_at_anchors,
    expand_at_current,
    fit_screen,
)
from pymc_trees.core.leaves.nonconjugate.rowwise import evaluate_rows, store_log_rows
from pymc_trees.core.random import accepts
from pymc_trees.core.soft_forest.moves import FULL, open_soft_tree, soft_move, update_gram
from pymc_trees.core.soft_forest.rows import (
    LEAVES,
    SoftRows,
    draw_leaf_values,
    log_marginal,
    make_soft_work,
)


@njit(cache=True)
def add_open_tree(problem, t, work, sign, total):
    """Add the function of the open tree to ``total`` (n,), ``sign`` times."""
    trees, phi, leaf = problem.trees, work.current.phi, 0
    for k in range(trees.size[t]):
        if trees.column[t, k] < 0:
            value = sign * trees.number[t, k]
            for i in range(total.size):
                total[i] += phi[leaf, i] * value
            leaf += 1


@njit(cache=True)
def move_and_draw(rng, problem, t, rows, weights, n_moves, counts, work):
    """Make moves of the open tree, then draw its leaf values.

    Returns the workspace, and whether the forest fits its capacity.
    """
    trees = problem.trees
    log_now = update_gram(problem, t, rows, work)
    capacity = problem.max_nodes - trees.size.sum() + trees.size[t]
    for _ in range(n_moves):
        kind, outcome, log_now, work = soft_move(
            rng, problem, t, rows, weights, log_now, capacity - trees.size[t], work
        )
        if outcome == FULL:
            return work, False
        counts[0, kind] += 1
        counts[1, kind] += outcome
    n_leaves = (trees.size[t] + 1) // 2
    log_marginal(work.current, n_leaves, rows.sd)
    draw_leaf_values(rng, work.current, n_leaves, rows, work.values)
    leaf = 0
    for k in range(trees.size[t]):
        if trees.column[t, k] < 0:
            trees.number[t, k] = work.values[leaf]
            leaf += 1
    return work, True


@njit(cache=True, nogil=True)
def soft_sweeps(rng, problem, leaf, weights, n_moves, n_sweeps, stop_flag, counts):
    """Update all trees ``n_sweeps`` times; False on ``stop_flag``, or if they exceed ``max_nodes``.

    Parameters
    ----------
    problem : SoftProblem
        Forest and prior.
    leaf : NormalData
        Its residual, of all trees, is updated; latent variables of rows are redrawn after each
        sweep.
    weights : (5,) float64
        Of the kinds of moves.
    n_moves : int
        Moves per visit.
    stop_flag : (1,) bool
    counts : (2, 5) int64
        Moves proposed and accepted; incremented.
    """
    trees, r = problem.trees, leaf.r
    work = make_soft_work(trees.column.shape[1], LEAVES, r.size)
    rows = SoftRows(leaf.mean, leaf.sd, r, leaf.w)
    for _ in range(n_sweeps):
        for t in range(trees.size.size):
            if stop_flag[0]:
                return False
            work = open_soft_tree(problem, t, work)
            add_open_tree(problem, t, work, 1.0, r)
            work, fits = move_and_draw(rng, problem, t, rows, weights, n_moves, counts, work)
            if not fits:
                return False
            add_open_tree(problem, t, work, -1.0, r)
        resample_latents(leaf, rng)
    return True


@njit(cache=True)
def count_trees(trees, inclusion):
    """Count leaves and the largest depth; add the splits of each column to ``inclusion``."""
    leaves, deepest = 0, 0
    waiting = np.empty(trees.column.shape[1] + 1, dtype=np.int64)
    for t in range(trees.size.size):
        depth, height = 0, 0
        for k in range(trees.size[t]):
            deepest = max(deepest, depth)
            if trees.column[t, k] >= 0:
                inclusion[trees.column[t, k]] += 1
                waiting[height] = depth + 1
                height += 1
                depth += 1
            else:
                leaves += 1
                if height > 0:
                    height -= 1
                    depth = waiting[height]
    return leaves, deepest


# --------------------------------------------------------------------------------------------------
# One backfitting sweep over soft trees under any likelihood of rows, screened by Gaussian rows.
#
# Given the other trees, let ``l_i`` be the log-likelihood of row i as a function of the tree's
# output there, and ``l~_i`` that of a Gaussian row that does not depend on the current tree
# (`leaves.nonconjugate.gaussian.screen`). Under
#
#     p~(T, mu) = p(T) p(mu) exp(sum_i l~_i)
#
# leaf values integrate out. A visit makes some moves of T reversible with respect to p~(T), and
# draws all leaf values from ``p~(mu | T')``: together a proposal that is reversible with respect
# to p~. The Metropolis-Hastings probability under ``p exp(sum_i l_i)`` corrects the difference,
#
#     min(1, exp(sum_i (l_i - l~_i)(T', mu') - sum_i (l_i - l~_i)(T, mu))),
#
# whatever the Gaussian rows (Christen and Fox 2005; Liu 2001, section 9.4.3). The rows of a visit
# are chosen at random, independently of the state, as in `samplers.screened_sweep`.


@njit(cache=True)
def log_gaussian_rows(gaussian, f):
    """Sum of ``l~_i`` up to a constant, at the tree's outputs."""
    total = 0.0
    for i in range(f.size):
        distance = gaussian.r[i] - f[i]
        total -= 0.5 * gaussian.w[i] * distance * distance
    return total


@njit(cache=True)
def _copy_tree(source, s, target, t):
    size = source.size[s]
    target.size[t], target.bandwidth[t] = size, source.bandwidth[s]
    for k in range(size):
        target.column[t, k], target.number[t, k] = source.column[s, k], source.number[s, k]


@njit(cache=True, nogil=True)
def screened_soft_sweeps(
    rng, problem, leaf, screen, backup, weights, n_moves, n_sweeps, stop_flag, counts
):
    """Update all trees ``n_sweeps`` times; False on ``stop_flag``, or if they exceed ``max_nodes``.

    Parameters
    ----------
    problem : SoftProblem
        Forest and prior.
    leaf : RowwiseData
        Likelihood, and the sum of all trees.
    screen : Screen
        Its Gaussian rows are computed here.
    backup : SoftTrees
        Of one tree, with the same capacity; overwritten.
    weights, n_moves, stop_flag
        As for `sweep.soft_sweeps`.
    counts : (2, 6) int64
        Moves proposed and accepted, and in the last column visits and accepted visits. Moves of a
        refused visit count as refused.
    """
    trees, gaussian, offset, log_rows = problem.trees, screen.gaussian, leaf.offset, leaf.log_rows
    n = offset.shape[0]
    work = make_soft_work(trees.column.shape[1], LEAVES, n)
    rows = SoftRows(leaf.mean[0], leaf.sd[0], gaussian.r, gaussian.w)
    old, new, moved = np.empty(n), np.empty(n), np.zeros((2, weights.size), dtype=np.int64)
    fit_screen(leaf, screen)
    evaluate_rows(leaf)
    store_log_rows(leaf)
    for _ in range(n_sweeps):
        for t in range(trees.size.size):
            if stop_flag[0]:
                return False
            work = open_soft_tree(problem, t, work)
            old[:] = 0.0
            add_open_tree(problem, t, work, 1.0, old)
            for i in range(n):
                offset[i, 0] -= old[i]
            if rng.random() < screen.local[0]:
                expand_at_current(leaf, screen, min(1.0, 2.0 * rng.random()))
            else:
                expand_at_anchors(offset, screen)
            _copy_tree(trees, t, backup, 0)
            before = -log_gaussian_rows(gaussian, old)
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
            after = evaluate_rows(leaf) - log_gaussian_rows(gaussian, new)
            counts[0, weights.size] += 1
            taken = accepts(rng, after - before)
            for k in range(weights.size):
                counts[0, k] += moved[0, k]
                counts[1, k] += moved[1, k] if taken else 0
            if taken:
                counts[1, weights.size] += 1
                store_log_rows(leaf)
            else:
                for i in range(n):
                    offset[i, 0] += old[i] - new[i]
                _copy_tree(backup, 0, trees, t)
    return True
