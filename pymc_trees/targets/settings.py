"""Prior settings of a forest: expressions in the model's graph, numbers at a point."""

from collections.abc import Callable
from typing import Any, NamedTuple

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


class PointFunction:
    """Prior settings of a forest, and other data of a target, at a point."""

    def __init__(
        self,
        model: pm.Model,
        forest: Variable,
        wanted: list,
        outputs: Variable,
        then: Callable[[list[np.ndarray]], Any],
    ):
        settings = read_settings(model, forest)
        self._n_settings = len(settings)
        self._function, self.names = compile_values(model, [*settings, *wanted], [outputs])
        self._zero = np.zeros(outputs.type.shape)
        self._then = then
        self._known: tuple | None = None

    def __call__(self, point: dict) -> tuple[Settings, Any]:
        """The settings, and the result of ``then`` for the values of the other expressions.

        The previous objects if neither a variable nor the model's data has changed: read-only.
        """
        given = [point[name] for name in self.names]
        data = [one.get_value(borrow=True) for one in self._function.get_shared()]
        if self._known is not None and _are_same(self._known[0], given, data):
            return self._known[1]
        results = self._function(self._zero, *given)
        settings = Settings.of(results[: self._n_settings])
        found = settings, self._then(results[self._n_settings :])
        self._known = ([*map(np.copy, given), *data], found)
        return found

    def __getstate__(self):
        """State without the values of a chain."""
        return {**self.__dict__, "_known": None}


def _are_same(known, given, data) -> bool:
    return all(
        one is other or np.array_equal(one, other)
        for one, other in zip(known, [*given, *data], strict=True)
    )
