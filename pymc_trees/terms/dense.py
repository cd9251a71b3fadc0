"""Leaves as dense columns of a linear regression: the part that needs no count of shared rows."""

from abc import ABC, abstractmethod

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.soft_forest.trees import leaf_weights

# ------ Dense columns of leaves (weights in soft trees, lines), and their products with sparse ones


@njit(cache=True)
def fill_weights(trees, unit, hard, by, block):
    """Write the weight of each leaf at some rows, times a number for each row.

    Parameters
    ----------
    trees : SoftTrees
    unit, hard
        As in `core.soft_forest.trees.sum_trees`.
    by : (n,) float64
    block : (p, n) float64
        Leaves in preorder, tree by tree.
    """
    n, first = by.size, 0
    path = np.empty(((trees.size.max() + 1) // 2 + 1, n))
    for t in range(trees.size.size):
        end = first + (trees.size[t] + 1) // 2
        path[0, :] = 1.0
        out = block[first:end]
        leaf_weights(trees.column[t], trees.number[t], trees.bandwidth[t], 0, unit, hard, path, out)
        for a in range(first, end):
            for i in range(n):
                block[a, i] *= by[i]
        first = end


@njit(cache=True)
def add_dense_cross(block, column, factor, cross):
    """Add to B'WG: row i of (p, n) ``block`` has ``factor[i]`` in the entry ``column[i]``."""
    for a in range(block.shape[0]):
        for i in range(column.size):
            cross[a, column[i]] += block[a, i] * factor[i]


@njit(cache=True)
def fill_lines(leaf_of, chosen, begin, end, slope, z, by, first_row, block):
    """Write what coefficients of linear leaves are multiplied by at some rows, times ``by``.

    Parameters
    ----------
    leaf_of, chosen
        As in `gram.set_bits`.
    begin, end : (max_nodes,) int64
        The coefficients of each leaf, by node.
    slope : (p,) int64
        Which column of ``z`` a coefficient is the slope of; -1 for an intercept.
    z : (n, d) float64
    by : (rows,) float64
    block : (p, rows) float64
        0 before.
    """
    for t in chosen:
        labels = leaf_of[t]
        for i in range(by.size):
            row = first_row + i
            node = labels[row]
            for c in range(begin[node], end[node]):
                block[c, i] = by[i] if slope[c] < 0 else by[i] * z[row, slope[c]]


# -------------------------------------------------------------------------------------------------


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
