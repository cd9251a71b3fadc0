"""One backfitting sweep when the likelihood is not a product over rows.

A move of tree t is proposed and accepted as if there were no data: a step that leaves the prior of
trees invariant and is reversible. The tree it led to and values drawn for all its leaves are then
accepted or not by the ratio of log weights (`leaves.whole`): what is left of the
Metropolis-Hastings ratio when a proposal is reversible with respect to the prior (Tierney 1998).
The values are refreshed once more by the same rule.
"""

from typing import NamedTuple

from pymc_trees.core.compile.borrow import borrowed
from pymc_trees.core.compile.cache import njit
from pymc_trees.core.forest.trees import Trees, make_trees, preorder
from pymc_trees.core.leaves.nonconjugate.joint import (
    label_leaves,
    log_likelihood_at,
    log_weight,
    write_leaves,
)
from pymc_trees.core.leaves.nonconjugate.joint_mode import fit_tree
from pymc_trees.core.leaves.nonconjugate.proposal import draw_proposal
from pymc_trees.core.moves.census import take_census
from pymc_trees.core.moves.contract import FULL
from pymc_trees.core.moves.problem import Problem
from pymc_trees.core.priors.contract import renew_times
from pymc_trees.core.random import accepts
from pymc_trees.core.samplers.metropolis.one_move import metropolis_move


class KeptTree(NamedTuple):
    """Where the tree before a move is kept."""

    trees: Trees


def make_kept_tree(layout) -> KeptTree:
    """Arrays for one tree of a forest."""
    return KeptTree(make_trees(1, layout.max_nodes, layout.n_values, layout.n_rows))


@njit(cache=True)
def copy_nodes(source, target):
    """Copy the pool of nodes, without the rows' leaves."""
    target.column[:] = source.column
    target.cut[:] = source.cut
    target.left[:] = source.left
    target.right[:] = source.right
    target.parent[:] = source.parent
    target.depth[:] = source.depth
    target.count[:] = source.count
    target.unsplittable[:] = source.unsplittable
    target.log_cut[:] = source.log_cut
    target.log_column[:] = source.log_column
    target.values[:] = source.values
    target.time[:] = source.time
    target.rate[:] = source.rate
    target.free[:] = source.free
    target.n_free[:] = source.n_free


@njit(cache=True)
def add_tree(outputs, trees, tree, times):
    """Add the values of a tree to the (n, K) outputs, or take them away."""
    leaf_of, values = trees.leaf_of[tree], trees.values
    for i in range(outputs.shape[0]):
        for k in range(outputs.shape[1]):
            outputs[i, k] += times * values[leaf_of[i], k]


@njit(cache=True, nogil=True)
def joint_sweep(rng, problem, flat, moves, work, before, counts):
    """Update all trees once; False when the forest outgrew its pool, or on ``work.cease``.

    Parameters
    ----------
    problem : Problem
        Its leaf, a `JointData`, is the likelihood.
    flat : NormalData
        A leaf model without data, under which moves are proposed.
    moves, work, counts
        As for `sweep`.
    before : KeptTree
        Overwritten.
    """
    rng, problem, flat, moves, work, before = borrowed((rng, problem, flat, moves, work, before))
    trees, leaf = problem.trees, problem.leaf
    without_data = Problem(trees, problem.design, problem.prior, flat)
    offset, column, nodes, kept = leaf.offset, trees.column, work.nodes, before.trees
    n_values = offset.shape[1]
    work.stats[:] = 0.0
    for t in range(trees.roots.size):
        if work.cease[0]:
            return False
        leaf_of = trees.leaf_of[t]
        add_tree(offset, trees, t, -1.0)
        census = take_census(trees, t, nodes)
        values = label_leaves(
            leaf, column, trees.values, leaf_of, nodes, census.n_nodes, work.below
        )
        fit = fit_tree(leaf, values.size // n_values)
        total = log_likelihood_at(leaf, values)
        weight = log_weight(leaf, fit, values, total)
        copy_nodes(trees, kept)
        kept.leaf_of[0] = leaf_of
        kind, outcome = metropolis_move(rng, without_data, t, moves, census, work)
        if outcome == FULL:
            return False
        if kind >= 0:
            counts[0, kind] += 1
        if outcome == 1:
            n_nodes = preorder(trees, trees.roots[t], nodes)
            new_values = label_leaves(
                leaf, column, trees.values, leaf_of, nodes, n_nodes, work.below
            )
            new_fit = fit_tree(leaf, new_values.size // n_values)
            draw_proposal(rng, new_fit.mean, new_fit.sd, new_fit.mode, new_fit.factor, new_values)
            new_total = log_likelihood_at(leaf, new_values)
            new_weight = log_weight(leaf, new_fit, new_values, new_total)
            if accepts(rng, new_weight - weight):
                counts[1, kind] += 1
                values, fit, total, weight = new_values, new_fit, new_total, new_weight
            else:
                copy_nodes(kept, trees)
                leaf_of[:] = kept.leaf_of[0]
        n_nodes = preorder(trees, trees.roots[t], nodes)
        present = label_leaves(leaf, column, trees.values, leaf_of, nodes, n_nodes, work.below)
        draw_proposal(rng, fit.mean, fit.sd, fit.mode, fit.factor, present)
        new_total = log_likelihood_at(leaf, present)
        new_weight = log_weight(leaf, fit, present, new_total)
        if accepts(rng, new_weight - weight):
            values, total = present, new_total
        write_leaves(column, trees.values, nodes, n_nodes, values)
        leaf.total[0] = total
        add_tree(offset, trees, t, 1.0)
    renew_times(rng, problem.prior, trees, nodes)
    return True
