"""Candidates for moves: counts of a tree's nodes by role, and a draw among those of a role."""

from typing import NamedTuple

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.forest.trees import is_nog, preorder
from pymc_trees.core.random import pick

OPEN_LEAF, SPLIT, NOG = 0, 1, 2
"""Roles of a node; see `NodeCounts`."""


class NodeCounts(NamedTuple):
    """Counts over one tree."""

    n_nodes: int
    splittable_leaves: int
    """Leaves with a valid split: where grow can act."""
    splits: int
    """Split nodes: where change can act; all but the root can swap with their parent."""
    nogs: int
    """Split nodes with two leaves as children: where prune can act."""


@njit(cache=True)
def count_nodes(trees, tree, nodes):
    """Count one tree; ``nodes`` receives it in preorder."""
    n_nodes = preorder(trees, trees.roots[tree], nodes)
    splittable_leaves, splits, nogs = 0, 0, 0
    for k in range(n_nodes):
        node = nodes[k]
        if trees.column[node] >= 0:
            splits += 1
            nogs += is_nog(trees, node)
        else:
            splittable_leaves += not trees.unsplittable[node]
    return NodeCounts(n_nodes, splittable_leaves, splits, nogs)


@njit(cache=True)
def draw_node(rng, trees, nodes, first, n_nodes, role, count):
    """Uniform draw among the ``count`` nodes of a role in ``nodes[first:n_nodes]``."""
    target = pick(rng, count)
    drawn = -1
    for k in range(first, n_nodes):
        node = nodes[k]
        if role == OPEN_LEAF:
            able = trees.column[node] < 0 and not trees.unsplittable[node]
        elif role == SPLIT:
            able = trees.column[node] >= 0
        else:
            able = trees.column[node] >= 0 and is_nog(trees, node)
        if able:
            if target == 0:
                drawn = node
                break
            target -= 1
    return drawn
