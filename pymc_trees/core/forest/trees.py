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
