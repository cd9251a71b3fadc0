"""Rows of all nodes of a forest anew, where the cells of the rows have moved (`reference`)."""

import numpy as np

from pymc_trees.core.columns.row_set import (
    RowSet,
    count_rows,
    label_new_rows,
    label_rows,
    left_rows,
    own_words,
    remove_rows,
)
from pymc_trees.core.compile.cache import njit
from pymc_trees.core.forest.trees import preorder


@njit(cache=True)
def place_rows(trees, design, moved, work):
    """Pass all rows down the trees: their sets, labels and numbers follow from the rules.

    A tree whose sets were valid before is left alone where it splits on no column that has moved;
    else labels are written for rows that change their leaf.

    Parameters
    ----------
    design : design
        Of reference rows and rows (`ReferencedDesign.both`).
    moved : (p,) bool
        Columns with cells other than those of which valid sets were made.
    work : Workspace
        Its sets and ``rows_valid`` are overwritten.
    """
    sets, nodes, index, p = work.sets, work.nodes, work.index, moved.size
    n_all = design.columns.shape[1]
    here = np.empty(sets.shape[1], dtype=np.uint64)
    for t in range(trees.roots.size):
        root, is_concerned = trees.roots[t], False
        is_known, n_nodes = work.rows_valid[root], preorder(trees, root, nodes)
        for k in range(n_nodes):
            column = trees.column[nodes[k]]
            is_concerned |= column >= 0 and moved[column % p]
        if is_known and not is_concerned:
            continue
        if not is_known:
            here[:] = np.uint64(0)
            for i in range(n_all):
                here[i >> 6] |= np.uint64(1) << np.uint64(i & 63)
            _place_at(trees, root, here, False, index, sets, trees.leaf_of[t])
        for k in range(n_nodes):
            node = nodes[k]
            if trees.column[node] < 0:
                continue
            rows = RowSet(sets[node], trees.count[node], index)
            left_rows(design, trees.column[node], trees.cut[node], rows, here)
            _place_at(trees, trees.left[node], here, is_known, index, sets, trees.leaf_of[t])
            remove_rows(sets[node], here, here)
            _place_at(trees, trees.right[node], here, is_known, index, sets, trees.leaf_of[t])
        work.rows_valid[root] = True


@njit(cache=True)
def _place_at(trees, node, rows, is_known, index, sets, leaf_of):
    """Put rows into a node; a set that is known tells which are new."""
    own = own_words(rows, index)
    if trees.column[node] < 0:
        if is_known:
            label_new_rows(own, own_words(sets[node], index), node, leaf_of)
        else:
            label_rows(own, node, leaf_of)
    sets[node][:] = rows
    trees.count[node] = count_rows(own)
