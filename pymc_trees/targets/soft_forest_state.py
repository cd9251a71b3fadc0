"""Working arrays of one forest of soft trees between two steps of a chain."""

from typing import NamedTuple

import numpy as np

from pymc_trees.core.compile.direct import DirectCalls
from pymc_trees.core.soft_forest.encode import decode, encode, soft_sizes
from pymc_trees.core.soft_forest.moves import SoftProblem
from pymc_trees.core.soft_forest.prior import make_soft_prior
from pymc_trees.core.soft_forest.trees import SoftTrees, add_up
from pymc_trees.core.soft_forest.unit import to_unit
from pymc_trees.core.value.fields import CHECKSUM, is_intact
from pymc_trees.core.value.output_cache import CachedOutputs, publish_outputs
from pymc_trees.distributions.forest_inputs import fingerprint_of, forest_inputs
from pymc_trees.targets.choose import read_target
from pymc_trees.targets.errors import UnsupportedModelError
from pymc_trees.targets.graph import check_inputs, inputs_seen


class SoftArrays(NamedTuple):
    """State of a chain's forest in addition to the encoded value."""

    value: np.ndarray
    """The encoded value of the arrays."""
    trees: SoftTrees
    fit: np.ndarray
    """(n, 1) the function at the training rows: the sum of the trees, to the last bit."""
    known: CachedOutputs | None = None
    """Lets this process know the function of the value."""


class WorkingSoftForest:
    """One forest of soft trees of a step: its target, inputs and, while a chain runs, its arrays.

    Raises
    ------
    UnsupportedModelError
        For a likelihood that is not a product over rows.
    """

    def __init__(self, model, forest):
        self.name = forest.name
        self.value_name = model.rvs_to_values[forest].name
        self.layout = forest.owner.op.layout
        self.sizes = soft_sizes(self.layout)
        self.target = read_target(model, forest)
        if self.target.is_joint:
            raise UnsupportedModelError(
                f"The likelihood of {self.name} is not known to be a product over rows, which "
                "soft trees need: use pymc_trees.BART instead, or write the likelihood so that "
                "each row depends only on its own entry of the function."
            )
        self._forest, self._inputs = forest, inputs_seen(model, forest)
        known = forest_inputs(forest)
        X, *unit_map = (v.data for v in (known.X, *known.unit_map))
        self.unit = to_unit(np.ascontiguousarray(X), *unit_map)
        self.hard, self.bandwidth = known.hard.data, float(known.bandwidth.data)
        self.fingerprint = fingerprint_of(forest)
        self.arrays: SoftArrays | None = None
        self.call = DirectCalls()

    def check_inputs(self) -> None:
        """Raise an error if the model's data were replaced after the step method was created."""
        check_inputs(self._forest, self._inputs)

    def load(self, value: np.ndarray) -> SoftArrays:
        """Arrays of a value: the stored ones, or new ones if other code changed it."""
        kept = self.arrays
        if kept is not None and (value is kept.value or np.array_equal(value, kept.value)):
            return kept
        value, fits = np.ascontiguousarray(value, dtype=np.float64), False
        if value.shape == self.layout.shape and is_intact(
            value, self.layout.max_nodes, self.fingerprint
        ):
            trees, fits = self.call(decode, value, self.sizes, len(self.hard))
        if not fits:
            raise ValueError(
                f"The value of {self.name} is not a forest of this model. Leave it out of "
                "initvals, or give a draw from the same model."
            )
        return SoftArrays(value.copy(), trees, self.add_up(trees))

    def add_up(self, trees: SoftTrees) -> np.ndarray:
        """(n, 1) sum of the trees at the training rows."""
        return self.call(add_up, trees, self.unit, self.hard)[:, None]

    def store(self, trees: SoftTrees) -> np.ndarray:
        """Encode, and store the arrays for the next step."""
        fit = self.add_up(trees)
        value = encode(trees, self.sizes, self.fingerprint)
        checksum = value[self.layout.max_nodes, CHECKSUM]
        known = publish_outputs(value, checksum, self.fingerprint, fit)
        self.arrays = SoftArrays(value, trees, fit, known)
        return value

    def problem(self, settings, trees: SoftTrees) -> SoftProblem:
        """The forest and its prior at a point's settings."""
        weights = np.ascontiguousarray(settings.weights, dtype=np.float64)
        prior = make_soft_prior(settings.alpha, settings.beta, weights, self.bandwidth)
        return SoftProblem(trees, self.unit, self.hard, prior, self.layout.max_nodes)

    def __getstate__(self):
        """State without the arrays of a chain, which the next point rebuilds."""
        return {**self.__dict__, "arrays": None}
