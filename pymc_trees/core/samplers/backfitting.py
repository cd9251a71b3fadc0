"""One backfitting sweep: every tree once, given the residual of the others.

Chipman 2010, eq. 12-13 (Lakshminarayanan 2015, algorithm 1): the structure of tree t by one move
with its leaf values integrated out, then its leaf values from their conditional; where they do not
integrate out, both steps with weighted draws (`leaves.nonconjugate`). Several moves may precede the
draw of the values: each leaves p(tree t | the other trees, y) invariant.
"""

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.leaves.contract import resample_latents, swap_residual
from pymc_trees.core.leaves.path import write_paths
from pymc_trees.core.moves.contract import FULL, choose_move, propose_chosen
from pymc_trees.core.moves.problem import count_nodes, ensure_rows
from pymc_trees.core.order.contract import accept_ordered, draw_ordered, snapshot_tree
from pymc_trees.core.priors.contract import resample_times

# -------------------------------------------------------- One Metropolis-Hastings move on one tree


@njit(cache=True)
def metropolis_move(rng, problem, tree, moves, node_counts, work):
    """Choose a move by weight among those the tree allows, propose it, accept or reject.

    Returns
    -------
    kind, outcome : int
        Index of the move in ``moves`` (-1: none was possible); 1 accepted, 0 rejected, or
        `FULL`.
    """
    kind = choose_move(rng, moves, node_counts)
    outcome = propose_chosen(moves.moves, kind, rng, problem, tree, moves, node_counts, work)
    return kind, outcome


# --------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def sweep(rng, problem, moves, work, counts):
    """Update all trees once; False when the forest outgrew its pool, or on ``work.stop_flag``.

    Parameters
    ----------
    problem : Problem
        Forest and model.
    moves : WeightedMoves
        K moves, and the number of moves per visit of a tree.
    work : Workspace
        Of the forest.
    counts : (2, K) int64
        Moves proposed and accepted; incremented.
    """
    trees, leaf = problem.trees, problem.leaf
    roots, nodes, stats, order = trees.roots, work.nodes, work.stats, work.order
    for t in range(roots.size):
        if work.stop_flag[0]:
            return False
        node_counts = count_nodes(trees, t, nodes)
        ensure_rows(trees, t, node_counts.n_nodes, work)
        swap_residual(leaf, trees, t - 1, t, nodes, node_counts.n_nodes, stats)
        write_paths(leaf, problem.design, trees, nodes, node_counts.n_nodes, stats)
        snapshot_tree(order, problem, t, node_counts.n_nodes, work)
        for _ in range(moves.per_visit):
            kind, outcome = metropolis_move(rng, problem, t, moves, node_counts, work)
            if outcome == FULL:
                return False
            if outcome == 1 and not accept_ordered(order, rng, problem, t, work, True):
                outcome = 0
            if kind >= 0:
                counts[0, kind] += 1
                counts[1, kind] += outcome
            if outcome != 0:
                node_counts = count_nodes(trees, t, nodes)
        draw_ordered(order, rng, problem, t, node_counts.n_nodes, work)
    swap_residual(leaf, trees, roots.size - 1, -1, nodes, 0, stats)
    resample_times(rng, problem.prior, trees, nodes)
    resample_latents(leaf, rng)
    return True


@njit(cache=True, nogil=True)
def sweeps(rng, problem, moves, work, n_sweeps, counts):
    """Run several sweeps; False as soon as one returns False."""
    for _ in range(n_sweeps):
        if not sweep(rng, problem, moves, work, counts):
            return False
    return True
