"""Which training rows reach a node."""

from pymc_trees.core.compile.cache import njit


@njit(cache=True)
def all_rows(n, rows):
    """Write ``0 .. n - 1`` to ``rows``; their number."""
    for i in range(n):
        rows[i] = i
    return n


@njit(cache=True)
def rows_of_leaf(leaf_of, leaf, rows):
    """Write the rows of a leaf to ``rows``, increasing; their number."""
    n = 0
    for i in range(leaf_of.size):
        rows[n] = i
        n += leaf_of[i] == leaf
    return n


@njit(cache=True)
def rows_below(leaf_of, trees, nodes, n_nodes, inside, rows):
    """Write the rows of the leaves among ``nodes[:n_nodes]`` to ``rows``, increasing; their number.

    ``inside`` is a (max_nodes,) bool array, False everywhere before and after.
    """
    column = trees.column
    for k in range(n_nodes):
        inside[nodes[k]] = column[nodes[k]] < 0
    n = 0
    for i in range(leaf_of.size):
        rows[n] = i
        n += inside[leaf_of[i]]
    for k in range(n_nodes):
        inside[nodes[k]] = False
    return n
