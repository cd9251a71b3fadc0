"""Prior settings of a forest: expressions in the model's graph, numbers at a point."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pymc as pm
import pytensor
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import explicit_graph_inputs

from pymc_trees.distributions.forest_inputs import forest_inputs


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
        values = [point[name] for name in self.names]
        data = [one.get_value(borrow=True) for one in self._function.get_shared()]
        if self._known is not None and _are_same(self._known[0], values, data):
            return self._known[1]
        results = self._function(self._zero, *values)
        settings = Settings.of(results[: self._n_settings])
        result = settings, self._then(results[self._n_settings :])
        self._known = ([*map(np.copy, values), *data], result)
        return result

    def __getstate__(self):
        """State without the values of a chain."""
        return {**self.__dict__, "_known": None}


def _are_same(previous, values, data) -> bool:
    return all(
        old is new or np.array_equal(old, new)
        for old, new in zip(previous, [*values, *data], strict=True)
    )


# ---------------- Functions of the values of a model's variables


def compile_values(model: pm.Model, expressions: list[Variable], first: list[Variable]):
    """Function of ``first`` and of the value variables the expressions need, and their names.

    The graphs are small and called once a sweep: they are simplified, and run without compilation.
    """
    needed = set(explicit_graph_inputs(expressions))
    values = [v for v in model.value_vars if v in needed]
    function = pytensor.function(
        [*first, *values],
        expressions,
        mode=pytensor.compile.mode.Mode(linker="py", optimizer="fast_run").excluding("fusion"),
        on_unused_input="ignore",
    )
    function.trust_input = False
    return function, [v.name for v in values]


def compiled_at(model: pm.Model, first: list, expressions, compile_kwargs=None):
    """Function of ``first`` and of the value variables that are needed, and of which they are."""
    several = expressions if isinstance(expressions, list) else [expressions]
    needed = set(explicit_graph_inputs(several)) - set(first)
    values = [v for v in model.value_vars if v in needed]
    function = pm.compile([*first, *values], expressions, **(compile_kwargs or {}))
    return function, [(v.name, v.dtype) for v in values]


def numbers_at(point: dict, needs: list) -> list[np.ndarray]:
    """Numbers of a point that such a function takes."""
    return [np.asarray(point[name], dtype=dtype) for name, dtype in needs]
