"""Moves of a tree whose rows are in shards: drawn in two steps, then accepted or rejected.

The driver has no rows, only what the shards have answered about those of each node. A move is
drawn in two steps: node and column, then the rule. When the shards have answered about the
proposed subtree, it is accepted or rejected with the ratios of `core.moves.grow_prune`, `change`
and `swap`.
"""

from typing import NamedTuple

import numpy as np

from pymc_trees.core.columns.design import Design, draw_cut
from pymc_trees.core.compile.cache import njit
from pymc_trees.core.forest.trees import Trees, is_nog, join_leaves, split_leaf
from pymc_trees.core.leaves.contract import log_marginal
from pymc_trees.core.moves.catalogue import MOVES
from pymc_trees.core.moves.contract import FULL, choose_move, move_name
from pymc_trees.core.moves.grow_prune import log_grow_ratio
from pymc_trees.core.moves.problem import (
    NOG,
    SPLIT,
    SPLITTABLE_LEAF,
    NodeCounts,
    count_nodes,
    draw_node,
)
from pymc_trees.core.moves.subtree import load_subtree, log_proposed_choice
from pymc_trees.core.moves.swap import exchange_rules
from pymc_trees.core.priors.cgm import CGMPrior
from pymc_trees.core.priors.contract import NodeContext, context_of, log_split, log_stop
from pymc_trees.core.random import accepts

# ------------------------------ What the driver stores of each node, and the prior in terms of it
#
# The distribution of the rule of a node depends on its rows only through the columns that vary in
# it, and the smallest and largest cell of the split column. These are the priors of
# `core.columns.rules` and `core.priors.by_depth` in terms of them.


class ShardedForest(NamedTuple):
    """A forest without its rows, and its prior."""

    trees: Trees
    """``leaf_of`` has no columns."""
    design: Design
    """Without cells."""
    prior: CGMPrior
    varies: np.ndarray
    """(N, p) bool: whether a column that may be split has different cells in a node."""
    fixed: np.ndarray
    """(N,) int64: leaf values minus the prior mean, in fixed-point units (`messages`)."""
    sum: np.ndarray
    """(N,) int64: sums of residuals over the rows of each leaf of the open tree, likewise."""


class ProposalBuffers(NamedTuple):
    """Arrays for the proposed subtree, with room for N nodes each.

    The place of a node is its position in the subtree in preorder.
    """

    nodes: np.ndarray
    """int32: the tree in preorder."""
    below: np.ndarray
    """int32: a subtree in preorder."""
    position: np.ndarray
    """int32, by node: its position."""
    column: np.ndarray
    """int32, by place: proposed split column, -1 for a leaf."""
    cut: np.ndarray
    """float64, by place."""
    left: np.ndarray
    """int32, by place: place of the left child."""
    right: np.ndarray
    """int32, by place."""
    log_cut: np.ndarray
    """float64, by place: log density of the cut."""
    log_column: np.ndarray
    """float64, by place: log probability of the column."""
    unsplittable: np.ndarray
    """bool, by node: proposed ``Trees.unsplittable``."""
    moved: np.ndarray
    """int32, by place: the node that it becomes when the move is accepted."""
    stats: np.ndarray
    """(2,) float64."""


def make_buffers(max_nodes: int) -> ProposalBuffers:
    """Arrays for a forest with this many nodes; a proposal takes at least three places."""
    size = max(max_nodes, 3)
    kinds = ("i4", "i4", "i4", "i4", "f8", "i4", "i4", "f8", "f8", "?", "i4")
    return ProposalBuffers(*(np.zeros(size, dtype=kind) for kind in kinds), np.zeros(2))


@njit(cache=True)
def draw_column(rng, prior, varies):
    """Draw a column by weight among those that vary in a node, of which there must be one."""
    weights = prior.weights
    total, drawn = 0.0, -1
    for j in range(weights.size):
        if varies[j]:
            total += weights[j]
    point = rng.random() * total
    for j in range(weights.size):
        if varies[j]:
            drawn = j
            point -= weights[j]
            if point < 0.0:
                break
    return drawn


@njit(cache=True)
def log_column(prior, varies, column):
    """Log probability of drawing a column."""
    total = 0.0
    for j in range(varies.size):
        if varies[j]:
            total += prior.weights[j]
    return np.log(prior.weights[column] / total)


@njit(cache=True)
def is_constant(varies):
    """Whether no column varies, so that a node cannot split."""
    for j in range(varies.size):
        if varies[j]:
            return False
    return True


# -------- Drawing a move: first node and column, then the rule, given the range of the column there
#
# Neither step depends on residuals. So the first step is made for the next tree while this one is
# visited, and the query about the range is sent with the message about this tree: a visit takes one
# round trip.


GROW, PRUNE, CHANGE, SWAP = range(4)
assert [move_name(move) for move in MOVES] == ["grow", "prune", "change", "swap"]


class Draft(NamedTuple):
    """A move before its rule is drawn."""

    kind: int
    """-1 for none."""
    node: int
    """A leaf to grow, a split to prune or change, or the lower one of two to swap."""
    column: int
    """Split column of a rule to be drawn, else -1."""


@njit(cache=True)
def draft_move(rng, forest, tree, moves, work):
    """Fields of a `Draft` for a tree."""
    trees = forest.trees
    census = count_nodes(trees, tree, work.nodes)
    kind = choose_move(rng, moves, census)
    node, column, n_nodes = -1, -1, census.n_nodes
    if kind == GROW:
        node = draw_node(
            rng, trees, work.nodes, 0, n_nodes, SPLITTABLE_LEAF, census.splittable_leaves
        )
    elif kind == PRUNE:
        node = draw_node(rng, trees, work.nodes, 0, n_nodes, NOG, census.nogs)
    elif kind == CHANGE:
        node = draw_node(rng, trees, work.nodes, 0, n_nodes, SPLIT, census.splits)
    elif kind == SWAP:
        node = draw_node(rng, trees, work.nodes, 1, n_nodes, SPLIT, census.splits - 1)
    if kind == GROW or kind == CHANGE:
        column = draw_column(rng, forest.prior, forest.varies[node])
    return kind, node, column


@njit(cache=True)
def top_of(trees, kind, node):
    """Root of the subtree that a move replaces."""
    return trees.parent[node] if kind == SWAP else node


@njit(cache=True)
def list_leaves(trees, top, work, out):
    """Write the leaves below a node in preorder to ``out``; return their number."""
    n = 0
    for k in range(load_subtree(trees, top, work).n_nodes):
        if trees.column[work.below[k]] < 0:
            out[n] = work.below[k]
            n += 1
    return n


@njit(cache=True)
def write_rules(rng, forest, kind, node, column, low, high, work):
    """Write the proposed subtree to ``work``, by place; return its number of nodes.

    ``low`` and ``high`` are the range of the drawn column in the node, if there is one.
    """
    trees = forest.trees
    if kind == PRUNE:
        work.column[0] = -1
        return 1
    if kind == GROW:
        work.column[0], work.column[1], work.column[2] = column, -1, -1
        work.left[0], work.right[0] = 1, 2
        n_nodes = 3
    else:
        if kind == SWAP:
            exchange_rules(trees, node)
        n_nodes = load_subtree(trees, top_of(trees, kind, node), work).n_nodes
        for k in range(n_nodes):
            below = work.below[k]
            work.column[k], work.cut[k] = trees.column[below], trees.cut[below]
            if trees.column[below] >= 0:
                work.left[k] = work.position[trees.left[below]]
                work.right[k] = work.position[trees.right[below]]
        if kind == SWAP:
            exchange_rules(trees, node)
    if column >= 0:
        work.column[0], work.cut[0] = column, draw_cut(rng, forest.design, low, high)
    return n_nodes


# ----------------------- Acceptance of a proposed subtree, given the shards' answers about its rows


@njit(cache=True)
def log_leaf(leaf, unit, count, total, stats):
    """Log marginal likelihood of a leaf, given its number of rows and sum of residuals."""
    stats[0] = leaf.w[0] * count
    stats[1] = leaf.w[0] * (unit * total)
    return log_marginal(leaf, stats)


@njit(cache=True)
def sum_children(counted, work):
    """Fill in the counts of split nodes from those of the leaves below."""
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
    """Accept the subtree in ``work`` and edit the tree (1), or reject it (0); or `FULL`."""
    census = count_nodes(forest.trees, tree, work.nodes)
    sum_children(counted, work)
    if kind == GROW:
        return decide_grow(rng, forest, leaf, unit, node, moves, census, counted, work)
    if kind == PRUNE:
        return decide_prune(rng, forest, leaf, unit, node, moves, census, counted, work)
    return decide_rules(rng, forest, leaf, unit, kind, node, moves, census, counted, work)


@njit(cache=True)
def decide_grow(rng, forest, leaf, unit, node, moves, census, counted, work):
    """`decide` for grow."""
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
            NodeContext(place.depth + 1, 0.0, 0.0, is_constant(counted.varies[1])),
            NodeContext(place.depth + 1, 0.0, 0.0, is_constant(counted.varies[2])),
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
        trees.unsplittable[child] = is_constant(varies[child])
    return 1


@njit(cache=True)
def decide_prune(rng, forest, leaf, unit, node, moves, census, counted, work):
    """`decide` for prune."""
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
    """`decide` for change and swap."""
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

    ``with_top`` says whether the prior of the top rule is included; if drawn from it, it cancels.
    """
    trees, prior = forest.trees, forest.prior
    total = 0.0
    for k in range(subtree.n_nodes):
        at = work.below[k]
        if counted.count[k] == 0:
            return -np.inf
        work.unsplittable[at] = is_constant(counted.varies[k])
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
