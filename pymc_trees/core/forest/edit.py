"""Split a leaf, join two leaves, reduce a tree to its root: edits that take and free nodes."""

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.forest.trees import NONE, preorder


@njit(cache=True)
def split_leaf(trees, node, column, cut):
    """Give a leaf two children; False if the pool is full.

    The caller sets the children's ``count``, ``unsplittable`` and ``leaf_of``, and the node's prior
    terms.
    """
    if trees.n_free[0] < 2:
        return False
    for side in range(2):
        trees.n_free[0] -= 1
        child = trees.free[trees.n_free[0]]
        if side == 0:
            trees.left[node] = child
        else:
            trees.right[node] = child
        trees.column[child] = NONE
        trees.left[child] = NONE
        trees.right[child] = NONE
        trees.parent[child] = node
        trees.depth[child] = trees.depth[node] + 1
        trees.log_cut[child] = 0.0
        trees.log_column[child] = 0.0
    trees.column[node] = column
    trees.cut[node] = cut
    return True


@njit(cache=True)
def join_leaves(trees, node):
    """Make a split node whose children are leaves a leaf again; the caller sets ``leaf_of``."""
    left, right = trees.left[node], trees.right[node]
    trees.free[trees.n_free[0]] = right
    trees.free[trees.n_free[0] + 1] = left
    trees.n_free[0] += 2
    trees.column[node] = NONE
    trees.left[node] = NONE
    trees.right[node] = NONE
    trees.log_cut[node] = 0.0
    trees.log_column[node] = 0.0


@njit(cache=True)
def fell_tree(trees, tree, nodes):
    """Reduce a tree to its root, a leaf; ``nodes`` is overwritten."""
    root = trees.roots[tree]
    for k in range(preorder(trees, root, nodes)):
        if nodes[k] != root:
            trees.free[trees.n_free[0]] = nodes[k]
            trees.n_free[0] += 1
    trees.column[root] = NONE
    trees.left[root] = NONE
    trees.right[root] = NONE
    trees.log_cut[root] = 0.0
    trees.log_column[root] = 0.0
