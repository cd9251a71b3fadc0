"""Working arrays of a forest of soft trees, and links between the nodes of a tree.

Every tree is in preorder: the left child of split node k is k + 1, the right one follows the left
subtree. Soft trees have few nodes: a change rewrites the tree.
"""

from typing import NamedTuple

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.compile.pointer import by_pointer


@by_pointer
class SoftTrees(NamedTuple):
    """m trees, with capacity for R nodes each."""

    size: np.ndarray
    """(m,) int64: nodes."""
    column: np.ndarray
    """(m, R) int32: split column; -1 for a leaf."""
    number: np.ndarray
    """(m, R) float64: cut in [0, 1], or leaf value."""
    bandwidth: np.ndarray
    """(m,) float64."""


@njit(cache=True)
def make_soft_trees(m, max_nodes):
    """Stumps with the value 0, with capacity for any forest of a number of nodes."""
    room = max_nodes - m + 1
    return SoftTrees(
        np.ones(m, dtype=np.int64),
        np.full((m, room), np.int32(-1)),
        np.zeros((m, room)),
        np.ones(m),
    )


class Links(NamedTuple):
    """Links of the nodes of one tree, with capacity for R."""

    parent: np.ndarray
    """(R,) int32; -1 for the root."""
    right: np.ndarray
    """(R,) int32: right child of a split node."""
    depth: np.ndarray
    """(R,) int32."""
    leaf: np.ndarray
    """(R + 1,) int32: leaves before the node; last the number of leaves."""


@njit(cache=True)
def make_links(room):
    """Links without content."""
    return Links(
        np.empty(room, dtype=np.int32),
        np.empty(room, dtype=np.int32),
        np.empty(room, dtype=np.int32),
        np.empty(room + 1, dtype=np.int32),
    )


@njit(cache=True)
def read_links(column, size, links):
    """Write the links of a tree; return its number of leaves."""
    parent, right, depth, leaf = links.parent, links.right, links.depth, links.leaf
    n_leaves = 0
    parent[0], depth[0] = -1, 0
    for k in range(size):
        leaf[k] = n_leaves
        if column[k] >= 0:
            parent[k + 1], depth[k + 1] = k, depth[k] + 1
            right[k] = -1
            continue
        n_leaves += 1
        if k + 1 < size:  # the next node is the right child of the last split without one
            q = parent[k]
            while right[q] >= 0:
                q = parent[q]
            right[q] = k + 1
            parent[k + 1], depth[k + 1] = q, depth[q] + 1
    leaf[size] = n_leaves
    return n_leaves


@njit(cache=True)
def end_of(column, node):
    """Node after the subtree of a node."""
    open_nodes, k = 1, node
    while open_nodes > 0:
        open_nodes += 1 if column[k] >= 0 else -1
        k += 1
    return k


@njit(cache=True)
def has_two_leaves(column, node):
    """Whether a node is split into two leaves."""
    return column[node] >= 0 and column[node + 1] < 0 and column[node + 2] < 0
