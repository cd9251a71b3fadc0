"""Specification of an encoded forest of soft trees, the value a PyMC variable holds.

A forest of ``m`` trees is a C-contiguous float64 array of shape ``(rows, 2)``. Its node rows, 0 to
``max_nodes - 1``, hold all trees in preorder (node, left subtree, right subtree), one after
another:

===== ==================== ============== ===================
field split node           leaf           unused row
===== ==================== ============== ===================
0     column, 0 .. p - 1   ``LEAF`` = -1  ``UNUSED`` = -2
1     cut in [0, 1]        leaf value     0
===== ==================== ============== ===================

Cuts are on the scale of `unit`. The rows after them, read as one flat vector and padded with 0:

============================ ===============================================================
entries                      meaning
============================ ===============================================================
0                            checksum of the declaration's fingerprint and every other entry
1 .. m                       bandwidths of the trees, on the scale of `unit`
============================ ===============================================================

A value whose checksum does not match evaluates to NaN and has log-probability -inf.
"""

from typing import NamedTuple

BANDWIDTHS = 1


class SoftLayout(NamedTuple):
    """Sizes of one encoded forest; hashable, so that a PyTensor Op can hold it."""

    m: int
    """Number of trees."""
    max_nodes: int
    """Node rows, over all trees."""
    n_rows: int
    """Training rows n."""

    @property
    def n_values(self) -> int:
        """Values per leaf."""
        return 1

    @property
    def n_outputs(self) -> int:
        """Outputs per row."""
        return 1

    @property
    def fields(self) -> int:
        """Entries of a row."""
        return 2

    @property
    def stamp(self) -> tuple:
        """Fields that identify the layout."""
        return ("soft", *self)

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the encoded value."""
        return self.max_nodes + -(-(BANDWIDTHS + self.m) // 2), 2


class SoftSizes(NamedTuple):
    """`SoftLayout` as the kernels take it."""

    m: int
    max_nodes: int
    n_rows: int
    rows: int


def soft_sizes(layout: SoftLayout) -> SoftSizes:
    """Numbers of a layout for the kernels."""
    return SoftSizes(*layout, layout.shape[0])
