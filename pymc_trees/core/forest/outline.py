"""Links between the nodes of a tree, saved so that they can be restored."""

from typing import NamedTuple

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.compile.pointer import by_pointer


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
