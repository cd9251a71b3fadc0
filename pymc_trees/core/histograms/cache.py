"""Histograms stored for the nodes of particles, to avoid reading rows twice.

Histogram 0 is the root's and is shared by all particles, 1 is a buffer for a node without one; each
of the others belongs to one particle. When a node with a histogram is split, that of its smaller
child is summed over the rows, and that of the larger one is the difference.
"""

from typing import NamedTuple

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.compile.dispatch import register
from pymc_trees.core.compile.pointer import by_pointer
from pymc_trees.core.histograms.contract import (
    VECTORISE,
    Bins,
    add_to_histogram,
    make_sums,
    pack_rows,
)
from pymc_trees.core.leaves.normal import NormalData
from pymc_trees.core.leaves.threaded import ThreadedNormal

# ------------------------- Histograms of the normal leaf: integers, which subtract without rounding
#
# With one precision for all rows an entry packs the number of rows and the sum of their residuals
# into one integer, ``count << shift`` plus the sum in units of ``unit[0]``: one addition a row.
# With a precision per row the sum is that of ``w r``, and a second plane holds that of w.


_STEP = 1.0 / 1024.0
_SIXTH = 1.0 / 6.0
_FLOOR = -0.3  # exp(-307): small, and still positive


@njit(cache=True)
def _pack_rows(leaf, packed, unit):
    r, w = leaf.r, leaf.w
    n = r.size
    bits = 1
    while n >> bits:
        bits += 1
    shift = 62 - bits
    one_row = np.int64(1) << shift
    largest, largest_w = 0.0, 0.0
    for i in range(n):
        x = abs(r[i]) if w.size == 1 else w[i] * abs(r[i])
        largest = x if x > largest else largest
    for i in range(w.size):
        largest_w = w[i] if w[i] > largest_w else largest_w
    max_sum = (one_row >> 2) // n  # half of the range: rounding of equal rows must not carry
    unit[0] = largest / max_sum if largest > 0.0 else 1.0
    unit[1] = largest_w / max_sum if largest_w > 0.0 else 1.0
    unit[2] = shift
    scale = 1.0 / unit[0]
    for i in range(n):
        x = r[i] if w.size == 1 else w[i] * r[i]
        packed[0, i] = one_row + np.int64(np.rint(x * scale))
    if w.size > 1:
        for i in range(n):
            packed[1, i] = np.int64(np.rint(w[i] / unit[1]))


@njit(cache=True)
def _add_to_histogram(leaf, packed, rows, start, stop, codes, subset, histogram):
    columns, n, p = subset.columns, subset.n, codes.shape[1]
    for plane in range(1 if leaf.w.size == 1 else 2):
        for k in range(start, stop):
            i = rows[k]
            v = packed[plane, i]
            if n == p:
                for a in range(p):
                    histogram[plane, a, codes[i, a]] += v
            else:
                for a in range(n):
                    histogram[plane, a, codes[i, columns[a]]] += v


@njit(cache=True)
def _tempering(leaf, rows, start, stop):
    """Precision of the node's rows about their mean divided by w, at most 1.

    At a split the residual variance is that of the children, not that of the final tree; with the
    latter, one root would look certain long before the tree below it is known.
    """
    r, w = leaf.r, leaf.w
    all_w, s, ss = 0.0, 0.0, 0.0
    if w.size == 1:
        for k in range(start, stop):
            x = r[rows[k]]
            s += x
            ss += x * x
        all_w, s, ss = w[0] * (stop - start), w[0] * s, w[0] * ss
    else:
        for k in range(start, stop):
            i = rows[k]
            all_w += w[i]
            s += w[i] * r[i]
            ss += w[i] * r[i] * r[i]
    if all_w > 0.0:
        ss -= s * s / all_w
    return min(1.0, (stop - start) / ss) if ss > 0.0 else 1.0


@njit(cache=True, **VECTORISE)
def _prefix_sums(histogram, position, n_codes, shift, count, total):
    half = np.int64(1) << (shift - 1)
    packed_sum = np.int64(0)
    for k in range(n_codes):
        packed_sum += histogram[0, position, k]
        n = (packed_sum + half) >> shift
        count[k] = n
        total[k] = packed_sum - (n << shift)


@njit(cache=True, **VECTORISE)
def _exponents(n, units, total, left_w, left_b, exponent, factor):
    """`normal._log_marginal` of both sides; W in units of the prior, b = (S - W mean) sd."""
    w_unit, b_unit, shrink = units
    all_w, all_b = total
    for k in range(n):
        v = w_unit * left_w[k]
        b = b_unit * left_b[k] - shrink * v
        left, right = 1.0 + v, 1.0 + all_w - v
        both = 1.0 / (left * right)
        # Parnell2018 (1) for both sides
        exponent[k] = 0.5 * both * (right * b * b + left * (all_b - b) * (all_b - b))
        factor[k + 1] = np.sqrt(both)


@njit(cache=True, **VECTORISE)
def _largest(n, exponent):
    top = exponent[n - 1]
    for k in range(n):
        top = exponent[k] if exponent[k] > top else top
    return top


@njit(cache=True, **VECTORISE)
def _times_exp(n, exponent, top, norm, factor):
    """Multiply by exp(exponent - top): ten squarings of the cubic of a 1024th part."""
    for k in range(n):
        y = (exponent[k] - top) * _STEP
        y = y if y > _FLOOR else _FLOOR
        x = 1.0 + y * (1.0 + y * (0.5 + y * _SIXTH))
        x2 = x * x
        x4 = x2 * x2
        x8 = x4 * x4
        x16 = x8 * x8
        x32 = x16 * x16
        x64 = x32 * x32
        x128 = x64 * x64
        x256 = x128 * x128
        x512 = x256 * x256
        factor[k + 1] *= x512 * x512 * norm


@njit(cache=True)
def _score_cuts(leaf, histogram, offsets, subset, power, unit, scores):
    mean, sd, w = leaf.mean, leaf.sd, leaf.w
    columns, gain, log_factor = subset.columns, scores.gain, scores.log_factor
    left_w, left_b, exponent = scores.buffer[0], scores.buffer[1], scores.buffer[2]
    shift = np.int64(unit[2])
    shrink = mean / sd
    w_unit = power * sd * sd * (w[0] if w.size == 1 else unit[1])
    b_unit = power * sd * unit[0] * (w[0] if w.size == 1 else 1.0)
    units = (w_unit, b_unit, shrink)
    by_row = w.size > 1
    for a in range(subset.n):
        n_codes = offsets[columns[a] + 1] - offsets[columns[a]]
        factor = gain[a]
        _prefix_sums(histogram, a, n_codes, shift, left_w, left_b)
        if by_row:
            total = np.int64(0)
            for k in range(n_codes):
                total += histogram[1, a, k]
                left_w[k] = total
        all_w = w_unit * left_w[n_codes - 1]
        all_b = b_unit * left_b[n_codes - 1] - shrink * all_w
        _exponents(n_codes, units, (all_w, all_b), left_w, left_b, exponent, factor)
        top = _largest(n_codes, exponent)
        _times_exp(n_codes, exponent, top, np.sqrt(1.0 + all_w), factor)
        factor[0] = factor[n_codes]  # one side empty
        log_factor[a] = top - exponent[n_codes - 1]


@njit(cache=True)
def _left_stats(leaf, histogram, position, k, unit, out):
    w = leaf.w
    shift = np.int64(unit[2])
    total, total_w = np.int64(0), np.int64(0)
    for code in range(k + 1):
        total += histogram[0, position, code]
    count = (total + (np.int64(1) << (shift - 1))) >> shift
    s = unit[0] * (total - (count << shift))
    if w.size == 1:
        out[0] = w[0] * count
        out[1] = w[0] * s
        return
    for code in range(k + 1):
        total_w += histogram[1, position, code]
    out[0] = unit[1] * total_w
    out[1] = s


for kind in (NormalData, ThreadedNormal):
    register(
        kind,
        histogram_layout=lambda leaf: (1 if leaf.w.size == 1 else 2, np.int64),
        pack_rows=_pack_rows,
        add_to_histogram=_add_to_histogram,
        tempering=_tempering,
        score_cuts=_score_cuts,
        left_stats=_left_stats,
    )


# -------------------------------------------------------------------------------------------------


ROOT, BUFFER, NONE = 0, 1, -1
MAX_BYTES = 64e6
MAX_PER_PARTICLE = 4


@by_pointer
class Histograms(NamedTuple):
    """Histograms of nodes, and the contributions of rows."""

    packed: np.ndarray
    """(D, n), of the dtype of the sums."""
    unit: np.ndarray
    """(3,) float64: units of the integers."""
    sums: np.ndarray
    """(2 + C S, D, p, B): by histogram, number, position of a column, code."""
    slot_of: np.ndarray
    """(C, M) int32: histogram of each node of each particle, or -1."""
    in_use: np.ndarray
    """(C, S) bool: histograms in use of those that belong to a particle."""


@by_pointer
class NodeRows(NamedTuple):
    """A node of a particle, and its rows."""

    particle: int
    node: int
    rows: np.ndarray
    """(n,) uint32: rows of the particle; those of the node are ``rows[start:stop]``."""
    start: int
    stop: int


def make_histograms(leaf, bins: Bins, n_particles: int, max_nodes: int) -> Histograms:
    """Histograms of zeros for ``n_particles``."""
    n, p = bins.codes.shape
    n_codes = int(np.diff(bins.offsets).max())
    single = make_sums(leaf, 1, p, n_codes)
    per_particle = int(min(MAX_PER_PARTICLE, MAX_BYTES // (single.nbytes * n_particles)))
    sums = make_sums(leaf, 2 + n_particles * per_particle, p, n_codes)
    return Histograms(
        np.zeros((sums.shape[1], n), dtype=sums.dtype),
        np.ones(3),
        sums,
        np.full((n_particles, max(max_nodes, 1)), NONE, dtype=np.int32),
        np.zeros((n_particles, per_particle), dtype=np.bool_),
    )


@njit(cache=True)
def _fill(histograms, bins, leaf, subset, rows, start, stop, slot):
    sums = histograms.sums
    sums[slot, :, : subset.n, :] = 0
    add_to_histogram(leaf, histograms.packed, rows, start, stop, bins.codes, subset, sums[slot])


@njit(cache=True)
def fill_root(histograms, bins, leaf, subset, rows):
    """Pack the rows and compute the root's histogram, before any particle grows."""
    slot_of, in_use = histograms.slot_of, histograms.in_use
    pack_rows(leaf, histograms.packed, histograms.unit)
    _fill(histograms, bins, leaf, subset, rows, 0, rows.size, ROOT)
    for c in range(in_use.shape[0]):
        in_use[c] = False
        slot_of[c, 0] = ROOT


@njit(cache=True)
def clear_histograms(histograms, c):
    """Reset particle ``c``, now a copy of another one: its nodes have no histograms."""
    histograms.in_use[c] = False
    histograms.slot_of[c] = NONE


@njit(cache=True)
def histogram_slot(histograms, bins, leaf, subset, node_rows):
    """Histogram of a node, `NodeRows`: stored, or computed now."""
    slot = histograms.slot_of[node_rows.particle, node_rows.node]
    if slot == NONE:
        slot = BUFFER
        _fill(histograms, bins, leaf, subset, node_rows.rows, node_rows.start, node_rows.stop, slot)
    return slot


@njit(cache=True)
def _reserve_slot(in_use, c):
    per_particle = in_use.shape[1]
    for s in range(per_particle):
        if not in_use[c, s]:
            in_use[c, s] = True
            return 2 + c * per_particle + s
    return NONE


@njit(cache=True)
def release_histogram(histograms, c, node):
    """Free the histogram of a node that became a leaf, or whose children need none."""
    slot_of, in_use = histograms.slot_of, histograms.in_use
    slot = slot_of[c, node]
    if slot > BUFFER:
        in_use[c, slot - 2 - c * in_use.shape[1]] = False
    slot_of[c, node] = NONE


@njit(cache=True)
def split_histogram(histograms, bins, leaf, subset, node_rows, left, middle, unsplittable):
    """Histograms of the children of a split node, as long as free ones remain.

    Parameters
    ----------
    node_rows : NodeRows
        The node, whose rows are now partitioned at ``middle``.
    left : int
        Left child; the right one is the next.
    unsplittable : bool
        Whether neither child can be split.
    """
    slot_of, in_use, sums, c = (
        histograms.slot_of,
        histograms.in_use,
        histograms.sums,
        node_rows.particle,
    )
    right = left + 1
    slot_of[c, left] = NONE
    slot_of[c, right] = NONE
    parent_slot = slot_of[c, node_rows.node]
    if parent_slot == NONE:
        return
    smaller_slot = NONE if unsplittable else _reserve_slot(in_use, c)
    if smaller_slot == NONE:
        release_histogram(histograms, c, node_rows.node)
        return
    left_is_smaller = middle - node_rows.start <= node_rows.stop - middle
    smaller, larger = (left, right) if left_is_smaller else (right, left)
    first, last = (node_rows.start, middle) if left_is_smaller else (middle, node_rows.stop)
    _fill(histograms, bins, leaf, subset, node_rows.rows, first, last, smaller_slot)
    larger_slot = _reserve_slot(in_use, c) if parent_slot == ROOT else parent_slot
    slot_of[c, node_rows.node] = NONE
    slot_of[c, smaller] = smaller_slot
    if larger_slot == NONE:
        return
    slot_of[c, larger] = larger_slot
    for d in range(sums.shape[1]):
        for a in range(subset.n):
            for b in range(sums.shape[3]):
                sums[larger_slot, d, a, b] = (
                    sums[parent_slot, d, a, b] - sums[smaller_slot, d, a, b]
                )
