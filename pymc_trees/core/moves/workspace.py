"""Arrays that moves write to, allocated once per forest."""

from typing import NamedTuple

import numpy as np

from pymc_trees.core.columns.design import Design
from pymc_trees.core.columns.mixed import MixedDesign
from pymc_trees.core.columns.row_index import RowIndex, make_row_index
from pymc_trees.core.compile.pointer import by_pointer
from pymc_trees.core.forest.room import make_room


@by_pointer
class Workspace(NamedTuple):
    """Buffers for one move on one tree; N = ``max_nodes``, n training rows, D statistics."""

    rows: np.ndarray
    """(n,) uint32: rows of a node, as a list."""
    buffer: np.ndarray
    """(n,) uint32: buffer of `partition_rows`."""
    nodes: np.ndarray
    """(N,) int32: the tree in preorder."""
    below: np.ndarray
    """(N,) int32: a subtree in preorder."""
    stats: np.ndarray
    """(N, D) float64: statistics of the leaves of the open tree."""
    log_cut: np.ndarray
    """(N,) float64: proposed ``Trees.log_cut``."""
    log_column: np.ndarray
    """(N,) float64: proposed ``Trees.log_column``."""
    unsplittable: np.ndarray
    """(N,) bool: proposed ``Trees.unsplittable``."""
    new_stats: np.ndarray
    """(N, D) float64: proposed statistics of leaves."""
    rate: np.ndarray
    """(N,) float64: proposed ``Trees.rate``."""
    cease: np.ndarray
    """(1,) bool: set from outside to end a sweep after the current tree."""
    index: RowIndex
    """Of the training rows by column."""
    sets: np.ndarray
    """(N, W) uint64: rows of each node, as bits (`node_rows`)."""
    is_known: np.ndarray
    """(N,) bool: of a root: whether ``sets`` holds the rows of its tree. Whoever changes a tree
    without them sets it to False."""
    proposed: np.ndarray
    """(N, W) uint64: proposed rows of nodes, each at its ``place``."""
    place: np.ndarray
    """(N,) int32: index of a node in ``below``."""
    counts: np.ndarray
    """(N,) int64: proposed ``Trees.count``, by place."""
    order: tuple | None = None
    """Order constraint on the leaf values of a tree, see `order.contract`; None: no constraint."""


def make_workspace(
    max_nodes: int,
    n_stats: int,
    design: Design | MixedDesign,
    index: RowIndex | None = None,
    order: tuple | None = None,
) -> Workspace:
    """Workspace for a forest of ``max_nodes`` nodes over the rows of a design, and their index."""
    n_rows = design.columns.shape[1]
    n_words = -(-n_rows // 64)
    max_nodes = max(max_nodes, 2)  # grow keeps two proposed leaves
    rows = np.zeros(n_rows, dtype=np.uint32)
    index = make_row_index(design) if index is None else index
    return Workspace(
        rows=rows,
        buffer=np.zeros(n_rows, dtype=np.uint32),
        nodes=np.zeros(max_nodes, dtype=np.int32),
        below=np.zeros(max_nodes, dtype=np.int32),
        stats=np.zeros((max_nodes, n_stats)),
        log_cut=np.zeros(max_nodes),
        log_column=np.zeros(max_nodes),
        unsplittable=np.zeros(max_nodes, dtype=np.bool_),
        new_stats=np.zeros((max_nodes, n_stats)),
        rate=np.zeros(max_nodes),
        cease=np.zeros(1, dtype=np.bool_),
        index=index._replace(listed=rows),
        sets=make_room(max_nodes, n_words),
        is_known=np.zeros(max_nodes, dtype=np.bool_),
        proposed=make_room(max_nodes, n_words),
        place=np.zeros(max_nodes, dtype=np.int32),
        counts=np.zeros(max_nodes, dtype=np.int64),
        order=order,
    )
