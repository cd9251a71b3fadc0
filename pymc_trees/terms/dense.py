"""Leaves as dense columns of a linear regression: the part that needs no count of shared rows."""

from abc import ABC, abstractmethod

import numpy as np

from pymc_trees.terms.kernels.dense import add_dense_cross

ROWS_AT_ONCE = 512
"""Rows of a block of the dense matrix of leaves."""


class DenseLeaves(ABC):
    """Coefficients of the leaves of some trees of a forest, with columns computed row by row.

    Attributes
    ----------
    start, n_values : int
        The first coefficient among those of all forests, and how many there are.
    mean, sd : (n_values,) float64
        Of their prior.
    """

    start: int
    n_values: int
    mean: np.ndarray
    sd: np.ndarray
    n: int

    @property
    def place(self) -> slice:
        """The coefficients among those of all forests."""
        return slice(self.start, self.start + self.n_values)

    @abstractmethod
    def write(self, part: np.ndarray, rows: slice, root: np.ndarray) -> None:
        """Write rows of sqrt(W) B: (coefficients, rows), given (n,) roots of precisions."""

    @abstractmethod
    def fixed_outputs(self) -> np.ndarray | float:
        """(n,) what the mean has of the forest apart from the coefficients to be drawn."""

    @abstractmethod
    def store(self, u: np.ndarray):
        """State of the forest with new coefficients, of all forests one after the other."""

    def add_products(self, block, rows: slice, root, slots, y, cross, rhs) -> None:
        """Write these leaves' part of a block of rows of sqrt(W) B, and add to B'WG and B'Wy.

        Parameters
        ----------
        block : (coefficients of all forests, rows) float64
        root : (n,) float64
            Square roots of precisions.
        """
        part = block[self.place, : rows.stop - rows.start]
        self.write(part, rows, root)
        root = root[rows]
        rhs[self.place] += part @ (root * y[rows])
        for slot in slots:
            add_dense_cross(part, slot.column[rows], root * slot.factor[rows], cross[self.place])
