"""Grow: a leaf becomes a split with two leaves. Prune: the reverse.

Column and cut of a grown node come from the prior given its rows, so that their density cancels
between proposal and prior. With d the leaf's depth, T the tree and T' the grown one,

    ratio = p(rows left) p(rows right) / p(rows) * p_split(d) s_left s_right / p_stop(d)
            * [P(prune | T') / nogs(T')] / [P(grow | T) / open(T)]

where s is ``p_stop(d + 1)``, or 1 for a child whose rows are all alike, ``open`` counts the
leaves with a valid split and ``nogs`` the prunable nodes of the whole tree. The time of a split of
a Mondrian process comes from the prior too, and cancels.
"""

from typing import NamedTuple

import numpy as np

from pymc_trees.core.columns.row_set import label_rows, own_rows, own_words
from pymc_trees.core.compile.cache import njit
from pymc_trees.core.compile.lanes import copy_numbers
from pymc_trees.core.forest.trees import child_on, is_nog, join_leaves, split_leaf
from pymc_trees.core.leaves.contract import add_sets, log_marginal, log_marginals, merge_stats
from pymc_trees.core.leaves.path import write_path, write_path_below
from pymc_trees.core.moves.contract import (
    FULL,
    Needs,
    available_weight,
    index_of_type,
    register,
    type_id,
)
from pymc_trees.core.moves.problem import (
    NOG,
    SPLITTABLE_LEAF,
    NodeCounts,
    draw_node,
    proposed_rows,
    rows_of,
)
from pymc_trees.core.moves.subtree import split_rows
from pymc_trees.core.priors.contract import (
    NodeContext,
    context_of,
    draw_set_split,
    draw_time,
    log_growth,
    log_set_column,
    node_summaries,
)
from pymc_trees.core.random import accepts


class Grow(NamedTuple):
    """A leaf becomes a split."""


class Prune(NamedTuple):
    """A split with two leaves becomes a leaf."""


GROW, PRUNE = type_id(Grow), type_id(Prune)


@njit(cache=True)
def log_grow_ratio(prior, context, left, right, moves, node_counts, parent_is_nog):
    """Log ratio of grow without the likelihood: tree prior times the moves' own probabilities.

    ``context``, ``left`` and ``right`` are those of the node and its children, ``node_counts``
    those of the smaller tree; ``parent_is_nog`` tells whether the parent of the grown leaf can be
    pruned before the move.
    """
    splittable_after = (
        node_counts.splittable_leaves - 1 + (not left.unsplittable) + (not right.unsplittable)
    )
    # Lakshminarayanan2015 (4)-(5); column, cut and time cancel
    log_prior = log_growth(prior, context, left, right)
    weights, nogs_after = moves.weights, node_counts.nogs + 1 - int(parent_is_nog)
    after = NodeCounts(
        node_counts.n_nodes + 2, splittable_after, node_counts.splits + 1, nogs_after
    )
    reverse = weights[index_of_type(moves, PRUNE)] / (available_weight(moves, after) * nogs_after)
    forward = weights[index_of_type(moves, GROW)] / (
        available_weight(moves, node_counts) * node_counts.splittable_leaves
    )
    return log_prior + np.log(reverse / forward)


@njit(cache=True)
def grow(move, rng, problem, tree, moves, node_counts, work):
    """Propose to split a leaf; 1 if accepted, 0 if not, `FULL` if the pool is full."""
    trees, design, prior, leaf = problem.trees, problem.design, problem.prior, problem.leaf
    node = draw_node(
        rng,
        trees,
        work.nodes,
        0,
        node_counts.n_nodes,
        SPLITTABLE_LEAF,
        node_counts.splittable_leaves,
    )
    stats, new_stats = work.stats, work.new_stats
    rows = rows_of(trees, node, work)
    column, code, cut, log_cut = draw_set_split(rng, prior, design, rows)
    split_rows(design, code, cut, rows, 0, 1, work)
    left_half, right_half = proposed_rows(work, 0), proposed_rows(work, 1)
    add_sets(
        leaf, own_rows(left_half), own_rows(right_half), stats[node], new_stats[0], new_stats[1]
    )
    write_path_below(leaf, design, trees, node, code, new_stats[0], new_stats[1])
    left_unsplittable, left_rate, right_unsplittable, right_rate = node_summaries(
        prior, design, left_half, right_half
    )
    parent = trees.parent[node]
    context = context_of(trees, node)
    time = draw_time(rng, prior, context)
    below = log_marginals(leaf, new_stats[0], new_stats[1])
    log_ratio = (
        below[0]
        + below[1]
        - log_marginal(leaf, stats[node])
        + log_grow_ratio(
            prior,
            context,
            NodeContext(context.depth + 1, time, left_rate, left_unsplittable),
            NodeContext(context.depth + 1, time, right_rate, right_unsplittable),
            moves,
            node_counts,
            parent >= 0 and is_nog(trees, parent),
        )
    )
    if not accepts(rng, log_ratio):
        return 0
    log_p_column = log_set_column(prior, design, column, log_cut, context.rate, rows)
    if not split_leaf(trees, node, code, cut):
        return FULL
    trees.log_cut[node] = log_cut
    trees.log_column[node] = log_p_column
    trees.time[node] = time
    left, right = trees.left[node], trees.right[node]
    trees.unsplittable[left], trees.unsplittable[right] = left_unsplittable, right_unsplittable
    trees.rate[left], trees.rate[right] = left_rate, right_rate
    for side in range(2):
        child = right if side == 1 else left
        trees.count[child] = work.counts[side]
        copy_numbers(new_stats[side], stats[child])
        copy_numbers(work.proposed[side], work.sets[child])
        label_rows(own_words(work.sets[child], work.index), child, trees.leaf_of[tree])
    return 1


@njit(cache=True)
def prune(move, rng, problem, tree, moves, node_counts, work):
    """Propose to join two leaves; 1 when accepted, else 0."""
    trees, design, prior, leaf = problem.trees, problem.design, problem.prior, problem.leaf
    stats, new_stats = work.stats, work.new_stats
    node = draw_node(rng, trees, work.nodes, 0, node_counts.n_nodes, NOG, node_counts.nogs)
    left, right = trees.left[node], trees.right[node]
    left_unsplittable, right_unsplittable = trees.unsplittable[left], trees.unsplittable[right]
    context = context_of(trees, node)
    parent = trees.parent[node]
    sibling_is_leaf = False
    if parent >= 0:
        sibling = child_on(trees, parent, int(trees.left[parent] == node))
        sibling_is_leaf = trees.column[sibling] < 0
    splittable_before = (
        node_counts.splittable_leaves + 1 - (not left_unsplittable) - (not right_unsplittable)
    )
    smaller = NodeCounts(
        node_counts.n_nodes - 2,
        splittable_before,
        node_counts.splits - 1,
        node_counts.nogs - 1 + int(sibling_is_leaf),
    )
    merge_stats(leaf, trees.leaf_of[tree], left, right, stats, new_stats[0])
    write_path(leaf, design, trees, node, new_stats[0])
    below = log_marginals(leaf, stats[left], stats[right])
    log_ratio = (
        log_marginal(leaf, new_stats[0])
        - below[0]
        - below[1]
        - log_grow_ratio(
            prior,
            context,
            context_of(trees, left),
            context_of(trees, right),
            moves,
            smaller,
            sibling_is_leaf,
        )
    )
    if not accepts(rng, log_ratio):
        return 0
    join_leaves(trees, node)
    copy_numbers(new_stats[0], stats[node])
    label_rows(own_words(work.sets[node], work.index), node, trees.leaf_of[tree])
    return 1


register("grow", Grow, needs=Needs(splittable_leaves=1), uses=(), propose=grow)
register("prune", Prune, needs=Needs(splits=1), uses=(), propose=prune)
