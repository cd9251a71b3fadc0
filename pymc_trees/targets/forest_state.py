"""One forest of a model as steps see it, and its state between two steps of a chain."""

from collections.abc import Mapping
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from pymc_trees.core.columns.design import make_design
from pymc_trees.core.columns.reference import ReferencedDesign
from pymc_trees.core.columns.row_set import RowIndex, make_row_index
from pymc_trees.core.compile.pointer import DirectCalls
from pymc_trees.core.compile.threads import WORTH, by_rows
from pymc_trees.core.forest.trees import Trees, count_forest, make_trees
from pymc_trees.core.leaves.threaded import in_threads
from pymc_trees.core.moves.by_address import ByAddress
from pymc_trees.core.moves.problem import Problem, Workspace, make_workspace
from pymc_trees.core.value.encode import add_up_outputs, add_up_values, decode, encode
from pymc_trees.core.value.evaluate import CachedOutputs, cached_outputs, publish_outputs
from pymc_trees.core.value.fields import CHECKSUM, is_intact, sizes
from pymc_trees.distributions.capacity import ForestTooLargeError, too_small
from pymc_trees.distributions.data.numbers import is_random, present_numbers
from pymc_trees.distributions.data.table import schema_of
from pymc_trees.distributions.forest_inputs import declared, forest_inputs
from pymc_trees.distributions.ops.forest_rv import leaf_at, order_of
from pymc_trees.targets.choose import read_target
from pymc_trees.targets.graph import check_inputs, inputs_seen
from pymc_trees.targets.settings import Settings


class ForestState(NamedTuple):
    """State of a forest in a chain: its encoded value, and the arrays that it stands for."""

    value: np.ndarray
    """The encoded value."""
    trees: Trees
    work: Workspace
    """Of the trees: it knows which rows are in their nodes."""
    fit: np.ndarray
    """(n, K) outputs at the training rows: the sum of the trees, to the last bit."""
    prior: Any
    """Tree prior whose split weights the column probabilities of the trees were computed with."""
    known: CachedOutputs | None = None
    """Lets this process know the outputs of the value."""
    inputs: "Inputs | None" = None
    """Where the training rows are now, if columns are random."""


class Inputs(NamedTuple):
    """Training rows of a forest with random columns."""

    X: np.ndarray
    """(n, p)"""
    design: ReferencedDesign
    """Of these and the reference rows; changed in place."""


class ForestData:
    """One forest of a model: its target, prior and design. A chain changes nothing of it."""

    has_random_columns = False
    """Whether cells of X are random variables."""
    statistics: tuple[str, ...] = ()
    """Names of numbers of `summary` other than those of every kind of forest."""

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
        self.has_fixed_prior = not any(is_random(setting) for setting in inputs.settings)
        self.call = DirectCalls()
        self.by_address = ByAddress()

    @property
    def n_columns(self) -> int:
        """Columns of X."""
        return self.design.columns.shape[0]

    @cached_property
    def row_index(self) -> RowIndex:
        """Index of the training rows by column."""
        return make_row_index(self.design)

    def make_work(self) -> Workspace:
        """Workspace for trees of this forest."""
        max_nodes, n_stats = self.layout.max_nodes, self.target.n_stats
        order = None
        if self.directions is not None:
            order = self.directions.with_room(max_nodes, self.layout.n_rows, n_stats)
        return make_workspace(max_nodes, n_stats, self.design, self.row_index, order)

    def check_inputs(self) -> None:
        """Raise an error if the model's data were replaced after the step method was created.

        The step has the training inputs of the declaration; the rest of the model, and recorded
        quantities, would use the new ones.
        """
        check_inputs(self._forest, self._inputs)

    def load(
        self,
        state: ForestState | None,
        value: np.ndarray,
        settings: Settings,
        point: Mapping[str, np.ndarray],
    ) -> ForestState:
        """State for a value: the last one, or a new one if other code changed the value.

        A forest with random columns takes their cells from the point.
        """
        weights = settings.weights
        if (
            state is not None
            and (value is state.value or np.array_equal(value, state.value))
            and np.array_equal(weights, state.prior.weights)
        ):
            return state
        work = self.make_work() if state is None else state.work
        work.rows_valid[:] = False
        trees, prior = self.decoded(value, settings, work)
        layout = self.layout
        fit = cached_outputs(value, value[layout.max_nodes, CHECKSUM], self.fingerprint)
        fit = self.add_up(trees) if fit is None else fit
        return ForestState(value.copy(), trees, work, fit, prior)

    def decoded(self, value: np.ndarray, settings: Settings, work: Workspace) -> tuple[Trees, Any]:
        """Trees of a value, or an error, and the tree prior of their column probabilities."""
        layout, weights = self.layout, settings.weights
        # the prior terms of encoded trees depend on no other setting
        prior = self._prior_kernel(0.5, 0.0, weights.copy())
        value = np.ascontiguousarray(value, dtype=np.float64)
        trees = make_trees(layout.m, layout.max_nodes, layout.n_values, layout.n_rows)
        if (
            value.shape != layout.shape
            or not is_intact(value, layout.max_nodes, self.fingerprint)
            or not decode(value, self.design, prior, self.sizes, trees, work.rows, work.buffer)
        ):
            raise ValueError(
                f"The value of {self.name} is not a forest of this model. Leave it out of "
                "initvals, or give a draw from the same model."
            )
        return trees, prior

    def problem(self, settings: Settings, state: ForestState, leaf, n_threads: int = 1) -> Problem:
        """The trees and their posterior at a point."""
        if self.directions is None:
            leaf = in_threads(leaf, n_threads)
        design = self.design if state.inputs is None else state.inputs.design
        return Problem(state.trees, design, self.prior(settings), leaf)

    def prior(self, settings: Settings):
        """Tree prior at a point."""
        return self._prior_kernel(settings.alpha, settings.beta, settings.weights)

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
            arguments = (add_up_outputs, leaf, trees.values, leaf_of, fit)
            by_rows(partial(self.call, *arguments), n, threads)
        return fit

    def store(self, state: ForestState, settings: Settings, n_threads: int = 1) -> ForestState:
        """State after its trees were changed: the trees are added up and encoded."""
        trees, prior = state.trees, state.prior
        if not np.array_equal(prior.weights, settings.weights):
            prior = self._prior_kernel(0.5, 0.0, settings.weights.copy())
        fit = self.add_up(trees, n_threads)
        value = encode(trees, self.design, prior, self.sizes, self.fingerprint, state.work.nodes)
        known = self.known(value, fit, state.inputs)
        return ForestState(value, trees, state.work, fit, prior, known, state.inputs)

    def known(self, value: np.ndarray, fit: np.ndarray, inputs: Inputs | None) -> CachedOutputs:
        """What lets this process know the outputs at the training rows."""
        checksum = value[self.layout.max_nodes, CHECKSUM]
        return publish_outputs(value, checksum, self.fingerprint, fit)

    def summary(self, state: ForestState) -> dict:
        """Statistics of the trees."""
        inclusion = np.zeros(self.n_columns, dtype=np.int64)
        n_leaves, depth = self.call(count_forest, state.trees, state.work.nodes, inclusion)
        return {"n_leaves": n_leaves, "max_depth": depth, "variable_inclusion": inclusion}

    def too_large(self) -> ForestTooLargeError:
        """The error of a forest that outgrew its capacity."""
        return ForestTooLargeError(too_small(self.name, self.layout))

    def __getstate__(self):
        """State without the index of the rows, which is made anew."""
        return {k: v for k, v in self.__dict__.items() if k != "row_index"}
