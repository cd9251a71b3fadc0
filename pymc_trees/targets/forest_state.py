"""Working arrays of one forest between two steps of a chain."""

from functools import partial
from typing import NamedTuple

import numpy as np

from pymc_trees.core.columns.design import make_design
from pymc_trees.core.compile.direct import DirectCalls
from pymc_trees.core.compile.threads import WORTH, by_rows
from pymc_trees.core.forest.trees import Trees, make_trees
from pymc_trees.core.moves.by_address import ByAddress
from pymc_trees.core.moves.problem import make_workspace
from pymc_trees.core.value.encode import add_up_outputs, add_up_values, decode, encode
from pymc_trees.core.value.fields import CHECKSUM, is_intact, sizes
from pymc_trees.core.value.output_cache import CachedOutputs, cached_outputs, publish_outputs
from pymc_trees.distributions.data.numbers import is_random, present_numbers
from pymc_trees.distributions.data.variables import schema_of
from pymc_trees.distributions.forest_inputs import declared, forest_inputs
from pymc_trees.distributions.ops.forest_rv import leaf_at, order_of
from pymc_trees.targets.choose import read_target
from pymc_trees.targets.graph import check_inputs, inputs_seen


class Arrays(NamedTuple):
    """State of a chain's forest in addition to the encoded value."""

    value: np.ndarray
    """The encoded value of the arrays."""
    trees: Trees
    fit: np.ndarray
    """(n, K) outputs at the training rows: the sum of the trees, to the last bit."""
    weights: np.ndarray
    """Split weights with which the trees' column probabilities were computed."""
    known: CachedOutputs | None = None
    """Lets this process know the outputs of the value."""


class WorkingForest:
    """One forest of a step method: its target, design and, while a chain runs, its arrays."""

    def __init__(self, model, forest):
        self.name = forest.name
        self.value_name = model.rvs_to_values[forest].name
        self.layout = forest.owner.op.layout
        self._prior_kernel = forest.owner.op.prior_type.kernel
        schema = schema_of(forest)
        self.columns = None if schema is None else schema.names
        self.sizes = sizes(self.layout)
        self.target = read_target(model, forest)
        self._forest, self._inputs = forest, inputs_seen(model, forest)
        known = declared(forest)
        design = make_design(known.X, known.cuts, known.kinds)
        inputs = forest_inputs(forest)
        weights = present_numbers(inputs.weights)
        if weights is not None:
            design = design._replace(varies=design.varies & (weights > 0))
        self.design = design
        self.fingerprint = known.fingerprint
        self.directions = order_of(forest.owner.op, known.constants, known.kinds)
        self.work = self.make_work()
        self.has_fixed_prior = not any(is_random(setting) for setting in inputs.settings)
        self._prior = None
        self.aim: np.ndarray | None = None
        """(n,) in a step: the leaf's residual plus the outputs."""
        self.arrays: Arrays | None = None
        self.call = DirectCalls()
        self.by_address = ByAddress()

    def check_inputs(self) -> None:
        """Raise an error if the model's data were replaced after the step method was created.

        The step has the training inputs of the declaration; the rest of the model, and recorded
        quantities, would use the new ones.
        """
        check_inputs(self._forest, self._inputs)

    def load(self, value: np.ndarray, weights: np.ndarray) -> Arrays:
        """Arrays of a value: the stored ones, or new ones if other code changed it."""
        kept = self.arrays
        if (
            kept is not None
            and (value is kept.value or np.array_equal(value, kept.value))
            and np.array_equal(weights, kept.weights)
        ):
            return kept
        layout = self.layout
        self.work.rows_valid[:] = False
        value = np.ascontiguousarray(value, dtype=np.float64)
        trees = make_trees(layout.m, layout.max_nodes, layout.n_values, layout.n_rows)
        if (
            value.shape != layout.shape
            or not is_intact(value, layout.max_nodes, self.fingerprint)
            or not decode(
                value,
                self.design,
                self._prior_of(weights),
                self.sizes,
                trees,
                self.work.rows,
                self.work.buffer,
            )
        ):
            raise ValueError(
                f"The value of {self.name} is not a forest of this model. Leave it out of "
                "initvals, or give a draw from the same model."
            )
        fit = cached_outputs(value, value[layout.max_nodes, CHECKSUM], self.fingerprint)
        fit = self.add_up(trees) if fit is None else fit
        return Arrays(value.copy(), trees, fit, weights.copy())

    def fitted(self, leaf, trees: Trees) -> np.ndarray:
        """(n, K) outputs between the sweeps of a step: target minus residual, or `add_up`.

        The residual is faster; it is not used if rounding would lose the outputs.
        """
        return self.add_up(trees) if self.aim is None else (self.aim - leaf.r)[:, None]

    def add_up(self, trees: Trees, n_threads: int = 1) -> np.ndarray:
        """(n, K) sum of the trees at the training rows, as a walk through them has it."""
        n, leaf_of = self.layout.n_rows, trees.leaf_of
        fit = np.empty((n, self.layout.n_outputs))
        threads = n_threads if leaf_of.size >= WORTH else 1
        if self.layout.own_outputs is None:
            for k in range(fit.shape[1]):
                values = np.ascontiguousarray(trees.values[:, k])
                total = fit.reshape(-1) if fit.shape[1] == 1 else np.empty(n)
                by_rows(partial(self.call, add_up_values, values, leaf_of, total), n, threads)
                fit[:, k] = total
        else:
            leaf = leaf_at(self._forest)
            given = (add_up_outputs, leaf, trees.values, leaf_of, fit)
            by_rows(partial(self.call, *given), n, threads)
        return fit

    def store(self, trees: Trees, weights: np.ndarray, n_threads: int = 1) -> np.ndarray:
        """Encode, add the trees up, and store the arrays for the next step."""
        fit, nodes = self.add_up(trees, n_threads), self.work.nodes
        prior = self._prior_of(weights)
        value = encode(trees, self.design, prior, self.sizes, self.fingerprint, nodes)
        checksum = value[self.layout.max_nodes, CHECKSUM]
        known = publish_outputs(value, checksum, self.fingerprint, fit)
        self.arrays = Arrays(value, trees, fit, weights.copy(), known)
        return value

    def _prior_of(self, weights):
        # the prior terms of encoded trees depend on no other setting
        if self._prior is None or not np.array_equal(self._prior.weights, weights):
            self._prior = self._prior_kernel(0.5, 0.0, weights.copy())
        return self._prior

    def prior(self, settings):
        """Tree prior at a point's settings."""
        return self._prior_kernel(settings.alpha, settings.beta, settings.weights)

    def make_work(self, index=None):
        """Workspace; ``index`` is that of another one, for the same rows."""
        max_nodes, n_stats = self.layout.max_nodes, self.target.n_stats
        order = None
        if self.directions is not None:
            order = self.directions.with_room(max_nodes, self.layout.n_rows, n_stats)
        return make_workspace(max_nodes, n_stats, self.design, index, order)

    def __getstate__(self):
        """State without workspace and arrays of a chain, which the next point rebuilds."""
        return {**self.__dict__, "arrays": None, "work": None, "aim": None}

    def __setstate__(self, state):
        self.__dict__.update(state)
        self.work = self.make_work()
