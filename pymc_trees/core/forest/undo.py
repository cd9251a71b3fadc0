"""Copy of one tree, to restore it: its nodes, their rows, and the top of the free list.

Moves of a tree take nodes from the top of the free list and return them there, and change only the
tree's own nodes and those they take.
"""

from typing import NamedTuple

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.compile.pointer import by_pointer


@by_pointer
class SavedTree(NamedTuple):
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


def make_saved_tree(trees, sets) -> SavedTree:
    """Arrays for any tree of a forest, with ``sets``, (N, W), for the rows of its nodes."""
    arrays = [np.empty_like(getattr(trees, field)) for field in SavedTree._fields[:13]]
    nodes, free = np.empty_like(trees.left), np.empty_like(trees.free)
    leaf_of, n_free = np.empty_like(trees.leaf_of[0]), np.empty_like(trees.n_free)
    return SavedTree(*arrays, nodes, sets, leaf_of, free, n_free)


@njit(cache=True)
def save_tree(trees, tree, nodes, n_nodes, sets, n_moves, saved):
    """Copy a tree, whose nodes are in ``nodes[:n_nodes]``, before a number of moves."""
    for k in range(n_nodes):
        node = nodes[k]
        saved.nodes[k] = node
        saved.column[k], saved.cut[k] = trees.column[node], trees.cut[node]
        saved.left[k], saved.right[k] = trees.left[node], trees.right[node]
        saved.parent[k], saved.depth[k] = trees.parent[node], trees.depth[node]
        saved.count[k], saved.unsplittable[k] = trees.count[node], trees.unsplittable[node]
        saved.log_cut[k], saved.log_column[k] = trees.log_cut[node], trees.log_column[node]
        saved.time[k], saved.rate[k] = trees.time[node], trees.rate[node]
        for v in range(saved.values.shape[1]):
            saved.values[k, v] = trees.values[node, v]
        for w in range(sets.shape[1]):
            saved.sets[k, w] = sets[node, w]
    leaf_of = trees.leaf_of[tree]
    for i in range(leaf_of.size):
        saved.leaf_of[i] = leaf_of[i]
    # a move takes or frees two nodes at most
    n_free = trees.n_free[0]
    saved.n_free[0] = n_free
    for k in range(max(n_free - 2 * n_moves, 0), n_free):
        saved.free[k] = trees.free[k]


@njit(cache=True)
def restore_tree(trees, tree, n_nodes, sets, n_moves, saved):
    """Restore the copied tree, which has ``n_nodes`` nodes."""
    for k in range(n_nodes):
        node = saved.nodes[k]
        trees.column[node], trees.cut[node] = saved.column[k], saved.cut[k]
        trees.left[node], trees.right[node] = saved.left[k], saved.right[k]
        trees.parent[node], trees.depth[node] = saved.parent[k], saved.depth[k]
        trees.count[node], trees.unsplittable[node] = saved.count[k], saved.unsplittable[k]
        trees.log_cut[node], trees.log_column[node] = saved.log_cut[k], saved.log_column[k]
        trees.time[node], trees.rate[node] = saved.time[k], saved.rate[k]
        for v in range(saved.values.shape[1]):
            trees.values[node, v] = saved.values[k, v]
        for w in range(sets.shape[1]):
            sets[node, w] = saved.sets[k, w]
    leaf_of = trees.leaf_of[tree]
    for i in range(leaf_of.size):
        leaf_of[i] = saved.leaf_of[i]
    n_free = saved.n_free[0]
    trees.n_free[0] = n_free
    for k in range(max(n_free - 2 * n_moves, 0), n_free):
        trees.free[k] = saved.free[k]


# --------------------------- Links between the nodes of a tree, saved so that they can be restored


@by_pointer
class SavedLinks(NamedTuple):
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
def save_links(trees, nodes, n_nodes):
    """`SavedLinks` of ``nodes[:n_nodes]``."""
    chosen = nodes[:n_nodes].copy()
    return SavedLinks(
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
def restore_links(trees, links):
    """Restore the links of the nodes."""
    for k in range(links.nodes.size):
        node = links.nodes[k]
        trees.column[node], trees.cut[node] = links.column[k], links.cut[k]
        trees.left[node], trees.right[node] = links.left[k], links.right[k]
        trees.parent[node], trees.depth[node] = links.parent[k], links.depth[k]
        trees.time[node] = links.time[k]
