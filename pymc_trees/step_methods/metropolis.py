"""Sweeps of Metropolis-Hastings moves as a PyMC step."""

import numpy as np

from pymc_trees.core.forest.counts import count_forest
from pymc_trees.core.moves.census import MOVES
from pymc_trees.core.samplers.backfitting import sweep
from pymc_trees.core.samplers.outcome import fitted_values, log_likelihood_of
from pymc_trees.step_methods.base import ForestStep
from pymc_trees.step_methods.too_large import ForestTooLargeError


class MetropolisStep(ForestStep):
    """One sweep of one Metropolis-Hastings move per tree, then new leaf values."""

    move_weights: np.ndarray

    def __init__(self, vars=None, **options):
        super().__init__(vars, **options)
        self.stats_dtypes_shapes: dict = {}
        for forest in self.forests:
            p = forest.design.columns.shape[0]
            ending = self._ending(forest)
            for move in MOVES:
                self.stats_dtypes_shapes[f"accept_{move}{ending}"] = (np.float64, [])
            self.stats_dtypes_shapes[f"n_leaves{ending}"] = (np.int64, [])
            self.stats_dtypes_shapes[f"max_depth{ending}"] = (np.int64, [])
            self.stats_dtypes_shapes[f"variable_inclusion{ending}"] = (object, [p])
            self.stats_dtypes_shapes[f"log_likelihood{ending}"] = (np.float64, [])
        self.stats_dtypes = [{k: v[0] for k, v in self.stats_dtypes_shapes.items()}]

    def _ending(self, forest):
        # By the forests of the model: two steps with a forest each must not share names either.
        return f"_{forest.name}" if self.several else ""

    def step(self, point):
        """Update every forest once."""
        point = dict(point)
        stats: dict = {}
        for forest in self.forests:
            point[forest.value_name], one = self._sweep(forest, point)
            stats |= {f"{key}{self._ending(forest)}": value for key, value in one.items()}
        return point, [stats]

    def _sweep(self, forest, point):
        settings, seen = forest.target.at(point)
        arrays = forest.load(point[forest.value_name], settings.weights)
        leaf, target = forest.target.leaf_data(settings, seen, arrays.fit)
        proposed = np.zeros(len(MOVES), dtype=np.int64)
        accepted = np.zeros(len(MOVES), dtype=np.int64)
        if not sweep(
            self.rng,
            arrays.trees,
            forest.design,
            forest.prior(settings),
            leaf,
            self.move_weights,
            forest.work,
            proposed,
            accepted,
        ):
            forest.arrays = None
            raise ForestTooLargeError(
                f"{forest.name} outgrew max_nodes={forest.layout.max_nodes}. Declare it with a "
                f"larger one, for example max_nodes={2 * forest.layout.max_nodes}."
            )
        fit = fitted_values(leaf, arrays.trees, target)
        value = forest.store(arrays.trees, fit, settings.weights)
        inclusion = np.zeros(forest.design.columns.shape[0], dtype=np.int64)
        leaves, depth = count_forest(arrays.trees, forest.work.nodes, inclusion)
        share = np.divide(accepted, proposed, out=np.full(len(MOVES), np.nan), where=proposed > 0)
        stats = {f"accept_{move}": share[k] for k, move in enumerate(MOVES)}
        stats["n_leaves"], stats["max_depth"] = leaves, depth
        stats["variable_inclusion"] = inclusion
        stats["log_likelihood"] = log_likelihood_of(leaf, arrays.trees)
        return value, stats


def check_moves(moves) -> np.ndarray:
    """Weights of the moves in the order of `MOVES`."""
    unknown = sorted(set(moves) - set(MOVES))
    if unknown:
        raise ValueError(f"moves: {unknown} are not moves; choose from {list(MOVES)}.")
    weights = np.array([float(moves.get(move, 0.0)) for move in MOVES])
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise ValueError(f"moves={dict(moves)}: weights must be finite numbers of at least 0.")
    if weights[0] == 0 or weights[1] == 0:
        raise ValueError(
            f"moves={dict(moves)}: grow and prune need positive weights, or the sampler could not "
            "reach every tree."
        )
    return weights / weights.sum()
