"""Change: a split node gets a new column and cut, drawn from the prior given its rows.

The number of split nodes does not change, nor do the times of splits, and the density of the new
rule cancels against its proposal, so that

    ratio = p(subtree' without its top rule) / p(subtree without its top rule) * choice

with ``p`` the prior and likelihood of `subtree` and ``choice`` the ratio of the probabilities of
choosing this kind of move.
"""

from typing import NamedTuple

import numpy as np

from pymc_trees.core.columns.row_set import is_empty, own_rows, own_words
from pymc_trees.core.compile.cache import njit
from pymc_trees.core.leaves.contract import log_marginals, renew_sets
from pymc_trees.core.leaves.path import write_path_below
from pymc_trees.core.moves.contract import Needs, log_choice_ratio, register
from pymc_trees.core.moves.problem import SPLIT, NodeCounts, draw_node, proposed_rows, rows_of
from pymc_trees.core.moves.subtree import (
    commit,
    commit_leaf,
    load_subtree,
    log_current,
    log_proposed,
    log_proposed_choice,
    split_rows,
)
from pymc_trees.core.priors.contract import (
    NodeContext,
    context_of,
    draw_set_split,
    log_set_column,
    log_stops,
    node_summaries,
)
from pymc_trees.core.random import accepts


class Change(NamedTuple):
    """A split node gets a new rule."""


class Rule(NamedTuple):
    """Proposed rule of a split (`columns.mixed`)."""

    code: int
    cut: float
    log_gain: float
    """Log ratio of prior to proposal, of this rule less that of the one it replaces: 0 for a draw
    from the prior, which cancels both."""


@njit(cache=True)
def change(move, rng, problem, tree, moves, node_counts, work):
    """Propose a new rule at a random split node; 1 when accepted, else 0."""
    trees, design, prior = problem.trees, problem.design, problem.prior
    top = draw_node(rng, trees, work.nodes, 0, node_counts.n_nodes, SPLIT, node_counts.splits)
    subtree = load_subtree(trees, top, work)
    rows = rows_of(trees, top, work)
    column, code, cut, log_cut = draw_set_split(rng, prior, design, rows)
    rule = Rule(code, cut, 0.0)
    changed = replace_rule(rng, problem, tree, moves, node_counts, work, subtree, rule)
    if changed == 1:
        trees.log_cut[top] = log_cut
        rate = trees.rate[top]
        trees.log_column[top] = log_set_column(prior, design, column, log_cut, rate, rows)
    return changed


@njit(cache=True)
def replace_rule(rng, problem, tree, moves, node_counts, work, subtree, rule):
    """Accept or reject a rule for the top of a subtree; the caller saves its prior terms.

    These are ``log_cut`` and ``log_column``. A rule that leaves one side of a node empty has prior
    0.
    """
    if subtree.n_nodes == 3:
        changed = change_nog(rng, problem, tree, moves, node_counts, work, subtree, rule)
    else:
        changed = change_subtree(rng, problem, tree, moves, node_counts, work, subtree, rule)
    return changed


@njit(cache=True)
def change_nog(rng, problem, tree, moves, node_counts, work, subtree, rule):
    """`replace_rule` of a node with two leaves: no row needs to move before acceptance."""
    trees, design, prior, leaf = problem.trees, problem.design, problem.prior, problem.leaf
    top, code, cut = work.below[0], rule.code, rule.cut
    stats, new_stats = work.stats, work.new_stats
    left, right = trees.left[top], trees.right[top]
    split_rows(design, code, cut, rows_of(trees, top, work), 1, 2, work)
    left_half, right_half = proposed_rows(work, 1), proposed_rows(work, 2)
    if is_empty(left_half) or is_empty(right_half):
        return 0
    old = own_words(work.sets[left], work.index), own_words(work.sets[right], work.index)
    old_stats, new = (stats[left], stats[right]), (own_rows(left_half), own_rows(right_half))
    renew_sets(leaf, new[0], new[1], old, old_stats, new_stats[left], new_stats[right])
    write_path_below(leaf, design, trees, top, code, new_stats[left], new_stats[right])
    left_unsplittable, left_rate, right_unsplittable, right_rate = node_summaries(
        prior, design, left_half, right_half
    )
    splittable_after = (
        node_counts.splittable_leaves - int(left_unsplittable) - int(right_unsplittable)
    )
    splittable_after += int(trees.unsplittable[left]) + int(trees.unsplittable[right])
    depth, time = np.int64(trees.depth[left]), trees.time[top]
    left_after = NodeContext(depth, time, left_rate, left_unsplittable)
    right_after = NodeContext(depth, time, right_rate, right_unsplittable)
    after = log_stops(prior, left_after, right_after)
    before = log_stops(prior, context_of(trees, left), context_of(trees, right))
    log_new = log_marginals(leaf, new_stats[left], new_stats[right])
    log_old = log_marginals(leaf, stats[left], stats[right])
    log_ratio = (
        log_new[0]
        + log_new[1]
        - log_old[0]
        - log_old[1]
        + after[0]
        + after[1]
        - before[0]
        - before[1]
        + log_choice_ratio(
            moves,
            node_counts,
            NodeCounts(node_counts.n_nodes, splittable_after, node_counts.splits, node_counts.nogs),
        )
        + rule.log_gain
    )
    if not accepts(rng, log_ratio):
        return 0
    trees.column[top], trees.cut[top] = code, cut
    trees.unsplittable[left], trees.unsplittable[right] = left_unsplittable, right_unsplittable
    trees.rate[left], trees.rate[right] = left_rate, right_rate
    commit_leaf(trees, tree, left, work)
    commit_leaf(trees, tree, right, work)
    return 1


@njit(cache=True)
def change_subtree(rng, problem, tree, moves, node_counts, work, subtree, rule):
    """`replace_rule` of a node with splits below: the rows pass down its subtree again."""
    trees, top = problem.trees, work.below[0]
    old_code, old_cut = trees.column[top], trees.cut[top]
    trees.column[top], trees.cut[top] = rule.code, rule.cut
    log_new = log_proposed(problem, subtree, work, False)
    if log_new > -1e300:
        log_old = log_current(problem, subtree, work)
        log_ratio = (
            log_new
            - (log_old - trees.log_cut[top] - trees.log_column[top])
            + log_proposed_choice(trees, moves, node_counts, subtree, work)
            + rule.log_gain
        )
        if accepts(rng, log_ratio):
            commit(trees, tree, subtree, work)
            return 1
    trees.column[top], trees.cut[top] = old_code, old_cut
    return 0


register("change", Change, needs=Needs(splits=1), uses=(), propose=change)
