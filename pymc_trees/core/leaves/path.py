"""The path of a leaf, which encodes the columns of the splits above it, among its statistics.

Calls compile to nothing for leaf models that do not use it (`contract.reads_path`).
"""

from pymc_trees.core.columns.mixed import column_of
from pymc_trees.core.compile.cache import njit
from pymc_trees.core.leaves.contract import path_below, reads_path


@njit(cache=True)
def write_path(leaf, design, trees, node, stats):
    """Write the path of a node of a tree into the statistics of its rows."""
    if reads_path(leaf):
        stats[stats.size - 1] = path_of(leaf, design, trees, node)


@njit(cache=True)
def write_path_below(leaf, design, trees, node, code, left, right):
    """Write the path of the children of a node after a split by a rule."""
    if reads_path(leaf):
        path = path_of(leaf, design, trees, node)
        below = path_below(leaf, path, column_of(design, code))
        left[left.size - 1], right[right.size - 1] = below, below


@njit(cache=True)
def extend_path(leaf, design, above, code, stats):
    """Write the path of a child, from the statistics of its parent and the parent's rule."""
    if reads_path(leaf):
        column = column_of(design, code)
        stats[stats.size - 1] = path_below(leaf, above[above.size - 1], column)


@njit(cache=True)
def write_paths(leaf, design, trees, nodes, n_nodes, stats):
    """Write the path of each leaf among the first nodes of a list."""
    if reads_path(leaf):
        for k in range(n_nodes):
            if trees.column[nodes[k]] < 0:
                write_path(leaf, design, trees, nodes[k], stats[nodes[k]])


@njit(cache=True)
def path_of(leaf, design, trees, node):
    """Path of a node, from the root down."""
    depth, above = 0, trees.parent[node]
    while above >= 0:
        depth += 1
        above = trees.parent[above]
    path = 0.0
    for k in range(depth - 1, -1, -1):
        above = trees.parent[node]
        for _ in range(k):
            above = trees.parent[above]
        path = path_below(leaf, path, column_of(design, trees.column[above]))
    return path
