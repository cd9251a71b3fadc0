"""Sweeps of Metropolis-Hastings moves as a PyMC step."""

from collections.abc import Mapping
from functools import partial

import numpy as np

from pymc_trees.core.interrupts import run_apart
from pymc_trees.core.leaves.normal import make_normal
from pymc_trees.core.moves.census import MOVES
from pymc_trees.core.samplers.metropolis.backfitting import sweep
from pymc_trees.core.samplers.metropolis.joint_sweep import joint_sweep, make_spare
from pymc_trees.step_methods.sweep import SweepStep

LONG = {"joint": 200_000, "rowwise": 200_000}
"""Rows times trees beyond which a sweep is a call that an interrupt cannot wait for."""
LONG_CONJUGATE = 2_000_000


class MetropolisStep(SweepStep):
    """One sweep of one Metropolis-Hastings move per tree, then new leaf values."""

    sweep_stats = tuple(f"accept_{move}" for move in MOVES)
    move_weights: np.ndarray

    def sweep(self, forest, trees, prior, leaf):
        """One move per tree; the accepted share of each kind of move."""
        return self.local_moves(forest, trees, prior, leaf, 1)

    def local_moves(self, forest, trees, prior, leaf, n_sweeps):
        """``n_sweeps`` moves per tree; the accepted share of each kind of move."""
        proposed = np.zeros(len(MOVES), dtype=np.int64)
        accepted = np.zeros(len(MOVES), dtype=np.int64)
        arguments = (self.rng, trees, forest.design, prior, leaf)
        counters = (proposed, accepted)
        if forest.target.kind == "joint":
            n, max_nodes = forest.layout.n_rows, forest.layout.max_nodes
            flat = make_normal(0.0, 1.0, np.zeros(n), 0.0, max_nodes)
            spare = make_spare(forest.layout)
            one_sweep = partial(
                joint_sweep, *arguments, flat, self.move_weights, forest.work, spare, *counters
            )
        else:
            one_sweep = partial(sweep, *arguments, self.move_weights, forest.work, *counters)
        work = forest.layout.n_rows * forest.layout.m
        if work > LONG.get(forest.target.kind, LONG_CONJUGATE):
            one_sweep = partial(run_apart, one_sweep, forest.work.cease)
        for _ in range(n_sweeps):
            if not one_sweep():
                return None
        share = np.divide(accepted, proposed, out=np.full(len(MOVES), np.nan), where=proposed > 0)
        return dict(zip(MetropolisStep.sweep_stats, share, strict=True))


def check_moves(moves) -> np.ndarray:
    """Weights of the moves in the order of `MOVES`."""
    if not isinstance(moves, Mapping):
        raise TypeError(f"moves={moves!r}: must be a dict of move and weight.")
    unknown = sorted(set(moves) - set(MOVES))
    if unknown:
        raise ValueError(f"moves: {unknown} are not moves; choose from {list(MOVES)}.")
    try:
        weights = np.array([float(moves.get(move, 0.0)) for move in MOVES])
    except (TypeError, ValueError) as error:
        raise ValueError(f"moves={dict(moves)}: weights must be numbers ({error}).") from error
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise ValueError(f"moves={dict(moves)}: weights must be finite numbers of at least 0.")
    with np.errstate(over="ignore"):
        total = weights.sum()
    if not np.isfinite(total):  # of weights near the largest number
        weights = weights / weights.max()
        total = weights.sum()
    weights = weights / (total or 1.0)
    if weights[0] == 0 or weights[1] == 0:
        raise ValueError(
            f"moves={dict(moves)}: grow and prune need positive weights, or the sampler could not "
            "reach every tree."
        )
    return weights
