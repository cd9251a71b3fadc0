"""Messages from the driver to a shard, and the answers: one round trip each.

Nodes are numbered as in the driver's pool (`core.forest.trees`). A shard stores the leaf of each
row in each tree, but not the trees.
"""

from typing import NamedTuple

import numpy as np

from pymc_trees.core.compile.cache import njit

NO_NODES = np.empty(0, dtype=np.int32)
NO_VALUES = np.empty(0, dtype=np.int64)


class Leaves(NamedTuple):
    """Leaves of one tree."""

    tree: int
    """-1 for none."""
    nodes: np.ndarray
    """(L,) int32."""
    values: np.ndarray
    """(L,) int64: their values, in fixed-point units (`messages`)."""


class Rules(NamedTuple):
    """Subtree proposed to replace some leaves: K nodes in preorder, or none."""

    replaced: np.ndarray
    """(R,) int32: the replaced leaves."""
    column: np.ndarray
    """(K,) int32: split column; -1 for a leaf."""
    cut: np.ndarray
    """(K,) float64."""
    left: np.ndarray
    """(K,) int32: place of the left child."""
    right: np.ndarray
    """(K,) int32: place of the right child."""


class Extent(NamedTuple):
    """Query for the range of a column in some leaves of a tree."""

    tree: int
    """-1 for none."""
    nodes: np.ndarray
    """(A,) int32: the leaves."""
    column: int


class Message(NamedTuple):
    """One round trip; fields in the order of processing."""

    moved: np.ndarray
    """(K,) int32: the node that each place of the previous rules became; empty if these were
    rejected."""
    closed: Leaves
    """Tree whose new leaf values are subtracted from the residuals."""
    opened: Leaves
    """Tree that is visited next, whose leaf values are added to the residuals."""
    rules: Rules
    """Proposal for the opened tree."""
    extent: Extent
    """Query about another tree."""
    squares: bool
    """Whether to return the sum of squared residuals."""
    fit: bool
    """Whether to return the residuals, at the end of a run."""


class Counted(NamedTuple):
    """Statistics of the rows that the proposed rules send to each of their K places.

    ``count``, ``sum``, ``first`` and ``varies`` are filled in at leaves only.
    """

    count: np.ndarray
    """(K,) int64: number of rows."""
    sum: np.ndarray
    """(K,) int64: sum of residuals."""
    low: np.ndarray
    """(K,) float64: smallest cell of the split column; inf without rows."""
    high: np.ndarray
    """(K,) float64: largest cell of the split column; -inf without rows."""
    first: np.ndarray
    """(K, p) float64: cells of one of the rows."""
    varies: np.ndarray
    """(K, p) bool: whether a column has different cells."""


class Answer(NamedTuple):
    """Answer of one shard about its rows, or of all shards (`total`)."""

    sums: np.ndarray
    """(L,) int64: sum of residuals in each leaf of the opened tree."""
    counted: Counted
    extent: np.ndarray
    """(2,) float64: smallest and largest queried cell."""
    largest: int
    """Largest absolute residual."""
    squares: int
    """Sum of squared residuals without the opened tree, or 0 if not queried."""
    fit: np.ndarray
    """(n,) int64: residuals, or empty."""


NO_LEAVES = Leaves(-1, NO_NODES, NO_VALUES)
NO_RULES = Rules(NO_NODES, NO_NODES, np.empty(0), NO_NODES, NO_NODES)
NO_EXTENT = Extent(-1, NO_NODES, 0)


def total(answers: list[Answer]) -> Answer:
    """Answer about all rows from those of the shards, in order; sums of integers are exact."""
    parts = Answer(*zip(*answers, strict=True))
    extents = np.stack(parts.extent)
    return Answer(
        np.add.reduce(parts.sums),
        _all_counted(parts.counted),
        np.array([extents[:, 0].min(), extents[:, 1].max()]),
        max(parts.largest),
        sum(parts.squares),
        np.concatenate(parts.fit),
    )


def _all_counted(counted) -> Counted:
    parts = Counted(*zip(*counted, strict=True))
    first, varies = parts.first[0].copy(), np.logical_or.reduce(parts.varies)
    occupied = parts.count[0] > 0
    for count, cells in zip(parts.count[1:], parts.first[1:], strict=True):
        here = count > 0
        varies |= (occupied & here)[:, None] & (cells != first)
        fresh = here & ~occupied
        first[fresh] = cells[fresh]
        occupied |= here
    return Counted(
        np.add.reduce(parts.count),
        np.add.reduce(parts.sum),
        np.minimum.reduce(parts.low),
        np.maximum.reduce(parts.high),
        first,
        varies,
    )


# ------- Residuals as integer multiples of a power of two: sums are exact and independent of order
#
# A sum of floating-point numbers depends on the order of additions, and so on the distribution of
# rows over shards. Here the response is rounded once, and each leaf value when it is drawn, to
# multiples of one unit; residuals and their sums are then 64-bit integers.


MAX_SUM = 2.0**62
"""Bound on the absolute value of sums of residuals."""
HEADROOM = 4
"""Bits by which residuals may exceed their expected scale."""
PRECISION = 44
"""Maximal number of bits of the scale in units."""

_HALF = np.uint64(32)
_LOW = np.uint64(2**32 - 1)


def unit_of(scale: float, n: int) -> float:
    """Unit, a power of two, of the residuals of n rows with a given ``scale``.

    ``2**-44`` of the scale, and a coarser one above 16,000 rows: ``2**-38`` for a million.
    """
    bits = min(PRECISION, 62 - HEADROOM - int(np.ceil(np.log2(n))))
    return float(2.0 ** (np.ceil(np.log2(scale)) - bits))


def to_fixed(values: np.ndarray, unit: float) -> np.ndarray:
    """Numbers rounded to integer multiples of the unit."""
    return np.rint(np.asarray(values, dtype=np.float64) / unit).astype(np.int64)


@njit(cache=True)
def square_sum(residual):
    """Sum of squares as a number of 128 bits: its high half, then its low half."""
    high, low = np.uint64(0), np.uint64(0)
    for i in range(residual.size):
        size = np.uint64(abs(residual[i]))
        a, b = size >> _HALF, size & _LOW
        middle = a * b  # below 2**62, as a is below 2**30
        square = b * b
        first = square + ((middle & (_LOW >> np.uint64(1))) << np.uint64(33))
        high += a * a + (middle >> np.uint64(31)) + np.uint64(first < square)
        total = low + first
        high += np.uint64(total < low)
        low = total
    return high, low
