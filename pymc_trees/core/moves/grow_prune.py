"""Grow: a leaf becomes a split with two leaves. Prune: the reverse.

Column and cut of a grown node come from the prior given its rows, so that their density cancels
between proposal and prior. With d the leaf's depth, T the tree and T' the grown one,

    ratio = p(rows left) p(rows right) / p(rows) * p_split(d) s_left s_right / p_stop(d)
            * [P(prune | T') / nogs(T')] / [P(grow | T) / open(T)]

where s is ``p_stop(d + 1)``, or 1 for a child whose rows are all alike, ``open`` counts the
leaves with a valid split and ``nogs`` the prunable nodes of the whole tree. The time of a split of
a Mondrian process comes from the prior too, and cancels.
"""

import numpy as np

from pymc_trees.core.columns.mixed import side_cells
from pymc_trees.core.columns.rules import draw_rule
from pymc_trees.core.compile.cache import njit
from pymc_trees.core.forest.edit import join_leaves, split_leaf
from pymc_trees.core.forest.rows import all_rows, rows_of_leaf
from pymc_trees.core.forest.trees import is_nog
from pymc_trees.core.leaves.contract import add_sides, join_sides, log_marginal
from pymc_trees.core.moves.census import (
    GROW,
    PRUNE,
    Census,
    accepts,
    available_weight,
    pick,
)
from pymc_trees.core.priors.contract import (
    Place,
    draw_column,
    draw_time,
    log_column,
    log_split,
    log_stop,
    place_of,
    survey_sides,
)

FULL = -1
"""Status of a grow that was accepted but found no room in the pool."""


@njit(cache=True, inline="always")
def log_grow_ratio(prior, place, left, right, weights, census, parent_is_twig):
    """Log ratio of grow without the likelihood: tree prior times the moves' own probabilities.

    ``place``, ``left``, ``right`` are those of the node and its children; ``census`` counts the
    smaller tree; ``parent_is_twig`` says whether the parent of the grown leaf can be pruned before
    the move.
    """
    open_after = census.open_leaves - 1 + (not left.unsplittable) + (not right.unsplittable)
    log_prior = (
        log_split(prior, place)  # Lakshminarayanan2015 (4)-(5); column, cut and time cancel
        + log_stop(prior, left)
        + log_stop(prior, right)
        - log_stop(prior, place)
    )
    back = weights[PRUNE] / (
        available_weight(weights, open_after, census.splits + 1)
        * (census.nogs + 1 - parent_is_twig)
    )
    there = weights[GROW] / (
        available_weight(weights, census.open_leaves, census.splits) * census.open_leaves
    )
    return log_prior + np.log(back / there)


@njit(cache=True, inline="always")
def grow(rng, trees, tree, design, prior, leaf, weights, census, work):
    """Propose to split a leaf; 1 when accepted, 0 when not, `FULL` when there is no room."""
    columns, unsplittable, nodes = trees.column, trees.unsplittable, work.nodes
    target = pick(rng, census.open_leaves)
    node = -1
    for k in range(census.n_nodes):
        candidate = nodes[k]
        if columns[candidate] < 0 and not unsplittable[candidate]:
            if target == 0:
                node = candidate
                break
            target -= 1
    rows, stats, new_stats = work.rows, work.stats, work.new_stats
    leaf_of = trees.leaf_of[tree]
    if trees.parent[node] < 0:
        n = all_rows(rows.size, rows)
    else:
        n = rows_of_leaf(leaf_of, node, rows)
    column = draw_column(rng, prior, design, rows, 0, n)
    code, cut, log_cut = draw_rule(rng, design, column, rows, 0, n)
    cells, threshold = side_cells(design, code, cut, rows, 0, n)
    n_left = add_sides(leaf, cells, threshold, rows, n, new_stats[0], new_stats[1])
    left_unsplittable, right_unsplittable, left_rate, right_rate = survey_sides(
        prior, design, cells, threshold, rows, n
    )
    parent = trees.parent[node]
    place = place_of(trees, node)
    time = draw_time(rng, prior, place)
    log_ratio = (
        log_marginal(leaf, new_stats[0])
        + log_marginal(leaf, new_stats[1])
        - log_marginal(leaf, stats[node])
        + log_grow_ratio(
            prior,
            place,
            Place(place.depth + 1, time, left_rate, left_unsplittable),
            Place(place.depth + 1, time, right_rate, right_unsplittable),
            weights,
            census,
            parent >= 0 and is_nog(columns, trees.left, trees.right, parent),
        )
    )
    if not accepts(rng, log_ratio):
        return 0
    log_share = log_column(prior, design, column, log_cut, place.rate, rows, 0, n)
    if not split_leaf(trees, node, code, cut):
        return FULL
    trees.log_cut[node] = log_cut
    trees.log_column[node] = log_share
    trees.time[node] = time
    left, right = trees.left[node], trees.right[node]
    trees.count[left], trees.count[right] = n_left, n - n_left
    unsplittable[left], unsplittable[right] = left_unsplittable, right_unsplittable
    trees.rate[left], trees.rate[right] = left_rate, right_rate
    for d in range(stats.shape[1]):
        stats[left, d] = new_stats[0, d]
        stats[right, d] = new_stats[1, d]
    for k in range(n):
        leaf_of[rows[k]] = left if cells[rows[k]] <= threshold else right
    return 1


@njit(cache=True, inline="always")
def prune(rng, trees, tree, prior, leaf, weights, census, work):
    """Propose to join two leaves; 1 when accepted, else 0."""
    columns, lefts, rights = trees.column, trees.left, trees.right
    nodes, stats, new_stats = work.nodes, work.stats, work.new_stats
    target = pick(rng, census.nogs)
    node = -1
    for k in range(census.n_nodes):
        candidate = nodes[k]
        if columns[candidate] >= 0 and is_nog(columns, lefts, rights, candidate):
            if target == 0:
                node = candidate
                break
            target -= 1
    left, right = lefts[node], rights[node]
    left_unsplittable, right_unsplittable = trees.unsplittable[left], trees.unsplittable[right]
    place = place_of(trees, node)
    parent = trees.parent[node]
    sibling_is_leaf = False
    if parent >= 0:
        sibling = rights[parent] if lefts[parent] == node else lefts[parent]
        sibling_is_leaf = columns[sibling] < 0
    open_before = census.open_leaves + 1 - (not left_unsplittable) - (not right_unsplittable)
    smaller = Census(
        census.n_nodes - 2, open_before, census.splits - 1, census.nogs - 1 + sibling_is_leaf
    )
    join_sides(leaf, trees.leaf_of[tree], left, right, stats, new_stats[0])
    log_ratio = (
        log_marginal(leaf, new_stats[0])
        - log_marginal(leaf, stats[left])
        - log_marginal(leaf, stats[right])
        - log_grow_ratio(
            prior,
            place,
            place_of(trees, left),
            place_of(trees, right),
            weights,
            smaller,
            sibling_is_leaf,
        )
    )
    if not accepts(rng, log_ratio):
        return 0
    join_leaves(trees, tree, node)
    for d in range(stats.shape[1]):
        stats[node, d] = new_stats[0, d]
    return 1
