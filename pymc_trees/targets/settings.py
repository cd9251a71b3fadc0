"""Prior settings of a forest: expressions in the model's graph, numbers at a point."""

from typing import NamedTuple

import numpy as np
import pymc as pm
from pytensor.graph.basic import Variable

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
