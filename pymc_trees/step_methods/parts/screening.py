"""Adaptation of the screened sweeps of one forest in tuning, and their workspace."""

from copy import deepcopy
from functools import partial

import numpy as np

from pymc_trees.core.forest.trees import reserve_row_sets
from pymc_trees.core.forest.undo import make_saved_tree
from pymc_trees.core.leaves.nonconjugate.gaussian import make_screen
from pymc_trees.core.samplers.screened_sweep import screened_sweeps
from pymc_trees.targets.rowwise.target import RowwiseTarget

REMEMBERED = 50
"""Steps of tuning over which anchors are averaged."""
FIRST_SPREAD = 0.25
"""Spread before tuning, in prior sds of the whole function."""
LOCAL = 0.1, 0.6
"""Shares of local visits if every visit is accepted, and if none is."""
LEAST = 0.05
"""Accepted share of visits below which screening is abandoned."""


def is_screened(forest) -> bool:
    """Whether the likelihood of a forest is a product over rows."""
    return isinstance(forest.target, RowwiseTarget)


class Screening:
    """Mean and spread of f at one forest's rows, adapted in tuning.

    They should describe the posterior of f: other values are as exact, but less efficient.
    """

    def __init__(self, forest, leaf):
        self.anchor = leaf.offset.copy()
        first = (FIRST_SPREAD * leaf.sd) ** 2 * forest.layout.m
        self.square = np.broadcast_to(first, self.anchor.shape).copy()
        self.n_tuned, self.taken = 0, 0.5

    @property
    def fails(self) -> bool:
        """Whether hardly any visit has been accepted in tuning."""
        return self.taken < LEAST

    def follow(self, f):
        """Update anchors and spreads from the current f."""
        self.n_tuned += 1
        rate = max(1 / self.n_tuned, 1 / REMEMBERED)
        self.square += rate * ((f - self.anchor) ** 2 - self.square)
        self.anchor += rate * (f - self.anchor)

    def learn(self, share):
        """Update the accepted share of visits, a mean over the last steps of tuning."""
        self.taken += (share - self.taken) / min(self.n_tuned + 1, REMEMBERED)

    def screen(self, leaf, max_nodes):
        """Workspace of Gaussian rows at the anchors, under the prior of a leaf."""
        spread = np.maximum(np.sqrt(self.square), 1e-3 * leaf.sd)
        local = LOCAL[0] + (LOCAL[1] - LOCAL[0]) * (1 - self.taken) ** 3
        return make_screen(leaf.mean, leaf.sd, self.anchor, spread, local, max_nodes)

    def sweeps(self, rng, forest, problem, moves, work):
        """`screened_sweeps`, without their number and counts."""
        screen = self.screen(problem.leaf, forest.layout.max_nodes)
        near = problem._replace(leaf=screen.near)
        screened, moves = forest.by_address(near, work, moves)
        problem = screened._replace(leaf=problem.leaf)
        kept = make_saved_tree(problem.trees, reserve_row_sets(*work.sets.shape))
        given = problem, screened, screen, moves, work, kept
        return partial(forest.call, screened_sweeps, rng, *given)


class Screened:
    """State of sweeps that may be screened: the screening of each forest."""

    def __init__(self):
        self.screenings: dict[str, Screening] = {}
        self.restored: dict[str, dict] = {}

    def take_screening(self, forest, leaf) -> Screening:
        """That of a forest, taken out while it changes, or a new one.

        A state left by an error is never used again.
        """
        if forest.name in self.screenings:
            return self.screenings.pop(forest.name)
        found = Screening(forest, leaf)
        vars(found).update(self.restored.pop(forest.name, {}))
        return found

    @property
    def kept(self):
        """Adapted state of screens."""
        return self.restored | {name: dict(vars(one)) for name, one in self.screenings.items()}

    @kept.setter
    def kept(self, kept):
        self.restore(kept)

    def restore(self, kept):
        """Restore the adapted state."""
        self.screenings, self.restored = {}, deepcopy(dict(kept))

    def __getstate__(self):
        """State without the data of a chain."""
        return {**self.__dict__, "screenings": {}, "restored": self.kept}
