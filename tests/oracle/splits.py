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
    """One split of one node: ``column``, ``gap = (a, b)``, child masks, log prior."""

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
    """

    def __init__(self, X, split_prior=None, cuts=None):
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
        self.root = (1 << self.n) - 1
        self._memo = {}

    def __call__(self, mask):
        """List of the `Split` of the node; empty when it has no valid split."""
        if mask not in self._memo:
            self._memo[mask] = self._find(mask)
        return self._memo[mask]

    def _find(self, mask):
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
