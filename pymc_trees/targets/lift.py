"""A number added to a forest at every row: the leaf values, and their prior.

With w_t >= 0 of sum 1, adding w_t delta to each leaf value of tree t adds delta at every row.
Here w_t = (1 / L_t) / sum_s (1 / L_s), L_t being the number of leaves of tree t: of all weights by
tree they resist a shift least. Of normal leaf values of mean mu and sd s the log density is, with
W = sum_t 1 / L_t and the mean a_t of tree t's leaf values less mu,

    -(delta^2 / 2 + delta sum_t a_t) / (W s^2).
"""

from math import fsum
from typing import NamedTuple

import numpy as np

from pymc_trees.core.forest.trees import Trees
from pymc_trees.core.leaves.normal import NormalData
from pymc_trees.core.leaves.threaded import ThreadedNormal
from pymc_trees.core.soft_forest.trees import SoftTrees
from pymc_trees.targets.settings import Settings


class Lift(NamedTuple):
    """One output of a forest as a function of a shift."""

    values: np.ndarray
    """Leaf values of all nodes, changed in place."""
    at: tuple
    """Index of the leaves' values of this output among them."""
    share: np.ndarray
    """By leaf: its weight."""
    precision: float
    slope: float
    """The log density of the leaf values is slope delta - precision delta^2 / 2, less that at 0."""

    @classmethod
    def of(cls, trees: Trees | SoftTrees, settings: Settings, leaf: str, output: int) -> "Lift":
        """Of an output of the trees of a forest, and of the leaf prior of a name."""
        if isinstance(trees, SoftTrees):
            used = np.arange(trees.column.shape[1]) < trees.size[:, None]
            tree, node = np.nonzero(used & (trees.column < 0))
            values = trees.number
            at: tuple = (tree, node)
        else:
            tree, node = leaves_of(trees)
            values, at = trees.values, (node, output)
        n_leaves = np.bincount(tree)
        share = 1.0 / (n_leaves[tree] * np.sum(1.0 / n_leaves))
        if leaf == "normal_gamma":
            mean, precision = 0.0, settings.leaf[0] * values[node, 1]
        else:
            mean, sd = (v[output] if np.ndim(v) else v for v in settings.leaf[:2])
            precision = np.full(tree.size, sd**-2.0)
        # rounded once: nodes have other numbers in a forest that was decoded, as by `resume`
        slope = -fsum(share * precision * (values[at] - mean))
        return cls(values, at, share, fsum(share**2 * precision), slope)

    @classmethod
    def of_normal(cls, trees: Trees, leaf: NormalData | ThreadedNormal) -> "Lift":
        """Of trees with normal leaf values."""
        return cls.of(trees, Settings(0.0, 0.0, np.empty(0), [leaf.mean, leaf.sd]), "normal", 0)

    def log_density(self, delta: float) -> float:
        """What the log density of the leaf values rises by with the output."""
        return delta * (self.slope - 0.5 * self.precision * delta)

    def rise(self, delta: float) -> None:
        """Add a number to the output at every row."""
        self.values[self.at] += self.share * delta


def leaves_of(trees: Trees) -> tuple[np.ndarray, np.ndarray]:
    """Tree and node of each leaf."""
    used = np.ones(trees.column.size, dtype=bool)
    used[trees.free[: trees.n_free[0]]] = False
    nodes = np.flatnonzero(used & (trees.column < 0))
    number = np.empty(used.size, dtype=np.int64)
    number[trees.roots] = np.arange(trees.roots.size)
    top = nodes
    while (below := trees.parent[top] >= 0).any():
        top = np.where(below, trees.parent[top], top)
    return number[top], nodes
