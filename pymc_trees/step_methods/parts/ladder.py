"""Forests of flatter posteriors, and exchanges between neighbours.

Place 0 is the forest of the model, places 1, 2, ... have the fixed targets of `flatter`.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from pymc_trees.core.forest.trees import Trees
from pymc_trees.core.leaves.latent.rows import no_latents
from pymc_trees.core.moves.problem import Workspace
from pymc_trees.step_methods.parts.contract import Part

ACCEPTED = 0.25
"""Target share of accepted exchanges in tuning (Atchade, Roberts and Rosenthal 2011: .234)."""
FIRST_GAP = 0.1
"""Logarithm of the ratio of two neighbours' powers before tuning (from the benchmarks)."""
REMEMBERED = 100
"""Steps of tuning over which the fixed likelihood is averaged."""


class Place(NamedTuple):
    """A forest and the Gaussian likelihood it is under; the trees and r are changed in place."""

    trees: Trees
    work: Workspace
    r: np.ndarray
    """(n,) residual: target less the forest."""
    target: np.ndarray
    """(n,) target of the forest."""
    w: np.ndarray
    """(n,) precisions, or (1,) of all rows."""


class Ladder:
    """The flatter posteriors of one forest; initially copies of it."""

    WIDEST = 0.0
    """Largest logarithm of a gap that tuning comes to."""

    def __init__(self, trees, r, target, w, workspaces):
        self.target, self.w = target.copy(), w.copy()
        self.log_gap, self.n_tuned, self.turn = float(np.log(FIRST_GAP)), 0, 0
        self.information = np.inf
        """Precision of all rows times the prior variance of f, averaged over tuning."""
        self.workspaces = workspaces
        for work in workspaces:
            work.rows_valid[:] = False  # of the trees of an earlier chain
        self.trees = [Trees(*(field.copy() for field in trees)) for _ in workspaces]
        self.r = [r.copy() for _ in workspaces]

    @property
    def powers(self):
        """Powers b of the flatter likelihoods."""
        return np.exp(-np.exp(self.log_gap) * np.arange(1, len(self.trees) + 1))

    @property
    def places(self):
        """The flatter forests."""
        parts = zip(self.trees, self.workspaces, self.r, self.powers, strict=True)
        return [Place(trees, work, r, self.target, b * self.w) for trees, work, r, b in parts]

    def follow(self, target, w):
        """Update the fixed likelihood, a mean over the chain's last steps."""
        self.n_tuned += 1
        rate = max(1 / self.n_tuned, 1 / REMEMBERED)
        change = rate * (target - self.target)
        self.target += change
        # geometric mean: given latent variables a precision is occasionally very large
        self.w = self.w ** (1 - rate) * w**rate
        for r in self.r:
            r += change

    def restart(self, trees, f, k):
        """Make the k-th forest a copy of another, whose outputs are f."""
        for own, other in zip(self.trees[k], trees, strict=True):
            own[...] = other
        self.r[k][:] = self.target - f
        self.workspaces[k].rows_valid[:] = False

    def adapt(self, share):
        """Adapt the gaps towards the target share of accepted exchanges, where it is known."""
        if np.isnan(share):
            return
        log_gap = self.log_gap + (share - ACCEPTED) / np.sqrt(self.n_tuned)
        self.log_gap = min(log_gap, self.WIDEST)

    def pairs(self):
        """Places to exchange with the next place; even and odd pairs take turns."""
        n_places = len(self.trees) + 1
        begin = self.turn % 2 if n_places > 2 else 0
        self.turn += 1
        return range(begin, n_places - 1, 2)

    def exchange(self, rng, first):
        """Exchange the forests of neighbours with some probability; return its mean.

        ``first`` is the place of the model's own forest.
        """
        places = [first, *self.places]
        return float(np.mean([exchange(rng, places[k], places[k + 1])[0] for k in self.pairs()]))


class LadderPart(Part):
    """A part that keeps a ladder for each forest of a chain."""

    def __init__(self):
        self.unchanging = no_latents()
        self.ladders: dict[str, Any] = {}
        self.restored: dict[str, dict] = {}

    def take(self, forest, make: Callable[[], Ladder]) -> Any:
        """Ladder of a forest, or a new one with what a saved state holds.

        It is removed while it changes: a state left by an error is never used again.
        """
        ladder = self.ladders.pop(forest.name, None)
        if ladder is None:
            ladder = make()
            for field, value in self.restored.pop(forest.name, {}).items():
                setattr(ladder, field, value)
        return ladder

    @property
    def kept(self):
        """State of the ladders without workspace."""
        known: dict[str, dict] = dict(self.restored)
        for name, ladder in self.ladders.items():
            known[name] = {k: v for k, v in vars(ladder).items() if k != "workspaces"}
        return known

    @kept.setter
    def kept(self, kept):
        self.ladders, self.restored = {}, dict(kept)

    def __getstate__(self):
        """State without the arrays of a chain."""
        return {**self.__dict__, "ladders": {}, "restored": self.kept}


def exchange(rng, a, b):
    """Exchange the forests of two places, or not; return the probability and whether it happened.

    With r the residual of a forest under each place's likelihood; the prior cancels (Earl and Deem
    2005, eq. 1), log ratio = -1/2 sum w_a (r_a'^2 - r_a^2) - 1/2 sum w_b (r_b'^2 - r_b^2).
    """
    apart = a.target - b.target
    new_a, new_b = apart + b.r, a.r - apart  # target_a - f_b, target_b - f_a
    log_ratio = -0.5 * np.sum(a.w * (new_a**2 - a.r**2)) - 0.5 * np.sum(b.w * (new_b**2 - b.r**2))
    share = float(np.exp(min(log_ratio, 0.0)))
    accepted = rng.random() < share
    if accepted:
        change_places(a.trees, b.trees, a.work, b.work)
        a.r[:], b.r[:] = new_a, new_b
    return share, accepted


def change_places(a, b, work_a, work_b):
    """Let two forests have each other's trees."""
    for of_a, of_b in zip(a, b, strict=True):
        of_a[...], of_b[...] = of_b, of_a.copy()
    work_a.rows_valid[:] = False
    work_b.rows_valid[:] = False
