"""One backfitting sweep when the likelihood is not a product over rows.

A move of tree t is proposed and accepted as if there were no data: a reversible step that leaves
the prior of trees invariant. The resulting tree and values drawn for all its leaves are then
accepted or rejected by the ratio of weights (`leaves.nonconjugate.joint`), which is the
Metropolis-Hastings ratio of a proposal that is reversible with respect to the prior (Tierney 1998).
Several moves are treated the same way, one by one; then the values are refreshed once more by the
same rule.
"""

from typing import NamedTuple

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.compile.pointer import by_pointer
from pymc_trees.core.forest.trees import preorder, restore_tree, save_tree
from pymc_trees.core.leaves.nonconjugate.joint import (
    TreeFit,
    fit_tree,
    label_leaves,
    log_likelihood_at,
    log_weight,
    write_leaves,
)
from pymc_trees.core.leaves.nonconjugate.proposal import draw_proposal
from pymc_trees.core.moves.contract import FULL
from pymc_trees.core.moves.problem import count_nodes, ensure_rows
from pymc_trees.core.order.contract import is_ordered
from pymc_trees.core.priors.contract import resample_times
from pymc_trees.core.random import accepts
from pymc_trees.core.samplers.backfitting import metropolis_move


@njit(cache=True)
def add_tree(outputs, trees, tree, times):
    """Add the values of a tree to the (n, K) outputs, or subtract them."""
    leaf_of, values = trees.leaf_of[tree], trees.values
    for i in range(outputs.shape[0]):
        for k in range(outputs.shape[1]):
            outputs[i, k] += times * values[leaf_of[i], k]


@by_pointer
class WeightedValues(NamedTuple):
    """Values of all leaves of a tree, and their weight."""

    values: np.ndarray
    """In the order of `label_leaves`, flat."""
    fit: TreeFit
    """Approximate conditional of the values."""
    log_likelihood: float
    log_weight: float


@njit(cache=True)
def weigh_values(leaf, fit, values):
    """Weight of the values of the leaves that `label_tree` listed last."""
    total = log_likelihood_at(leaf, values)
    return WeightedValues(values, fit, total, log_weight(leaf, fit, values, total))


@njit(cache=True)
def label_tree(problem, tree, n_nodes, work):
    """`label_leaves` of a tree."""
    trees, leaf_of = problem.trees, problem.trees.leaf_of[tree]
    column, values = trees.column, trees.values
    return label_leaves(problem.leaf, column, values, leaf_of, work.nodes, n_nodes, work.below)


@njit(cache=True)
def move_tree(rng, problem, without_data, tree, moves, work, saved, current):
    """Propose a tree and values for all its leaves, accept both or neither.

    Parameters
    ----------
    without_data : Problem
        See `joint_sweep`.
    saved : SavedTree
        Overwritten.
    current : WeightedValues
        Of the current tree.

    Returns
    -------
    kind, outcome, current
        As `metropolis_move`, and the values of the resulting tree.
    """
    trees, leaf = problem.trees, problem.leaf
    node_counts = count_nodes(trees, tree, work.nodes)
    ensure_rows(trees, tree, node_counts.n_nodes, work)
    save_tree(trees, tree, work.nodes, node_counts.n_nodes, work.sets, 1, saved)
    kind, outcome = metropolis_move(rng, without_data, tree, moves, node_counts, work)
    if outcome != 1:
        return kind, outcome, current
    n_nodes = preorder(trees, trees.roots[tree], work.nodes)
    values = label_tree(problem, tree, n_nodes, work)
    fit = fit_tree(leaf, values.size // leaf.offset.shape[1])
    draw_proposal(rng, fit.mean, fit.sd, fit.mode, fit.factor, values)
    proposed = weigh_values(leaf, fit, values)
    write_leaves(trees.column, trees.values, work.nodes, n_nodes, values)
    ordered = is_ordered(work.order, trees, tree)
    if ordered and accepts(rng, proposed.log_weight - current.log_weight):
        return kind, 1, proposed
    restore_tree(trees, tree, node_counts.n_nodes, work.sets, 1, saved)
    return kind, 0, current


@njit(cache=True, nogil=True)
def joint_sweeps(rng, problem, without_data, moves, work, saved, n_sweeps, counts):
    """Run `joint_sweep` several times."""
    for _ in range(n_sweeps):
        if not joint_sweep(rng, problem, without_data, moves, work, saved, counts):
            return False
    return True


@njit(cache=True, nogil=True)
def joint_sweep(rng, problem, without_data, moves, work, saved, counts):
    """Update all trees once; False when the forest outgrew its pool, or on ``work.stop_flag``.

    Parameters
    ----------
    problem : Problem
        Its leaf, a `JointData`, is the likelihood.
    without_data : Problem
        The same forest under a leaf model without data, under which moves are proposed.
    moves, work, counts
        As for `sweep`.
    saved : SavedTree
        Overwritten.
    """
    trees, leaf = problem.trees, problem.leaf
    nodes, n_values = work.nodes, leaf.offset.shape[1]
    work.stats[:] = 0.0
    for t in range(trees.roots.size):
        if work.stop_flag[0]:
            return False
        add_tree(leaf.offset, trees, t, -1.0)
        values = label_tree(problem, t, preorder(trees, trees.roots[t], nodes), work)
        current = weigh_values(leaf, fit_tree(leaf, values.size // n_values), values)
        for _ in range(moves.per_visit):
            kind, outcome, current = move_tree(
                rng, problem, without_data, t, moves, work, saved, current
            )
            if outcome == FULL:
                return False
            if kind >= 0:
                counts[0, kind] += 1
                counts[1, kind] += outcome
        n_nodes = preorder(trees, trees.roots[t], nodes)
        refreshed, fit = label_tree(problem, t, n_nodes, work), current.fit
        draw_proposal(rng, fit.mean, fit.sd, fit.mode, fit.factor, refreshed)
        proposed = weigh_values(leaf, fit, refreshed)
        write_leaves(trees.column, trees.values, nodes, n_nodes, refreshed)
        ordered = is_ordered(work.order, trees, t)
        if ordered and accepts(rng, proposed.log_weight - current.log_weight):
            current = proposed
        write_leaves(trees.column, trees.values, nodes, n_nodes, current.values)
        leaf.total[0] = current.log_likelihood
        add_tree(leaf.offset, trees, t, 1.0)
    resample_times(rng, problem.prior, trees, nodes)
    return True
