"""A forest with random columns as steps see it: its rows are where the point has them."""

from collections.abc import Mapping
from functools import cached_property

import numpy as np
import pymc as pm
from pytensor.graph.basic import Variable

from pymc_trees.core.columns.reference import (
    ReferencedDesign,
    make_both_index,
    make_referenced,
    move_column,
    move_level_sets,
)
from pymc_trees.core.columns.row_set import RowIndex, make_row_index
from pymc_trees.core.forest.place import place_rows
from pymc_trees.core.moves.problem import Workspace, make_workspace
from pymc_trees.core.value.evaluate import CachedOutputs
from pymc_trees.core.value.fields import CHECKSUM
from pymc_trees.distributions.data.table import n_random_columns
from pymc_trees.distributions.forest_inputs import declared
from pymc_trees.targets.forest_state import ForestData, ForestState, Inputs
from pymc_trees.targets.settings import Settings, compile_values


class ReferencedForestData(ForestData):
    """One forest with random columns; its design is that of the reference rows."""

    has_random_columns = True

    def __init__(self, model: pm.Model, forest: Variable):
        super().__init__(model, forest)
        self.reference, self.n_random = declared(forest), n_random_columns(forest)
        seen = model.replace_rvs_by_values(self._inputs[:1])
        # a forest that nothing depends on has no inputs but the reference rows
        self._at = compile_values(model, seen, []) if seen else None

    def inputs_at(self, point: Mapping[str, np.ndarray]) -> np.ndarray:
        """(n, p) training rows at a point."""
        if self._at is None:
            return self.reference.X
        function, names = self._at
        [X] = function(*(point[name] for name in names))
        if not np.isfinite(X).all():
            raise ValueError(
                f"At this point a random column of {self.name} is not finite: give initial values "
                "(initvals) inside its prior."
            )
        return np.ascontiguousarray(X)

    def make_design(self, X: np.ndarray) -> ReferencedDesign:
        """Design of training rows."""
        known = self.reference
        design = make_referenced(known.X, X, known.cuts, known.kinds)
        # without excluded columns: a node in which only they vary cannot be split
        rules = design.rules._replace(varies=self.design.varies)
        return design._replace(rules=rules, index=make_row_index(rules))

    @cached_property
    def row_index(self) -> RowIndex:
        """Index of the reference rows and the rows of the declaration."""
        return make_both_index(self.make_design(self.reference.X))

    def make_work(self) -> Workspace:
        """Workspace for trees of this forest."""
        max_nodes, n_stats = self.layout.max_nodes, self.target.n_stats
        both = self.make_design(self.reference.X).both
        order = None
        if self.directions is not None:
            n_words = -(-both.columns.shape[1] // 64)
            order = self.directions.with_room(max_nodes, self.layout.n_rows, n_stats, n_words)
        # sets of rows by level move with them: each chain has its own
        index = self.row_index._replace(level_sets=self.row_index.level_sets.copy())
        return make_workspace(max_nodes, n_stats, both, index, order)

    def load(
        self,
        state: ForestState | None,
        value: np.ndarray,
        settings: Settings,
        point: Mapping[str, np.ndarray],
    ) -> ForestState:
        """State for a value and the cells of a point."""
        X, known = self.inputs_at(point), None if state is None else state.inputs
        is_known = (
            state is not None
            and (value is state.value or np.array_equal(value, state.value))
            and np.array_equal(settings.weights, state.prior.weights)
        )
        if state is not None and is_known and known is not None and np.array_equal(X, known.X):
            return state
        work = self.make_work() if state is None else state.work
        moved = np.zeros(X.shape[1], dtype=bool)
        moved[X.shape[1] - self.n_random :] = True
        if state is not None and is_known:
            trees, prior = state.trees, state.prior
            if known is not None:
                moved &= (X != known.X).any(axis=0)
        else:
            work.rows_valid[:] = False
            trees, prior = self.decoded(value, settings, work)
            value = value.copy()
        inputs = self._moved(known, X)
        for j in range(X.shape[1] - self.n_random, X.shape[1]):
            move_level_sets(inputs.design, work.index, j)
        self.call(place_rows, trees, inputs.design.both, moved, work)
        fit = self.add_up(trees)
        cached = self.known(value, fit, inputs)
        return ForestState(value, trees, work, fit, prior, cached, inputs)

    def _moved(self, known: Inputs | None, X: np.ndarray) -> Inputs:
        if known is None:
            return Inputs(X, self.make_design(X))
        cuts = self.reference.cuts or []
        for j in range(X.shape[1] - self.n_random, X.shape[1]):
            move_column(known.design, j, X[:, j], cuts[j])
        return Inputs(X, known.design)

    def known(self, value: np.ndarray, fit: np.ndarray, inputs: Inputs | None) -> CachedOutputs:
        """What lets this process know the outputs at the rows of a point."""
        assert inputs is not None
        checksum = value[self.layout.max_nodes, CHECKSUM]
        return CachedOutputs(value, checksum, self.fingerprint, fit, inputs.X)


def forest_data(model: pm.Model, forest: Variable) -> ForestData:
    """One forest of a model as steps see it."""
    kind = ReferencedForestData if n_random_columns(forest) else ForestData
    return kind(model, forest)
