"""Adaptation of the shares of a step spent on each kind of move, from acceptance in tuning.

A kind of move gets more than its usual share of a step if more of its moves are accepted, relative
to their cost, than on average, and less if fewer are. Costs are counted, not timed, so runs are
reproducible; usual shares are those that worked best over many tables (benchmarks), and changes are
bounded, since the kinds complement each other. After tuning nothing changes.
"""

from copy import deepcopy

import numpy as np

from pymc_trees.core.moves.contract import WeightedMoves, move_name
from pymc_trees.step_methods.parts.local_moves import LocalMoves
from pymc_trees.step_methods.parts.tree_redraw import TreeRedraw

REMEMBERED = 200
"""Steps of tuning over which acceptance is averaged."""
FIRST = 20
"""Steps of tuning before shares are adapted."""
BOUNDS = 0.25, 2.0
"""Bounds of a kind's share, relative to its usual share."""
COSTS = {"grow": 1.4, "prune": 1.4, "change": 3.0, "swap": 2.9, "perturb": 2.0}
"""Microseconds of a move on 1,000 rows (`benchmarks.mixing.cost_of_moves`)."""
OTHER_COST = 3.0
TOGETHER = "grow", "prune"
"""Moves that reverse each other, and share one weight."""
ENOUGH = 0.05
"""Acceptance of redrawn trees from which on they get their full share."""


class Learnt:
    """Accepted shares of some kinds of moves, as means over the last steps of tuning."""

    def __init__(self, n_kinds: int):
        self.accepted = np.zeros(n_kinds)
        self.n_seen = np.zeros(n_kinds)

    def learn(self, accepted) -> None:
        """Add the accepted shares of a step; NaN for moves that were not tried."""
        accepted = np.asarray(accepted)
        seen = ~np.isnan(accepted)
        self.n_seen[seen] += 1
        rate = 1 / np.minimum(self.n_seen[seen], REMEMBERED)
        self.accepted[seen] += rate * (accepted[seen] - self.accepted[seen])


def weights_of(learnt: Learnt, names: list[str], usual: np.ndarray) -> np.ndarray:
    """Weights of named moves, from their usual ones."""
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
    """Adapted state of a part, by forest."""

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
    """Local moves whose weights are adapted in tuning."""

    def __init__(self, *given):
        super().__init__(*given)
        self.names = [move_name(move) for move in self.moves.moves]
        self.statistics += tuple(f"weight_{name}" for name in self.names)
        self.learnt = LearntOfForests(len(self.names))

    def moves_of(self, forest) -> WeightedMoves:
        """Moves of a forest's trees, with the adapted weights."""
        weights = weights_of(self.learnt[forest], self.names, self.moves.weights)
        return self.moves._replace(weights=weights)

    def update(self, rng, forest, problem, tuning, n_sweeps=None):
        """Sweep, and adapt."""
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
    """Redrawn trees, tried less often if tuning shows that they are rarely accepted."""

    statistics = (*TreeRedraw.statistics, "redraw_probability")

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
        """Redraw with some probability, and adapt."""
        chance = self.chance_of(forest)
        found = super().update(rng, forest, problem, tuning)
        if found is None:
            return None
        if tuning:
            self.learnt[forest].learn([found["trees_changed"]])
        return found | {"redraw_probability": chance}

    @property
    def kept(self):
        """What tuning has learnt."""
        return self.learnt.kept

    @kept.setter
    def kept(self, kept):
        self.learnt.kept = kept
