"""Simple traversal of an encoded value with its training rows, for checks."""

from typing import NamedTuple

import numpy as np

from pymc_trees.core.columns.cells import MAX_CUT, MISSING
from pymc_trees.core.value.fields import Layout
from pymc_trees.core.value.text import tree_starts


class Encoded(NamedTuple):
    """An encoded value and the data it refers to."""

    value: np.ndarray
    X: np.ndarray
    """(n, p) training inputs."""
    layout: Layout
    fingerprint: float
    grid: list[np.ndarray] | None
    weights: np.ndarray
    """(p,) split weights."""
    kinds: np.ndarray
    """(p,) kinds of the columns, as in `mixed`."""

    @property
    def certificate(self) -> np.ndarray:
        """Entries after the node rows, as one vector."""
        return self.value[self.layout.max_nodes :].reshape(-1)


class Node(NamedTuple):
    """A node of an encoded value, as reached by the traversal."""

    row: int
    tree: int
    column: int
    """Split column; -1 in a leaf."""
    rule_kind: int
    """Kind of its rule (`mixed`)."""
    cut: float
    leaf_values: np.ndarray
    """Of a leaf."""
    rest: np.ndarray
    """Fields after the cut or the leaf values."""
    rows: np.ndarray
    """Training rows that reach it."""
    start: float
    """Time of the parent's split, where splits have times; 0 at a root."""
    time: float
    """Time of its split, where splits have times; infinite otherwise."""


class Expected(NamedTuple):
    """Properties of a node derived from its training rows."""

    unsplittable: bool
    log_cut: float
    log_column: float


def walk(encoded: Encoded) -> list[Node]:
    """All nodes in preorder with the training rows that reach them."""
    value, X, layout = encoded.value, encoded.X, encoded.layout
    starts = tree_starts(value, layout)
    nodes = []
    for tree in range(layout.m):
        waiting = [(np.arange(len(X)), 0.0)]
        for row in range(starts[tree], starts[tree + 1]):
            rows, start = waiting.pop()
            rule_kind, column = divmod(int(value[row, 0]), X.shape[1])
            column = -1 if value[row, 0] < 0 else column
            leaf_values = value[row, 1 : 1 + layout.n_values]
            rest = value[row, 2 if column >= 0 else 1 + layout.n_values :]
            time = np.inf
            if layout.timed and column >= 0:
                rest, time = rest[:-1], rest[-1]
            cut = value[row, 1]
            node = Node(row, tree, column, rule_kind, cut, leaf_values, rest, rows, start, time)
            nodes.append(node)
            if column >= 0:
                goes_left = sent_left(X[rows, column], rule_kind, cut)
                waiting += [(rows[~goes_left], time), (rows[goes_left], time)]
    return nodes


def cells_of(X: np.ndarray, grid: list[np.ndarray] | None) -> np.ndarray:
    """Cells as used by rules: the inputs, or the number of grid cuts below each.

    Columns without grid cuts, including levels, and missing cells are unchanged.
    """
    if grid is None:
        return X
    cells = [(cuts < x[:, None]).sum(axis=1) if len(cuts) else x for cuts, x in zip(grid, X.T)]
    return np.where(X == MISSING, X, np.column_stack(cells))


def sent_left(x: np.ndarray, rule_kind: int, cut: float) -> np.ndarray:
    """Which cells of a split's column go left."""
    if rule_kind < 2:
        left = x <= cut
    else:
        left = np.array([int(cut) >> int(max(v, 0)) & 1 == 1 for v in x], dtype=bool)
    return np.where(x == MISSING, rule_kind % 2 == 1, left)


def expect(encoded: Encoded, rows: np.ndarray, node: Node | None) -> Expected:
    """Prior terms of a node with these rows, and this split (None for a leaf)."""
    cells = cells_of(encoded.X[rows], encoded.grid)
    usable = (cells.min(axis=0) < cells.max(axis=0)) & (encoded.weights > 0)
    if node is None:
        return Expected(not usable.any(), 0.0, 0.0)
    weights = np.ptp(cells, axis=0) if encoded.layout.timed else encoded.weights
    share = weights[node.column] / weights[usable].sum()
    density = rule_density(
        cells[:, node.column], node.rule_kind, node.cut, encoded.kinds[node.column]
    )
    return Expected(False, np.log(density * (0.5 if encoded.layout.mixed else 1.0)), np.log(share))


def rule_density(x: np.ndarray, rule_kind: int, cut: float, kind: int) -> float:
    """Density of a split given its column, whose cells are ``x``, and the side of missing rows."""
    present = np.unique(x[x != MISSING])
    density = 1.0
    if (x == MISSING).any():
        p_missing_split = 1.0 if len(present) == 1 else 1.0 / (1 + len(present))
        splits_missing = (
            rule_kind >= 2 and len(set(sent_left(x[x != MISSING], rule_kind, cut))) == 1
        )
        if splits_missing or (rule_kind < 2 and abs(cut) == MAX_CUT):
            return p_missing_split
        density -= p_missing_split
    if kind == 0:
        return density / float(present[-1] - present[0])
    if kind < 0:
        return density / len(present)
    return density / (2.0 ** len(present) - 2) / 2.0 ** (kind - len(present))
