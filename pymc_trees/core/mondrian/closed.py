"""A tree without further splits: boxes and statistics include all rows, splits do not change.

Its splits are those of a Mondrian tree of the rows it had when it was closed. Further rows are
added to the existing leaves, and no leaf is paused.
"""

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.mondrian.labels import add_to_leaf, pass_through
from pymc_trees.core.mondrian.tree import CLOSED, NONE, ROOT, ROWS, USED


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
