"""Trees whose leaf values are ordered: every tree on a grid of cuts, and integrals by quadrature.

Which leaf may not lie above which is found by trying: a function is monotone when it is at every
pair of points that are ordered, one point for each cell between cuts, each level, and a missing
cell of every column.
"""

from collections import defaultdict
from itertools import permutations, product
from typing import NamedTuple

import numpy as np

MISSING = None


class Columns(NamedTuple):
    """What is known of the columns; one entry each."""

    cuts: list
    """Grid cuts of a column of numbers."""
    levels: list
    """Number of levels, 0 for numbers."""
    mixed: bool
    """Whether there are levels or missing cells, so that rules have a side for missing rows."""


def rules_of(X, columns, rows, j):
    """Probability of each rule of a column in a node: ``(levels or cut, side) -> p``.

    A rule is a frozenset of cells that go left, and whether missing rows do.
    """
    cells = [cell_of(X[i, j], columns, j) for i in rows]
    missing = any(cell is MISSING for cell in cells)
    present = sorted({cell for cell in cells if cell is not MISSING})
    everything = range(columns.levels[j] or len(columns.cuts[j]) + 1)
    sides = (True, False) if columns.mixed else (False,)
    rules, share = {}, 1.0
    if not present or (len(present) < 2 and not missing):
        return {}
    if missing:
        apart = 1.0 if len(present) == 1 else 1.0 / (1 + len(present))
        rules[frozenset(), True] = rules[frozenset(everything), False] = apart / 2
        share = 1.0 - apart
    if len(present) < 2:
        return rules
    if columns.levels[j]:
        every = [
            frozenset(chosen)
            for chosen in (
                [level for level in everything if code >> level & 1]
                for code in range(2 ** columns.levels[j])
            )
        ]
        parting = [part for part in every if 0 < len(part & set(present)) < len(present)]
    else:
        parting = [frozenset(range(k + 1)) for k in range(present[0], present[-1])]
    for part in parting:
        for side in sides:
            rules[part, side] = share / len(parting) / len(sides)
    return rules


def cell_of(x, columns, j):
    """Level, or place among the cuts, of a cell; `MISSING`."""
    if x is None or np.isnan(x):
        return MISSING
    return int(x) if columns.levels[j] else sum(c < x for c in columns.cuts[j])


def every_tree(X, columns, alpha, beta, rows=None, depth=0):
    """``(probability, tree)`` of every tree; () is a leaf, else (column, rule, left, right)."""
    rows = tuple(range(len(X))) if rows is None else rows
    by_column = {j: rules_of(X, columns, rows, j) for j in range(X.shape[1])}
    by_column = {j: rules for j, rules in by_column.items() if rules}
    if not by_column:
        return [(1.0, ())]
    chance = alpha * (1 + depth) ** -beta
    found = [(1.0 - chance, ())]
    for j, rules in by_column.items():
        for rule, p in rules.items():
            left = tuple(i for i in rows if goes_left(cell_of(X[i, j], columns, j), rule))
            right = tuple(i for i in rows if i not in left)
            here = chance * p / len(by_column)
            lefts = every_tree(X, columns, alpha, beta, left, depth + 1)
            rights = every_tree(X, columns, alpha, beta, right, depth + 1)
            found += [(here * p_a * p_b, (j, rule, a, b)) for p_a, a in lefts for p_b, b in rights]
    return found


def goes_left(cell, rule):
    """Whether a cell goes left."""
    return rule[1] if cell is MISSING else cell in rule[0]


def leaf_at(tree, cells, place=""):
    """The leaf that a point reaches, as the turns on its way."""
    if not tree:
        return place
    j, rule, left, right = tree
    if goes_left(cells[j], rule):
        return leaf_at(left, cells, place + "l")
    return leaf_at(right, cells, place + "r")


def points_of(columns):
    """One point for each combination of cells."""
    each = [
        [*range(n_levels or len(cuts) + 1), *([MISSING] if columns.mixed else [])]
        for cuts, n_levels in zip(columns.cuts, columns.levels, strict=True)
    ]
    return list(product(*each))


def ordered_points(points, directions):
    """Pairs of points of which the first may not have the larger value."""
    pairs = []
    for a, x in enumerate(points):
        for b, z in enumerate(points):
            if all(_agree(x[j], z[j], direction) for j, direction in enumerate(directions)):
                pairs.append((a, b))
    return pairs


def _agree(x, z, direction):
    if x is MISSING or z is MISSING or direction == 0:
        return x is z if MISSING in (x, z) else x == z
    return direction * (z - x) >= 0


def ordered_states(X, columns, alpha, beta, directions):
    """Prior probability, before values are ordered, of partitions with what is ordered in them.

    Returns
    -------
    dict : (tuple of frozensets of rows, frozenset of pairs of these places) -> probability
    """
    points = points_of(columns)
    pairs = ordered_points(points, directions)
    law: dict = defaultdict(float)
    for p, tree in every_tree(X, columns, alpha, beta):
        at = [leaf_at(tree, point) for point in points]
        rows = defaultdict(list)
        for i, x in enumerate(X):
            cells = [cell_of(x[j], columns, j) for j in range(X.shape[1])]
            rows[leaf_at(tree, cells)].append(i)
        leaves = sorted(rows, key=lambda leaf: rows[leaf])
        assert set(at) <= set(leaves)
        below = {(leaves.index(at[a]), leaves.index(at[b])) for a, b in pairs if at[a] != at[b]}
        law[tuple(frozenset(rows[leaf]) for leaf in leaves), frozenset(below)] += p
    return dict(law)


def ordered_integrals(densities, below, grid):
    """Integral of a product of densities over the values in order, and its moments.

    A sum over all ways to line the leaves up that respect the order, each an iterated integral.

    Parameters
    ----------
    densities : (L, G) array
        Of the value of each leaf on the grid.
    below : set of pairs

    Returns
    -------
    total, (L,) first and (L, L) second moments, not normalised
    """
    n, step = len(densities), grid[1] - grid[0]
    total, first, second = 0.0, np.zeros(n), np.zeros((n, n))
    lines = [
        line
        for line in permutations(range(n))
        if all(line.index(a) < line.index(b) for a, b in below)
    ]

    def chain(line, powers):
        reached = np.ones_like(grid)
        for k in line:
            inside = densities[k] * grid ** powers.get(k, 0) * reached
            middle = np.concatenate([[0.0], 0.5 * (inside[1:] + inside[:-1])])
            reached = np.cumsum(middle) * step
        return reached[-1]

    for line in lines:
        total += chain(line, {})
        for a in range(n):
            first[a] += chain(line, {a: 1})
            for b in range(a, n):
                powers = {a: 2} if a == b else {a: 1, b: 1}
                second[a, b] += chain(line, powers)
    return total, first, second + np.triu(second, 1).T
