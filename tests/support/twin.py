"""A slow twin of the PyMC layer: reads an encoded forest with plain Python, from the docs alone.

A tree is ``(values,)`` for a leaf and ``(column, cut, left, right)`` for a split. Nothing here
calls the package, so that it can say the package is wrong.
"""

import math

import numpy as np


def read_trees(value, layout):
    """Trees of an encoded value; asserts that the rows after them are unused."""
    at = 0

    def node():
        nonlocal at
        kind, *fields = value[at]
        at += 1
        if kind == -1:
            return (tuple(float(v) for v in fields),)
        assert kind >= 0 and kind == int(kind)
        left = node()
        return (int(kind), float(fields[0]), left, node())

    trees = [node() for _ in range(layout.m)]
    assert (value[at : layout.max_nodes, 0] == -2).all()
    return trees


def bare(tree):
    """The tree as the oracle writes it: ``None`` for a leaf."""
    return None if len(tree) == 1 else (tree[0], tree[1], bare(tree[2]), bare(tree[3]))


def leaf_values(tree):
    """Values of the leaves from left to right."""
    return [tree[0]] if len(tree) == 1 else leaf_values(tree[2]) + leaf_values(tree[3])


def n_leaves(trees):
    """Leaves over all trees."""
    return sum(len(leaf_values(tree)) for tree in trees)


def f(trees, X, mixed=False):
    """(rows, K) sum of the trees at the rows of X; ``mixed``: with levels or missing cells."""

    def at(tree, x):
        while len(tree) == 4:
            tree = tree[2] if (mixed_left if mixed else plain_left)(tree, x) else tree[3]
        return np.array(tree[0])

    def plain_left(tree, x):
        return x[tree[0]] <= tree[1]

    def mixed_left(tree, x):
        way, column = divmod(tree[0], len(x))
        if math.isnan(x[column]) or x[column] == -(2.0**900):
            return way in (1, 3)
        return x[column] <= tree[1] if way < 2 else int(tree[1]) >> int(x[column]) & 1 == 1

    return np.array([sum(at(tree, x) for tree in trees) for x in np.asarray(X)])


def log_tree_prior(trees, X, alpha, beta, weights, cuts=None):
    """Log prior of the structures; ``cuts``: the grid of each column."""
    X = np.asarray(X)

    def width(rows, j):
        """Length of the interval of the cuts, or their number on a grid."""
        low, high = X[rows, j].min(), X[rows, j].max()
        return high - low if cuts is None else float(((low <= cuts[j]) & (cuts[j] < high)).sum())

    def below(tree, rows, depth):
        varies = [j for j in range(X.shape[1]) if weights[j] > 0 and width(rows, j) > 0]
        split = alpha * (1 + depth) ** -beta
        if len(tree) == 1:
            return math.log(1 - split) if varies else 0.0
        column, cut, left, right = tree
        assert column in varies
        low = [i for i in rows if X[i, column] <= cut]
        high = [i for i in rows if X[i, column] > cut]
        assert low and high
        assert cuts is None or cut in cuts[column]
        here = math.log(split) + math.log(weights[column] / sum(weights[j] for j in varies))
        here -= math.log(width(rows, column))
        return here + below(left, low, depth + 1) + below(right, high, depth + 1)

    return sum(below(tree, list(range(len(X))), 0) for tree in trees)
