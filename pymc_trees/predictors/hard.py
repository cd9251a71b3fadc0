"""Outputs of hard trees at rows, for all draws, with numpy alone.

Two ways, of which the cheaper one is taken. At a few rows one row goes through all trees of all
draws at once: every split node says which of its children follows, and as many steps as the deepest
leaf needs lead from the roots to leaves. At many rows all rows go through one tree at once: a small
tree is a nested choice between its leaves, a large one is walked.
"""

from typing import NamedTuple

import numpy as np

from pymc_trees.core.columns.cells import LEFT, MISSING, SET
from pymc_trees.predictors.packed import LINEAR, PackedForest

FEW = 192
"""Rows up to which each goes through all trees at once."""
SMALL = 24
"""Split nodes up to which a tree is a nested choice."""
BLOCK = 16384
"""Rows that go through a tree at once: their results stay in the cache of a core."""


class Cells(NamedTuple):
    """Rows as trees ask for them."""

    X: np.ndarray
    """(n, p) numbers, `MISSING` in missing cells."""
    missing: np.ndarray | None
    """(n, p) bool; None where no cell is missing."""
    z: np.ndarray | None
    """(n, d) standardised columns with slopes, where leaves have slopes."""


def cells_of(forest: PackedForest, X: np.ndarray) -> Cells:
    """Rows for a forest."""
    X = np.where(np.isnan(X), MISSING, X)
    missing = X == MISSING
    z = _standardised(forest.arrays["slopes"], X, missing) if forest.kind == LINEAR else None
    return Cells(X, missing if missing.any() else None, z)


def _standardised(slopes, X, missing):
    clipped, (mean, sd, low, high) = slopes[1] != 0.0, slopes[2:].reshape(-1, 4).T
    chosen = np.flatnonzero(sd > 0)
    x = X[:, chosen]
    if clipped:
        x = np.clip(x, low[chosen], high[chosen])
    return np.where(missing[:, chosen], 0.0, (x - mean[chosen]) / sd[chosen])


def evaluate(forest: PackedForest, X: np.ndarray) -> np.ndarray:
    """(D, n, K) outputs of all draws at (n, p) rows."""
    cells = cells_of(forest, X)
    out = np.empty((forest.draws, len(X), forest.n_outputs))
    if len(X) <= FEW:
        for i in range(len(X)):
            out[:, i] = _one_row(forest, cells, i)
        return out
    out[:] = 0.0
    for start in range(0, len(X), BLOCK):
        rows = slice(start, min(start + BLOCK, len(X)))
        _Block(forest, cells, rows).add_to(out[:, rows])
    return out


# ------------------------------------------------------------- One row, all trees of all draws


def _one_row(forest: PackedForest, cells: Cells, i: int) -> np.ndarray:
    """(D, K) outputs at a row."""
    links = forest.links
    x = cells.X[i].take(links.column)
    left = x <= links.cut
    if forest.mixed or cells.missing is not None:
        left = _mixed(forest, x, left)
    following = np.arange(links.roots[-1])
    following[links.split] = np.where(left, links.split + 1, links.right)
    node = links.roots[:-1]
    for _ in range(links.depth):
        node = following.take(node)
    values = forest.values.take(links.leaf.take(node), axis=0)
    if cells.z is not None:
        values = _lines(forest, values, cells.z[i])
    return values.reshape(forest.draws, forest.trees, -1).sum(axis=1)


def _mixed(forest: PackedForest, x: np.ndarray, left: np.ndarray) -> np.ndarray:
    """Which split nodes send a row left, whose cells in their columns are x."""
    links, absent = forest.links, x == MISSING
    if not forest.mixed:
        return np.where(absent, hashed_sides(forest), left)
    is_set = links.rule_kind >= SET
    if is_set.any():
        levels = forest.arrays["levels"][links.column]
        absent |= is_set & (x >= levels)
        code = np.where(is_set & ~absent, x, 0.0).astype(np.int64)
        bits = np.where(is_set, links.cut, 0.0).astype(np.int64)
        left = np.where(is_set, (bits >> code) & 1 == 1, left)
    return np.where(absent, links.rule_kind & LEFT != 0, left)


def hashed_sides(forest: PackedForest) -> np.ndarray:
    """(S,) whether missing cells go left at each split node: a coin made of draw and node.

    As `core.value.evaluate` throws it for trees whose training rows had no missing cell.
    """
    links, m = forest.links, forest.trees
    starts = links.roots[:-1:m]  # of the draws
    draw = np.searchsorted(starts, links.split, side="right") - 1
    row = (links.split - starts[draw]).astype(np.uint64)
    with np.errstate(over="ignore"):
        state = forest.arrays["seeds"][draw] + row * np.uint64(0x9E3779B97F4A7C15)
        state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (state >> np.uint64(63)) == np.uint64(1)


def _lines(forest: PackedForest, values: np.ndarray, z: np.ndarray) -> np.ndarray:
    """(leaves, K) outputs of leaves with slopes, at one row each or at one for all."""
    k = forest.n_outputs
    total = values[:, :k].copy()
    if forest.arrays["slopes"][0] == 0.0:  # one slope, in the column that the code names
        code = np.abs(values[:, -1]).astype(np.int64)
        sloped = (code > 0) & (code <= z.shape[-1])
        at = np.where(sloped, code - 1, 0)
        if z.shape[-1]:
            own = z[at] if z.ndim == 1 else z[np.arange(len(z)), at]
            total += np.where(sloped, own, 0.0)[:, None] * values[:, k : 2 * k]
    else:
        slopes = values[:, k:-1].reshape(len(values), z.shape[-1], k)
        total += (slopes * z[..., None]).sum(axis=1)
    return total


# ------------------------------------------------------------- Many rows, one tree after another


class _Block:
    """Some rows, column by column."""

    def __init__(self, forest: PackedForest, cells: Cells, rows: slice):
        self.forest, self.n = forest, rows.stop - rows.start
        self.columns = np.ascontiguousarray(cells.X[rows].T)
        self.missing = None
        if cells.missing is not None:
            self.missing = np.ascontiguousarray(cells.missing[rows].T)
        self.z = None if cells.z is None else cells.z[rows]
        self.codes: dict[int, np.ndarray] = {}
        lists = forest.lists
        self.column, self.cut = lists["column"], lists["cut"]
        self.kind, self.right, self.roots = lists["rule_kind"], lists["right"], lists["roots"]
        self.leaf, self.split_of = lists["leaf"], lists["split_of"]
        self.is_split = (forest.arrays["rules"] > 0).tolist()
        self.side = None
        if self.missing is not None and not forest.mixed:
            self.side = hashed_sides(forest).tolist()

    def add_to(self, out: np.ndarray) -> None:
        """Add the trees of each draw to (D, n, K) outputs."""
        forest = self.forest
        first_value = forest.values[:, 0].tolist()
        single = forest.values.shape[1] == 1
        for tree in range(forest.draws * forest.trees):
            total = out[tree // forest.trees]
            root, stop = self.roots[tree], self.roots[tree + 1]
            if stop - root > 2 * SMALL + 1:
                leaves = self._walk(root)
            elif single:
                total[:, 0] += self._choice(root, first_value)
                continue
            else:
                leaves = np.broadcast_to(self._choice(root, None), self.n)
            values = forest.values.take(leaves, axis=0)
            total += values if self.z is None else _lines(forest, values, self.z)

    def _choice(self, node: int, values: list | None):
        """Value, or number, of the leaf of each row below a node."""
        if not self.is_split[node]:
            leaf = self.leaf[node]
            return leaf if values is None else values[leaf]
        s = self.split_of[node]
        left = self._left(s)
        return np.where(left, self._choice(node + 1, values), self._choice(self.right[s], values))

    def _left(self, s: int, rows=slice(None)) -> np.ndarray:
        """Which rows a split node sends left."""
        j, kind = self.column[s], self.kind[s]
        if kind >= SET:
            return self._table(s, j, kind)[self._codes(j)[rows]]
        left = self.columns[j][rows] <= self.cut[s]
        if self.missing is None:
            return left
        side = bool(kind & LEFT) if self.side is None else self.side[s]
        missing = self.missing[j][rows]
        return left | missing if side else left & ~missing

    def _table(self, s: int, j: int, kind: int) -> np.ndarray:
        """Which codes go left, the last for missing cells and levels that are new."""
        levels = int(self.forest.arrays["levels"][j])
        table = np.empty(levels + 1, dtype=bool)
        table[:levels] = (int(self.cut[s]) >> np.arange(levels)) & 1 == 1
        table[levels] = kind & LEFT != 0
        return table

    def _codes(self, j: int) -> np.ndarray:
        if j not in self.codes:
            levels, x = int(self.forest.arrays["levels"][j]), self.columns[j]
            self.codes[j] = np.where((x >= 0) & (x < levels), x, levels).astype(np.int64)
        return self.codes[j]

    def _walk(self, root: int) -> np.ndarray:
        """Number of the leaf of each row of a large tree."""
        leaves = np.empty(self.n, dtype=np.int64)
        waiting = [(root, np.arange(self.n))]
        while waiting:
            node, rows = waiting.pop()
            if not self.is_split[node]:
                leaves[rows] = self.leaf[node]
                continue
            s = self.split_of[node]
            left = self._left(s, rows)
            waiting += [(self.right[s], rows[~left]), (node + 1, rows[left])]
        return leaves
