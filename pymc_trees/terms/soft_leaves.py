"""Leaves of soft forests as columns of a linear regression: dense ones, computed row by row.

Every row is in every leaf, with the weights of `core.soft_forest.trees`: given cuts and bandwidths
these are known, and leaf values enter the mean linearly.
"""

import numpy as np

from pymc_trees.core.soft_forest.trees import SoftTrees
from pymc_trees.terms.kernels.soft import add_dense_cross, fill_weights


class SoftLeaves:
    """Coefficients of the leaves of some trees of a soft forest.

    Parameters
    ----------
    forest : SoftForestData
    state : SoftForestState
    settings : Settings
        Of its prior.
    index, factor : (n, r)
        As for `leaves.ForestLeaves`.
    chosen : (t,) int64
        The trees.
    start : int
        Coefficients of the forests before.
    """

    level = None
    """Rows share no leaf as a whole, so that pairs are not counted."""

    def __init__(self, forest, state, settings, index, factor, chosen, start: int):
        self.forest, self.state, self.settings = forest, state, settings
        trees, n_chosen = state.trees, chosen.size
        self.is_whole = n_chosen == trees.size.size
        self.trees = trees if self.is_whole else SoftTrees(*(part[chosen] for part in trees))
        used = np.arange(trees.column.shape[1]) < self.trees.size[:, None]
        tree, node = np.nonzero(used & (self.trees.column < 0))
        self.at = chosen[tree], node
        """Tree and node of each coefficient, in preorder."""
        self.start, self.n_values, self.n = start, node.size, len(factor)
        self.by = np.ascontiguousarray(factor.sum(axis=1))
        """(n,) what the function is multiplied by."""
        mean, sd = settings.leaf[:2]
        self.mean, self.sd = np.full(node.size, mean), np.full(node.size, sd)

    def fixed_outputs(self) -> np.ndarray | float:
        """(n,) what the mean has of the forest apart from the coefficients to be drawn."""
        if self.is_whole:
            return 0.0
        return (self.state.fit - self.forest.add_up(self.trees))[:, 0] * self.by

    def fill(self, block, rows: slice, root) -> np.ndarray:
        """Write and return the coefficients' part of a block of rows of sqrt(W) B.

        Parameters
        ----------
        block : (coefficients of all forests, rows) float64
        root : (n,) float64
            Square roots of precisions.
        """
        part = block[self.start : self.start + self.n_values, : rows.stop - rows.start]
        unit = np.ascontiguousarray(self.forest.unit[:, rows])
        fill_weights(self.trees, unit, self.forest.hard, (self.by * root)[rows], part)
        return part

    def add_products(self, part, rows: slice, root, slots, y, cross, rhs) -> None:
        """Add what the rows of `fill` contribute to B'WG and B'Wy."""
        place, root = slice(self.start, self.start + self.n_values), root[rows]
        rhs[place] += part @ (root * y[rows])
        for slot in slots:
            add_dense_cross(part, slot.column[rows], root * slot.factor[rows], cross[place])

    def store(self, u: np.ndarray):
        """State of the forest with new coefficients, of all forests one after the other."""
        self.state.trees.number[self.at] = u[self.start : self.start + self.n_values]
        return self.forest.store(self.state, self.settings)
