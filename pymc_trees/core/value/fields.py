"""Specification of the encoded forest, the value of a PyMC variable.

A forest of ``m`` trees is a C-contiguous float64 array of shape ``(rows, fields)``.

Node rows, ``0 .. max_nodes - 1``: all trees in preorder (node, left subtree, right subtree), one
after another; then unused rows.

========= ======================= ============================ ==================
field     split node              leaf                         unused row
========= ======================= ============================ ==================
0         split column, 0 .. p-1, ``LEAF`` = -1                ``UNUSED`` = -2
          plus p times rule_kind
1         cut: ``x <= cut`` left  first leaf value             0
2 .. V    0                       further leaf values          0
last      split time (`timed`)    0, or as above               0
========= ======================= ============================ ==================

``V`` is the number of values of a leaf (1: mean; 2: mean and precision; as many as there are
classes: probabilities), and ``fields = 1 + max(V, 1)``, at least 3 when splits have times (`timed`,
trees of a Mondrian process). A node reads only the fields of its kind of split. A leaf has ``K``
outputs at a row: its values, unless these are coefficients (`core.leaves.contract.leaf_output`).

The ``rule_kind`` is 0 unless the layout is ``mixed``: the training columns have levels or missing
cells. Then it tells on which side missing rows go, and whether field 1 is a cut or a set of levels,
as an integer below 2**50 (`columns.mixed`). No layout is both ``mixed`` and ``timed``.

Certificate, the rows after ``max_nodes``, read as one flat vector and padded with 0:

=================================== ==================================================
entries                             meaning
=================================== ==================================================
0                                   52-bit checksum of the design's fingerprint and of every other
                                    entry of the value, stored as a whole number
1                                   sum over split nodes of the log density of the cut
2                                   sum over split nodes of the log probability of the column
                                    under the split weights of the declaration
3 .. 2 + ceil(leaves_max / 52)      bit b of word w is 1 when leaf 52 w + b (in preorder over the
                                    whole forest) is unsplittable: its training rows are all alike
next 3 (``timed`` only)             `TIME_TERMS`: what the times add to the log prior,
                                    ``terms[0] - lifetime * terms[1]``, and the last split's time
=================================== ==================================================

The checksum protects the value: if any other code writes to it, it no longer matches, evaluates to
NaN and has log-probability -inf. Only `encode` writes it.
"""

import hashlib
from typing import NamedTuple

import numpy as np

from pymc_trees.core.columns.table_file import row_blocks
from pymc_trees.core.compile.cache import njit

LEAF = -1
UNUSED = -2

CHECKSUM = 0
LOG_CUTS = 1
LOG_COLUMNS = 2
UNSPLITTABLE = 3
BITS = 52
TIME_TERMS = 3


class Layout(NamedTuple):
    """Sizes of one encoded forest; hashable, so that a PyTensor Op can hold it."""

    m: int
    """Number of trees."""
    max_nodes: int
    """Node rows, over all trees."""
    n_values: int
    """Values per leaf, V."""
    n_rows: int
    """Training rows n."""
    mixed: bool = False
    """Whether the training columns have levels or missing cells."""
    timed: bool = False
    """Whether splits have times: trees of a Mondrian process."""
    own_outputs: int | None = None
    """Outputs of a leaf at a row if they are not its values."""

    @property
    def n_outputs(self) -> int:
        """Outputs of a leaf at a row, K."""
        return self.n_values if self.own_outputs is None else self.own_outputs

    @property
    def stamp(self) -> tuple:
        """Fields that identify the layout; without ``own_outputs`` if there are none."""
        return tuple(self[:-1] if self.own_outputs is None else self)

    @property
    def fields(self) -> int:
        """Entries of a row."""
        return 1 + max(self.n_values, 2 if self.timed else 1)

    @property
    def unsplittable_words(self) -> int:
        """Words that hold the unsplittable bits of the largest forest."""
        return ((self.max_nodes + self.m) // 2 + BITS - 1) // BITS

    @property
    def stop(self) -> int:
        """Entries of the certificate before the padding."""
        return UNSPLITTABLE + self.unsplittable_words + (TIME_TERMS if self.timed else 0)

    @property
    def rows(self) -> int:
        """Rows of the value: nodes and certificate."""
        return self.shape[0]

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the encoded value."""
        return self.max_nodes + -(-self.stop // self.fields), self.fields


class Sizes(NamedTuple):
    """`Layout` as the kernels take it."""

    m: int
    max_nodes: int
    n_values: int
    n_rows: int
    stop: int
    rows: int
    mixed: bool
    fields: int
    timed: bool
    n_outputs: int


def sizes(layout: Layout) -> Sizes:
    """Numbers of a layout for the kernels."""
    return Sizes(*(getattr(layout, name) for name in Sizes._fields))


# ------ The checksum of an encoded value: 52 bits over a declaration's fingerprint and every entry
#
# Forests and soft trees use the same one; only its position differs.


_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_FOLD = np.uint64(29)
_KEEP = np.uint64(12)


def fingerprint(*parts) -> float:
    """52-bit fingerprint, as a whole float, of arrays and of anything with a faithful repr."""
    digest = hashlib.sha256()
    for part in parts:
        if isinstance(part, np.ndarray):
            digest.update(f"{part.dtype}{part.shape}".encode())
            for block in [part] if part.ndim != 2 else (rows for _, rows in row_blocks(part)):
                digest.update(np.ascontiguousarray(block).reshape(-1).view(np.uint8))
        else:
            digest.update(repr(part).encode())
    return float(int.from_bytes(digest.digest()[:8], "little") >> 12)


@njit(cache=True)
def _mix(state, word):
    state = (state ^ word) * _MULTIPLIER
    return state ^ (state >> _FOLD)


@njit(cache=True)
def checksum(value, skip, fingerprint):
    """52-bit checksum of a C-contiguous value without entry ``skip``, a whole float."""
    words = value.reshape(-1).view(np.uint64)
    # Four chains hide the latency of the multiplication.
    a = np.uint64(fingerprint)
    b = ~a
    c = a ^ _MULTIPLIER
    d = ~c
    start = 0
    for end in (skip, words.size):
        k = start
        while k + 4 <= end:
            a = _mix(a, words[k])
            b = _mix(b, words[k + 1])
            c = _mix(c, words[k + 2])
            d = _mix(d, words[k + 3])
            k += 4
        while k < end:
            a = _mix(a, words[k])
            k += 1
        start = skip + 1
    total = _mix(_mix(_mix(_mix(a, b), c), d), np.uint64(words.size))
    return float(total >> _KEEP)


@njit(cache=True)
def compute_checksum(value, max_nodes, fingerprint):
    """Checksum of a forest; the checksum entry itself is left out."""
    return checksum(value, max_nodes * value.shape[1] + CHECKSUM, fingerprint)


@njit(cache=True)
def is_intact(value, max_nodes, fingerprint):
    """Whether the value is unchanged since `encode` made it for this design."""
    return value[max_nodes, CHECKSUM] == compute_checksum(value, max_nodes, fingerprint)
