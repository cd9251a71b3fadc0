"""What the driver knows of nodes whose rows are elsewhere, and moves, drawn in two steps."""

from typing import NamedTuple

import numpy as np

from pymc_trees.core.columns.design import Design, draw_cut
from pymc_trees.core.compile.cache import njit
from pymc_trees.core.forest.trees import Trees
from pymc_trees.core.moves.catalogue import MOVES
from pymc_trees.core.moves.contract import choose_move, move_name
from pymc_trees.core.moves.problem import NOG, SPLIT, SPLITTABLE_LEAF, count_nodes, draw_node
from pymc_trees.core.moves.subtree import load_subtree
from pymc_trees.core.moves.swap import exchange_rules
from pymc_trees.core.priors.cgm import CGMPrior

# --------- The driver's data on nodes whose rows are elsewhere, and prior terms computed from them
#
# The distribution of a node's rule depends on its rows through the columns that vary in it, and
# the smallest and largest cell of the split column: `columns.rules` and `priors.by_depth` in
# terms of these.


class ShardedForest(NamedTuple):
    """A forest without its rows, and its prior."""

    trees: Trees
    """Its ``leaf_of`` has no columns."""
    design: Design
    """Without cells."""
    prior: CGMPrior
    varies: np.ndarray
    """(N, p) bool: whether the rows of a node have two different cells in a column that may be
    split."""
    fixed: np.ndarray
    """(N,) int64: leaf values less the prior mean, in fixed-point units (`messages`)."""
    sum: np.ndarray
    """(N,) int64: residuals of the rows of each leaf of the open tree, the same."""


class ProposalBuffers(NamedTuple):
    """Arrays that drafts and decisions write to; N places each."""

    nodes: np.ndarray
    """int32: the tree in preorder."""
    below: np.ndarray
    """int32: a subtree in preorder."""
    place: np.ndarray
    """int32, by node: where it stands there."""
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
    """int32, by place: the node that it became."""
    stats: np.ndarray
    """(2,) float64."""


def make_drafted(max_nodes: int) -> ProposalBuffers:
    """Arrays for a forest of so many nodes; three places are the least that a draft takes."""
    most = max(max_nodes, 3)
    kinds = ("i4", "i4", "i4", "i4", "f8", "i4", "i4", "f8", "f8", "?", "i4")
    return ProposalBuffers(*(np.zeros(most, dtype=kind) for kind in kinds), np.zeros(2))


@njit(cache=True)
def draw_column(rng, prior, varies):
    """Draw a column by weight among those that vary in a node; at least one must."""
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
    """Log probability of that column."""
    total = 0.0
    for j in range(varies.size):
        if varies[j]:
            total += prior.weights[j]
    return np.log(prior.weights[column] / total)


@njit(cache=True)
def is_alike(varies):
    """Whether no column varies, so that a node cannot split."""
    for j in range(varies.size):
        if varies[j]:
            return False
    return True


# --------- A move of a tree, drawn in two steps: node and column; then, given its extent, the rule
#
# Neither step depends on residuals. The first is therefore made for the next tree while this one
# is visited, and its query is sent together with this one's: a visit takes one round trip.


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
    """Numbers of a `Draft` for a tree."""
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
    """Top of the subtree that a move replaces."""
    return trees.parent[node] if kind == SWAP else node


@njit(cache=True)
def list_leaves(trees, top, work, out):
    """Write the leaves below a node, in preorder, to ``out``; return their number."""
    n = 0
    for k in range(load_subtree(trees, top, work).n_nodes):
        if trees.column[work.below[k]] < 0:
            out[n] = work.below[k]
            n += 1
    return n


@njit(cache=True)
def write_rules(rng, forest, kind, node, column, low, high, work):
    """Write the proposed subtree to ``work``, by place; return its number of nodes.

    ``low`` and ``high`` are the extent of the column in the node, where one was drawn.
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
                work.left[k] = work.place[trees.left[below]]
                work.right[k] = work.place[trees.right[below]]
        if kind == SWAP:
            exchange_rules(trees, node)
    if column >= 0:
        work.column[0], work.cut[0] = column, draw_cut(rng, forest.design, low, high)
    return n_nodes
