"""One backfitting sweep over soft trees: every tree once, given the residual of the others.

As Chipman, George and McCulloch (2010, eq. 12-13) and Linero and Yang (2018, section 3.2): some
moves of tree t with its leaf values integrated out, each of which leaves p(tree t | the other
trees, y) invariant, then its leaf values from their conditional.
"""

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.leaves.contract import renew_rows
from pymc_trees.core.soft_forest.moves import FULL, open_soft_tree, see_rows, soft_move
from pymc_trees.core.soft_forest.rows import SoftRows, draw_leaf_values, log_marginal
from pymc_trees.core.soft_forest.work import LEAVES, make_soft_work


@njit(cache=True)
def add_open_tree(problem, t, work, sign, total):
    """Add the function of the open tree to ``total`` (n,), ``sign`` times."""
    trees, phi, leaf = problem.trees, work.present.phi, 0
    for k in range(trees.size[t]):
        if trees.column[t, k] < 0:
            value = sign * trees.number[t, k]
            for i in range(total.size):
                total[i] += phi[leaf, i] * value
            leaf += 1


@njit(cache=True)
def move_and_draw(rng, problem, t, rows, weights, n_moves, counts, work):
    """Moves of the open tree, then new leaf values; the work, and whether the forest fitted."""
    trees = problem.trees
    log_now = see_rows(problem, t, rows, work)
    room = problem.max_nodes - trees.size.sum() + trees.size[t]
    for _ in range(n_moves):
        kind, outcome, log_now, work = soft_move(
            rng, problem, t, rows, weights, log_now, room - trees.size[t], work
        )
        if outcome == FULL:
            return work, False
        counts[0, kind] += 1
        counts[1, kind] += outcome
    n_leaves = (trees.size[t] + 1) // 2
    log_marginal(work.present, n_leaves, rows.sd)
    draw_leaf_values(rng, work.present, n_leaves, rows, work.values)
    leaf = 0
    for k in range(trees.size[t]):
        if trees.column[t, k] < 0:
            trees.number[t, k] = work.values[leaf]
            leaf += 1
    return work, True


@njit(cache=True, nogil=True)
def soft_sweeps(rng, problem, leaf, weights, n_moves, n_sweeps, cease, counts):
    """Update all trees so many times; False when the forest outgrew its room, or on ``cease``.

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
        Moves of a visit.
    cease : (1,) bool
    counts : (2, 5) int64
        Moves proposed and accepted; incremented.
    """
    trees, r = problem.trees, leaf.r
    work = make_soft_work(trees.column.shape[1], LEAVES, r.size)
    rows = SoftRows(leaf.mean, leaf.sd, r, leaf.w)
    for _ in range(n_sweeps):
        for t in range(trees.size.size):
            if cease[0]:
                return False
            work = open_soft_tree(problem, t, work)
            add_open_tree(problem, t, work, 1.0, r)
            work, fits = move_and_draw(rng, problem, t, rows, weights, n_moves, counts, work)
            if not fits:
                return False
            add_open_tree(problem, t, work, -1.0, r)
        renew_rows(leaf, rng)
    return True


@njit(cache=True)
def count_trees(trees, inclusion):
    """Leaves, depth of the deepest leaf; splits of each column are added to ``inclusion``."""
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
