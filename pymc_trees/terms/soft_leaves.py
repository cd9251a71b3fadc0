"""Leaves of soft forests as columns of a linear regression: dense ones, computed row by row.

Every row is in every leaf, with the weights of `core.soft_forest.trees`: given cuts and bandwidths
these are known, and leaf values enter the mean linearly.
"""

import numpy as np

from pymc_trees.core.soft_forest.trees import SoftTrees
from pymc_trees.terms.dense import DenseLeaves
from pymc_trees.terms.kernels.dense import fill_weights


class SoftLeaves(DenseLeaves):
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

    def fixed_outputs(self):
        """(n,) what the mean has of the forest apart from the coefficients to be drawn."""
        if self.is_whole:
            return 0.0
        return (self.state.fit - self.forest.add_up(self.trees))[:, 0] * self.by

    def write(self, part, rows, root):
        """Write rows of sqrt(W) B."""
        unit = np.ascontiguousarray(self.forest.unit[:, rows])
        fill_weights(self.trees, unit, self.forest.hard, (self.by * root)[rows], part)

    def store(self, u):
        """State of the forest with new coefficients, of all forests one after the other."""
        self.state.trees.number[self.at] = u[self.place]
        return self.forest.store(self.state, self.settings)
