"""Statistics of a node's rows by the code of each column, and what a cut between codes would gain.

For proposals that look one split ahead. A histogram has, for every candidate column and code, the
sums of D numbers over the node's rows; the first plane shows which codes have rows. Histograms add
and subtract: a child's is its parent's minus its sibling's. Rounding here only affects the proposal
distribution, since the weight of a proposal is computed from its rows.

============================================ ======================================================
``histogram_layout(leaf)``                   D, and the dtype of the sums; called from Python only
``pack_rows(leaf, packed, unit)``            write what a row adds, and the units it is counted in
``add_to_histogram(leaf, packed, rows,       add ``rows[start:stop]`` to the (D, p, B) histogram of
start, stop, codes, subset, histogram)``     the columns in ``subset``
``tempering(leaf, rows, start, stop)``       power in (0, 1] of the likelihood to look ahead with
``score_cuts(leaf, histogram, offsets,       write `CutScores` of the columns in ``subset``
subset, power, unit, scores)``
``left_stats(leaf, histogram, position, k,   write the statistics of the rows with codes up to k of
unit, out)``                                 the column at that position
============================================ ======================================================

A leaf model needs no kernels of its own. By default a histogram has the number of rows and the sums
of the statistics, which are sums over rows (`leaves.sums`); the marginal likelihood of both sides
of a cut follows from them.
"""

from typing import NamedTuple

import numpy as np
from numba import float64, int64

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.compile.dispatch import generic
from pymc_trees.core.compile.handle import CODES, COUNTS, LIST, ROW
from pymc_trees.core.compile.pointer import by_pointer
from pymc_trees.core.leaves.contract import (
    LEAF,
    add_row,
    log_marginal,
    n_stats,
    path_below,
    reads_path,
)


def _histogram_layout(leaf):
    """Numbers that a histogram sums, and their dtype."""
    return 1 + n_stats(leaf), np.float64


@njit(cache=True)
def _pack_rows(leaf, packed, unit):
    """Contribution of each row to a histogram."""
    row_stats = np.empty(packed.shape[0] - 1)
    for i in range(packed.shape[1]):
        row_stats[:] = 0.0
        add_row(leaf, i, row_stats)
        packed[0, i] = 1.0
        for d in range(row_stats.size):
            packed[1 + d, i] = row_stats[d]


@njit(cache=True)
def _add_to_histogram(leaf, packed, rows, start, stop, codes, subset, histogram):
    """Add rows to a histogram."""
    columns = subset.columns
    for plane in range(packed.shape[0]):
        for k in range(start, stop):
            i = rows[k]
            value = packed[plane, i]
            if value != 0.0:
                for a in range(subset.n):
                    histogram[plane, a, codes[i, columns[a]]] += value


@njit(cache=True)
def _tempering(leaf, rows, start, stop):
    """Power of the likelihood for looking ahead."""
    return 1.0  # the untempered likelihood


@njit(cache=True)
def _score_column(leaf, histogram, position, n_codes, column, path, sides, gain):
    """Gains of the cuts of one column, and the log of their common factor."""
    left, right, total = sides[0], sides[1], sides[2]
    last, below = total.size - 1, path_below(leaf, path, column)
    left[:] = 0.0
    total[:] = 0.0
    n, n_left = 0.0, 0.0
    for k in range(n_codes):
        n += histogram[0, position, k]
        for d in range(total.size):
            total[d] += histogram[1 + d, position, k]
    if reads_path(leaf):
        total[last], left[last] = path, below
    log_all = log_marginal(leaf, total)
    top = 0.0
    gain[0] = 0.0
    for k in range(n_codes):
        gain[k + 1] = gain[k]
        if histogram[0, position, k] > 0.0:
            n_left += histogram[0, position, k]
            for d in range(left.size):
                left[d] += histogram[1 + d, position, k]
                right[d] = total[d] - left[d]
            if reads_path(leaf):
                right[last] = below
            gain[k + 1] = 0.0  # one side empty
            if n_left < n:
                gain[k + 1] = log_marginal(leaf, left) + log_marginal(leaf, right) - log_all
        top = max(top, gain[k + 1])
    for k in range(n_codes + 1):
        gain[k] = np.exp(max(gain[k] - top, -300.0))
    return top


@njit(cache=True)
def _score_cuts(leaf, histogram, offsets, subset, power, unit, scores):
    """Marginal likelihood of the two sides of each cut between codes."""
    sides = np.empty((3, n_stats(leaf)))
    gain, log_factor, path = scores.gain, scores.log_factor, scores.path[0]
    for a in range(subset.n):
        j = subset.columns[a]
        n_codes = offsets[j + 1] - offsets[j]
        log_factor[a] = _score_column(leaf, histogram, a, n_codes, j, path, sides, gain[a])


@njit(cache=True)
def _left_stats(leaf, histogram, position, k, unit, out):
    """Statistics of the rows with codes up to k."""
    out[:] = 0.0
    for code in range(k + 1):
        for d in range(histogram.shape[0] - 1):
            out[d] += histogram[1 + d, position, code]


# ------------------------------------------------------------------------------------ The interface


VECTORISE = {"fastmath": {"nsz", "nnan", "ninf"}, "error_model": "numpy"}
"""Options required to vectorise loops over codes. None lets operations be reordered or fused: what
a loop computes would depend on the processor, and on the order in which kernels were compiled."""


class Packed:
    """Stands in signatures for what rows add to histograms, (D, n) of the type of the sums."""


class Histogram:
    """Stands in signatures for the histogram of a node, (D, p, B)."""


@by_pointer
class ColumnSubset(NamedTuple):
    """Candidate columns."""

    columns: np.ndarray
    """(p,) int64: candidates first."""
    n: int
    """Number of candidates."""


@by_pointer
class CutScores(NamedTuple):
    """Gains of cuts between codes, by index of a candidate column."""

    buffer: np.ndarray
    """(3, 257) float64."""
    gain: np.ndarray
    """(p, 258) float64: ``gain[a, k + 1]`` is p(codes <= k) p(codes > k) over p(all) and a factor,
    for k = -1 .. codes - 1."""
    log_factor: np.ndarray
    """(p,) float64: logs of these factors."""
    path: np.ndarray
    """(1,) float64: path of the node, for leaves that read it."""


@generic("leaf", default=_histogram_layout)
def histogram_layout(leaf):
    """Numbers that a histogram sums, and their dtype."""


@generic("leaf", default=_pack_rows, args=(LEAF, Packed, ROW), result=None)
def pack_rows(leaf, packed, unit):
    """Contribution of each row to a histogram."""


@generic(
    "leaf",
    default=_add_to_histogram,
    args=(LEAF, Packed, LIST, int64, int64, CODES, ColumnSubset, Histogram),
    result=None,
)
def add_to_histogram(leaf, packed, rows, start, stop, codes, subset, histogram):
    """Add rows to a histogram."""


@generic("leaf", default=_tempering, args=(LEAF, LIST, int64, int64), result=float64)
def tempering(leaf, rows, start, stop):
    """Power of the likelihood for looking ahead."""


@generic(
    "leaf",
    default=_score_cuts,
    args=(LEAF, Histogram, COUNTS, ColumnSubset, float64, ROW, CutScores),
    result=None,
)
def score_cuts(leaf, histogram, offsets, subset, power, unit, scores):
    """Marginal likelihood of the two sides of each cut between codes."""


@generic("leaf", default=_left_stats, args=(LEAF, Histogram, int64, int64, ROW, ROW), result=None)
def left_stats(leaf, histogram, position, k, unit, out):
    """Statistics of the rows with codes up to k."""


def make_sums(leaf, n_histograms: int, n_columns: int, n_codes: int) -> np.ndarray:
    """Histograms of zeros, (n_histograms, D, n_columns, n_codes)."""
    n_planes, dtype = histogram_layout(leaf)
    return np.zeros((n_histograms, n_planes, n_columns, n_codes), dtype=dtype)
