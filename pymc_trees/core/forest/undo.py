"""Copy of one tree, to restore it: its nodes, their rows, and the top of the free list.

Moves of a tree take nodes from the top of the free list and return them there, and change only the
tree's own nodes and those they take.
"""

from typing import NamedTuple

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.compile.pointer import by_pointer


@by_pointer
class KeptTree(NamedTuple):
    """Arrays for one tree; N nodes, W words, n rows, K values, and the end of the free list."""

    column: np.ndarray
    cut: np.ndarray
    left: np.ndarray
    right: np.ndarray
    parent: np.ndarray
    depth: np.ndarray
    count: np.ndarray
    unsplittable: np.ndarray
    log_cut: np.ndarray
    log_column: np.ndarray
    values: np.ndarray
    time: np.ndarray
    rate: np.ndarray
    """Fields of `Trees`, by the index of a node in preorder."""
    nodes: np.ndarray
    """(N,) int32: the nodes in preorder."""
    sets: np.ndarray
    """(N, W) uint64: their rows."""
    leaf_of: np.ndarray
    """(n,), as in `Trees`."""
    free: np.ndarray
    """(N,) int32: the free list, copied as far as moves can reach."""
    n_free: np.ndarray
    """(1,) int64."""


def make_kept_tree(trees, sets) -> KeptTree:
    """Arrays for any tree of a forest, with ``sets``, (N, W), for the rows of its nodes."""
    places = [np.empty_like(getattr(trees, field)) for field in KeptTree._fields[:13]]
    nodes, free = np.empty_like(trees.left), np.empty_like(trees.free)
    leaf_of, n_free = np.empty_like(trees.leaf_of[0]), np.empty_like(trees.n_free)
    return KeptTree(*places, nodes, sets, leaf_of, free, n_free)


@njit(cache=True)
def keep_tree(trees, tree, nodes, n_nodes, sets, n_moves, kept):
    """Copy a tree, whose nodes are in ``nodes[:n_nodes]``, before a number of moves."""
    for k in range(n_nodes):
        node = nodes[k]
        kept.nodes[k] = node
        kept.column[k], kept.cut[k] = trees.column[node], trees.cut[node]
        kept.left[k], kept.right[k] = trees.left[node], trees.right[node]
        kept.parent[k], kept.depth[k] = trees.parent[node], trees.depth[node]
        kept.count[k], kept.unsplittable[k] = trees.count[node], trees.unsplittable[node]
        kept.log_cut[k], kept.log_column[k] = trees.log_cut[node], trees.log_column[node]
        kept.time[k], kept.rate[k] = trees.time[node], trees.rate[node]
        for v in range(kept.values.shape[1]):
            kept.values[k, v] = trees.values[node, v]
        for w in range(sets.shape[1]):
            kept.sets[k, w] = sets[node, w]
    leaf_of = trees.leaf_of[tree]
    for i in range(leaf_of.size):
        kept.leaf_of[i] = leaf_of[i]
    # a move takes or frees two nodes at most
    n_free = trees.n_free[0]
    kept.n_free[0] = n_free
    for k in range(max(n_free - 2 * n_moves, 0), n_free):
        kept.free[k] = trees.free[k]


@njit(cache=True)
def restore_tree(trees, tree, n_nodes, sets, n_moves, kept):
    """Restore the copied tree, which has ``n_nodes`` nodes."""
    for k in range(n_nodes):
        node = kept.nodes[k]
        trees.column[node], trees.cut[node] = kept.column[k], kept.cut[k]
        trees.left[node], trees.right[node] = kept.left[k], kept.right[k]
        trees.parent[node], trees.depth[node] = kept.parent[k], kept.depth[k]
        trees.count[node], trees.unsplittable[node] = kept.count[k], kept.unsplittable[k]
        trees.log_cut[node], trees.log_column[node] = kept.log_cut[k], kept.log_column[k]
        trees.time[node], trees.rate[node] = kept.time[k], kept.rate[k]
        for v in range(kept.values.shape[1]):
            trees.values[node, v] = kept.values[k, v]
        for w in range(sets.shape[1]):
            sets[node, w] = kept.sets[k, w]
    leaf_of = trees.leaf_of[tree]
    for i in range(leaf_of.size):
        leaf_of[i] = kept.leaf_of[i]
    n_free = kept.n_free[0]
    trees.n_free[0] = n_free
    for k in range(max(n_free - 2 * n_moves, 0), n_free):
        trees.free[k] = kept.free[k]


# --------------------------- Links between the nodes of a tree, saved so that they can be restored


@by_pointer
class Outline(NamedTuple):
    """Fields of `Trees` for some nodes, by index."""

    nodes: np.ndarray
    column: np.ndarray
    cut: np.ndarray
    left: np.ndarray
    right: np.ndarray
    parent: np.ndarray
    depth: np.ndarray
    time: np.ndarray


@njit(cache=True)
def outline_of(trees, nodes, n_nodes):
    """`Outline` of ``nodes[:n_nodes]``."""
    chosen = nodes[:n_nodes].copy()
    return Outline(
        chosen,
        trees.column[chosen],
        trees.cut[chosen],
        trees.left[chosen],
        trees.right[chosen],
        trees.parent[chosen],
        trees.depth[chosen],
        trees.time[chosen],
    )


@njit(cache=True)
def put_back(trees, outline):
    """Restore the links of the nodes."""
    for k in range(outline.nodes.size):
        node = outline.nodes[k]
        trees.column[node], trees.cut[node] = outline.column[k], outline.cut[k]
        trees.left[node], trees.right[node] = outline.left[k], outline.right[k]
        trees.parent[node], trees.depth[node] = outline.parent[k], outline.depth[k]
        trees.time[node] = outline.time[k]
