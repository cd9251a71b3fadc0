"""A Mondrian tree, or a block of one, from a batch of rows (thesis, alg. 5.1-5.2, 5.9, 6.1-6.2)."""

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.mondrian.kernels.labels import fill_leaf, fill_split, join_leaves, with_label_nodes
from pymc_trees.mondrian.kernels.tree import (
    LEAVES,
    NONE,
    ROOT,
    ROWS,
    USED,
    Labelled,
    give_back,
    resized,
    start_and_end,
    take_place,
    with_nodes,
    with_rows,
)


@njit(cache=True)
def bound(box, X, rows, start, stop):
    """Box of some rows; their linear dimension, the sum of its sides."""
    low, high = box[0], box[1]
    n_columns = low.size
    for d in range(n_columns):
        low[d] = X[rows[start], d]
        high[d] = low[d]
    for k in range(start + 1, stop):
        row = X[rows[k]]
        for d in range(n_columns):
            low[d] = min(low[d], row[d])
            high[d] = max(high[d], row[d])
    total = 0.0
    for d in range(n_columns):
        total += high[d] - low[d]
    return total


@njit(cache=True)
def one_label(y, rows, start, stop):
    """Whether the labels of some rows are all alike."""
    for k in range(start + 1, stop):
        if y[rows[k]] != y[rows[start]]:
            return False
    return True


@njit(cache=True)
def draw_column(rng, sides, total):
    """A column with probability proportional to its side."""
    left_over = rng.random() * total
    chosen = NONE
    for d in range(sides.size):
        if sides[d] > 0.0:
            chosen = d  # rounding may leave a remainder after the last
            left_over -= sides[d]
            if left_over < 0.0:
                break
    return chosen


@njit(cache=True)
def draw_between(rng, low, high):
    """A cut uniform on [low, high): what equals ``low`` goes left, ``high`` goes right."""
    cut = low + (high - low) * rng.random()
    return cut if cut < high else low


@njit(cache=True)
def divide(X, column, cut, rows, start, stop, spare):
    """Move the rows that go left to the front, keeping the order; return where others begin."""
    middle, n_right = start, 0
    for k in range(start, stop):
        if X[rows[k], column] <= cut:
            rows[middle] = rows[k]
            middle += 1
        else:
            spare[n_right] = rows[k]
            n_right += 1
    for k in range(n_right):
        rows[middle + k] = spare[k]
    return middle


@njit(cache=True)
def keep_rows(tree, node, rows, start, stop):
    """Store the rows of a paused leaf."""
    tree.first_row[node] = rows[start]
    for k in range(start, stop):
        tree.next_row[rows[k]] = rows[k + 1] if k + 1 < stop else NONE


@njit(cache=True)
def grow_block(rng, tree, labels, rules, data, node, rows, stop_flag):
    """Sample the block of a leaf from the time of its parent on; there must be room. Its splits.

    ``rows`` is put in another order. Statistics of the labels are filled in below and at the node.
    On ``stop_flag`` it ends at once, with a tree to throw away.
    """
    X, y = data
    n = rows.size
    spare = np.empty(n, dtype=np.int64)
    sides = np.empty(X.shape[1])
    # A block that is split leaves at most as many blocks as rows on the stack.
    nodes = np.empty(n + 1, dtype=np.int64)
    starts = np.empty(n + 1, dtype=np.int64)
    stops = np.empty(n + 1, dtype=np.int64)
    splits = np.empty(n, dtype=np.int64)
    nodes[0], starts[0], stops[0] = node, 0, n
    height, n_splits = 1, 0
    box, column, cut, time = tree.box, tree.column, tree.cut, tree.time
    while height > 0:
        if stop_flag[0]:
            return splits[:0]
        height -= 1
        j, start, stop = nodes[height], starts[height], stops[height]
        tree.count[j] = stop - start
        total = bound(box[j], X, rows, start, stop)
        few = stop - start < rules.min_samples_split
        tree.paused[j] = few or (rules.pause_pure and one_label(y, rows, start, stop))
        tree.first_row[j] = NONE
        if tree.paused[j]:  # alg. 5.9, line 3
            keep_rows(tree, j, rows, start, stop)
        elif total > 0.0:  # a block without extent is a leaf
            begin, end = start_and_end(tree, j)
            t = begin + rng.standard_exponential() / total
            if t < end:
                for d in range(sides.size):
                    sides[d] = box[j, 1, d] - box[j, 0, d]
                column[j] = draw_column(rng, sides, total)
                cut[j] = draw_between(rng, box[j, 0, column[j]], box[j, 1, column[j]])
                time[j] = t
                tree.state[LEAVES] -= 1  # a split is no leaf
                middle = divide(X, column[j], cut[j], rows, start, stop, spare)
                tree.left[j] = take_place(tree, j)
                tree.right[j] = take_place(tree, j)
                nodes[height], starts[height], stops[height] = tree.right[j], middle, stop
                height += 1
                nodes[height], starts[height], stops[height] = tree.left[j], start, middle
                height += 1
                splits[n_splits] = j
                n_splits += 1
                continue
        fill_leaf(labels, j, y, rows, start, stop)
    for k in range(n_splits - 1, -1, -1):  # children after their parents
        j = splits[k]
        fill_split(labels, j, tree.left[j], tree.right[j])
    return splits[:n_splits]


@njit(cache=True, nogil=True)
def grow_tree(rng, tree, labels, rules, X, y, n, stop_flag):
    """Grow an empty tree from the first n rows; with new arrays if the old are full.

    ``stop_flag``, an array of one entry, may be set from outside: the tree is then invalid.
    """
    if tree.next_row.size < n:
        tree = with_rows(tree, n)
    if tree.column.size < 2 * n:
        tree = with_nodes(tree, 2 * n)
        labels = with_label_nodes(labels, 2 * n)
    root = take_place(tree, NONE)
    tree.state[ROOT] = root
    tree.state[ROWS] = n
    grow_block(rng, tree, labels, rules, Labelled(X, y), root, np.arange(n), stop_flag)
    if stop_flag[0]:
        return tree, labels
    if tree.state[LEAVES] > rules.max_leaves:
        shorten(tree, labels, heap_of_splits(tree), rules.max_leaves)
    used = tree.state[USED]
    return with_nodes(tree, used), with_label_nodes(labels, used)


# ------------- A tree with more leaves than allowed: its lifetime ends at the first split too many
#
# The tree that is left is a Mondrian tree whose lifetime is the time of its first split too many.
# A further row can only add splits to a tree, so that the first splits of the tree with that row
# are among those kept and those it adds: online and batch still agree in law.
#
# Splits are undone from a heap, the latest on top: each costs the logarithm of their number.


@njit(cache=True)
def push_split(heap, n, time, node):
    """Add a split to the heap of n splits; returns a longer array if it is full."""
    if n == heap.size:
        heap = resized(heap, 2 * n + 2, NONE)
    while n > 0:
        above = (n - 1) // 2
        if time[heap[above]] >= time[node]:
            break
        heap[n] = heap[above]
        n = above
    heap[n] = node
    return heap


@njit(cache=True)
def pop_split(heap, n, time):
    """Pop the latest of n splits off their heap."""
    latest, last = heap[0], heap[n - 1]
    n -= 1
    k = 0
    while True:
        below = 2 * k + 1
        if below >= n:
            break
        if below + 1 < n and time[heap[below + 1]] > time[heap[below]]:
            below += 1
        if time[last] >= time[heap[below]]:
            break
        heap[k] = heap[below]
        k = below
    heap[k] = last
    return latest


@njit(cache=True)
def heap_of_splits(tree):
    """The splits of a tree, `LEAVES` less one, as a heap."""
    heap = np.empty(max(tree.state[LEAVES] - 1, 0), dtype=np.int32)
    n = 0
    for node in range(tree.state[USED]):
        if tree.column[node] >= 0:
            heap = push_split(heap, n, tree.time, node)
            n += 1
    return heap


@njit(cache=True)
def undo_split(tree, labels, node):
    """Make the latest split of a tree a leaf; its children are leaves."""
    left, right = tree.left[node], tree.right[node]
    join_leaves(labels, node, left, right)
    tree.lifetime[0] = tree.time[node]
    give_back(tree, left)
    give_back(tree, right)
    tree.state[LEAVES] += 1
    tree.count[node] = tree.count[left] + tree.count[right]  # fewer, if rows were dropped
    tree.column[node] = NONE
    tree.time[node] = np.inf
    tree.left[node] = NONE
    tree.right[node] = NONE


@njit(cache=True)
def shorten(tree, labels, heap, max_leaves):
    """Undo the latest splits of ``heap`` until the number of leaves is allowed."""
    while tree.state[LEAVES] > max_leaves:
        undo_split(tree, labels, pop_split(heap, tree.state[LEAVES] - 1, tree.time))
