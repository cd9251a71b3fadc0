"""Edits of trees: split a leaf, join two leaves, reduce a tree to its root, rotate."""

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.forest.trees import NONE, preorder

# -------- Split a leaf, join two leaves, reduce a tree to its root: edits that take and free nodes


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
def reset_tree(trees, tree, nodes):
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


# --------------------------------------------------------------------------------------------------
# Rotations of a tree: edits of its links, rules and depths, each undone by one of the same kind.
#
# Nothing else is updated: neither the rows of nodes nor quantities that depend on them.


@njit(cache=True)
def child_on(trees, node, side):
    """Child on the left, 0, or on the right, 1."""
    return trees.right[node] if side == 1 else trees.left[node]


@njit(cache=True)
def set_child(trees, node, side, child):
    """Make a node the child of another on a side."""
    if side == 1:
        trees.right[node] = child
    else:
        trees.left[node] = child
    trees.parent[child] = node


@njit(cache=True)
def shift_depths(trees, top, levels, below):
    """Add to the depths of a node and of all below it; ``below`` is overwritten."""
    for k in range(preorder(trees, top, below)):
        trees.depth[below[k]] += levels


@njit(cache=True)
def rotate_up(trees, top, side, other_side, below):
    """Rotate the child on one side up, and attach its sibling below it on ``other_side``.

    ``rotate_up(trees, top, other_side, side, below)`` undoes it; ``below`` is overwritten.
    """
    child, other = child_on(trees, top, side), child_on(trees, top, 1 - side)
    inner, outer = child_on(trees, child, other_side), child_on(trees, child, 1 - other_side)
    set_child(trees, top, other_side, child)
    set_child(trees, top, 1 - other_side, outer)
    set_child(trees, child, side, inner)
    set_child(trees, child, 1 - side, other)
    trees.column[top], trees.column[child] = trees.column[child], trees.column[top]
    trees.cut[top], trees.cut[child] = trees.cut[child], trees.cut[top]
    shift_depths(trees, outer, -1, below)
    shift_depths(trees, other, 1, below)


@njit(cache=True)
def transpose(trees, top, side):
    """Give a node the rule of its child on a side, and its own to both children.

    The two middle grandchildren change places. If the rules of both children give the same
    partition, each grandchild keeps its rows, and the operation is its own inverse.
    """
    left, right = trees.left[top], trees.right[top]
    from_left, from_right = trees.right[left], trees.left[right]
    set_child(trees, left, 1, from_right)
    set_child(trees, right, 0, from_left)
    child, code, cut = child_on(trees, top, side), trees.column[top], trees.cut[top]
    trees.column[top], trees.cut[top] = trees.column[child], trees.cut[child]
    for node in (left, right):
        trees.column[node], trees.cut[node] = code, cut


@njit(cache=True)
def leaves_on(trees, top, side):
    """Whether both children of a node have a leaf on one side; `transpose` then joins these."""
    left, right = child_on(trees, trees.left[top], side), child_on(trees, trees.right[top], side)
    return trees.column[left] < 0 and trees.column[right] < 0
