"""Sweeps of Metropolis-Hastings moves as a PyMC step."""

from collections.abc import Mapping

import numpy as np

from pymc_trees.core.leaves.normal import make_normal
from pymc_trees.core.moves.census import MOVES
from pymc_trees.core.samplers.backfitting import sweep
from pymc_trees.core.samplers.whole_sweep import make_spare, whole_sweep
from pymc_trees.step_methods.sweep import SweepStep


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
        for _ in range(n_sweeps):
            if forest.target.kind == "whole":
                fits = self._whole_sweep(forest, trees, prior, leaf, proposed, accepted)
            else:
                fits = sweep(
                    self.rng,
                    trees,
                    forest.design,
                    prior,
                    leaf,
                    self.move_weights,
                    forest.work,
                    proposed,
                    accepted,
                )
            if not fits:
                return None
        share = np.divide(accepted, proposed, out=np.full(len(MOVES), np.nan), where=proposed > 0)
        return dict(zip(MetropolisStep.sweep_stats, share, strict=True))

    def _whole_sweep(self, forest, trees, prior, leaf, proposed, accepted):
        n, max_nodes = forest.layout.n_rows, forest.layout.max_nodes
        return whole_sweep(
            self.rng,
            trees,
            forest.design,
            prior,
            leaf,
            make_normal(0.0, 1.0, np.zeros(n), 0.0, max_nodes),
            self.move_weights,
            forest.work,
            make_spare(forest.layout),
            proposed,
            accepted,
        )


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
