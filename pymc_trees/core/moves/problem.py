"""The state of moves and samplers: the trees, and the model under which they are drawn."""

from typing import NamedTuple

import numpy as np

from pymc_trees.core.columns.design import Design
from pymc_trees.core.columns.mixed import MixedDesign
from pymc_trees.core.columns.reference import ReferencedDesign
from pymc_trees.core.columns.row_set import RowIndex, RowSet, make_row_index
from pymc_trees.core.compile.cache import njit
from pymc_trees.core.compile.handle import Handle
from pymc_trees.core.compile.pointer import by_pointer
from pymc_trees.core.forest.trees import Trees, is_nog, preorder, reserve_row_sets
from pymc_trees.core.random import pick


@by_pointer
class Problem(NamedTuple):
    """A forest and its posterior; kernels dispatch on the types of design, prior and leaf."""

    trees: Trees
    """Changed in place."""
    design: Design | MixedDesign | ReferencedDesign | Handle
    """The training rows."""
    prior: tuple | Handle
    """Tree prior, see `priors.contract`."""
    leaf: tuple | Handle
    """Leaf model and data, see `leaves.contract`; its working residual is changed in place."""


# ------------------------------------------- Arrays that moves write to, allocated once per forest


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
    stop_flag: np.ndarray
    """(1,) bool: set from outside to end a sweep after the current tree."""
    index: RowIndex
    """Of the training rows by column."""
    sets: np.ndarray
    """(N, W) uint64: rows of each node, as bits (`ensure_rows`)."""
    rows_valid: np.ndarray
    """(N,) bool: of a root: whether ``sets`` holds the rows of its tree. Code that changes a
    tree without them sets it to False."""
    proposed: np.ndarray
    """(N, W) uint64: proposed rows of nodes, each at its ``position``."""
    position: np.ndarray
    """(N,) int32: index of a node in ``below``."""
    counts: np.ndarray
    """(N,) int64: proposed ``Trees.count``, by position."""
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
        stop_flag=np.zeros(1, dtype=np.bool_),
        index=index._replace(row_list=rows),
        sets=reserve_row_sets(max_nodes, n_words),
        rows_valid=np.zeros(max_nodes, dtype=np.bool_),
        proposed=reserve_row_sets(max_nodes, n_words),
        position=np.zeros(max_nodes, dtype=np.int32),
        counts=np.zeros(max_nodes, dtype=np.int64),
        order=order,
    )


# ----------------------- The training rows of each node of the open tree, as bits in the workspace
#
# ``work.sets`` and ``Trees.leaf_of`` hold the same information on a tree. Moves update both; a
# sampler that only updates ``leaf_of`` invalidates the sets (``work.rows_valid``), and they are
# rebuilt when a sweep of moves visits the tree.


@njit(cache=True)
def rows_of(trees, node, work):
    """`RowSet` of a node."""
    return RowSet(work.sets[node], trees.count[node], work.index)


@njit(cache=True)
def proposed_rows(work, position):
    """`RowSet` of the rows proposed for a node, by its position."""
    return RowSet(work.proposed[position], work.counts[position], work.index)


@njit(cache=True)
def union_rows(sets, left, right, node):
    """Write the union of the rows of two nodes as those of a third."""
    for w in range(sets.shape[1]):
        sets[node, w] = sets[left, w] | sets[right, w]


@njit(cache=True)
def ensure_rows(trees, tree, n_nodes, work):
    """Build the sets of a tree, whose nodes are in ``work.nodes`` in preorder, unless valid."""
    if work.rows_valid[trees.roots[tree]]:
        return
    sets, nodes, leaf_of = work.sets, work.nodes, trees.leaf_of[tree]
    for k in range(n_nodes):
        if trees.column[nodes[k]] < 0:
            sets[nodes[k]] = np.uint64(0)
    for i in range(leaf_of.size):
        sets[leaf_of[i], i >> 6] |= np.uint64(1) << np.uint64(i & 63)
    for k in range(n_nodes - 1, -1, -1):  # children before their parents
        node = nodes[k]
        if trees.column[node] >= 0:
            union_rows(sets, trees.left[node], trees.right[node], node)
    work.rows_valid[trees.roots[tree]] = True


# -------- Candidates for moves: counts of a tree's nodes by role, and a draw among those of a role


SPLITTABLE_LEAF, SPLIT, NOG = 0, 1, 2
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
        if role == SPLITTABLE_LEAF:
            eligible = trees.column[node] < 0 and not trees.unsplittable[node]
        elif role == SPLIT:
            eligible = trees.column[node] >= 0
        else:
            eligible = trees.column[node] >= 0 and is_nog(trees, node)
        if eligible:
            if target == 0:
                drawn = node
                break
            target -= 1
    return drawn
