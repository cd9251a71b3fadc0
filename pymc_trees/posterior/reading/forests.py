"""The encoded trees of one forest, draw by draw.

Used by everything that reads trees rather than values of f: counts of columns, plots, Shapley
values.
"""

from collections.abc import Iterator
from functools import cached_property

import numpy as np
import pymc as pm
from pytensor.graph.basic import Variable

from pymc_trees.core.soft_forest.encode import soft_sizes
from pymc_trees.core.value.fields import sizes
from pymc_trees.core.value.text import distinct_cells
from pymc_trees.distributions.data.table import schema_of
from pymc_trees.distributions.forest_inputs import forest_inputs, training_rows
from pymc_trees.distributions.ops.forest_rv import is_forest
from pymc_trees.distributions.ops.soft_forest_rv import is_soft_forest
from pymc_trees.distributions.tree_variable import evaluations, tree_variables
from pymc_trees.posterior.draws import SAMPLE, checked_draws, draws_of, model_of
from pymc_trees.posterior.reading.features import column_words
from pymc_trees.progress import track


class ForestDraws:
    """Draws of the trees of one forest of a model, checked.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of `pymc.sample`, or the same read from a file.
    model : pymc.Model
        The model.
    forest : str, optional
        Name of the forest, or of its function; may be left out when the model has one.
    soft_too : bool, default False
        Whether it may be a sum of soft trees, of which columns and numbers of nodes can be read.
    """

    def __init__(self, idata, model: pm.Model, forest: str | None = None, soft_too: bool = False):
        idata = draws_of(idata)
        checked = checked_draws(idata, model_of(model))
        self.variable = _forest_of(model, forest, soft_too)
        """Random variable of the forest."""
        self.name: str = self.variable.name
        self.layout = self.variable.owner.op.layout
        """Sizes of the encoded value, m trees among them (`core.value.fields`)."""
        self.X_train = np.asarray(training_rows(self.variable), dtype=np.float64)
        """(n, p) training rows, levels as codes."""
        self.schema = schema_of(self.variable)
        """Names and levels of the columns; None where X was an array."""
        self._draws = checked[self.name]
        self.coords = {dim: idata["posterior"][dim].to_numpy() for dim in SAMPLE}

    @property
    def sizes(self):
        """Sizes of the encoded value as the kernels take them."""
        return soft_sizes(self.layout) if self.is_soft else sizes(self.layout)

    @property
    def is_soft(self) -> bool:
        """Whether it is a sum of soft trees."""
        return is_soft_forest(self.variable)

    @property
    def soft_columns(self) -> tuple[np.ndarray, ...]:
        """Of soft trees the map of the columns, and which are hard (`core.soft_forest`)."""
        known = forest_inputs(self.variable)
        return tuple(np.asarray(one.data) for one in (*known.unit_map, known.hard))

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of chains and of draws."""
        chains, draws, *_ = self._draws.shape
        return chains, draws

    def value(self, chain: int, draw: int) -> np.ndarray:
        """(rows, fields) encoded value of a draw."""
        return np.ascontiguousarray(self._draws[chain, draw], dtype=np.float64)

    @property
    def names(self) -> list[str]:
        """Of the p columns: as in the training frame, or x0, x1, ..."""
        known = None if self.schema is None else self.schema.names
        return column_words(known, self.X_train.shape[1])

    @property
    def levels(self) -> list[tuple | None] | None:
        """By their code, of each column; None for numbers."""
        return None if self.schema is None else list(self.schema.levels)

    @cached_property
    def cells(self) -> list[np.ndarray]:
        """What each training column holds, sorted, without missing cells."""
        return distinct_cells(self.X_train)

    def each_draw(self, progressbar: bool = False) -> Iterator[tuple[int, int, np.ndarray]]:
        """Chain, draw, and the encoded value."""
        places, total = np.ndindex(*self.shape), int(np.prod(self.shape))
        for chain, draw in track(places, self.name, total, progressbar):
            yield chain, draw, self.value(chain, draw)


def forests_of(model: pm.Model, name: str | None, soft_too: bool = False) -> list[str]:
    """Names of the forests that a name refers to: itself, or those of a function."""
    known = [rv for rv in model.free_RVs if is_forest(rv) or (soft_too and is_soft_forest(rv))]
    forests = [rv.name for rv in known]
    _refuse_soft(model, name, forests)
    if not forests:
        raise ValueError("The model has no forest: declare one by BART or DecisionTree.")
    if name is None:
        if len(forests) > 1:
            raise ValueError(f"The model has the forests {forests}: choose one by forest.")
        return forests
    if name in forests:
        return [name]
    functions = [one for one in model.deterministics if one.name == name]
    evaluated = {one.tree.name for one in evaluations(functions)} & set(forests)
    if not evaluated:
        raise ValueError(f"forest={name!r} is not one forest: choose from {forests}.")
    return [one for one in forests if one in evaluated]


def _forest_of(model: pm.Model, name: str | None, soft_too: bool) -> Variable:
    """A forest by its name or that of its function."""
    names = forests_of(model, name, soft_too)
    if len(names) > 1:
        raise ValueError(f"forest={name!r} is not one forest: choose from {names}.")
    return model[names[0]]


def _refuse_soft(model: pm.Model, name: str | None, forests: list[str]) -> None:
    """Raise an error where a name refers to other soft trees, or the model has nothing else."""
    other = [t for t in tree_variables(model) if t.is_soft and t.name not in forests]
    for one in {type(tree): tree for tree in other}.values():
        soft = [tree.name for tree in other if type(tree) is type(one)]
        meant = any(name in (one, one.removesuffix("_forest")) for one in soft)
        if meant or not forests:
            raise ValueError(one.why_no_nodes(soft))
