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

# ------------------------------------- Columns binned once, for proposals that look one split ahead
#
# Column j has increasing edges ``e_0 < .. < e_K`` among its distinct values (all of them if there
# are few). The code of a cell x is the number of edges below it: a cut in interval k, ``[e_k,
# e_{k+1})``, sends the codes up to k to the left, and those cells of code k + 1 that are at most
# the cut: none if that code has a single value.


@by_pointer
class Bins(NamedTuple):
    """Codes and edges of all columns, in the units of the design's cells."""

    codes: np.ndarray
    """(n, p) uint8: the codes of a row are contiguous."""
    edges: np.ndarray
    """Edges of all columns, one after another."""
    lengths: np.ndarray
    """As ``edges``: length of the interval from each edge to the next; 0 for a column's last."""
    single: np.ndarray
    """As ``edges``: whether the code of that number has a single value."""
    ahead: np.ndarray
    """As ``edges``: 1/2 when cuts of the interval from this edge split the code above, else 0."""
    offsets: np.ndarray
    """(p + 1,) int64: column j's edges are ``edges[offsets[j]:offsets[j + 1]]``."""


def make_bins(
    columns: np.ndarray,
    n_bins: int,
    left_out: np.ndarray | None = None,
    order: np.ndarray | None = None,
) -> Bins:
    """Bin (p, n) design columns at up to ``n_bins`` + 1 edges, at most 256.

    Edges are the distinct values if they are few enough, else evenly spaced quantiles with both
    extremes. A column ``left_out``, (p,) bool, has the code 0 alone. ``order``, (p, n), sorts the
    cells of each column, if known; codes need none.
    """
    p, n = columns.shape
    codes = np.zeros((n, p), dtype=np.uint8)
    quantiles = np.floor((n - 1) * np.linspace(0, 1, n_bins + 1)).astype(np.int64)
    edges, lengths, singles, ahead, offsets = [], [], [], [], [0]
    for j in range(p):
        if left_out is not None and left_out[j]:
            chosen, per_code = np.zeros(1), np.ones(1)
        else:
            if columns.dtype.kind == "f":
                ranked = np.argsort(columns[j]) if order is None else order[j]
                values, chosen, codes[:, j] = _edges_of_numbers(columns[j], ranked, quantiles)
            else:
                values, chosen, codes[:, j] = _edges_of_codes(columns[j], quantiles)
            per_code = np.diff(np.searchsorted(values, chosen, side="right"), prepend=0)
        edges.append(chosen)
        lengths.append(np.append(np.diff(chosen), 0.0))
        singles.append(per_code == 1)
        ahead.append(np.append(np.where(per_code[1:] == 1, 0.0, 0.5), 0.0))
        offsets.append(offsets[-1] + len(chosen))
    return Bins(
        codes,
        np.concatenate(edges),
        np.concatenate(lengths),
        np.concatenate(singles),
        np.concatenate(ahead),
        np.array(offsets),
    )


def _edges_of_numbers(cells, ranked, quantiles):
    """Distinct values, edges, and the codes of the cells."""
    cells = cells[ranked].astype(np.float64)
    values = cells[np.append(True, cells[1:] != cells[:-1])]
    chosen = _edges(values, cells[quantiles])
    last = np.searchsorted(cells, chosen, side="right")  # cells above an edge come after
    codes = np.empty(len(cells), dtype=np.uint8)  # of one column, which the cache holds
    codes[ranked] = np.repeat(np.arange(len(chosen)), np.diff(last, prepend=0))
    return values, chosen, codes


def _edges_of_codes(cells, quantiles):
    """The same for integers below 65,536, which are counted instead of sorted."""
    counts = np.bincount(cells)
    values = np.flatnonzero(counts)
    index = np.searchsorted(np.cumsum(counts[values]), quantiles, side="right")
    chosen = _edges(values, values[index])
    table = np.searchsorted(chosen, np.arange(len(counts))).astype(np.uint8)
    return values, chosen.astype(np.float64), table[cells]


def _edges(values, at_quantiles):
    """All values if they are few, else those at the quantiles and both extremes."""
    if len(values) <= len(at_quantiles):
        return values
    return np.unique(np.append(at_quantiles, values[[0, -1]]))


# -------------------------------------------------------------------------------------------------


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
