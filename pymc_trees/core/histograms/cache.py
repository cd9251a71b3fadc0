"""Histograms stored for the nodes of particles, to avoid reading rows twice.

Histogram 0 is the root's and is shared by all particles, 1 is a buffer for a node without one; each
of the others belongs to one particle. When a node with a histogram is split, that of its smaller
child is summed over the rows, and that of the larger one is the difference.
"""

from typing import NamedTuple

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.compile.pointer import by_pointer
from pymc_trees.core.histograms import normal  # noqa: F401 (registers its kernels)
from pymc_trees.core.histograms.binning import Bins
from pymc_trees.core.histograms.contract import add_to_histogram, make_sums, pack_rows

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
