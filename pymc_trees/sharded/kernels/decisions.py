"""Acceptance of a proposed subtree, given the shards' answers on its rows.

The ratios are those of `core.moves.grow_prune`, `change` and `swap`.
"""

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.forest.edit import join_leaves, split_leaf
from pymc_trees.core.forest.trees import is_nog
from pymc_trees.core.leaves.contract import log_marginal
from pymc_trees.core.moves.contract import FULL
from pymc_trees.core.moves.grow_prune import log_grow_ratio
from pymc_trees.core.moves.problem import NodeCounts, count_nodes
from pymc_trees.core.moves.subtree import load_subtree, log_proposed_choice
from pymc_trees.core.priors.contract import NodeContext, context_of, log_split, log_stop
from pymc_trees.core.random import accepts
from pymc_trees.sharded.kernels.drafts import CHANGE, GROW, PRUNE, is_alike, log_column, top_of


@njit(cache=True)
def log_leaf(leaf, unit, count, total, stats):
    """Log marginal likelihood of a leaf, given its number of rows and sum of residuals."""
    stats[0] = leaf.w[0] * count
    stats[1] = leaf.w[0] * (unit * total)
    return log_marginal(leaf, stats)


@njit(cache=True)
def join_children(counted, work):
    """Sum the counts of leaves for the split nodes above them."""
    count, first, varies = counted.count, counted.first, counted.varies
    for k in range(count.size - 1, -1, -1):  # children before their parents
        if work.column[k] >= 0:
            left, right = work.left[k], work.right[k]
            count[k] = count[left] + count[right]
            for j in range(varies.shape[1]):
                varies[k, j] = varies[left, j] or varies[right, j]
                if count[left] > 0 and count[right] > 0 and first[left, j] != first[right, j]:
                    varies[k, j] = True
                first[k, j] = first[left, j] if count[left] > 0 else first[right, j]


@njit(cache=True)
def decide(rng, forest, leaf, unit, tree, kind, node, moves, counted, work):
    """Accept the subtree in ``work`` or not, and edit the tree: 1, 0 or `FULL`."""
    census = count_nodes(forest.trees, tree, work.nodes)
    join_children(counted, work)
    if kind == GROW:
        return decide_grow(rng, forest, leaf, unit, node, moves, census, counted, work)
    if kind == PRUNE:
        return decide_prune(rng, forest, leaf, unit, node, moves, census, counted, work)
    return decide_rules(rng, forest, leaf, unit, kind, node, moves, census, counted, work)


@njit(cache=True)
def decide_grow(rng, forest, leaf, unit, node, moves, census, counted, work):
    """`decide` for splitting a leaf."""
    trees, _, prior, varies, _, total = forest
    counts, sums = counted.count, counted.sum
    parent = trees.parent[node]
    place = context_of(trees, node)
    log_ratio = (
        log_leaf(leaf, unit, counts[1], sums[1], work.stats)
        + log_leaf(leaf, unit, counts[2], sums[2], work.stats)
        - log_leaf(leaf, unit, trees.count[node], total[node], work.stats)
        + log_grow_ratio(
            prior,
            place,
            NodeContext(place.depth + 1, 0.0, 0.0, is_alike(counted.varies[1])),
            NodeContext(place.depth + 1, 0.0, 0.0, is_alike(counted.varies[2])),
            moves,
            census,
            parent >= 0 and is_nog(trees, parent),
        )
    )
    if not accepts(rng, log_ratio):
        return 0
    column = work.column[0]
    if not split_leaf(trees, node, column, work.cut[0]):
        return FULL
    trees.log_cut[node] = -np.log(counted.high[0] - counted.low[0])
    trees.log_column[node] = log_column(prior, varies[node], column)
    work.moved[0] = node
    for side in range(1, 3):
        child = trees.left[node] if side == 1 else trees.right[node]
        work.moved[side] = child
        trees.count[child], total[child] = counts[side], sums[side]
        varies[child] = counted.varies[side]
        trees.unsplittable[child] = is_alike(varies[child])
    return 1


@njit(cache=True)
def decide_prune(rng, forest, leaf, unit, node, moves, census, counted, work):
    """`decide` for joining two leaves."""
    trees, _, prior, _, _, total = forest
    left, right = trees.left[node], trees.right[node]
    parent = trees.parent[node]
    sibling_is_leaf = False
    if parent >= 0:
        sibling = trees.right[parent] if trees.left[parent] == node else trees.left[parent]
        sibling_is_leaf = trees.column[sibling] < 0
    open_before = census.splittable_leaves + 1
    open_before -= int(not trees.unsplittable[left]) + int(not trees.unsplittable[right])
    nogs = census.nogs - 1 + int(sibling_is_leaf)
    smaller = NodeCounts(census.n_nodes - 2, open_before, census.splits - 1, nogs)
    log_ratio = (
        log_leaf(leaf, unit, counted.count[0], counted.sum[0], work.stats)
        - log_leaf(leaf, unit, trees.count[left], total[left], work.stats)
        - log_leaf(leaf, unit, trees.count[right], total[right], work.stats)
        - log_grow_ratio(
            prior,
            context_of(trees, node),
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
    total[node] = counted.sum[0]
    work.moved[0] = node
    return 1


@njit(cache=True)
def decide_rules(rng, forest, leaf, unit, kind, node, moves, census, counted, work):
    """`decide` for changing one rule of a subtree, or swapping two."""
    trees, prior, total = forest.trees, forest.prior, forest.sum
    subtree = load_subtree(trees, top_of(trees, kind, node), work)
    with_top = kind != CHANGE
    log_new = log_proposed(forest, leaf, unit, subtree, counted, with_top, work)
    if log_new == -np.inf:
        return 0
    log_old, below = 0.0, work.below
    for k in range(subtree.n_nodes):
        at = below[k]
        if trees.column[at] >= 0:
            log_old += log_split(prior, context_of(trees, at))
            if k > 0 or with_top:
                log_old += trees.log_cut[at] + trees.log_column[at]
        else:
            log_old += log_stop(prior, context_of(trees, at))
            log_old += log_leaf(leaf, unit, trees.count[at], total[at], work.stats)
    choice = log_proposed_choice(trees, moves, census, subtree, work)
    if not accepts(rng, log_new - log_old + choice):
        return 0
    for k in range(subtree.n_nodes):
        at = below[k]
        work.moved[k] = at
        forest.varies[at] = counted.varies[k]
        trees.count[at] = counted.count[k]
        if trees.column[at] >= 0:
            trees.column[at], trees.cut[at] = work.column[k], work.cut[k]
            trees.log_cut[at], trees.log_column[at] = work.log_cut[k], work.log_column[k]
        else:
            total[at] = counted.sum[k]
            trees.unsplittable[at] = work.unsplittable[at]
    return 1


@njit(cache=True)
def log_proposed(forest, leaf, unit, subtree, counted, with_top, work):
    """Log of prior and likelihood of the proposed subtree; -inf if a rule leaves one side empty.

    ``with_top``: whether the rule of the top counts; one drawn from the prior cancels.
    """
    trees, prior = forest.trees, forest.prior
    total = 0.0
    for k in range(subtree.n_nodes):
        at = work.below[k]
        if counted.count[k] == 0:
            return -np.inf
        work.unsplittable[at] = is_alike(counted.varies[k])
        place = NodeContext(trees.depth[at], 0.0, 0.0, work.unsplittable[at])
        column = work.column[k]
        if column < 0:
            total += log_stop(prior, place)
            total += log_leaf(leaf, unit, counted.count[k], counted.sum[k], work.stats)
            continue
        low, high = counted.low[k], counted.high[k]
        if not (low <= work.cut[k] and work.cut[k] < high):
            return -np.inf
        work.log_cut[k] = -np.log(high - low)
        work.log_column[k] = log_column(prior, counted.varies[k], column)
        total += log_split(prior, place)
        if k > 0 or with_top:
            total += work.log_cut[k] + work.log_column[k]
    return total
