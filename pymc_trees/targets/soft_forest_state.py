"""One forest of soft trees as steps see it, and its state between two steps of a chain."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from pymc_trees.core.compile.pointer import DirectCalls
from pymc_trees.core.soft_forest.encode import decode, encode, soft_sizes
from pymc_trees.core.soft_forest.moves import SoftProblem
from pymc_trees.core.soft_forest.prior import make_soft_prior
from pymc_trees.core.soft_forest.sweep import count_trees
from pymc_trees.core.soft_forest.trees import SoftTrees, sum_trees, to_unit
from pymc_trees.core.value.evaluate import CachedOutputs, publish_outputs
from pymc_trees.core.value.fields import CHECKSUM, is_intact
from pymc_trees.distributions.capacity import ForestTooLargeError, soft_too_small
from pymc_trees.distributions.forest_inputs import fingerprint_of, forest_inputs
from pymc_trees.targets.choose import read_target
from pymc_trees.targets.graph import UnsupportedModelError, check_inputs, inputs_seen
from pymc_trees.targets.settings import Settings


class SoftForestState(NamedTuple):
    """State of a forest in a chain: its encoded value, and the arrays that it stands for."""

    value: np.ndarray
    """The encoded value."""
    trees: SoftTrees
    fit: np.ndarray
    """(n, 1) the function at the training rows: the sum of the trees, to the last bit."""
    known: CachedOutputs | None = None
    """Lets this process know the function of the value."""
    work: None = None
    """Soft trees need no workspace."""


class SoftPosterior(NamedTuple):
    """Soft trees and their posterior at a point."""

    forest: SoftProblem
    """The trees, which are changed in place, and their prior."""
    leaf: tuple
    """Leaf model and data."""


class SoftForestData:
    """One forest of soft trees of a model: its target, prior and inputs.

    Raises
    ------
    UnsupportedModelError
        For a likelihood that is not a product over rows.
    """

    has_random_columns = False
    """Whether cells of X are random variables."""
    statistics = ("mean_bandwidth",)

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
        self.n_columns = len(self.hard)
        self.fingerprint = fingerprint_of(forest)
        self.call = DirectCalls()

    def check_inputs(self) -> None:
        """Raise an error if the model's data were replaced after the step method was created."""
        check_inputs(self._forest, self._inputs)

    def load(
        self,
        state: SoftForestState | None,
        value: np.ndarray,
        settings: Settings,
        point: Mapping[str, np.ndarray],
    ) -> SoftForestState:
        """State for a value: the last one, or a new one if other code changed the value."""
        if state is not None and (value is state.value or np.array_equal(value, state.value)):
            return state
        value, fits = np.ascontiguousarray(value, dtype=np.float64), False
        if value.shape == self.layout.shape and is_intact(
            value, self.layout.max_nodes, self.fingerprint
        ):
            trees, fits = self.call(decode, value, self.sizes, self.n_columns)
        if not fits:
            raise ValueError(
                f"The value of {self.name} is not a forest of this model. Leave it out of "
                "initvals, or give a draw from the same model."
            )
        return SoftForestState(value.copy(), trees, self.add_up(trees))

    def problem(
        self, settings: Settings, state: SoftForestState, leaf, n_threads=1
    ) -> SoftPosterior:
        """The trees and their posterior at a point."""
        weights = np.ascontiguousarray(settings.weights, dtype=np.float64)
        prior = make_soft_prior(settings.alpha, settings.beta, weights, self.bandwidth)
        forest = SoftProblem(state.trees, self.unit, self.hard, prior, self.layout.max_nodes)
        return SoftPosterior(forest, leaf)

    def add_up(self, trees: SoftTrees) -> np.ndarray:
        """(n, 1) sum of the trees at the training rows."""
        return self.call(sum_trees, trees, self.unit, self.hard)[:, None]

    def store(self, state: SoftForestState, settings: Settings, n_threads=1) -> SoftForestState:
        """State after its trees were changed: the trees are added up and encoded."""
        trees = state.trees
        fit = self.add_up(trees)
        value = encode(trees, self.sizes, self.fingerprint)
        checksum = value[self.layout.max_nodes, CHECKSUM]
        known = publish_outputs(value, checksum, self.fingerprint, fit)
        return SoftForestState(value, trees, fit, known)

    def summary(self, state: SoftForestState) -> dict:
        """Statistics of the trees."""
        trees, inclusion = state.trees, np.zeros(self.n_columns, dtype=np.int64)
        n_leaves, depth = self.call(count_trees, trees, inclusion)
        split = trees.bandwidth[trees.size > 1]
        return {
            "n_leaves": n_leaves,
            "max_depth": depth,
            "variable_inclusion": inclusion,
            "mean_bandwidth": float(split.mean()) if split.size else np.nan,
        }

    def too_large(self) -> ForestTooLargeError:
        """The error of a forest that outgrew its capacity."""
        return ForestTooLargeError(soft_too_small(self.name, self.layout))
