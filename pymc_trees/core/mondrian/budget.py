"""A tree with more leaves than allowed: its lifetime ends at the first split too many.

The tree that is left is a Mondrian tree whose lifetime is the time of its first split too many. A
further row can only add splits to a tree, so that the first splits of the tree with that row are
among those kept and those it adds: online and batch still agree in law.

Splits are undone from a heap, the latest on top: each costs the logarithm of their number.
"""

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.mondrian.labels import join_leaves
from pymc_trees.core.mondrian.tree import LEAVES, NONE, USED, give_back, resized


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
