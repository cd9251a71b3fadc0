"""Delayed acceptance of moves under a likelihood of rows: what is adapted in tuning.

Moves are proposed under Gaussian rows, which describe the posterior of f, and a visit of a tree is
then accepted or rejected by the exact likelihood (`core.samplers.screened_sweep`).
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from pymc_trees.core.forest.trees import make_saved_tree, reserve_row_sets
from pymc_trees.core.leaves.nonconjugate.coefficients import CoefficientRows
from pymc_trees.core.leaves.nonconjugate.gaussian import make_screen
from pymc_trees.core.leaves.nonconjugate.proposal import fit_groups
from pymc_trees.core.leaves.nonconjugate.rowwise import make_row_workspace
from pymc_trees.core.samplers.screened_sweep import screened_sweeps
from pymc_trees.step_methods.kernels.contract import SweepData
from pymc_trees.targets.rowwise import RowwiseTarget

AVERAGED = 50
"""Steps of tuning over which f is averaged."""
FIRST = 25
"""Steps of tuning before f is averaged: it comes from its prior mean, where rows may be wrong."""
LOCAL = 0.1, 0.6
"""Shares of local visits if every visit is accepted, and if none is."""
LEAST = 0.05
"""Accepted share of visits below which delayed acceptance is abandoned."""


def is_screened(forest) -> bool:
    """Whether the likelihood of a forest is a product over rows."""
    return isinstance(forest.target, RowwiseTarget)


class DelayedAcceptance(NamedTuple):
    """Mean and spread of f at the rows of one forest, less its level (`SweepData.level`).

    They should describe the posterior of f given the other variables: other values are as exact,
    but less efficient. Before that is known, each row has the mode and the curvature that f has
    there if the row is all that is seen of it, under the prior of f: near the posterior where rows
    say much, and near the prior where they say little.
    """

    mean: np.ndarray
    """(n,) mean of f."""
    variance: np.ndarray
    """(n,) mean squared deviation of f from it."""
    n_tuned: int = 0
    """Steps of tuning that both rest on."""
    accepted: float = 0.5
    """Accepted share of visits, a mean over the last steps of tuning."""

    @classmethod
    def start(cls, forest, leaf, level: float) -> "DelayedAcceptance":
        """Of a new chain."""
        m, (n, k) = forest.layout.m, leaf.offset.shape
        work = make_row_workspace(n, k, n)
        work.labels[:] = np.arange(n)
        prior = {"mean": m * leaf.mean, "sd": np.sqrt(m) * leaf.sd}
        alone = leaf._replace(offset=np.zeros((n, k)), work=work, **prior)
        forest.call(fit_groups, alone, n, n)
        inverse = np.linalg.inv(work.factor[:n])
        return cls(work.mode[:n] - level, (inverse**2).sum(axis=1))

    @property
    def fails(self) -> bool:
        """Whether hardly any visit has been accepted in tuning."""
        return self.accepted < LEAST

    def averaged(self, f) -> "DelayedAcceptance":
        """With the current f, less its level."""
        n_tuned = self.n_tuned + 1
        if n_tuned <= FIRST:
            return self._replace(n_tuned=n_tuned)
        rate = max(1 / (n_tuned - FIRST), 1 / AVERAGED)
        variance = self.variance + rate * ((f - self.mean) ** 2 - self.variance)
        return self._replace(
            mean=self.mean + rate * (f - self.mean), variance=variance, n_tuned=n_tuned
        )

    def with_share(self, share) -> "DelayedAcceptance":
        """With the accepted share of the visits of a step."""
        change = (share - self.accepted) / min(self.n_tuned + 1, AVERAGED)
        return self._replace(accepted=self.accepted + change)

    def screen(self, leaf, max_nodes, level: float):
        """Workspace of Gaussian rows around the mean, under the prior of a leaf."""
        spread = np.maximum(np.sqrt(self.variance), 1e-3 * leaf.sd)
        local = LOCAL[0] + (LOCAL[1] - LOCAL[0]) * (1 - self.accepted) ** 3
        gaussian = leaf.gaussian if isinstance(leaf, CoefficientRows) else None
        anchor = self.mean + level
        return make_screen(leaf.mean, leaf.sd, anchor, spread, local, max_nodes, gaussian)

    def sweeps(self, rng, data: SweepData, moves) -> Callable:
        """`screened_sweeps`, as a function of their number and counts."""
        forest, problem, work = data.forest, data.problem, data.work
        screen = self.screen(problem.leaf, forest.layout.max_nodes, data.level)
        near = problem._replace(leaf=screen.gaussian)
        screened, moves = forest.by_address(near, work, moves)
        problem = screened._replace(leaf=problem.leaf)
        undo = make_saved_tree(problem.trees, reserve_row_sets(*work.sets.shape))
        arguments = problem, screened, screen, moves, work, undo
        return partial(forest.call, screened_sweeps, rng, *arguments)
