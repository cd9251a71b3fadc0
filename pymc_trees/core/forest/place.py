"""Rows of all nodes of a forest anew, where the cells of the rows have moved (`reference`)."""

import numpy as np

from pymc_trees.core.columns.row_set import (
    RowSet,
    count_rows,
    label_rows,
    left_rows,
    own_words,
    remove_rows,
)
from pymc_trees.core.compile.cache import njit
from pymc_trees.core.forest.trees import preorder


@njit(cache=True)
def place_rows(trees, design, index, sets, nodes):
    """Pass all rows down all trees: their sets, labels and numbers follow from the rules.

    Parameters
    ----------
    design : design
        Of reference rows and rows (`ReferencedDesign.both`).
    index : RowIndex
        Of the same.
    sets : (N, W) uint64
        As in `Workspace`; overwritten.
    nodes : (N,) int32
        Overwritten.
    """
    n = trees.leaf_of.shape[1]
    n_all = design.columns.shape[1]
    for t in range(trees.roots.size):
        root = trees.roots[t]
        sets[root] = np.uint64(0)
        for i in range(n_all):
            sets[root, i >> 6] |= np.uint64(1) << np.uint64(i & 63)
        trees.count[root] = n
        for k in range(preorder(trees, root, nodes)):
            node = nodes[k]
            if trees.column[node] < 0:
                label_rows(own_words(sets[node], index), node, trees.leaf_of[t])
                continue
            left, right = trees.left[node], trees.right[node]
            rows = RowSet(sets[node], trees.count[node], index)
            left_rows(design, trees.column[node], trees.cut[node], rows, sets[left])
            remove_rows(sets[node], sets[left], sets[right])
            trees.count[left] = count_rows(own_words(sets[left], index))
            trees.count[right] = trees.count[node] - trees.count[left]
