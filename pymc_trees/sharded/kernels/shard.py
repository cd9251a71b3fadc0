"""The work of a shard: one pass over its rows for each visit of a tree.

The pass subtracts the new leaf values of the previous tree from the residuals, adds the values of
the next tree, sums residuals by leaf, and sends the rows of leaves that would be replaced down the
proposed rules.
"""

from typing import NamedTuple

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.compile.pointer import DirectCalls, by_pointer
from pymc_trees.core.forest.trees import label_type

# ------------------------ Messages from the driver to a shard, and the answers: one round trip each
#
# Nodes are numbered as in the driver's pool (`core.forest.trees`). A shard stores the leaf of each
# row in each tree, but not the trees.


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


# -------------------------------------------------------------------------------------------------


@by_pointer
class ShardData(NamedTuple):
    """Data that a shard receives at the start of a run."""

    columns: np.ndarray
    """(p, n) cells of its rows, as in `core.columns.design`."""
    varying: np.ndarray
    """(p,) bool: whether a column varies over all rows, and may be split."""
    target: np.ndarray
    """(n,) int64: what the sum of trees is fitted to, in fixed-point units (`messages`)."""
    n_trees: int
    max_nodes: int


@by_pointer
class ShardState(NamedTuple):
    """State of a shard's rows in one chain."""

    columns: np.ndarray
    varying: np.ndarray
    residual: np.ndarray
    """(n,) int64: target minus the sum of trees, without the open tree if there is one."""
    labels: np.ndarray
    """(m, n), as `Trees.leaf_of`."""
    proposed: np.ndarray
    """(n,) int32: place of the row in the rules proposed last, -1 if they do not concern it."""
    value: np.ndarray
    """(2, N) int64, by node: of the closed and the opened tree."""
    place: np.ndarray
    """(N,) int32, by node: place among the opened leaves."""
    inside: np.ndarray
    """(N,) bool, by node: whether it is queried; all False between messages."""


def make_state(part: ShardData) -> ShardState:
    """State in which every tree is a stump of value 0, whose node is numbered as the tree."""
    n, m, most = part.target.size, part.n_trees, part.max_nodes
    labels = np.repeat(np.arange(m, dtype=label_type(most))[:, None], n, axis=1)
    return ShardState(
        part.columns,
        part.varying,
        part.target.copy(),
        labels,
        np.full(n, -1, dtype=np.int32),
        np.zeros((2, most), dtype=np.int64),
        np.zeros(most, dtype=np.int32),
        np.zeros(most, dtype=np.bool_),
    )


@njit(cache=True, nogil=True)
def _pass(rows, moved, closed, opened, rules, sums, count, total, low, high):
    """Close a tree and open the next; return the largest absolute residual."""
    columns, residual, labels, proposed = rows.columns, rows.residual, rows.labels, rows.proposed
    value, place, inside = rows.value, rows.place, rows.inside
    for k in range(closed.nodes.size):
        value[0, closed.nodes[k]] = closed.values[k]
    for k in range(opened.nodes.size):
        value[1, opened.nodes[k]] = opened.values[k]
        place[opened.nodes[k]] = k
    for k in range(rules.replaced.size):
        inside[rules.replaced[k]] = True
    largest = 0
    for i in range(residual.size):
        r = residual[i]
        if closed.tree >= 0:
            if moved.size > 0 and proposed[i] >= 0:
                labels[closed.tree, i] = moved[proposed[i]]
            r -= value[0, labels[closed.tree, i]]
        at = -1
        if opened.tree >= 0:
            node = labels[opened.tree, i]
            r += value[1, node]
            sums[place[node]] += r
            if inside[node]:
                at = 0
                column = rules.column[0]
                while column >= 0:
                    cell = float(columns[column, i])
                    low[at], high[at] = min(low[at], cell), max(high[at], cell)
                    at = rules.left[at] if cell <= rules.cut[at] else rules.right[at]
                    column = rules.column[at]
                count[at] += 1
                total[at] += r
        proposed[i] = at
        residual[i] = r
        largest = max(largest, abs(r))
    for k in range(rules.replaced.size):
        inside[rules.replaced[k]] = False
    return largest


@njit(cache=True, nogil=True)
def _node_summary(rows, first, varies):
    """Cells of the first row at each place of the rules, and which columns vary there.

    A place is complete when all columns that can vary do, usually after a few rows.
    """
    columns, varying, proposed = rows.columns, rows.varying, rows.proposed
    n_places, p = first.shape
    pending = np.empty((n_places, p), dtype=np.int32)
    left, seen = np.zeros(n_places, dtype=np.int64), np.zeros(n_places, dtype=np.bool_)
    unsettled = 0
    for k in range(n_places):
        for j in range(p):
            if varying[j]:
                pending[k, left[k]] = j
                left[k] += 1
        unsettled += left[k] > 0
    for i in range(proposed.size):
        k = proposed[i]
        if k < 0 or (seen[k] and left[k] == 0):
            continue
        if not seen[k]:
            seen[k] = True
            for j in range(p):
                first[k, j] = columns[j, i]
            continue
        at = 0
        while at < left[k]:
            j = pending[k, at]
            if columns[j, i] != first[k, j]:
                varies[k, j] = True
                left[k] -= 1
                pending[k, at] = pending[k, left[k]]
            else:
                at += 1
        if left[k] == 0:
            unsettled -= 1
            if unsettled == 0:
                return


@njit(cache=True, nogil=True)
def _extent(rows, asked, out):
    """Smallest and largest cell of a column in some leaves."""
    inside, labels, cells = rows.inside, rows.labels[asked.tree], rows.columns[asked.column]
    low, high = np.inf, -np.inf
    for k in range(asked.nodes.size):
        inside[asked.nodes[k]] = True
    for i in range(labels.size):
        if inside[labels[i]]:
            cell = float(cells[i])
            low, high = min(low, cell), max(high, cell)
    for k in range(asked.nodes.size):
        inside[asked.nodes[k]] = False
    out[0], out[1] = low, high


def visit(call: DirectCalls, rows: ShardState, message: Message) -> Answer:
    """Process a message and return the answer."""
    moved, closed, opened, rules, asked, squares, fit = message
    n_places, p = rules.column.size, rows.columns.shape[0]
    sums = np.zeros(opened.nodes.size, dtype=np.int64)
    count, total = np.zeros((2, n_places), dtype=np.int64)
    low, high = np.full(n_places, np.inf), np.full(n_places, -np.inf)
    first, varies = np.zeros((n_places, p)), np.zeros((n_places, p), dtype=np.bool_)
    extent = np.array([np.inf, -np.inf])
    given = (moved, closed, opened, rules, sums, count, total, low, high)
    largest = call(_pass, rows, *given)
    if n_places > 0:
        call(_node_summary, rows, first, varies)
    if asked.tree >= 0:
        call(_extent, rows, asked, extent)
    high_half, low_half = call(square_sum, rows.residual) if squares else (0, 0)
    return Answer(
        sums,
        Counted(count, total, low, high, first, varies),
        extent,
        int(largest),
        (int(high_half) << 64) | int(low_half),
        rows.residual.copy() if fit else np.empty(0, dtype=np.int64),
    )


class Shard:
    """One shard, with its state in every chain; an actor of a cluster."""

    def __init__(self, part: ShardData, chains: int):
        part, self.call = _own(part), DirectCalls()
        self.rows = [make_state(part) for _ in range(chains)]

    def visit(self, messages: dict[int, Message]) -> dict[int, Answer]:
        """Answers to the messages, by chain."""
        return {
            chain: visit(self.call, self.rows[chain], _own(message))
            for chain, message in messages.items()
        }


def _own(numbers):
    """Copy with writable arrays: transport may have made them read-only."""
    if isinstance(numbers, tuple):
        return type(numbers)(*map(_own, numbers))
    if isinstance(numbers, np.ndarray) and not numbers.flags.carray:
        return np.require(numbers, None, ["C", "W"])
    return numbers
