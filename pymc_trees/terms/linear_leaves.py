"""Leaves with slopes as columns of a linear regression: intercepts, and the slopes that exist.

Which slopes a leaf has (its path, and whether it is constant instead) is given, as the trees are.
"""

import numpy as np

from pymc_trees.core.leaves.coefficients import PARENT
from pymc_trees.terms.dense import ROWS_AT_ONCE, DenseLeaves
from pymc_trees.terms.kernels.dense import fill_lines
from pymc_trees.terms.kernels.gram import number_leaves


def coefficients_of(trees, nodes: np.ndarray, kind: int) -> tuple[np.ndarray, np.ndarray]:
    """Which entries of its values each leaf has: (p,) places of leaves, and entries.

    Parameters
    ----------
    nodes : (L,) int64
        The leaves.
    kind : int
        As in `core.leaves.coefficients.LinearData`.
    """
    code = np.maximum(trees.values[nodes, -1], 0.0).astype(np.int64)
    n_slopes = trees.values.shape[1] - 2
    if kind == PARENT:
        has = code[:, None] > 0
    else:
        has = (code[:, None] >> np.arange(n_slopes)) & 1 == 1
    return np.nonzero(np.column_stack([np.ones(len(nodes), dtype=bool), has]))


class LinearLeaves(DenseLeaves):
    """Coefficients of the leaves of some trees of a forest with a `LinearLeaf`.

    Parameters
    ----------
    forest, state, settings, index, factor, chosen, start
        As for `leaves.ForestLeaves`.
    """

    def __init__(self, forest, state, settings, index, factor, chosen, start: int):
        self.forest, self.state, self.settings = forest, state, settings
        self.chosen, self.start, self.n = chosen, start, len(factor)
        trees, lines = state.trees, forest.target.likelihood.outputs
        number = np.zeros(trees.column.size, dtype=np.int64)
        first = np.empty(chosen.size + 1, dtype=np.int64)
        nodes = number_leaves(trees, chosen, state.work.nodes, number, first)
        leaf, entry = coefficients_of(trees, nodes, lines.kind)
        self.at = nodes[leaf], entry
        """Node and entry of each coefficient."""
        self.n_values, self.z = leaf.size, lines.z
        self.slope = entry - 1
        if lines.kind == PARENT:
            code = trees.values[nodes[leaf], -1].astype(np.int64)
            self.slope = np.where(entry > 0, code - 1, -1)
        ends = np.cumsum(np.bincount(leaf, minlength=nodes.size))
        self.begin, self.end = (np.zeros(number.size, dtype=np.int64) for _ in range(2))
        self.begin[nodes], self.end[nodes] = np.concatenate([[0], ends[:-1]]), ends
        self.by = np.ascontiguousarray(factor.sum(axis=1))
        """(n,) what the function is multiplied by."""
        mean, sd, slope_sd = settings.leaf[:3]
        self.mean, self.sd = np.where(entry > 0, 0.0, mean), np.where(entry > 0, slope_sd, sd)

    def write(self, part, rows, root):
        """Write rows of sqrt(W) B."""
        part[:] = 0.0
        by = (self.by * root)[rows]
        lines = self.begin, self.end, self.slope, self.z, by, rows.start, part
        fill_lines(self.state.trees.leaf_of, self.chosen, *lines)

    def fixed_outputs(self):
        """(n,) what the mean has of the forest apart from the coefficients to be drawn."""
        trees = self.state.trees
        if self.chosen.size == trees.roots.size:
            return 0.0
        one, drawn = np.ones(self.n), np.empty(self.n)
        for first in range(0, self.n, ROWS_AT_ONCE):
            rows = slice(first, min(first + ROWS_AT_ONCE, self.n))
            columns = np.empty((self.n_values, rows.stop - first))
            self.write(columns, rows, one)
            drawn[rows] = trees.values[self.at] @ columns
        return self.state.fit[:, 0] * self.by - drawn

    def store(self, u):
        """State of the forest with new coefficients, of all forests one after the other."""
        self.state.trees.values[self.at] = u[self.place]
        return self.forest.store(self.state, self.settings)
