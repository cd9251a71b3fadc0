"""What tuning learns for the screened sweeps of one forest, and their room to work in."""

from copy import deepcopy
from functools import partial

import numpy as np

from pymc_trees.core.forest.room import make_room
from pymc_trees.core.forest.undo import make_kept_tree
from pymc_trees.core.leaves.nonconjugate.gaussian.screen import make_screen
from pymc_trees.core.samplers.metropolis.screened_sweep import screened_sweeps
from pymc_trees.targets.rowwise.target import RowwiseTarget

REMEMBERED = 50
"""Steps of tuning after which the anchors forget where the chain was."""
FIRST_SPREAD = 0.25
"""Spread before tuning, in prior sds of the whole function."""
LOCAL = 0.1, 0.6
"""Share of visits that are local, where every visit is taken and where none is."""
LEAST = 0.05
"""Share of visits taken below which screening is given up."""


def is_screened(forest) -> bool:
    """Whether the likelihood of a forest is one of rows."""
    return isinstance(forest.target, RowwiseTarget)


class Screening:
    """Mean and spread of f at one forest's rows, which follow the chain while it is tuned.

    They are to say where f is under the model: any others are as exact, and slower.
    """

    def __init__(self, forest, leaf):
        self.anchor = leaf.offset.copy()
        first = (FIRST_SPREAD * leaf.sd) ** 2 * forest.layout.m
        self.square = np.broadcast_to(first, self.anchor.shape).copy()
        self.n_tuned, self.taken = 0, 0.5

    @property
    def fails(self) -> bool:
        """Whether hardly any visit is taken, as far as tuning has seen."""
        return self.taken < LEAST

    def follow(self, f):
        """Bring anchors and spreads nearer to where f is."""
        self.n_tuned += 1
        rate = max(1 / self.n_tuned, 1 / REMEMBERED)
        self.square += rate * ((f - self.anchor) ** 2 - self.square)
        self.anchor += rate * (f - self.anchor)

    def learn(self, share):
        """Let the share of visits taken be a mean over the last steps of tuning."""
        self.taken += (share - self.taken) / min(self.n_tuned + 1, REMEMBERED)

    def screen(self, leaf, max_nodes):
        """Room for Gaussian rows about the anchors, under the prior of a leaf."""
        spread = np.maximum(np.sqrt(self.square), 1e-3 * leaf.sd)
        local = LOCAL[0] + (LOCAL[1] - LOCAL[0]) * (1 - self.taken) ** 3
        return make_screen(leaf.mean, leaf.sd, self.anchor, spread, local, max_nodes)

    def sweeps(self, rng, forest, problem, moves, work):
        """`screened_sweeps`, but for their number and counts."""
        screen = self.screen(problem.leaf, forest.layout.max_nodes)
        kept = make_kept_tree(problem.trees, make_room(*work.sets.shape))
        return partial(forest.call, screened_sweeps, rng, problem, screen, moves, work, kept)


class Screened:
    """What sweeps know that may be screened: the screening of each forest."""

    def __init__(self):
        self.screenings: dict[str, Screening] = {}
        self.restored: dict[str, dict] = {}

    def take_screening(self, forest, leaf) -> Screening:
        """That of a forest, taken out while it changes, or a new one.

        What an error leaves behind is never gone on with.
        """
        if forest.name in self.screenings:
            return self.screenings.pop(forest.name)
        found = Screening(forest, leaf)
        vars(found).update(self.restored.pop(forest.name, {}))
        return found

    @property
    def kept(self):
        """What tuning has learnt for screens."""
        return self.restored | {name: dict(vars(one)) for name, one in self.screenings.items()}

    @kept.setter
    def kept(self, kept):
        self.restore(kept)

    def restore(self, kept):
        """Go on from what tuning had learnt."""
        self.screenings, self.restored = {}, deepcopy(dict(kept))

    def __getstate__(self):
        """Without what belongs to a chain."""
        return {**self.__dict__, "screenings": {}, "restored": self.kept}
