"""One backfitting sweep: every tree once, given the residual of the others.

Chipman 2010, eq. 12-13 (Lakshminarayanan 2015, algorithm 1): the structure of tree t by one move
with its leaf values integrated out, then its leaf values from their conditional; where they do not
integrate out, both steps with weighed draws (`leaves.nonconjugate`). Several moves may precede the
draw of the values: each leaves p(tree t | the other trees, y) invariant.
"""

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.leaves.contract import resample_latents, swap_residual
from pymc_trees.core.leaves.path import write_paths
from pymc_trees.core.moves.census import count_nodes
from pymc_trees.core.moves.choice import choose_move, propose_chosen
from pymc_trees.core.moves.contract import FULL
from pymc_trees.core.moves.problem import ensure_rows
from pymc_trees.core.order.contract import accept_ordered, draw_ordered, snapshot_tree
from pymc_trees.core.priors.contract import renew_times

# -------------------------------------------------------- One Metropolis-Hastings move on one tree


@njit(cache=True)
def metropolis_move(rng, problem, tree, moves, census, work):
    """Choose a move by weight among those the tree allows, propose it, accept or refuse.

    Returns
    -------
    kind, outcome : int
        Index of the move in ``moves`` (-1: none was possible); 1 accepted, 0 refused, or
        `contract.FULL`.
    """
    kind = choose_move(rng, moves, census)
    outcome = propose_chosen(moves.moves, kind, rng, problem, tree, moves, census, work)
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
        Moves proposed and accepted, added to.
    """
    trees, leaf = problem.trees, problem.leaf
    roots, nodes, stats, order = trees.roots, work.nodes, work.stats, work.order
    for t in range(roots.size):
        if work.stop_flag[0]:
            return False
        census = count_nodes(trees, t, nodes)
        ensure_rows(trees, t, census.n_nodes, work)
        swap_residual(leaf, trees, t - 1, t, nodes, census.n_nodes, stats)
        write_paths(leaf, problem.design, trees, nodes, census.n_nodes, stats)
        snapshot_tree(order, problem, t, census.n_nodes, work)
        for _ in range(moves.per_visit):
            kind, outcome = metropolis_move(rng, problem, t, moves, census, work)
            if outcome == FULL:
                return False
            if outcome == 1 and not accept_ordered(order, rng, problem, t, work, True):
                outcome = 0
            if kind >= 0:
                counts[0, kind] += 1
                counts[1, kind] += outcome
            if outcome != 0:
                census = count_nodes(trees, t, nodes)
        draw_ordered(order, rng, problem, t, census.n_nodes, work)
    swap_residual(leaf, trees, roots.size - 1, -1, nodes, 0, stats)
    renew_times(rng, problem.prior, trees, nodes)
    resample_latents(leaf, rng)
    return True


@njit(cache=True, nogil=True)
def sweeps(rng, problem, moves, work, n_sweeps, counts):
    """Several sweeps; False as soon as one of them is."""
    for _ in range(n_sweeps):
        if not sweep(rng, problem, moves, work, counts):
            return False
    return True
