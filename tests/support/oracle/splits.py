"""The splits open to a node, with continuous cuts collapsed into gaps.

A node is a set of training rows, held as a bit mask (bit i set: row i is in the
node).  Two cuts that send the same rows of the node to the left are the same
split; they are the cuts inside one gap between two consecutive distinct values
``a < b`` of the column among the node's rows.
"""

import math
from typing import NamedTuple

import numpy as np


def rows_of(mask):
    """Sorted tuple of the row numbers in a bit mask."""
    return tuple(i for i in range(mask.bit_length()) if mask >> i & 1)


def mask_of(rows):
    """Bit mask of a collection of row numbers."""
    return sum(1 << int(i) for i in rows)


def log_leaf_and_split(alpha, beta, depth):
    """``(log(1 - p), log p)`` with ``p = alpha * (1 + depth) ** -beta``."""
    p = alpha * (1.0 + depth) ** (-beta)
    if not 0 <= p <= 1:
        raise ValueError(f"split probability {p} at depth {depth} is outside [0, 1]")
    return (math.log1p(-p) if p < 1 else -math.inf, math.log(p) if p > 0 else -math.inf)


class Split(NamedTuple):
    """One split of one node: ``column``, ``gap = (a, b)``, child masks, log prior.

    The gap is None for levels and for columns with missing cells in the node: then both masks
    name the split, and the left one holds the smallest row.
    """

    column: int
    gap: tuple
    left: int
    right: int
    log_prob: float


class Splits:
    """All splits of any node of a design, memoised by bit mask.

    Parameters
    ----------
    X : array (n, p)
    split_prior : array (p,), optional
        Non-negative column weights, uniform by default.
    cuts : list of p arrays, optional
        Grid prior: the distinct cut values each column may use.  Without it the
        cut is uniform on ``[min, max]`` of the column among the node's rows.
    kinds : list of p str, optional
        "number", "subset" or "onehot" for each column; without it all are numbers. NaN in X is a
        missing cell.

    Notes
    -----
    With ``w`` the weights and ``A`` the columns available in the node,

        P(column j, gap (a, b)) = w_j / sum_{k in A} w_k * P(gap | j),

    where, by integrating the uniform density of the cut over the gap,
    ``P(gap | j) = (b - a) / (max - min)``; on a grid it is the number of grid
    cuts with ``a <= c < b`` over the number with ``min <= c < max`` (``x <= c``
    goes left, so ``c = a`` cuts below ``b`` and ``c = max`` cuts nothing off).

    A column is available iff it varies in the node (on a grid: iff some grid cut
    leaves both children non-empty) and its weight is positive.  A node with no
    available column has no valid split.

    With ``kinds``, splits that part the rows alike are one. Levels: each of the ``2**(d-1) - 1``
    ways to part the d levels present is as likely as another, or each level against the rest. With
    missing rows in the node they go to one side or the other with probability 1/2 each, and are
    parted from all present rows with probability 1 / (1 + d), d the distinct present values; d = 1
    leaves nothing else.
    """

    def __init__(self, X, split_prior=None, cuts=None, kinds=None):
        self.X = np.asarray(X, dtype=float)
        self.n, self.p = self.X.shape
        weights = np.ones(self.p) if split_prior is None else np.asarray(split_prior, float)
        if weights.shape != (self.p,) or (weights < 0).any():
            raise ValueError("split_prior must hold one non-negative weight per column")
        self.weights = weights
        if cuts is not None:
            cuts = [np.asarray(c, dtype=float) for c in cuts]
            if len(cuts) != self.p or any(len(np.unique(c)) != len(c) for c in cuts):
                raise ValueError("cuts must hold one array of distinct values per column")
        self.cuts = cuts
        self.kinds = kinds
        self.root = (1 << self.n) - 1
        self._memo = {}

    def __call__(self, mask):
        """List of the `Split` of the node; empty when it has no valid split."""
        if mask not in self._memo:
            self._memo[mask] = self._find(mask)
        return self._memo[mask]

    def _find(self, mask):
        if self.kinds is not None:
            return self._find_mixed(mask)
        rows = rows_of(mask)
        by_column = {}
        for j in range(self.p):
            gaps = self._gaps(j, [self.X[i, j] for i in rows]) if self.weights[j] > 0 else []
            if gaps:
                by_column[j] = gaps
        total = sum(self.weights[j] for j in by_column)
        found = []
        for j, gaps in by_column.items():
            for a, b, prob in gaps:
                left = mask_of(i for i in rows if self.X[i, j] <= a)
                log_prob = math.log(self.weights[j] / total) + math.log(prob)
                found.append(Split(j, (a, b), left, mask & ~left, log_prob))
        return found

    def _gaps(self, j, values):
        """``(a, b, probability)`` of every gap of positive probability."""
        levels = sorted(set(float(v) for v in values))
        if self.cuts is None:
            sizes = [b - a for a, b in zip(levels, levels[1:])]
        else:
            sizes = [int(sum(a <= c < b for c in self.cuts[j])) for a, b in zip(levels, levels[1:])]
        total = sum(sizes)
        return [(a, b, size / total) for a, b, size in zip(levels, levels[1:], sizes) if size > 0]

    def _find_mixed(self, mask):
        rows = rows_of(mask)
        by_column = {}
        for j in range(self.p):
            sides = self._sides(j, rows) if self.weights[j] > 0 else {}
            if sides:
                by_column[j] = sides
        total = sum(self.weights[j] for j in by_column)
        found = []
        for j, sides in by_column.items():
            for left, prob in sides.items():
                log_prob = math.log(self.weights[j] / total) + math.log(prob)
                found.append(Split(j, None, left, mask & ~left, log_prob))
        return found

    def _sides(self, j, rows):
        """dict of the side with the smallest row -> probability; empty for a constant column."""
        missing = [i for i in rows if math.isnan(self.X[i, j])]
        present = [i for i in rows if i not in missing]
        parts = self._parts(j, present)
        distinct = len({self._cell(j, i) for i in present})
        out = {}

        def add(side, prob):
            side = set(side)
            side = side if rows[0] in side else set(rows) - side
            key = mask_of(side)
            out[key] = out.get(key, 0.0) + prob

        if not missing:
            for part, prob in parts:
                add(part, prob)
            return out
        if not present:
            return out
        apart = 1.0 if distinct == 1 else 1.0 / (1 + distinct)
        add(missing, apart)
        for part, prob in parts:
            add(part, prob * (1 - apart) / 2)
            add([*part, *missing], prob * (1 - apart) / 2)
        return out

    def _cell(self, j, i):
        """What tells present cells of a column apart."""
        if self.cuts is None or self.kinds[j] != "number":
            return self.X[i, j]
        return sum(c < self.X[i, j] for c in self.cuts[j])

    def _parts(self, j, present):
        """One side and its probability, of each way to part the present rows."""
        if self.kinds[j] == "number":
            gaps = self._gaps(j, [self.X[i, j] for i in present])
            return [([i for i in present if self.X[i, j] <= a], prob) for a, _, prob in gaps]
        levels = sorted({self.X[i, j] for i in present})
        if len(levels) < 2:
            return []
        if self.kinds[j] == "onehot":
            sides = [{level} for level in levels]
        else:  # those with the first level on the left, so that each way comes once
            rest = levels[1:]
            sides = [
                {levels[0]} | {rest[k] for k in range(len(rest)) if code >> k & 1}
                for code in range(2 ** len(rest) - 1)
            ]
        return [([i for i in present if self.X[i, j] in side], 1 / len(sides)) for side in sides]
