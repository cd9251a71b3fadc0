"""Working arrays of a forest: all nodes of all trees in one pool with a free list.

Node ids are indices into the pool; ``roots[t]`` is the root of tree t. Samplers visit the nodes of
a tree in preorder, so draws do not depend on the position of a node in the pool.
"""

import mmap
import platform
import sys
from typing import NamedTuple

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.compile.pointer import by_pointer

NONE = -1
MAX_UINT16_NODES = 65_536
"""Number of nodes that 16 bits can index."""


class Labels:
    """Stands in signatures for a row of `Trees.leaf_of`."""


@by_pointer
class Trees(NamedTuple):
    """Forest that can be edited; N = ``max_nodes`` nodes, K leaf values, n training rows."""

    roots: np.ndarray
    """(m,) int32: root of each tree."""
    column: np.ndarray
    """(N,) int32: split column; -1 for a leaf."""
    cut: np.ndarray
    """(N,) float64: cut in the units of the design; unused in a leaf."""
    left: np.ndarray
    """(N,) int32: left child (``x <= cut``); -1 for a leaf."""
    right: np.ndarray
    """(N,) int32: right child; -1 for a leaf."""
    parent: np.ndarray
    """(N,) int32: parent; -1 for a root."""
    depth: np.ndarray
    """(N,) int32: 0 for a root."""
    count: np.ndarray
    """(N,) int64: training rows in the node."""
    unsplittable: np.ndarray
    """(N,) bool: the node's training rows are all alike, so that it cannot split."""
    log_cut: np.ndarray
    """(N,) float64: log density of the cut given node and column; 0 in a leaf."""
    log_column: np.ndarray
    """(N,) float64: log probability of the column given the node; 0 in a leaf."""
    values: np.ndarray
    """(N, K) float64: leaf values; unused in a split node."""
    time: np.ndarray
    """(N,) float64: time of a split of a Mondrian process, else unused."""
    rate: np.ndarray
    """(N,) float64: linear dimension of the box of a Mondrian process' node, else unused."""
    leaf_of: np.ndarray
    """(m, n) uint16 or uint32, see `label_type`: the leaf of each training row in each tree."""
    free: np.ndarray
    """(N,) int32: stack of unused nodes."""
    n_free: np.ndarray
    """(1,) int64: height of that stack."""


def label_type(max_nodes: int) -> type:
    """Type of `Trees.leaf_of`: 16 bits if they can index all nodes."""
    return np.uint16 if max_nodes <= MAX_UINT16_NODES else np.uint32


def make_trees(m, max_nodes, n_values, n_rows):
    """Forest of ``m`` stumps whose values are 0."""
    leaf_of = np.empty((m, n_rows), dtype=label_type(max_nodes))
    make = getattr(make_stumps, "py_func", make_stumps)  # a second of compilation less
    return make(max_nodes, n_values, leaf_of)


@njit(cache=True)
def make_stumps(max_nodes, n_values, leaf_of):
    """`make_trees` for compiled code, which needs the type of ``leaf_of`` as an argument."""
    m, n_rows = leaf_of.shape
    free = np.empty(max_nodes, dtype=np.int32)
    free[: max_nodes - m] = np.arange(max_nodes - 1, m - 1, -1)
    n_free = np.full(1, max_nodes - m)
    count = np.zeros(max_nodes, dtype=np.int64)
    count[:m] = n_rows
    for t in range(m):
        leaf_of[t] = t
    return Trees(
        np.arange(m).astype(np.int32),
        np.full(max_nodes, NONE, dtype=np.int32),
        np.zeros(max_nodes),
        np.full(max_nodes, NONE, dtype=np.int32),
        np.full(max_nodes, NONE, dtype=np.int32),
        np.full(max_nodes, NONE, dtype=np.int32),
        np.zeros(max_nodes, dtype=np.int32),
        count,
        np.zeros(max_nodes, dtype=np.bool_),
        np.zeros(max_nodes),
        np.zeros(max_nodes),
        np.zeros((max_nodes, n_values)),
        np.zeros(max_nodes),
        np.zeros(max_nodes),
        leaf_of,
        free,
        n_free,
    )


@njit(cache=True)
def preorder(trees, top, out):
    """Write the nodes of the subtree at ``top`` in preorder to ``out``; return their number."""
    out[0] = top
    n = 1
    node = top
    while True:
        if trees.column[node] >= 0:
            node = trees.left[node]
        else:
            while node != top and trees.right[trees.parent[node]] == node:
                node = trees.parent[node]
            if node == top:
                return n
            node = trees.right[trees.parent[node]]
        out[n] = node
        n += 1


@njit(cache=True)
def is_nog(trees, node):
    """Whether both children of a split node are leaves; it can then be pruned."""
    return trees.column[trees.left[node]] < 0 and trees.column[trees.right[node]] < 0


@njit(cache=True)
def count_forest(trees, nodes, inclusion):
    """Leaves, deepest leaf, and split nodes per column.

    Parameters
    ----------
    nodes : (max_nodes,) int32
        Overwritten.
    inclusion : (p,) int64
        Overwritten with the number of split nodes of each column.

    Returns
    -------
    leaves, depth : int
        Leaves over all trees; depth of the deepest, 0 for stumps.
    """
    inclusion[:] = 0
    leaves, depth = 0, 0
    for t in range(trees.roots.size):
        for k in range(preorder(trees, trees.roots[t], nodes)):
            node = nodes[k]
            if trees.column[node] >= 0:
                inclusion[trees.column[node] % inclusion.size] += 1  # without `rule_kind`
            else:
                leaves += 1
                depth = max(depth, trees.depth[node])
    return leaves, depth


@njit(cache=True)
def all_rows(n, rows):
    """Write ``0 .. n - 1`` to ``rows``; return n."""
    for i in range(n):
        rows[i] = i
    return n


_GENERIC = sys.platform == "linux" and platform.machine() in ("x86_64", "aarch64")
NORESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000 if _GENERIC else None)
"""Linux's flag MAP_NORESERVE; Python has a name for it from 3.13 on."""


def reserve_row_sets(rows: int, columns: int) -> np.ndarray:
    """(rows, columns) uint64 zeros; only pages that are written to take memory.

    On large tables the sets of all nodes that fit the pool would take far more memory than those in
    use, and more than a machine has: Linux is told not to reserve the rest.
    """
    n_bytes = 8 * rows * columns
    if n_bytes < 2**24 or NORESERVE is None:
        return np.zeros((rows, columns), dtype=np.uint64)
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NORESERVE
    return np.frombuffer(mmap.mmap(-1, n_bytes, flags=flags), np.uint64).reshape(rows, columns)


# -------- Split a leaf, join two leaves, reduce a tree to its root: edits that take and free nodes


@njit(cache=True)
def split_leaf(trees, node, column, cut):
    """Give a leaf two children; False if the pool is full.

    The caller sets the children's ``count``, ``unsplittable`` and ``leaf_of``, and the node's prior
    terms.
    """
    if trees.n_free[0] < 2:
        return False
    for side in range(2):
        trees.n_free[0] -= 1
        child = trees.free[trees.n_free[0]]
        if side == 0:
            trees.left[node] = child
        else:
            trees.right[node] = child
        trees.column[child] = NONE
        trees.left[child] = NONE
        trees.right[child] = NONE
        trees.parent[child] = node
        trees.depth[child] = trees.depth[node] + 1
        trees.log_cut[child] = 0.0
        trees.log_column[child] = 0.0
    trees.column[node] = column
    trees.cut[node] = cut
    return True


@njit(cache=True)
def join_leaves(trees, node):
    """Make a split node whose children are leaves a leaf again; the caller sets ``leaf_of``."""
    left, right = trees.left[node], trees.right[node]
    trees.free[trees.n_free[0]] = right
    trees.free[trees.n_free[0] + 1] = left
    trees.n_free[0] += 2
    trees.column[node] = NONE
    trees.left[node] = NONE
    trees.right[node] = NONE
    trees.log_cut[node] = 0.0
    trees.log_column[node] = 0.0


@njit(cache=True)
def reset_tree(trees, tree, nodes):
    """Reduce a tree to its root, a leaf; ``nodes`` is overwritten."""
    root = trees.roots[tree]
    for k in range(preorder(trees, root, nodes)):
        if nodes[k] != root:
            trees.free[trees.n_free[0]] = nodes[k]
            trees.n_free[0] += 1
    trees.column[root] = NONE
    trees.left[root] = NONE
    trees.right[root] = NONE
    trees.log_cut[root] = 0.0
    trees.log_column[root] = 0.0


# --------------------------------------------------------------------------------------------------
# Rotations of a tree: edits of its links, rules and depths, each undone by one of the same kind.
#
# Nothing else is updated: neither the rows of nodes nor quantities that depend on them.


@njit(cache=True)
def child_on(trees, node, side):
    """Child on the left, 0, or on the right, 1."""
    return trees.right[node] if side == 1 else trees.left[node]


@njit(cache=True)
def set_child(trees, node, side, child):
    """Make a node the child of another on a side."""
    if side == 1:
        trees.right[node] = child
    else:
        trees.left[node] = child
    trees.parent[child] = node


@njit(cache=True)
def shift_depths(trees, top, levels, below):
    """Add to the depths of a node and of all below it; ``below`` is overwritten."""
    for k in range(preorder(trees, top, below)):
        trees.depth[below[k]] += levels


@njit(cache=True)
def rotate_up(trees, top, side, other_side, below):
    """Rotate the child on one side up, and attach its sibling below it on ``other_side``.

    ``rotate_up(trees, top, other_side, side, below)`` undoes it; ``below`` is overwritten.
    """
    child, other = child_on(trees, top, side), child_on(trees, top, 1 - side)
    inner, outer = child_on(trees, child, other_side), child_on(trees, child, 1 - other_side)
    set_child(trees, top, other_side, child)
    set_child(trees, top, 1 - other_side, outer)
    set_child(trees, child, side, inner)
    set_child(trees, child, 1 - side, other)
    trees.column[top], trees.column[child] = trees.column[child], trees.column[top]
    trees.cut[top], trees.cut[child] = trees.cut[child], trees.cut[top]
    shift_depths(trees, outer, -1, below)
    shift_depths(trees, other, 1, below)


@njit(cache=True)
def transpose(trees, top, side):
    """Give a node the rule of its child on a side, and its own to both children.

    The two middle grandchildren change places. If the rules of both children give the same
    partition, each grandchild keeps its rows, and the operation is its own inverse.
    """
    left, right = trees.left[top], trees.right[top]
    from_left, from_right = trees.right[left], trees.left[right]
    set_child(trees, left, 1, from_right)
    set_child(trees, right, 0, from_left)
    child, code, cut = child_on(trees, top, side), trees.column[top], trees.cut[top]
    trees.column[top], trees.cut[top] = trees.column[child], trees.cut[child]
    for node in (left, right):
        trees.column[node], trees.cut[node] = code, cut


@njit(cache=True)
def leaves_on(trees, top, side):
    """Whether both children of a node have a leaf on one side; `transpose` then joins these."""
    left, right = child_on(trees, trees.left[top], side), child_on(trees, trees.right[top], side)
    return trees.column[left] < 0 and trees.column[right] < 0


# ------------- Copy of one tree, to restore it: its nodes, their rows, and the top of the free list
#
# Moves of a tree take nodes from the top of the free list and return them there, and change only
# the tree's own nodes and those they take.


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
