"""A Mondrian tree and one more row (thesis, alg. 5.5-5.6, 5.10, 6.3-6.4).

Alg. 6.4 as printed does not pause leaves below ``min_samples_split``, and the tree then does not
have the distribution of a batch tree. Here they are paused like leaves with one label in alg. 5.10:
a leaf that reaches the minimum is sampled by alg. 6.2, from the time of its parent on.
"""

from typing import NamedTuple

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.mondrian.kernels.grow import (
    draw_between,
    draw_column,
    grow_block,
    heap_of_splits,
    push_split,
    shorten,
)
from pymc_trees.mondrian.kernels.labels import (
    add_to_leaf,
    fill_leaf,
    fill_split,
    pass_through,
    with_label_nodes,
)
from pymc_trees.mondrian.kernels.tree import (
    CLOSED,
    LEAVES,
    NONE,
    ROOT,
    ROWS,
    USED,
    Labelled,
    start_and_end,
    take_place,
    unused_places,
    with_nodes,
    with_rows,
)


class Branch(NamedTuple):
    """A split caused by a new row."""

    sides: np.ndarray
    """(columns,) distance of the row from the box."""
    total: float
    """Their sum."""
    time: float


class Progress(NamedTuple):
    """Progress of the extension of a tree."""

    row: int
    """The next row."""
    stop: int
    """The row after the last."""
    pending: int
    """Leaf that received ``row`` and must be sampled, or none."""


@njit(cache=True)
def excess(box, x, sides):
    """Write the distance of a point from a box along each column; return the sum."""
    low, high = box[0], box[1]
    total = 0.0
    for d in range(x.size):
        sides[d] = max(x[d] - high[d], low[d] - x[d], 0.0)
        total += sides[d]
    return total


@njit(cache=True)
def put_leaf(tree, labels, y, node, x, row):
    """A leaf with a single row: always paused."""
    tree.count[node] = 1
    tree.paused[node] = True
    tree.first_row[node] = row
    tree.next_row[row] = NONE
    tree.box[node, 0] = x
    tree.box[node, 1] = x
    fill_leaf(labels, node, y, np.array([row]), 0, 1)


@njit(cache=True)
def branch_off(rng, tree, labels, data, j, row, branch):
    """Insert a split above j, with a leaf for the row as j's sibling (alg. 5.6, 4-8); return it."""
    x, y, parent = data.X[row], data.y, tree.parent[j]
    column = draw_column(rng, branch.sides, branch.total)
    new = take_place(tree, parent)
    leaf = take_place(tree, new)
    tree.state[LEAVES] -= 1  # a split is not a leaf
    tree.column[new] = column
    tree.time[new] = branch.time
    tree.count[new] = tree.count[j] + 1
    tree.box[new] = tree.box[j]
    widen(tree.box[new], x)
    tree.parent[j] = new
    if x[column] > tree.box[j, 1, column]:
        tree.cut[new] = draw_between(rng, tree.box[j, 1, column], x[column])
        tree.left[new], tree.right[new] = j, leaf
    else:
        tree.cut[new] = draw_between(rng, x[column], tree.box[j, 0, column])
        tree.left[new], tree.right[new] = leaf, j
    if parent == NONE:
        tree.state[ROOT] = new
    elif tree.left[parent] == j:
        tree.left[parent] = new
    else:
        tree.right[parent] = new
    put_leaf(tree, labels, y, leaf, x, row)
    fill_split(labels, new, tree.left[new], tree.right[new])
    return new


@njit(cache=True)
def join_paused(tree, labels, rules, y, leaf, row):
    """Add a row to a paused leaf; return whether it stays paused."""
    first = tree.first_row[leaf]
    few = tree.count[leaf] < rules.min_samples_split
    stays = few
    if not few and rules.pause_pure:
        stays = y[first] == y[row]
        if tree.count[leaf] == rules.min_samples_split:  # so far it was paused because it was small
            other = first
            while stays and other != NONE:
                stays = y[other] == y[row]
                other = tree.next_row[other]
    tree.next_row[row] = first
    tree.first_row[leaf] = row
    return stays


@njit(cache=True)
def extend(rng, tree, labels, rules, data, row, sides):
    """Extend the tree by one row, up to a paused leaf that must be sampled.

    Returns
    -------
    leaf, split : int
        That leaf, or none; the new split, or none.
    """
    x, y = data.X[row], data.y
    j = tree.state[ROOT]
    if j == NONE:
        j = take_place(tree, NONE)
        tree.state[ROOT] = j
        put_leaf(tree, labels, y, j, x, row)
        return NONE, NONE
    column, cut, box, count, paused = tree.column, tree.cut, tree.box, tree.count, tree.paused
    left, right = tree.left, tree.right
    while True:
        total = excess(box[j], x, sides)
        if total > 0.0 and not paused[j]:
            start, end = start_and_end(tree, j)
            time = start + rng.standard_exponential() / total
            if time < end:
                branch = Branch(sides, total, time)
                return NONE, branch_off(rng, tree, labels, data, j, row, branch)
        if total > 0.0:
            widen(box[j], x)
        count[j] += 1
        if column[j] == NONE:
            break
        pass_through(labels, j, y[row])
        j = left[j] if x[column[j]] <= cut[j] else right[j]
    if paused[j] and not join_paused(tree, labels, rules, y, j, row):
        return j, NONE
    add_to_leaf(labels, j, y[row])
    return NONE, NONE


@njit(cache=True)
def extend_in_place(rng, tree, labels, rules, data, progress, sides):
    """Extend the tree by rows until the next one needs more room.

    Returns
    -------
    progress : Progress
        Where it stopped.
    room : int
        Nodes that the rest of ``row`` may need.
    """
    state = tree.state
    row, stop, pending = progress
    heap, heaped = np.empty(0, dtype=np.int32), False  # splits by time, once there are too many
    while row < stop:
        before = state[LEAVES] - 1
        if pending == NONE:
            if unused_places(tree) < 2:
                return Progress(row, stop, NONE), 2
            pending, split = extend(rng, tree, labels, rules, data, row, sides)
            if heaped and split != NONE:
                heap = push_split(heap, before, tree.time, split)
        if pending != NONE:
            room = 2 * min(tree.count[pending], rules.max_block)
            if unused_places(tree) < room:
                return Progress(row, stop, pending), room
            to_the_end = np.zeros(1, dtype=np.bool_)
            rows = rows_of(tree, pending, rules.max_block)
            splits = grow_block(rng, tree, labels, rules, data, pending, rows, to_the_end)
            if heaped:
                for k in range(splits.size):
                    heap = push_split(heap, before + k, tree.time, splits[k])
            pending = NONE
        if state[LEAVES] > rules.max_leaves:
            if not heaped:
                heap, heaped = heap_of_splits(tree), True
            shorten(tree, labels, heap, rules.max_leaves)
        row += 1
    state[ROWS] = stop
    return Progress(row, stop, NONE), 0


@njit(cache=True)
def extend_further(rng, tree, labels, rules, data, progress, sides):
    """`extend_in_place`, with new arrays for a tree that is full; closes a tree at its limit."""
    stop = progress.stop
    if tree.state[CLOSED]:
        count_rows(tree, labels, data, progress.row, stop)
        return tree, labels
    if tree.next_row.size < stop:
        tree = with_rows(tree, max(stop, min(2 * tree.next_row.size, rules.max_rows)))
    while True:
        progress, room = extend_in_place(rng, tree, labels, rules, data, progress, sides)
        if progress.row == stop:
            return tree, labels
        if tree.column.size - unused_places(tree) + room > rules.max_nodes:
            close(tree)
            row = progress.row
            if progress.pending != NONE:  # the nodes include the row, but not its label
                add_to_leaf(labels, progress.pending, data.y[row])
                row += 1
            count_rows(tree, labels, data, row, stop)
            return with_rows(tree, 0), labels
        room = min(room + 2 * tree.column.size, rules.max_nodes)
        tree, labels = with_nodes(tree, room), with_label_nodes(labels, room)


@njit(cache=True, nogil=True)
def extend_tree(rng, tree, labels, rules, X, y, start, stop):
    """Tree extended by rows ``start`` to ``stop``; with new arrays if the old are full."""
    sides = np.empty(X.shape[1])
    progress = Progress(start, stop, NONE)
    return extend_further(rng, tree, labels, rules, Labelled(X, y), progress, sides)


@njit(cache=True, nogil=True)
def extend_forest(rng, trees, rules, X, y, start, stop, moved):
    """Every tree of a list extended by rows ``start`` to ``stop``, in one call.

    Parameters
    ----------
    trees : typed list of (tree, labels)
        Updated if a tree has new arrays.
    moved : (trees,) bool
        Set for those.
    """
    sides, data = np.empty(X.shape[1]), Labelled(X, y)
    for t in range(len(trees)):
        tree, labels = trees[t]
        if tree.state[CLOSED]:
            count_rows(tree, labels, data, start, stop)
            continue
        progress = Progress(start, stop, NONE)
        if tree.next_row.size >= stop:
            progress, _ = extend_in_place(rng, tree, labels, rules, data, progress, sides)
        if progress.row < stop:
            trees[t] = extend_further(rng, tree, labels, rules, data, progress, sides)
            moved[t] = True


# ------------------------ The rows of paused leaves: chains, from ``first_row`` along ``next_row``
#
# No other rows of a tree are ever read again, so a forest may drop those that are in no paused
# leaf. A chain longer than the maximal block is thinned when its leaf is sampled or rows are
# dropped: box and labels of the leaf include all its rows, but it is split as a block of the
# remaining rows. A Mondrian process restricted to some rows does not depend on others: these
# splits have the distribution of a tree of the remaining rows.


@njit(cache=True)
def chain_length(tree, leaf):
    """Number of rows of a paused leaf."""
    length, row = 0, tree.first_row[leaf]
    while row != NONE:
        length += 1
        row = tree.next_row[row]
    return length


@njit(cache=True)
def rows_of(tree, leaf, most):
    """Rows of a paused leaf in order of arrival; at most a given number, including the latest."""
    length = chain_length(tree, leaf)
    rows = np.empty(min(length, most), dtype=np.int64)
    row, taken = tree.first_row[leaf], 0
    for k in range(length):
        if taken < rows.size and k == taken * length // rows.size:
            rows[rows.size - 1 - taken] = row
            taken += 1
        row = tree.next_row[row]
    return rows


@njit(cache=True)
def _waits(tree, node):
    return tree.column[node] == NONE and tree.paused[node]


@njit(cache=True)
def thin(tree, leaf, most):
    """Thin a longer chain to about ``most`` rows: the first, and every k-th row number.

    Trees that share paused rows keep sharing them.
    """
    length, every = chain_length(tree, leaf), 1
    while length > every * most:
        every *= 2
    last = tree.first_row[leaf]
    row = tree.next_row[last]
    while row != NONE:
        if row % every == 0:
            tree.next_row[last] = row
            last = row
        row = tree.next_row[row]
    tree.next_row[last] = NONE


@njit(cache=True, nogil=True)
def mark_rows(tree, most, needed):
    """Mark the rows of the paused leaves of a tree, about ``most`` for each."""
    for node in range(tree.state[USED]):
        if _waits(tree, node):
            thin(tree, node, most)
            row = tree.first_row[node]
            while row != NONE:
                needed[row] = True
                row = tree.next_row[row]


@njit(cache=True, nogil=True)
def renumber_rows(tree, needed):
    """Renumber the rows of a tree among those that are kept."""
    if tree.state[CLOSED]:
        return
    number = np.cumsum(needed) - 1
    next_row = tree.next_row
    for row in range(needed.size):  # new numbers are not larger, so nothing unread is overwritten
        if needed[row]:
            follower = next_row[row]
            next_row[number[row]] = NONE if follower == NONE else number[follower]
    for node in range(tree.state[USED]):
        if _waits(tree, node):
            tree.first_row[node] = number[tree.first_row[node]]
    tree.state[ROWS] = number[-1] + 1


# ------ A tree without further splits: boxes and statistics include all rows, splits do not change
#
# Its splits are those of a Mondrian tree of the rows it had when it was closed. Further rows are
# added to the existing leaves, and no leaf is paused.


@njit(cache=True)
def widen(box, x):
    """Extend a box to contain a point."""
    low, high = box[0], box[1]
    for d in range(x.size):
        low[d] = min(low[d], x[d])
        high[d] = max(high[d], x[d])


@njit(cache=True)
def close(tree):
    """Close a tree: its leaves are not sampled any more, and their rows are not needed."""
    for node in range(tree.state[USED]):
        tree.paused[node] = False
        tree.first_row[node] = NONE
    tree.state[CLOSED] = True
    tree.state[ROWS] = 0


@njit(cache=True)
def count_rows(tree, labels, data, start, stop):
    """Add some rows to the nodes of a closed tree."""
    column, cut, box, count = tree.column, tree.cut, tree.box, tree.count
    left, right = tree.left, tree.right
    for row in range(start, stop):
        x, y = data.X[row], data.y[row]
        j = tree.state[ROOT]
        while True:
            widen(box[j], x)
            count[j] += 1
            if column[j] == NONE:
                break
            pass_through(labels, j, y)
            j = left[j] if x[column[j]] <= cut[j] else right[j]
        add_to_leaf(labels, j, y)
