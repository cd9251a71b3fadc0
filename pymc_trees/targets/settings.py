"""Prior settings of a forest: expressions in the model's graph, numbers at a point."""

from typing import NamedTuple

import numpy as np
import pymc as pm
from pytensor.graph.basic import Variable

from pymc_trees.distributions.forest_inputs import forest_inputs
from pymc_trees.targets.graph import compile_values


class Settings(NamedTuple):
    """Prior settings of a forest at a point."""

    alpha: float
    beta: float
    weights: np.ndarray
    leaf: list
    """Parameters of the leaf prior."""

    @classmethod
    def of(cls, results: list) -> "Settings":
        """From the numbers of `read_settings`."""
        alpha, beta, weights, *leaf = results
        return cls(float(alpha), float(beta), weights, [v if v.ndim else float(v) for v in leaf])


def read_settings(model: pm.Model, forest: Variable) -> list[Variable]:
    """Alpha, beta, split weights and leaf settings of a forest, as expressions of values."""
    return model.replace_rvs_by_values(forest_inputs(forest).settings)


class NumbersAt:
    """Prior settings of a forest, and what a target takes beside them, at a point."""

    def __init__(self, model: pm.Model, forest: Variable, wanted: list, outputs: Variable):
        settings = read_settings(model, forest)
        self._n_settings = len(settings)
        self._function, self._names = compile_values(model, [*settings, *wanted], [outputs])
        self._zero = np.zeros(outputs.type.shape)

    def __call__(self, point: dict) -> tuple[Settings, list[np.ndarray]]:
        """The settings; the numbers of the expressions that were wanted."""
        results = self._function(self._zero, *(point[name] for name in self._names))
        return Settings.of(results[: self._n_settings]), results[self._n_settings :]
