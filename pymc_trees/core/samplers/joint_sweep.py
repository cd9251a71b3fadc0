"""One backfitting sweep when the likelihood is not a product over rows.

A move of tree t is proposed and accepted as if there were no data: a reversible step that leaves
the prior of trees invariant. The resulting tree and values drawn for all its leaves are then
accepted or refused by the ratio of weights (`leaves.nonconjugate.joint`), which is the
Metropolis-Hastings ratio of a proposal that is reversible with respect to the prior (Tierney 1998).
Several moves are treated the same way, one by one; then the values are refreshed once more by the
same rule.
"""

from typing import NamedTuple

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.compile.pointer import by_pointer
from pymc_trees.core.forest.trees import preorder
from pymc_trees.core.forest.undo import keep_tree, restore_tree
from pymc_trees.core.leaves.nonconjugate.joint import (
    TreeFit,
    fit_tree,
    label_leaves,
    log_likelihood_at,
    log_weight,
    write_leaves,
)
from pymc_trees.core.leaves.nonconjugate.proposal import draw_proposal
from pymc_trees.core.moves.census import count_nodes
from pymc_trees.core.moves.contract import FULL
from pymc_trees.core.moves.problem import ensure_rows
from pymc_trees.core.order.contract import is_ordered
from pymc_trees.core.priors.contract import renew_times
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
class WeighedValues(NamedTuple):
    """Values of all leaves of a tree, and their weight."""

    values: np.ndarray
    """In the order of `label_leaves`, flat."""
    fit: TreeFit
    """Approximate conditional of the values."""
    log_likelihood: float
    log_weight: float


@njit(cache=True)
def weigh(leaf, fit, values):
    """Weigh the values of the leaves as labelled last."""
    total = log_likelihood_at(leaf, values)
    return WeighedValues(values, fit, total, log_weight(leaf, fit, values, total))


@njit(cache=True)
def label(problem, tree, n_nodes, work):
    """`label_leaves` of a tree."""
    trees, leaf_of = problem.trees, problem.trees.leaf_of[tree]
    column, values = trees.column, trees.values
    return label_leaves(problem.leaf, column, values, leaf_of, work.nodes, n_nodes, work.below)


@njit(cache=True)
def move_tree(rng, problem, without_data, tree, moves, work, kept, present):
    """Propose a tree and values for all its leaves, accept both or neither.

    Parameters
    ----------
    without_data : Problem
        See `joint_sweep`.
    kept : KeptTree
        Overwritten.
    present : WeighedValues
        Of the current tree.

    Returns
    -------
    kind, outcome, present
        As `metropolis_move`, and the values of the resulting tree.
    """
    trees, leaf = problem.trees, problem.leaf
    census = count_nodes(trees, tree, work.nodes)
    ensure_rows(trees, tree, census.n_nodes, work)
    keep_tree(trees, tree, work.nodes, census.n_nodes, work.sets, 1, kept)
    kind, outcome = metropolis_move(rng, without_data, tree, moves, census, work)
    if outcome != 1:
        return kind, outcome, present
    n_nodes = preorder(trees, trees.roots[tree], work.nodes)
    values = label(problem, tree, n_nodes, work)
    fit = fit_tree(leaf, values.size // leaf.offset.shape[1])
    draw_proposal(rng, fit.mean, fit.sd, fit.mode, fit.factor, values)
    proposed = weigh(leaf, fit, values)
    write_leaves(trees.column, trees.values, work.nodes, n_nodes, values)
    stays = is_ordered(work.order, trees, tree)
    if stays and accepts(rng, proposed.log_weight - present.log_weight):
        return kind, 1, proposed
    restore_tree(trees, tree, census.n_nodes, work.sets, 1, kept)
    return kind, 0, present


@njit(cache=True, nogil=True)
def joint_sweeps(rng, problem, without_data, moves, work, kept, n_sweeps, counts):
    """Several calls of `joint_sweep` in one."""
    for _ in range(n_sweeps):
        if not joint_sweep(rng, problem, without_data, moves, work, kept, counts):
            return False
    return True


@njit(cache=True, nogil=True)
def joint_sweep(rng, problem, without_data, moves, work, kept, counts):
    """Update all trees once; False when the forest outgrew its pool, or on ``work.stop_flag``.

    Parameters
    ----------
    problem : Problem
        Its leaf, a `JointData`, is the likelihood.
    without_data : Problem
        The same forest under a leaf model without data, under which moves are proposed.
    moves, work, counts
        As for `sweep`.
    kept : KeptTree
        Overwritten.
    """
    trees, leaf = problem.trees, problem.leaf
    nodes, n_values = work.nodes, leaf.offset.shape[1]
    work.stats[:] = 0.0
    for t in range(trees.roots.size):
        if work.stop_flag[0]:
            return False
        add_tree(leaf.offset, trees, t, -1.0)
        values = label(problem, t, preorder(trees, trees.roots[t], nodes), work)
        present = weigh(leaf, fit_tree(leaf, values.size // n_values), values)
        for _ in range(moves.per_visit):
            kind, outcome, present = move_tree(
                rng, problem, without_data, t, moves, work, kept, present
            )
            if outcome == FULL:
                return False
            if kind >= 0:
                counts[0, kind] += 1
                counts[1, kind] += outcome
        n_nodes = preorder(trees, trees.roots[t], nodes)
        refreshed, fit = label(problem, t, n_nodes, work), present.fit
        draw_proposal(rng, fit.mean, fit.sd, fit.mode, fit.factor, refreshed)
        proposed = weigh(leaf, fit, refreshed)
        write_leaves(trees.column, trees.values, nodes, n_nodes, refreshed)
        stays = is_ordered(work.order, trees, t)
        if stays and accepts(rng, proposed.log_weight - present.log_weight):
            present = proposed
        write_leaves(trees.column, trees.values, nodes, n_nodes, present.values)
        leaf.total[0] = present.log_likelihood
        add_tree(leaf.offset, trees, t, 1.0)
    renew_times(rng, problem.prior, trees, nodes)
    return True
