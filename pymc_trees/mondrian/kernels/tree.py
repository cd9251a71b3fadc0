"""A Mondrian tree as flat arrays: columns, cuts, times and boxes, one entry per node.

A node is split at its time; the split is committed only within the box of the rows it has seen. A
leaf has no split before the end of the tree's lifetime. A *paused* leaf has not been sampled yet:
its labels are all alike or its rows are too few, and its rows are kept until it must be sampled.
"""

from typing import NamedTuple

import numpy as np

from pymc_trees.core.compile.cache import njit

NONE = -1
"""No node, no row; the column of a leaf."""
UNUSED = -2
"""Column of an unused place."""

COUNT_LIMIT = 2**62
"""More leaves than any tree has."""

ROOT, USED, FREE, LEAVES, ROWS, CLOSED = range(6)
"""Entries of ``state``: root, places ever used, first place given back, leaves, rows numbered, and
whether the tree is split no further."""


class Labelled(NamedTuple):
    """Rows and their labels."""

    X: np.ndarray
    """(n, columns)"""
    y: np.ndarray
    """(n,)"""


class MondrianTree(NamedTuple):
    """One tree; arrays with ``(nodes,)`` have spare capacity."""

    column: np.ndarray
    """(nodes,) split column, `NONE` at leaves, `UNUSED`."""
    cut: np.ndarray
    """(nodes,) rows with ``x <= cut`` go left."""
    time: np.ndarray
    """(nodes,) time of the split; infinite at leaves."""
    parent: np.ndarray
    """(nodes,) `NONE` at the root; the next free place at free places."""
    left: np.ndarray
    right: np.ndarray
    box: np.ndarray
    """(nodes, 2, columns) least and largest value of the node's rows."""
    count: np.ndarray
    """(nodes,) rows seen."""
    paused: np.ndarray
    """(nodes,) whether a leaf is paused."""
    first_row: np.ndarray
    """(nodes,) a row of a paused leaf, `NONE` elsewhere."""
    next_row: np.ndarray
    """(rows,) another row of the same paused leaf, `NONE` after the last."""
    state: np.ndarray
    """(6,) `ROOT`, `USED`, `FREE`, `LEAVES`, `ROWS`, `CLOSED`."""
    lifetime: np.ndarray
    """(1,) no split is later; shortened when the tree has more leaves than it may."""


NEXT_ROW = MondrianTree._fields.index("next_row")
"""Number of leading arrays with an entry per node."""


class Rules(NamedTuple):
    """Conditions under which a block is not split."""

    min_samples_split: int
    """Blocks with fewer rows are paused."""
    pause_pure: bool
    """Blocks with one distinct label are paused."""
    max_leaves: int
    """Maximal number of leaves."""
    max_nodes: int
    """Maximal capacity in nodes; a tree that needs more is closed."""
    max_rows: int
    """Maximal number of numbered rows at a time."""
    max_block: int
    """Maximal number of rows from which a paused leaf is sampled; its other rows are dropped."""


def make_tree(n_columns, lifetime, n_nodes, n_rows):
    """Empty tree with capacity for some nodes and rows."""
    state = np.array([NONE, 0, NONE, 0, 0, False])
    return MondrianTree(
        column=np.full(n_nodes, UNUSED, dtype=np.int32),
        cut=np.zeros(n_nodes),
        time=np.full(n_nodes, np.inf),
        parent=np.full(n_nodes, NONE, dtype=np.int32),
        left=np.full(n_nodes, NONE, dtype=np.int32),
        right=np.full(n_nodes, NONE, dtype=np.int32),
        box=np.empty((n_nodes, 2, n_columns)),
        count=np.zeros(n_nodes, dtype=np.int64),
        paused=np.zeros(n_nodes, dtype=np.bool_),
        first_row=np.full(n_nodes, NONE, dtype=np.int32),
        next_row=np.full(n_rows, NONE, dtype=np.int32),
        state=state,
        lifetime=np.array([float(lifetime)]),
    )


@njit(cache=True)
def resized(array, n, fill):
    """A copy with n entries, the new ones filled."""
    copy = np.full(n, fill, dtype=array.dtype)
    kept = min(n, array.size)
    copy[:kept] = array[:kept]
    return copy


@njit(cache=True)
def resized_boxes(box, used, n):
    """Copy of the used boxes with capacity n; unused memory is not touched."""
    copy = np.empty((n, box.shape[1], box.shape[2]))
    copy[:used] = box[:used]
    return copy


@njit(cache=True)
def with_nodes(tree, n):
    """The tree with capacity for n nodes."""
    return MondrianTree(
        resized(tree.column, n, UNUSED),
        resized(tree.cut, n, 0.0),
        resized(tree.time, n, np.inf),
        resized(tree.parent, n, NONE),
        resized(tree.left, n, NONE),
        resized(tree.right, n, NONE),
        resized_boxes(tree.box, tree.state[USED], n),
        resized(tree.count, n, 0),
        resized(tree.paused, n, False),
        resized(tree.first_row, n, NONE),
        *tree[NEXT_ROW:],
    )


@njit(cache=True)
def with_rows(tree, n):
    """The tree with capacity for n rows."""
    next_row = resized(tree.next_row, n, NONE)
    return MondrianTree(*tree[:NEXT_ROW], next_row, tree.state, tree.lifetime)


@njit(cache=True)
def unused_places(tree):
    """Capacity for further nodes."""
    return tree.column.size - max(2 * tree.state[LEAVES] - 1, 0)


@njit(cache=True)
def take_place(tree, parent):
    """Place for a new leaf below ``parent``; the caller ensures capacity."""
    state = tree.state
    node = state[FREE]
    if node == NONE:
        node = state[USED]
        state[USED] += 1
    else:
        state[FREE] = tree.parent[node]
    tree.column[node] = NONE
    tree.time[node] = np.inf
    tree.parent[node] = parent
    tree.left[node] = NONE
    tree.right[node] = NONE
    tree.paused[node] = False
    tree.first_row[node] = NONE
    state[LEAVES] += 1
    return node


@njit(cache=True)
def give_back(tree, node):
    """Free the place of a leaf."""
    tree.column[node] = UNUSED
    tree.parent[node] = tree.state[FREE]
    tree.state[FREE] = node
    tree.state[LEAVES] -= 1


@njit(cache=True)
def start_and_end(tree, node):
    """Interval in which a node has no split: from its parent's time to its own."""
    parent = tree.parent[node]
    start = 0.0 if parent == NONE else tree.time[parent]
    return start, min(tree.time[node], tree.lifetime[0])


@njit(cache=True, nogil=True)
def find_leaves(tree, X, out):
    """Leaf of each row."""
    column, cut, left, right = tree.column, tree.cut, tree.left, tree.right
    for i in range(X.shape[0]):
        node = tree.state[ROOT]
        while column[node] >= 0:
            node = left[node] if X[i, column[node]] <= cut[node] else right[node]
        out[i] = node


@njit(cache=True)
def depths(tree, out):
    """Number of splits above each node; -1 at unused places."""
    out[:] = NONE
    stack = np.empty(tree.state[LEAVES] + 1, dtype=np.int64)
    stack[0] = tree.state[ROOT]
    out[stack[0]] = 0
    height = 1
    while height > 0:
        height -= 1
        node = stack[height]
        if tree.column[node] >= 0:
            for child in (tree.left[node], tree.right[node]):
                out[child] = out[node] + 1
                stack[height] = child
                height += 1


@njit(cache=True)
def greatest_depth(tree):
    """Number of splits above the deepest leaf."""
    depth = np.empty(tree.column.size, dtype=np.int64)
    depths(tree, depth)
    return depth.max()


@njit(cache=True)
def find_paths(tree, X):
    """Nodes on the path of each row, root first, in sequence; and the start of each row."""
    column, cut, left, right = tree.column, tree.cut, tree.left, tree.right
    nodes = np.empty(16 * X.shape[0] + 16, dtype=np.int64)
    starts = np.zeros(X.shape[0] + 1, dtype=np.int64)
    n = 0
    for i in range(X.shape[0]):
        node = tree.state[ROOT]
        while True:
            if n == nodes.size:
                nodes = resized(nodes, 2 * n, NONE)
            nodes[n] = node
            n += 1
            if column[node] < 0:
                break
            node = left[node] if X[i, column[node]] <= cut[node] else right[node]
        starts[i + 1] = n
    return nodes[:n].copy(), starts


# ------------------------------------------------- Where does a new point leave the tree, and when?
#
# A point at distance eta from the box of a node that has no split between ``start`` and ``end``
# branches off there at the first event of a Poisson process with rate eta: after u with density
# ``eta exp(-eta u)``, if that is before ``end`` (thesis, 5.5.3).


FURTHEST = 1e300
"""Maximal distance; sums of two such distances do not overflow."""


@njit(cache=True)
def distance(box, x):
    """Distance of a point from a box, summed over the columns; at most `FURTHEST`."""
    low, high = box[0], box[1]
    total = 0.0
    for d in range(x.size):
        total += max(x[d] - high[d], low[d] - x[d], 0.0)
    return min(total, FURTHEST)


def _legendre(n):
    points, weights = np.polynomial.legendre.leggauss(n)
    return (points + 1.0) / 2.0, weights / 2.0


_X, _W = _legendre(10)
_X_LATE, _W_LATE = _legendre(4)
_POWER = 3
_LATE = 8.0  # exp(-8): the remaining change after that
MAX_TIMES = _X.size + _X_LATE.size


@njit(cache=True)
def branching_times(eta, gamma, delta, weight, decay):
    """Quadrature over the time u in [0, delta] of branching off; returns the number of points.

    Sum of ``weight * f(decay)`` is the integral of ``eta exp(-eta u) f(exp(-gamma u))`` for smooth
    f. With variables in which both factors are smooth, ten points (fourteen if branching is slow)
    have an error below 4e-6 of the range of a logistic f and of its square.
    """
    alpha = gamma / eta
    if alpha <= 1.0:
        # Branching before f changes much: z**3 = exp(-eta u).
        least = np.exp(-eta * delta / _POWER)
        for k in range(_X.size):
            z = least + (1.0 - least) * _X[k]
            weight[k] = _W[k] * (1.0 - least) * _POWER * z ** (_POWER - 1)
            decay[k] = z ** (_POWER * alpha)
        return _X.size
    # f changes early and then hardly: v**3 = exp(-gamma u) at first, exp(-eta u) later.
    switch = min(delta, _LATE / gamma)
    least = np.exp(-gamma * switch / _POWER)
    total = 0.0
    for k in range(_X.size):
        v = least + (1.0 - least) * _X[k]
        weight[k] = _W[k] * v ** (_POWER / alpha - 1.0)
        decay[k] = v**_POWER
        total += weight[k]
    mass = -np.expm1(-eta * switch)
    for k in range(_X.size):
        weight[k] *= mass / total
    if delta <= switch:
        return _X.size
    first, last = np.exp(-eta * switch), np.exp(-eta * delta)
    for k in range(_X_LATE.size):
        r = last + (first - last) * _X_LATE[k]
        weight[_X.size + k] = _W_LATE[k] * (first - last)
        decay[_X.size + k] = r**alpha
    return MAX_TIMES
