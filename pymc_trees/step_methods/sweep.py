"""A sweep over a forest as a PyMC step: what every sampler of this package shares."""

import numpy as np
import pymc as pm

from pymc_trees.core.forest.counts import count_forest
from pymc_trees.core.interrupts import deferred_interrupts
from pymc_trees.core.samplers.outcome import fitted_values, log_likelihood_of
from pymc_trees.distributions.capacity import ForestTooLargeError, too_small
from pymc_trees.step_methods.base import ForestStep


class SweepStep(ForestStep):
    """Unpack a forest, one sweep in compiled code, pack it again.

    A sampler gives `sweep_stats`, the names of its own statistics, and `sweep`.
    """

    sweep_stats: tuple[str, ...]

    def __init__(self, vars=None, **options):
        super().__init__(vars, **options)
        model = pm.modelcontext(options.get("model"))
        self.stats_dtypes_shapes: dict = {}
        for forest in self.forests:
            p = forest.design.columns.shape[0]
            ending = self._ending(forest)
            for name in self.sweep_stats:
                self.stats_dtypes_shapes[f"{name}{ending}"] = (np.float64, [])
            self.stats_dtypes_shapes[f"n_leaves{ending}"] = (np.int64, [])
            self.stats_dtypes_shapes[f"max_depth{ending}"] = (np.int64, [])
            self.stats_dtypes_shapes[f"variable_inclusion{ending}"] = (np.int64, [p])
            self.stats_dtypes_shapes[f"log_likelihood{ending}"] = (np.float64, [])
            # PyMC gives statistics no dims of their own, but a coordinate by the name they get.
            dim = f"variable_inclusion{ending}_dim_0"
            if forest.columns is not None and dim not in model.coords:
                model.add_coord(dim, forest.columns)
        # PyMC's NDArray makes room by these alone, so that they say the shape too.
        stats = self.stats_dtypes_shapes.items()
        self.stats_dtypes = [{name: np.dtype((of, tuple(shape))) for name, (of, shape) in stats}]

    def _ending(self, forest):
        # By the forests of the model: two steps with a forest each must not share names either.
        return f"_{forest.name}" if self.several else ""

    def step(self, point):
        """Update every forest once."""
        point = dict(point)
        stats: dict = {}
        with deferred_interrupts():
            for forest in self.forests:
                point[forest.value_name], one = self._update(forest, point)
                stats |= {f"{key}{self._ending(forest)}": value for key, value in one.items()}
        return point, [stats]

    def sweep(self, forest, trees, prior, leaf) -> dict | None:
        """Update the trees and the residual of ``leaf`` once; None when the pool was too small."""
        raise NotImplementedError("A sampler defines its sweep.")

    def _update(self, forest, point):
        settings, seen = forest.target.at(point)
        arrays = forest.load(point[forest.value_name], settings.weights)
        forest.arrays = None  # stand for no value before the sweep is over
        leaf, target = forest.target.leaf_data(settings, seen, arrays.fit, self.rng)
        stats = self.sweep(forest, arrays.trees, forest.prior(settings), leaf)
        if stats is None:
            raise ForestTooLargeError(too_small(forest.name, forest.layout))
        fit = fitted_values(leaf, arrays.trees, target)
        value = forest.store(arrays.trees, fit, settings.weights)
        inclusion = np.zeros(forest.design.columns.shape[0], dtype=np.int64)
        stats["n_leaves"], stats["max_depth"] = count_forest(
            arrays.trees, forest.work.nodes, inclusion
        )
        stats["variable_inclusion"] = inclusion
        stats["log_likelihood"] = log_likelihood_of(leaf, arrays.trees)
        stats["log_likelihood"] += forest.target.log_scale(seen)
        return value, stats
