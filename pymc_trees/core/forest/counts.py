"""Statistics of a forest that a trace records."""

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.forest.trees import preorder


@njit(cache=True)
def count_forest(trees, nodes, inclusion):
    """Leaves, deepest leaf, and split nodes per column.

    Parameters
    ----------
    nodes : (max_nodes,) int32
        Overwritten.
    inclusion : (p,) int64
        Overwritten with the number of split nodes of each column.

    Returns
    -------
    leaves, depth : int
        Leaves over all trees; depth of the deepest, 0 for stumps.
    """
    inclusion[:] = 0
    leaves, depth = 0, 0
    for t in range(trees.roots.size):
        for k in range(preorder(trees, trees.roots[t], nodes)):
            node = nodes[k]
            if trees.column[node] >= 0:
                inclusion[trees.column[node] % inclusion.size] += 1  # with `way` left out
            else:
                leaves += 1
                depth = max(depth, trees.depth[node])
    return leaves, depth
