"""A tree with more leaves than it may have: its lifetime ends at the split that is too much.

The tree that is left is a Mondrian tree whose lifetime is the time of its first split too many. A
further row can only add splits to a tree, so that the first splits of the tree with that row are
among those kept and those it adds: online and batch still agree in law.
"""

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.mondrian.labels import join_leaves
from pymc_trees.core.mondrian.tree import LEAVES, NONE, USED, give_back


@njit(cache=True)
def undo_split(tree, labels, node):
    """Make the latest split of a tree a leaf; its children are leaves."""
    left, right = tree.left[node], tree.right[node]
    join_leaves(labels, node, left, right)
    tree.lifetime[0] = tree.time[node]
    give_back(tree, left)
    give_back(tree, right)
    tree.state[LEAVES] += 1
    tree.column[node] = NONE
    tree.time[node] = np.inf
    tree.left[node] = NONE
    tree.right[node] = NONE


@njit(cache=True)
def shorten(tree, labels, max_leaves):
    """Undo the latest splits until there are no more than ``max_leaves`` leaves."""
    excess = tree.state[LEAVES] - max_leaves
    if excess <= 0:
        return
    used = tree.state[USED]
    time = np.where(tree.column[:used] >= 0, tree.time[:used], -1.0)
    if excess == 1:
        undo_split(tree, labels, np.argmax(time))
    else:
        for node in np.argsort(-time)[:excess]:
            undo_split(tree, labels, node)
