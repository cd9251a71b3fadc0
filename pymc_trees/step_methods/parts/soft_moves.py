"""Sweeps of Metropolis-Hastings moves of soft trees, as a part of a step."""

from collections.abc import Mapping
from copy import deepcopy
from functools import partial

import numpy as np

from pymc_trees.arguments import check_number
from pymc_trees.core.interrupts import run_apart
from pymc_trees.core.soft_forest.proposals import GROW, MOVES, PRUNE
from pymc_trees.core.soft_forest.screened import screened_soft_sweeps
from pymc_trees.core.soft_forest.sweep import soft_sweeps
from pymc_trees.core.soft_forest.trees import make_soft_trees
from pymc_trees.step_methods.parts.screening import Screening, is_screened

DEFAULT_MOVES = dict.fromkeys(MOVES, 0.2)

ROWS = 100_000
"""Rows times trees that a step visits unless its sweeps are given, in at most `MOST` sweeps."""
MOST = 10

LONG = 50_000
"""Rows times trees times moves beyond which an interrupt cannot wait for the call."""


class SoftMoves:
    """Sweeps: of each tree some moves, then new leaf values.

    Parameters
    ----------
    moves : dict or None
        Weights by name, as for `SoftCGM`.
    moves_per_visit : int
        Moves of a tree before its leaf values are drawn.
    n_sweeps : int or None
        Sweeps of a step.
    """

    def __init__(self, moves, moves_per_visit, n_sweeps):
        self.weights = check_weights(DEFAULT_MOVES if moves is None else moves)
        self.per_visit = check_number("moves_per_visit", moves_per_visit, 1)
        self.n_sweeps = None if n_sweeps is None else check_number("n_sweeps", n_sweeps, 1)
        self.screenings: dict[str, Screening] = {}
        self.restored: dict[str, Screening] = {}

    def statistics(self, forest) -> list[str]:
        """Names of the numbers per draw of a forest."""
        more = ["accept_screened"] if is_screened(forest) else []
        return [*(f"accept_{name}" for name in MOVES), *more]

    def update(self, rng, forest, problem, leaf, tuning) -> dict | None:
        """Sweep; the accepted share of each move, or None when the forest outgrew its room."""
        n, m = forest.layout.n_rows, forest.layout.m
        n_sweeps = self.n_sweeps or int(np.clip(ROWS // (n * m), 1, MOST))
        moves, cease = (self.weights, self.per_visit, n_sweeps), np.zeros(1, dtype=np.bool_)
        names = self.statistics(forest)
        counts = np.zeros((2, len(names)), dtype=np.int64)
        if is_screened(forest):
            # Taken out while it changes: what an error leaves behind is never gone on with.
            known = self.screenings.pop(forest.name, None) or self.restored.pop(forest.name, None)
            screening = known or Screening(forest, leaf)
            if tuning:
                screening.follow(leaf.offset)
            screen = screening.screen(leaf, forest.layout.max_nodes)
            kept = make_soft_trees(1, problem.trees.column.shape[1])
            given = (rng, problem, leaf, screen, kept, *moves, cease, counts)
            run = partial(forest.call, screened_soft_sweeps, *given)
        else:
            run = partial(forest.call, soft_sweeps, rng, problem, leaf, *moves, cease, counts)
        long = n * m * n_sweeps * self.per_visit > LONG
        if not (run_apart(run, cease) if long else run()):
            return None
        proposed, accepted = counts
        share = np.full(len(names), np.nan)
        np.divide(accepted, proposed, out=share, where=proposed > 0)
        if is_screened(forest):
            if tuning:
                screening.learn(share[-1])
            self.screenings[forest.name] = screening
        return dict(zip(names, share, strict=True))

    @property
    def kept(self):
        """What tuning has learnt for screens."""
        return self.restored | self.screenings

    @kept.setter
    def kept(self, kept):
        self.screenings, self.restored = {}, deepcopy(dict(kept))

    def __getstate__(self):
        """Without what belongs to a chain."""
        return {**self.__dict__, "screenings": {}, "restored": self.kept}


def check_weights(given) -> np.ndarray:
    """Weights of the moves, in their order."""
    if not isinstance(given, Mapping):
        raise TypeError(f"moves={given!r}: must be a dict of move and weight.")
    unknown = sorted(set(given) - set(MOVES))
    if unknown:
        raise ValueError(f"moves: {unknown} are not moves; choose from {list(MOVES)}.")
    try:
        weights = np.array([float(given.get(name, 0.0)) for name in MOVES])
    except (TypeError, ValueError) as error:
        raise ValueError(f"moves={dict(given)}: weights must be numbers ({error}).") from error
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise ValueError(f"moves={dict(given)}: weights must be finite numbers of at least 0.")
    weights = weights / (weights.max() or 1.0)
    if (weights[[GROW, PRUNE, MOVES.index("bandwidth")]] == 0).any():
        raise ValueError(
            f"moves={dict(given)}: grow, prune and bandwidth need positive weights, or the sampler "
            "could not reach every forest."
        )
    return weights / weights.sum()
