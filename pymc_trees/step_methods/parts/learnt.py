"""What tuning learns of how often moves are taken, and what a step then spends on each kind.

A kind of move gets more of a step than its usual share where more of its moves are accepted for
their cost than on average, and less where fewer are. Costs are counted, not timed, so runs are
reproducible; usual shares are those that served best over many tables (benchmarks), and none grows
or shrinks beyond bounds, for kinds need each other. After tuning nothing changes.
"""

from copy import deepcopy

import numpy as np

from pymc_trees.core.moves.contract import WeightedMoves, name_of
from pymc_trees.step_methods.parts.local_moves import LocalMoves
from pymc_trees.step_methods.parts.tree_redraw import TreeRedraw

REMEMBERED = 200
"""Steps of tuning after which those before are forgotten."""
FIRST = 20
"""Steps of tuning before shares follow what was seen."""
BOUNDS = 0.25, 2.0
"""Least and most of its usual share that a kind of move is given."""
COSTS = {"grow": 1.4, "prune": 1.4, "change": 3.0, "swap": 2.9, "perturb": 2.0}
"""Microseconds of a move on 1,000 rows (`benchmarks.mixing.cost_of_moves`)."""
OTHER_COST = 3.0
TOGETHER = "grow", "prune"
"""Moves that undo each other, and so have one share."""
ENOUGH = 0.05
"""Share of redrawn trees that replace the present one from which on they have their full share."""


class Learnt:
    """Accepted shares of some kinds of moves, as means over the last steps of tuning."""

    def __init__(self, n_kinds: int):
        self.accepted = np.zeros(n_kinds)
        self.n_seen = np.zeros(n_kinds)

    def learn(self, accepted) -> None:
        """Take in the accepted shares of a step, NaN for what was not tried."""
        accepted = np.asarray(accepted)
        seen = ~np.isnan(accepted)
        self.n_seen[seen] += 1
        rate = 1 / np.minimum(self.n_seen[seen], REMEMBERED)
        self.accepted[seen] += rate * (accepted[seen] - self.accepted[seen])


def weights_of(learnt: Learnt, names: list[str], usual: np.ndarray) -> np.ndarray:
    """Weights of moves with such names, from their usual ones."""
    if learnt.n_seen.max() < FIRST:
        return usual
    per_cost = learnt.accepted / [COSTS.get(name, OTHER_COST) for name in names]
    pair = [names.index(name) for name in TOGETHER]
    per_cost[pair] = per_cost[pair].mean()
    mean = usual @ per_cost
    if mean <= 0:
        return usual
    found = usual * np.clip(per_cost / mean, *BOUNDS)
    return found / found.sum()


class LearntOfForests:
    """What a part has learnt, by forest."""

    def __init__(self, n_kinds: int):
        self.n_kinds = n_kinds
        self._learnt: dict[str, Learnt] = {}

    def __getitem__(self, forest) -> Learnt:
        """That of a forest."""
        return self._learnt.setdefault(forest.name, Learnt(self.n_kinds))

    @property
    def kept(self) -> dict:
        """As numbers."""
        return {name: deepcopy(vars(one)) for name, one in self._learnt.items()}

    @kept.setter
    def kept(self, kept):
        self._learnt = {}
        for name, fields in kept.items():
            self._learnt[name] = Learnt(self.n_kinds)
            vars(self._learnt[name]).update(deepcopy(fields))


class AdaptiveMoves(LocalMoves):
    """Local moves whose weights follow, in tuning, what they buy."""

    def __init__(self, *given):
        super().__init__(*given)
        self.names = [name_of(move) for move in self.moves.moves]
        self.statistics += tuple(f"weight_{name}" for name in self.names)
        self.learnt = LearntOfForests(len(self.names))

    def moves_of(self, forest) -> WeightedMoves:
        """Moves of a forest's trees, with the weights that tuning has come to."""
        weights = weights_of(self.learnt[forest], self.names, self.moves.weights)
        return self.moves._replace(weights=weights)

    def update(self, rng, forest, problem, tuning, n_sweeps=None):
        """Sweep, and learn."""
        weights = self.moves_of(forest).weights
        found = super().update(rng, forest, problem, tuning, n_sweeps)
        if found is None:
            return None
        if tuning:
            self.learnt[forest].learn([found[f"accept_{name}"] for name in self.names])
        return found | {f"weight_{name}": w for name, w in zip(self.names, weights, strict=True)}

    @property
    def kept(self):
        """What tuning has learnt."""
        return {"screens": super().kept, "learnt": self.learnt.kept}

    @kept.setter
    def kept(self, kept):
        self.restore(kept.get("screens", {}))
        self.learnt.kept = kept.get("learnt", {})


class AdaptiveRedraw(TreeRedraw):
    """Trees redrawn less often where tuning finds that they hardly ever replace the present one."""

    statistics = (*TreeRedraw.statistics, "chance_of_redraw")

    def __init__(self, *given):
        super().__init__(*given)
        self.learnt = LearntOfForests(1)

    def chance_of(self, forest) -> float:
        """Probability that a step redraws trees at all."""
        usual, learnt = super().chance_of(forest), self.learnt[forest]
        if learnt.n_seen[0] < FIRST:
            return usual
        return usual * float(np.clip(learnt.accepted[0] / ENOUGH, BOUNDS[0], 1.0))

    def update(self, rng, forest, problem, tuning):
        """Redraw, or not, and learn."""
        chance = self.chance_of(forest)
        found = super().update(rng, forest, problem, tuning)
        if found is None:
            return None
        if tuning:
            self.learnt[forest].learn([found["trees_changed"]])
        return found | {"chance_of_redraw": chance}

    @property
    def kept(self):
        """What tuning has learnt."""
        return self.learnt.kept

    @kept.setter
    def kept(self, kept):
        self.learnt.kept = kept
