"""Trees as nested tuples, and everything a move needs of one, each time from scratch.

Cells are an (n, p) array: the values of X, or for a grid the number of grid cuts below each, so
that in both cases ``cell <= cut`` goes left and a column varies when two cells differ.
"""

import math
from typing import NamedTuple

import numpy as np


class Leaf(NamedTuple):
    """A leaf; ``place`` is the node's place in the pool, for finding it again."""

    place: int = -1
    values: tuple = ()


class Split(NamedTuple):
    """A split node."""

    column: int
    cut: float
    left: tuple
    right: tuple
    place: int = -1


class Visit(NamedTuple):
    """A node with where it stands in its tree."""

    node: tuple
    depth: int
    rows: tuple
    parent: tuple | None


def read(trees, tree):
    """Nested tuples of one tree of the working arrays."""

    def walk(k):
        if trees.column[k] < 0:
            return Leaf(int(k), tuple(float(v) for v in trees.values[k]))
        left, right = walk(trees.left[k]), walk(trees.right[k])
        return Split(int(trees.column[k]), float(trees.cut[k]), left, right, int(k))

    return walk(trees.roots[tree])


def shape_of(node):
    """Columns and cuts only, so that two trees can be compared."""
    if isinstance(node, Leaf):
        return ()
    return (node.column, node.cut, shape_of(node.left), shape_of(node.right))


def visits(root, cells):
    """All nodes in preorder, with the rows that reach them."""
    out = []

    def walk(node, depth, rows, parent):
        out.append(Visit(node, depth, rows, parent))
        if isinstance(node, Split):
            left = tuple(i for i in rows if cells[i, node.column] <= node.cut)
            right = tuple(i for i in rows if not cells[i, node.column] <= node.cut)
            walk(node.left, depth + 1, left, node)
            walk(node.right, depth + 1, right, node)

    walk(root, 0, tuple(range(len(cells))), None)
    return out


def varying(cells, rows, weights):
    """Columns of positive weight with two different cells among the rows."""
    return [
        j for j in range(cells.shape[1]) if weights[j] > 0 and len({cells[i, j] for i in rows}) > 1
    ]


def log_rule(cells, rows, weights, column, cut):
    """Log probability of a column times log density of a cut in a node; -inf when impossible."""
    able = varying(cells, rows, weights)
    if column not in able:
        return -math.inf
    values = [float(cells[i, column]) for i in rows]
    if not min(values) <= cut < max(values):
        return -math.inf
    return math.log(weights[column] / sum(weights[j] for j in able)) - math.log(
        max(values) - min(values)
    )


def log_prior(root, cells, alpha, beta, weights):
    """Log prior density of a whole tree."""
    total = 0.0
    for node, depth, rows, _ in visits(root, cells):
        split = alpha * (1.0 + depth) ** -beta
        if isinstance(node, Split):
            total += math.log(split) + log_rule(cells, rows, weights, node.column, node.cut)
        elif varying(cells, rows, weights):
            total += math.log(1.0 - split)
        if total == -math.inf:
            return total
    return total


class Counts(NamedTuple):
    """What a tree offers to be moved, as places in the pool."""

    open_leaves: list
    splits: list
    twigs: list
    pairs: list
    """Split nodes whose parent, a split node too, they can exchange rules with."""


def counts(root, cells, weights):
    """`Counts` of a whole tree."""
    out = Counts([], [], [], [])
    for node, _, rows, parent in visits(root, cells):
        if isinstance(node, Leaf):
            if varying(cells, rows, weights):
                out.open_leaves.append(node.place)
            continue
        out.splits.append(node.place)
        if isinstance(node.left, Leaf) and isinstance(node.right, Leaf):
            out.twigs.append(node.place)
        if parent is not None:
            out.pairs.append(node.place)
    return out


def move_probabilities(found, weights):
    """Probabilities of choosing grow, prune, change and swap: weights of those there are."""
    offered = [found.open_leaves, found.twigs, found.splits, found.pairs]
    able = np.array([w if some else 0.0 for w, some in zip(weights, offered)])
    return able / able.sum() if able.sum() > 0 else able


def replace(root, place, make):
    """The tree with the node at ``place`` replaced by ``make(node)``."""
    if root.place == place:
        return make(root)
    if isinstance(root, Leaf):
        return root
    return root._replace(
        left=replace(root.left, place, make), right=replace(root.right, place, make)
    )


def predict(root, x):
    """Leaf values at one input."""
    while isinstance(root, Split):
        root = root.left if x[root.column] <= root.cut else root.right
    return np.array(root.values)


def all_trees(cells, weights, rows=None):
    """Every tree of a grid design: cuts are the whole numbers that separate the rows."""
    rows = tuple(range(len(cells))) if rows is None else rows
    out = [Leaf()]
    for j in varying(cells, rows, weights):
        column = [int(cells[i, j]) for i in rows]
        for cut in range(min(column), max(column)):
            left = tuple(i for i in rows if cells[i, j] <= cut)
            right = tuple(i for i in rows if cells[i, j] > cut)
            for a in all_trees(cells, weights, left):
                out += [Split(j, float(cut), a, b) for b in all_trees(cells, weights, right)]
    return out


def leaves_of(root, cells):
    """Rows of every leaf."""
    return [v.rows for v in visits(root, cells) if isinstance(v.node, Leaf)]
