"""Trees as nested tuples, and everything a move needs of one, each time from scratch.

Cells are an (n, p) array: the values of X, or for a grid the number of grid cuts below each, so
that in both cases ``cell <= cut`` goes left and a column varies when two cells differ.
Columns with levels or missing cells (`Cells`) have the rules of the docs' data model.
"""

import math
from typing import NamedTuple

import numpy as np

MISSING, EVERY = -(2.0**900), 1.7976931348623157e308


class Cells(np.ndarray):
    """(n, p) cells that know the kinds of their columns."""

    kinds = None


def cells_of(design):
    """Cells of a design, a missing one as `MISSING`."""
    cells = design.columns.T.astype(float).view(Cells)
    if hasattr(design, "kinds"):
        cells[cells == design.missing] = MISSING
        cells.kinds = design.kinds.tolist()
    return cells


def kinds_of(cells):
    """Kinds of the columns; None when all are plain numbers."""
    return getattr(cells, "kinds", None)


def goes_left(cells, i, code, cut):
    """Whether row i goes to the left child."""
    if kinds_of(cells) is None:
        return cells[i, code] <= cut
    way, column = divmod(int(code), cells.shape[1])
    if cells[i, column] == MISSING:
        return way in (1, 3)
    if way >= 2:
        return int(cut) >> int(cells[i, column]) & 1 == 1
    return cells[i, column] <= cut


def log_mixed_rule(cells, rows, code, cut):
    """Log density of a rule given its column, from the text of the prior; -inf when impossible."""
    way, column = divmod(int(code), cells.shape[1])
    kind, side = cells.kinds[column], way % 2
    if (way >= 2) != (kind != 0):
        return -math.inf
    present = [float(cells[i, column]) for i in rows if cells[i, column] != MISSING]
    distinct, any_missing = len(set(present)), len(present) < len(rows)
    every = 2.0 ** abs(kind) - 1 if kind else EVERY
    apart_cut = (0.0 if kind else -EVERY) if side else every
    chance = 0.5
    if any_missing:
        apart = 1.0 if distinct == 1 else 1.0 / (1 + distinct)
        if cut == apart_cut:
            return math.log(chance * apart)
        chance *= 1 - apart
    if chance == 0:
        return -math.inf
    if kind == 0:
        if not min(present) <= cut < max(present):
            return -math.inf
        return math.log(chance / (max(present) - min(present)))
    inside = [level for level in set(present) if int(cut) >> int(level) & 1]
    if not 0 < len(inside) < distinct:
        return -math.inf
    if kind < 0:
        return math.log(chance / distinct) if bin(int(cut)).count("1") == 1 else -math.inf
    return math.log(chance / (2**distinct - 2) / 2 ** (kind - distinct))


def draw_rule(rng, cells, rows, column):
    """A rule of a column that varies, not by the prior: code and cut."""
    p, kind, side = cells.shape[1], cells.kinds[column], int(rng.integers(2))
    present = [float(cells[i, column]) for i in rows if cells[i, column] != MISSING]
    levels = sorted(set(present))
    if len(present) < len(rows) and (len(levels) == 1 or rng.random() < 0.3):
        if kind:
            return column + p * (2 + side), 0.0 if side else 2.0 ** abs(kind) - 1
        return column + p * side, -EVERY if side else EVERY
    if kind == 0:
        return column + p * side, float(rng.choice(levels[:-1]))
    if kind < 0:
        return column + p * (2 + side), 2.0 ** rng.choice(levels)
    while True:
        cut = int(rng.integers(2**kind))
        if 0 < sum(cut >> int(level) & 1 for level in levels) < len(levels):
            return column + p * (2 + side), float(cut)


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
            left = tuple(i for i in rows if goes_left(cells, i, node.column, node.cut))
            right = tuple(i for i in rows if i not in left)
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
    code, column = column, column % cells.shape[1]
    if column not in able:
        return -math.inf
    if kinds_of(cells) is not None:
        share = weights[column] / sum(weights[j] for j in able)
        return math.log(share) + log_mixed_rule(cells, rows, code, cut)
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

    splittable_leaves: list
    splits: list
    nogs: list
    pairs: list
    """Split nodes whose parent, a split node too, they can exchange rules with."""


def counts(root, cells, weights):
    """`Counts` of a whole tree."""
    out = Counts([], [], [], [])
    for node, _, rows, parent in visits(root, cells):
        if isinstance(node, Leaf):
            if varying(cells, rows, weights):
                out.splittable_leaves.append(node.place)
            continue
        out.splits.append(node.place)
        if isinstance(node.left, Leaf) and isinstance(node.right, Leaf):
            out.nogs.append(node.place)
        if parent is not None:
            out.pairs.append(node.place)
    return out


def move_probabilities(found, weights):
    """Probabilities of choosing grow, prune, change and swap: weights of those there are."""
    offered = [found.splittable_leaves, found.nogs, found.splits, found.pairs]
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
