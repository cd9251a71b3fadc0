"""The training rows of each node of the open tree, as bits in the workspace.

``work.sets`` and ``Trees.leaf_of`` hold the same information on a tree. Moves update both; a
sampler that only updates ``leaf_of`` invalidates the sets (``work.is_known``), and they are rebuilt
when a sweep of moves visits the tree.
"""

import numpy as np

from pymc_trees.core.columns.row_set import RowSet
from pymc_trees.core.compile.cache import njit


@njit(cache=True)
def rows_of(trees, node, work):
    """`RowSet` of a node."""
    return RowSet(work.sets[node], trees.count[node], work.index)


@njit(cache=True)
def proposed_rows(work, place):
    """`RowSet` of the rows proposed for a node, by its place."""
    return RowSet(work.proposed[place], work.counts[place], work.index)


@njit(cache=True)
def unite_rows(sets, left, right, node):
    """Write the union of the rows of two nodes as those of a third."""
    for w in range(sets.shape[1]):
        sets[node, w] = sets[left, w] | sets[right, w]


@njit(cache=True)
def know_rows(trees, tree, n_nodes, work):
    """Build the sets of a tree, whose nodes are in ``work.nodes`` in preorder, unless known."""
    if work.is_known[trees.roots[tree]]:
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
            unite_rows(sets, trees.left[node], trees.right[node], node)
    work.is_known[trees.roots[tree]] = True
