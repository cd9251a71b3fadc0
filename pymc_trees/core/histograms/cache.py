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
_MOST_BYTES = 64e6
_EACH = 4


@by_pointer
class Histograms(NamedTuple):
    """Histograms of nodes, and the contributions of rows."""

    packed: np.ndarray
    """(D, n), of the dtype of the sums."""
    unit: np.ndarray
    """(3,) float64: units of the integers."""
    sums: np.ndarray
    """(2 + C S, D, p, B): by histogram, number, place of a column, code."""
    of_node: np.ndarray
    """(C, M) int32: histogram of each node of each particle, or -1."""
    taken: np.ndarray
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
    one = make_sums(leaf, 1, p, n_codes)
    each = int(min(_EACH, _MOST_BYTES // (one.nbytes * n_particles)))
    sums = make_sums(leaf, 2 + n_particles * each, p, n_codes)
    return Histograms(
        np.zeros((sums.shape[1], n), dtype=sums.dtype),
        np.ones(3),
        sums,
        np.full((n_particles, max(max_nodes, 1)), NONE, dtype=np.int32),
        np.zeros((n_particles, each), dtype=np.bool_),
    )


@njit(cache=True)
def _fill(histograms, bins, leaf, subset, rows, start, stop, at):
    sums = histograms.sums
    sums[at, :, : subset.n, :] = 0
    add_to_histogram(leaf, histograms.packed, rows, start, stop, bins.codes, subset, sums[at])


@njit(cache=True)
def fill_root(histograms, bins, leaf, subset, rows):
    """Pack the rows and compute the root's histogram, before any particle grows."""
    of_node, taken = histograms.of_node, histograms.taken
    pack_rows(leaf, histograms.packed, histograms.unit)
    _fill(histograms, bins, leaf, subset, rows, 0, rows.size, ROOT)
    for c in range(taken.shape[0]):
        taken[c] = False
        of_node[c, 0] = ROOT


@njit(cache=True)
def forget(histograms, c):
    """Reset particle ``c``, now a copy of another one: its nodes have no histograms."""
    histograms.taken[c] = False
    histograms.of_node[c] = NONE


@njit(cache=True)
def histogram_of(histograms, bins, leaf, subset, at):
    """Histogram of a node, `NodeRows`: stored, or computed now."""
    found = histograms.of_node[at.particle, at.node]
    if found == NONE:
        found = BUFFER
        _fill(histograms, bins, leaf, subset, at.rows, at.start, at.stop, found)
    return found


@njit(cache=True)
def _take(taken, c):
    each = taken.shape[1]
    for s in range(each):
        if not taken[c, s]:
            taken[c, s] = True
            return 2 + c * each + s
    return NONE


@njit(cache=True)
def release(histograms, c, node):
    """Free the histogram of a node that became a leaf, or whose children need none."""
    of_node, taken = histograms.of_node, histograms.taken
    found = of_node[c, node]
    if found > BUFFER:
        taken[c, found - 2 - c * taken.shape[1]] = False
    of_node[c, node] = NONE


@njit(cache=True)
def divide(histograms, bins, leaf, subset, at, left, middle, unsplittable):
    """Histograms of the children of a split node, as long as free ones remain.

    Parameters
    ----------
    at : NodeRows
        The node, whose rows are now partitioned at ``middle``.
    left : int
        Left child; the right one is the next.
    unsplittable : bool
        Whether neither child can be split.
    """
    of_node, taken, sums, c = histograms.of_node, histograms.taken, histograms.sums, at.particle
    right = left + 1
    of_node[c, left] = NONE
    of_node[c, right] = NONE
    whole = of_node[c, at.node]
    if whole == NONE:
        return
    part = NONE if unsplittable else _take(taken, c)
    if part == NONE:
        release(histograms, c, at.node)
        return
    left_is_smaller = middle - at.start <= at.stop - middle
    smaller, larger = (left, right) if left_is_smaller else (right, left)
    first, last = (at.start, middle) if left_is_smaller else (middle, at.stop)
    _fill(histograms, bins, leaf, subset, at.rows, first, last, part)
    rest = _take(taken, c) if whole == ROOT else whole
    of_node[c, at.node] = NONE
    of_node[c, smaller] = part
    if rest == NONE:
        return
    of_node[c, larger] = rest
    for d in range(sums.shape[1]):
        for a in range(subset.n):
            for b in range(sums.shape[3]):
                sums[rest, d, a, b] = sums[whole, d, a, b] - sums[part, d, a, b]
