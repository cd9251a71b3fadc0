"""A move of a tree, drawn in two steps: node and column; then, given its extent, the rule.

Neither step depends on residuals. The first is therefore made for the next tree while this one is
visited, and its query is sent together with this one's: a visit takes one round trip.
"""

from typing import NamedTuple

from pymc_trees.core.columns.design import draw_cut
from pymc_trees.core.compile.cache import njit
from pymc_trees.core.moves.catalogue import MOVES
from pymc_trees.core.moves.census import NOG, OPEN_LEAF, SPLIT, draw_node, take_census
from pymc_trees.core.moves.choice import choose_move
from pymc_trees.core.moves.contract import name_of
from pymc_trees.core.moves.subtree import gather
from pymc_trees.core.moves.swap import exchange
from pymc_trees.core.shards.nodes import draw_column

GROW, PRUNE, CHANGE, SWAP = range(4)
assert [name_of(move) for move in MOVES] == ["grow", "prune", "change", "swap"]


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
    census = take_census(trees, tree, work.nodes)
    kind = choose_move(rng, moves, census)
    node, column, n_nodes = -1, -1, census.n_nodes
    if kind == GROW:
        node = draw_node(rng, trees, work.nodes, 0, n_nodes, OPEN_LEAF, census.open_leaves)
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
    for k in range(gather(trees, top, work).n_nodes):
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
            exchange(trees, node)
        n_nodes = gather(trees, top_of(trees, kind, node), work).n_nodes
        for k in range(n_nodes):
            below = work.below[k]
            work.column[k], work.cut[k] = trees.column[below], trees.cut[below]
            if trees.column[below] >= 0:
                work.left[k] = work.place[trees.left[below]]
                work.right[k] = work.place[trees.right[below]]
        if kind == SWAP:
            exchange(trees, node)
    if column >= 0:
        work.column[0], work.cut[0] = column, draw_cut(rng, forest.design, low, high)
    return n_nodes
