"""A subtree whose rules were replaced: pass its rows down again and compare.

All terms that depend on the rows are recomputed: the density of each cut, the probability of each
column among those that vary in its node, that of a split at its time or of no split, and the
likelihood of the leaves. A node whose cut is outside its new ``[min, max)`` has prior 0.
"""

from typing import NamedTuple

import numpy as np

from pymc_trees.core.columns.row_set import (
    is_empty,
    label_new_rows,
    left_rows,
    own_rows,
    own_words,
    remove_rows,
    same_rows,
)
from pymc_trees.core.compile.cache import njit
from pymc_trees.core.compile.lanes import copy_numbers
from pymc_trees.core.forest.trees import is_nog, preorder
from pymc_trees.core.leaves.contract import log_marginal, renew_set
from pymc_trees.core.leaves.path import write_path
from pymc_trees.core.moves.contract import log_choice_ratio
from pymc_trees.core.moves.problem import NodeCounts, proposed_rows
from pymc_trees.core.priors.contract import (
    context_of,
    context_with,
    log_set_split,
    log_split_at,
    log_stop,
    node_summary_of_set,
)


class Subtree(NamedTuple):
    """A subtree whose nodes are in ``work.below`` in preorder, the top first."""

    n_nodes: int


@njit(cache=True)
def load_subtree(trees, top, work):
    """The `Subtree` below a node, with its nodes written to ``work``."""
    n_nodes = preorder(trees, top, work.below)
    for k in range(n_nodes):
        work.position[work.below[k]] = k
    return Subtree(n_nodes)


@njit(cache=True)
def count_candidates(trees, unsplittable, subtree, work):
    """Leaves of a subtree that can grow, and its splits that can be pruned."""
    splittable_leaves, nogs = 0, 0
    for k in range(subtree.n_nodes):
        node = work.below[k]
        if trees.column[node] >= 0:
            nogs += is_nog(trees, node)
        else:
            splittable_leaves += not unsplittable[node]
    return splittable_leaves, nogs


@njit(cache=True)
def split_rows(design, code, cut, rows, left, right, work):
    """Write the rows that a rule sends to two children, and their numbers, to ``work``."""
    work.counts[left] = left_rows(design, code, cut, rows, work.proposed[left])
    work.counts[right] = rows.n - work.counts[left]
    remove_rows(rows.words, work.proposed[left], work.proposed[right])


@njit(cache=True)
def log_current(problem, subtree, work):
    """Log prior and likelihood of the current subtree, from stored terms."""
    trees, prior, leaf = problem.trees, problem.prior, problem.leaf
    total = 0.0
    for k in range(subtree.n_nodes):
        node = work.below[k]
        context = context_of(trees, node)
        if trees.column[node] >= 0:
            total += (
                trees.log_cut[node]
                + trees.log_column[node]
                + log_split_at(prior, context, trees.time[node])
            )
        else:
            total += log_stop(prior, context)
            total += log_marginal(leaf, work.stats[node])
    return total


@njit(cache=True)
def log_proposed(problem, subtree, work, with_top):
    """Log of prior and likelihood of the subtree under the rules now in ``trees``; -inf if empty.

    ``with_top``: whether the rule of the top node counts and is checked; if not, it is the only one
    that may have been replaced. Data for `commit` are left in ``work``, those of the top only with
    ``with_top``. A leaf whose rows have not changed keeps its statistics.
    """
    trees, design, prior, leaf = problem.trees, problem.design, problem.prior, problem.leaf
    copy_numbers(work.sets[work.below[0]], work.proposed[0])
    work.counts[0] = trees.count[work.below[0]]
    total = 0.0
    for k in range(subtree.n_nodes):  # preorder: rows of a node come before those of its children
        node = work.below[k]
        rows = proposed_rows(work, k)
        is_same = same_rows(rows.words, work.sets[node])
        if is_same:
            unsplittable, rate = trees.unsplittable[node], trees.rate[node]
        else:
            unsplittable, rate = node_summary_of_set(prior, design, rows)
        work.unsplittable[node], work.rate[node] = unsplittable, rate
        context = context_with(trees, node, rate, unsplittable)
        if trees.column[node] >= 0:
            code, cut = trees.column[node], trees.cut[node]
            total += log_split_at(prior, context, trees.time[node])
            if k > 0 or with_top:
                if is_same and not with_top:
                    log_cut, log_p_column = trees.log_cut[node], trees.log_column[node]
                else:
                    log_cut, log_p_column = log_set_split(prior, design, code, cut, rate, rows)
                    if log_cut == -np.inf:
                        return -np.inf
                work.log_cut[node], work.log_column[node] = log_cut, log_p_column
                total += log_cut + log_p_column
            left, right = work.position[trees.left[node]], work.position[trees.right[node]]
            split_rows(design, code, cut, rows, left, right, work)
            if is_empty(proposed_rows(work, left)) or is_empty(proposed_rows(work, right)):
                return -np.inf
        else:
            if is_same:
                copy_numbers(work.stats[node], work.new_stats[node])
            else:
                old = own_words(work.sets[node], work.index)
                renew_set(leaf, own_rows(rows), old, work.stats[node], work.new_stats[node])
            write_path(leaf, design, trees, node, work.new_stats[node])
            total += log_stop(prior, context)
            total += log_marginal(leaf, work.new_stats[node])
    return total


@njit(cache=True)
def log_proposed_choice(trees, moves, node_counts, subtree, work):
    """`log_choice_ratio` after rules of the subtree change: other leaves may be able to split."""
    splittable_after = node_counts.splittable_leaves
    for k in range(subtree.n_nodes):
        node = work.below[k]
        if trees.column[node] < 0:
            splittable_after += int(trees.unsplittable[node]) - int(work.unsplittable[node])
    after = NodeCounts(node_counts.n_nodes, splittable_after, node_counts.splits, node_counts.nogs)
    return log_choice_ratio(moves, node_counts, after)


@njit(cache=True)
def commit_leaf(trees, tree, leaf, work):
    """Give a leaf its proposed rows and statistics."""
    position = work.position[leaf]
    index, proposed, rows = work.index, work.proposed[position], work.sets[leaf]
    label_new_rows(own_words(proposed, index), own_words(rows, index), leaf, trees.leaf_of[tree])
    trees.count[leaf] = work.counts[position]
    copy_numbers(work.proposed[position], work.sets[leaf])
    copy_numbers(work.new_stats[leaf], work.stats[leaf])


@njit(cache=True)
def commit(trees, tree, subtree, work):
    """Make the proposed subtree the current one."""
    for k in range(subtree.n_nodes):
        node = work.below[k]
        trees.rate[node] = work.rate[node]
        if trees.column[node] >= 0:
            trees.log_cut[node] = work.log_cut[node]
            trees.log_column[node] = work.log_column[node]
            trees.count[node] = work.counts[k]
            copy_numbers(work.proposed[k], work.sets[node])
            trees.unsplittable[node] = False
        else:
            trees.unsplittable[node] = work.unsplittable[node]
            commit_leaf(trees, tree, node, work)
