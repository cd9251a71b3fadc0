"""A plain walk through an encoded value with its training rows, for the checks."""

from typing import NamedTuple

import numpy as np

from pymc_trees.core.forest.fields import Layout
from pymc_trees.core.forest.text import tree_starts


class Encoded(NamedTuple):
    """An encoded value and all it refers to."""

    value: np.ndarray
    X: np.ndarray
    """(n, p) training inputs."""
    layout: Layout
    fingerprint: float
    grid: list[np.ndarray] | None
    weights: np.ndarray
    """(p,) split weights."""

    @property
    def certificate(self) -> np.ndarray:
        """Entries after the node rows, as one vector."""
        return self.value[self.layout.max_nodes :].reshape(-1)


class Node(NamedTuple):
    """A node met on the walk through an encoded value."""

    row: int
    tree: int
    column: int
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
    """What a node's training rows say about it."""

    closed: bool
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
            column, cut = int(value[row, 0]), value[row, 1]
            leaf_values = value[row, 1 : 1 + layout.n_values]
            rest = value[row, 2 if column >= 0 else 1 + layout.n_values :]
            time = np.inf
            if layout.timed and column >= 0:
                rest, time = rest[:-1], rest[-1]
            nodes.append(Node(row, tree, column, cut, leaf_values, rest, rows, start, time))
            if column >= 0:
                goes_left = X[rows, column] <= cut
                waiting += [(rows[~goes_left], time), (rows[goes_left], time)]
    return nodes


def cells_of(X: np.ndarray, grid: list[np.ndarray] | None) -> np.ndarray:
    """What tells rows apart: the inputs, or the number of grid cuts below each."""
    if grid is None:
        return X
    return np.column_stack([(cuts < x[:, None]).sum(axis=1) for cuts, x in zip(grid, X.T)])


def expect(encoded: Encoded, rows: np.ndarray, column: int) -> Expected:
    """Prior terms of a node with these rows, and this split column (negative for a leaf)."""
    cells = cells_of(encoded.X[rows], encoded.grid)
    low, high = cells.min(axis=0), cells.max(axis=0)
    usable = (low < high) & (encoded.weights > 0)
    if column < 0:
        return Expected(not usable.any(), 0.0, 0.0)
    weights = high - low if encoded.layout.timed else encoded.weights
    share = weights[column] / weights[usable].sum()
    return Expected(False, -np.log(high[column] - low[column]), np.log(share))
