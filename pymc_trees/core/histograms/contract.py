"""Statistics of a node's rows by the code of each column, and what a cut between codes would gain.

For proposals that look one split ahead. A histogram has, for every candidate column and code, the
sums of D numbers over the node's rows; the first plane shows which codes have rows. Histograms add
and subtract: a child's is its parent's minus its sibling's. Rounding here only affects the proposal
distribution, since the weight of a proposal is computed from its rows.

========================================== ========================================================
``histogram_layout(leaf)``                 D, and the dtype of the sums; called from Python only
``pack_rows(leaf, packed, unit)``          write what a row adds, and the units it is counted in
``add_to_histogram(leaf, packed, rows,     add ``rows[start:stop]`` to the (D, p, B) histogram of
start, stop, codes, subset, histogram)``   the columns in ``subset``
``tempering(leaf, rows, start, stop)``     power in (0, 1] of the likelihood to look ahead with
``score_cuts(leaf, histogram, offsets,     write `CutScores` of the columns in ``subset``
subset, power, unit, scores)``
``left_stats(leaf, histogram, place, k,    write the statistics of the rows with codes up to k of
unit, out)``                               the column in that place
========================================== ========================================================

A leaf model needs no kernels of its own: `additive` derives them from its statistics.
"""

from typing import NamedTuple

import numpy as np
from numba import float64, int64

from pymc_trees.core.compile.dispatch import generic
from pymc_trees.core.compile.handle import CODES, COUNTS, LIST, ROW
from pymc_trees.core.compile.pointer import by_pointer
from pymc_trees.core.histograms import additive
from pymc_trees.core.leaves.contract import LEAF

PROPOSES = {"fastmath": {"nsz", "nnan", "ninf"}, "error_model": "numpy"}
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


@generic("leaf", default=additive.histogram_layout)
def histogram_layout(leaf):
    """Numbers that a histogram sums, and their dtype."""


@generic("leaf", default=additive.pack_rows, args=(LEAF, Packed, ROW), result=None)
def pack_rows(leaf, packed, unit):
    """Contribution of each row to a histogram."""


@generic(
    "leaf",
    default=additive.add_to_histogram,
    args=(LEAF, Packed, LIST, int64, int64, CODES, ColumnSubset, Histogram),
    result=None,
)
def add_to_histogram(leaf, packed, rows, start, stop, codes, subset, histogram):
    """Add rows to a histogram."""


@generic("leaf", default=additive.tempering, args=(LEAF, LIST, int64, int64), result=float64)
def tempering(leaf, rows, start, stop):
    """Power of the likelihood for looking ahead."""


@generic(
    "leaf",
    default=additive.score_cuts,
    args=(LEAF, Histogram, COUNTS, ColumnSubset, float64, ROW, CutScores),
    result=None,
)
def score_cuts(leaf, histogram, offsets, subset, power, unit, scores):
    """Marginal likelihood of the two sides of each cut between codes."""


@generic(
    "leaf", default=additive.left_stats, args=(LEAF, Histogram, int64, int64, ROW, ROW), result=None
)
def left_stats(leaf, histogram, place, k, unit, out):
    """Statistics of the rows with codes up to k."""


def make_sums(leaf, n_histograms: int, n_columns: int, n_codes: int) -> np.ndarray:
    """Histograms of zeros, (n_histograms, D, n_columns, n_codes)."""
    n_planes, dtype = histogram_layout(leaf)
    return np.zeros((n_histograms, n_planes, n_columns, n_codes), dtype=dtype)
