"""Sweeps of Metropolis-Hastings moves, as a part of a step."""

from collections.abc import Mapping
from copy import deepcopy
from functools import partial

import numpy as np

from pymc_trees.arguments import check_number
from pymc_trees.core.forest.undo import make_kept_tree
from pymc_trees.core.interrupts import run_apart
from pymc_trees.core.leaves.normal import make_normal
from pymc_trees.core.moves.catalogue import MOVES
from pymc_trees.core.moves.contract import WeightedMoves, name_of, registered
from pymc_trees.core.moves.workspace import make_room
from pymc_trees.core.samplers.metropolis.backfitting import sweeps
from pymc_trees.core.samplers.metropolis.joint_sweep import joint_sweeps
from pymc_trees.step_methods.parts.contract import Part
from pymc_trees.step_methods.parts.screening import Screening, is_screened

DEFAULT_MOVES = {"grow": 0.25, "prune": 0.25, "change": 0.4, "swap": 0.1}

ROWS = 500_000
"""Rows times trees that a step visits unless its sweeps are given, within these bounds."""
FEWEST, MOST = 5, 20
"""Sweeps of a step unless given; the fewest where leaf values do not integrate out."""

LONG = 200_000
"""Rows times trees times moves of a tree beyond which an interrupt cannot wait for the call."""
LONG_CONJUGATE = 2_000_000
"""The same where leaf values integrate out."""


class LocalMoves(Part):
    """Sweeps: of each tree some Metropolis-Hastings moves, then new leaf values.

    Parameters
    ----------
    moves : dict or None
        Weights by name, as for `CGM`.
    n_sweeps : int or None
        Sweeps of a step; None for a number that makes a step worth its overhead (`enough_sweeps`).
    moves_per_visit : int
        Moves of a tree before its leaf values are drawn.
    places : callable, optional
        Of a forest: among how many forests sweeps that are not given are shared out, itself
        included.
    """

    def __init__(self, moves=None, n_sweeps=1, moves_per_visit=1, places=None):
        moves = check_moves(DEFAULT_MOVES if moves is None else moves)
        per_visit = check_number("moves_per_visit", moves_per_visit, 1)
        self.moves = moves._replace(per_visit=per_visit)
        self.n_sweeps, self.places = n_sweeps, places
        self.statistics = tuple(f"accept_{name_of(move)}" for move in self.moves.moves)
        self.screenings: dict[str, Screening] = {}
        self.restored: dict[str, Screening] = {}

    def prepare(self, forest):
        """Name the statistic of screened sweeps where there are any."""
        if is_screened(forest) and "accept_screened" not in self.statistics:
            self.statistics += ("accept_screened",)

    def update(self, rng, forest, problem, tuning, n_sweeps=None):
        """Sweep, so often if given; the accepted share of each move, or None: too small a pool."""
        n_sweeps = n_sweeps or self.sweeps_of(forest)
        if not is_screened(forest):
            return self.sweep(rng, forest, problem, forest.work, n_sweeps)
        # Taken out while it changes: what an error leaves behind is never gone on with.
        known = self.screenings.pop(forest.name, None) or self.restored.pop(forest.name, None)
        screening = known or Screening(forest, problem.leaf)
        if tuning:
            screening.follow(problem.leaf.offset)
        found = None
        if screening.fails:
            found = self.sweep(rng, forest, problem, forest.work, n_sweeps)
            if found is None:
                return None
        if tuning or not screening.fails:
            run = screening.sweeps(rng, forest, problem, self.moves, forest.work)
            shares = self._run(run, forest, forest.work, 1 if found else n_sweeps, 1)
            if shares is None:
                return None
            if tuning:
                screening.learn(shares[-1])
            found = found or dict(zip(self.statistics, shares, strict=False))
            found["accept_screened"] = shares[-1]
        self.screenings[forest.name] = screening
        return found

    def sweeps_of(self, forest) -> int:
        """Sweeps of a step."""
        places = 1 if self.places is None else self.places(forest)
        return self.n_sweeps or enough_sweeps(forest, places)

    def sweep(self, rng, forest, problem, work, n_sweeps):
        """Sweep the trees of a problem that has the layout of a forest, without a screen."""
        if forest.target.is_joint:
            n, max_nodes = forest.layout.n_rows, forest.layout.max_nodes
            flat = make_normal(0.0, 1.0, np.zeros(n), 0.0, max_nodes)
            kept = make_kept_tree(problem.trees, make_room(*work.sets.shape))
            run = partial(forest.call, joint_sweeps, rng, problem, flat, self.moves, work, kept)
        else:
            run = partial(forest.call, sweeps, rng, problem, self.moves, work)
        shares = self._run(run, forest, work, n_sweeps, 0)
        if shares is None:
            return None
        unscreened = np.full(len(self.statistics) - len(shares), np.nan)
        return dict(zip(self.statistics, [*shares, *unscreened], strict=True))

    def _run(self, run, forest, work, n_sweeps, n_further):
        """Accepted shares of moves and of what else is counted, or None: too small a pool."""
        counts = np.zeros((2, len(self.moves.moves) + n_further), dtype=np.int64)
        run = partial(run, n_sweeps, counts)
        most = LONG if forest.target.needs_surrogate else LONG_CONJUGATE
        layout, n_moves = forest.layout, n_sweeps * self.moves.per_visit
        long = layout.n_rows * layout.m * n_moves > most
        if not (run_apart(run, work.cease) if long else run()):
            return None
        proposed, accepted = counts
        share = np.full(len(proposed), np.nan)
        np.divide(accepted, proposed, out=share, where=proposed > 0)
        return share

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


def enough_sweeps(forest, places: int) -> int:
    """Sweeps whose time is some three quarters of that of a PyMC step, or more (benchmarks)."""
    if forest.target.needs_surrogate:
        return FEWEST
    layout = forest.layout
    return -(-min(max(ROWS // (layout.n_rows * layout.m), FEWEST), MOST) // places)


def check_moves(given) -> WeightedMoves:
    """Moves with normalised weights: `MOVES`, and others that have a positive one."""
    if not isinstance(given, Mapping):
        raise TypeError(f"moves={given!r}: must be a dict of move and weight.")
    own = {name_of(move): move for move in MOVES}
    known = own | {name: kind() for name, kind in registered().items() if name not in own}
    unknown = sorted(set(given) - set(known))
    if unknown:
        raise ValueError(f"moves: {unknown} are not moves; choose from {list(known)}.")
    moves = {name: move for name, move in known.items() if name in own or name in given}
    try:
        weights = np.array([float(given.get(name, 0.0)) for name in moves])
    except (TypeError, ValueError) as error:
        raise ValueError(f"moves={dict(given)}: weights must be numbers ({error}).") from error
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise ValueError(f"moves={dict(given)}: weights must be finite numbers of at least 0.")
    kept = (weights > 0) | [name in own for name in moves]  # code is compiled for each move kept
    moves = {name: move for (name, move), keep in zip(moves.items(), kept, strict=True) if keep}
    weights = weights[kept]
    with np.errstate(over="ignore"):
        total = weights.sum()
    if not np.isfinite(total):  # of weights near the largest number
        weights = weights / weights.max()
        total = weights.sum()
    weights = weights / (total or 1.0)
    if weights[0] == 0 or weights[1] == 0:
        raise ValueError(
            f"moves={dict(given)}: grow and prune need positive weights, or the sampler could not "
            "reach every tree."
        )
    return WeightedMoves(tuple(moves.values()), weights)
