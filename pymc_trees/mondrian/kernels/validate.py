"""Is a tree that was read from a file valid for kernels?

Kernels follow indices without bounds checks.
"""

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.mondrian.kernels.categories import MOST_COUNTED, Categories
from pymc_trees.mondrian.kernels.tree import (
    CLOSED,
    FREE,
    LEAVES,
    NEXT_ROW,
    NONE,
    ROOT,
    ROWS,
    UNUSED,
    USED,
    MondrianTree,
    make_tree,
)


@njit(cache=True)
def _leaf_is_sound(tree, node, row_seen, whole):
    """Whether a leaf has no split, and the rows of a paused one are its own."""
    if not np.isinf(tree.time[node]) or tree.count[node] < 1:
        return False
    if not tree.paused[node]:
        return True
    n, row = 0, tree.first_row[node]
    while row != NONE:
        if row < 0 or row >= row_seen.size or row_seen[row]:
            return False
        row_seen[row] = True
        row = tree.next_row[row]
        n += 1
    return n == tree.count[node] or 0 < n < tree.count[node] and not whole


@njit(cache=True)
def _split_is_sound(tree, node, start, used, whole):
    """Whether a split is inside its box, and is the parent of its children."""
    column, time = tree.column[node], tree.time[node]
    if column >= tree.box.shape[2] or not start <= time <= tree.lifetime[0] or np.isinf(time):
        return False
    if not tree.box[node, 0, column] <= tree.cut[node] < tree.box[node, 1, column]:
        return False
    a, b = tree.left[node], tree.right[node]
    if not (0 <= a < used and 0 <= b < used and a != b):
        return False
    if tree.parent[a] != node or tree.parent[b] != node:
        return False
    forgotten = tree.count[node] - tree.count[a] - tree.count[b]
    return forgotten == 0 or forgotten > 0 and not whole


@njit(cache=True)
def _is_sound(tree, n_seen, n_rows, whole):
    """Whether each place is a node of the tree or free, with consistent fields."""
    state, used = tree.state, tree.state[USED]
    root = state[ROOT]
    if not (0 < used <= tree.column.size and 0 <= root < used):
        return False
    if tree.parent[root] != NONE or state[ROWS] != n_rows:
        return False
    if tree.count[root] > n_seen or whole and tree.count[root] < n_seen:
        return False
    seen, row_seen = np.zeros(used, dtype=np.bool_), np.zeros(n_rows, dtype=np.bool_)
    stack = np.empty(used + 2, dtype=np.int64)
    stack[0], height, n_leaves = root, 1, 0
    while height > 0:
        height -= 1
        node = stack[height]
        if seen[node]:
            return False
        seen[node] = True
        for d in range(tree.box.shape[2]):
            low, high = tree.box[node, 0, d], tree.box[node, 1, d]
            if not (low <= high and np.isfinite(low) and np.isfinite(high)):
                return False
        parent = tree.parent[node]
        start = 0.0 if parent == NONE else tree.time[parent]
        if tree.column[node] == NONE:
            n_leaves += 1
            if not _leaf_is_sound(tree, node, row_seen, whole):
                return False
        elif tree.column[node] < NONE or not _split_is_sound(tree, node, start, used, whole):
            return False
        else:
            stack[height], stack[height + 1] = tree.left[node], tree.right[node]
            height += 2
            if height > used:
                return False
    node = state[FREE]
    while node != NONE:
        if node < 0 or node >= used or seen[node] or tree.column[node] != UNUSED:
            return False
        seen[node] = True
        node = tree.parent[node]
    return n_leaves == state[LEAVES] and seen.all()


def _labels_are_sound(tree, labels):
    """Whether the statistics are those of as many labels as each node has rows."""
    nodes = np.flatnonzero(tree.column[: tree.state[USED]] != UNUSED)
    n_rows = tree.count[nodes]
    if isinstance(labels, Categories):
        counts = labels.counts[nodes]
        full = (counts == MOST_COUNTED).any(axis=1)
        return (counts >= 0).all() and (full | (counts.sum(axis=1) == n_rows)).all()
    finite = np.isfinite(labels.mean[nodes]) & np.isfinite(labels.squares[nodes])
    return (finite & (labels.squares[nodes] >= 0) & (labels.n[nodes] == n_rows)).all()


def check_tree(tree, labels, rows, empty, whole):
    """Raise ValueError unless this is a tree of some rows.

    Parameters
    ----------
    rows : tuple of int
        Numbers of its columns, of rows it has seen, and of numbered rows.
    empty : tuple
        Statistics of no labels, as the tree should have them.
    whole : bool
        Whether no block has dropped a row.
    """
    n_columns, n_seen, n_rows = rows
    wanted = make_tree(n_columns, 1.0, 1, 1)
    if not (isinstance(tree, MondrianTree) and isinstance(labels, type(empty))):
        raise ValueError("a tree is of another kind")
    for array, like in zip((*tree, *labels), (*wanted, *empty)):
        if (
            not isinstance(array, np.ndarray)
            or array.dtype != like.dtype
            or array.shape[1:] != like.shape[1:]
            or not array.flags.c_contiguous
            or not array.flags.writeable
        ):
            raise ValueError("an array of a tree is of another type or shape")
    if len(tree.state) != len(wanted.state) or len(tree.lifetime) != 1 or not tree.lifetime[0] > 0:
        raise ValueError("the state of a tree is not one")
    if tree.state[CLOSED]:
        n_rows = 0
    if {len(a) for a in (*tree[:NEXT_ROW], *labels)} != {len(tree.column)} or len(
        tree.next_row
    ) < n_rows:
        raise ValueError("the arrays of a tree have different lengths")
    if not (_is_sound(tree, n_seen, n_rows, whole) and _labels_are_sound(tree, labels)):
        raise ValueError("the nodes of a tree do not fit each other")
