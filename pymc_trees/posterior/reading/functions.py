"""The functions of a model, at any rows, draw by draw.

Every number in this folder that is about f comes from here: the Deterministic that BART,
DecisionTree or SoftDecisionTree registered, with other rows in place of the model's, compiled once
and called for each draw. The draws are checked first (`check_draws`).
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pymc as pm
import xarray as xr
from pytensor.graph.basic import Variable
from pytensor.graph.replace import clone_replace
from pytensor.graph.traversal import ancestors
from pytensor.tensor import matrix
from pytensor.tensor.random.op import RandomVariable
from rich.progress import track

from pymc_trees.distributions.data.encoding import inputs_at
from pymc_trees.distributions.data.schema import Schema
from pymc_trees.distributions.evaluations import evaluations
from pymc_trees.distributions.forest_inputs import Evaluation
from pymc_trees.distributions.tree_variable import is_tree_variable
from pymc_trees.posterior.check.check_draws import SAMPLE, check_draws
from pymc_trees.posterior.reading.given import draws_of
from pymc_trees.posterior.reading.held_rows import HeldRows

BLOCK = 100_000
"""Rows times outputs evaluated in one call, which bounds the memory beside the result."""


class Function:
    """A function of the rows of X under the draws of a model.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of `pymc.sample`, or the same read from a file.
    model : pymc.Model
        The model.
    var_name : str, optional
        The function; may be left out when the model has one.
    func : callable, optional
        Of an array of values of the function, elementwise: an inverse link.
    group : str, default "posterior"
        Of the draws.
    """

    def __init__(
        self,
        idata,
        model: pm.Model,
        var_name: str | None = None,
        func=None,
        group: str = "posterior",
    ):
        idata = draws_of(idata, group)
        check_draws(idata, model)
        self.name = _name_of(model, var_name)
        found = evaluations([model[self.name]])
        self.trees = [one.tree for one in found]
        self.X, self.schema = _inputs_of(found, self.name)
        """(n, p) rows that the model has now, levels as codes."""
        self.func: Callable = func or _as_it_is
        posterior = idata["posterior"]
        self.draws = [posterior[tree.name].transpose(*SAMPLE, ...) for tree in self.trees]
        self.coords = {dim: posterior[dim].to_numpy() for dim in SAMPLE}
        at, values = matrix("X", dtype="float64"), [tree.type(tree.name) for tree in self.trees]
        inputs = {one.X: at for one in found}
        replaced = [*inputs.items(), *zip(self.trees, values, strict=True)]
        [outputs] = clone_replace([model[self.name]], replaced, rebuild_strict=False)
        self._compiled = pm.compile([at, *values], outputs, on_unused_input="ignore")
        self.axis, self.outputs = self._shape()
        names = model.named_vars_to_dims.get(self.name) or ()
        kept = [name for k, name in enumerate(names) if k != self.axis]
        axes = range(len(self.outputs) + 1)
        usual = [f"{self.name}_dim_{k}" for k in axes if k != self.axis]  # as PyMC has it
        self.dims = (
            tuple(a or b for a, b in zip(kept, usual, strict=True)) if kept else tuple(usual)
        )
        for dim in self.dims:
            if dim in model.coords and model.coords[dim] is not None:
                self.coords[dim] = np.asarray(model.coords[dim])

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of chains and of draws."""
        return self.draws[0].shape[:2]

    @property
    def n_columns(self) -> int:
        """Columns of X."""
        return self.X.shape[1]

    @property
    def names(self) -> np.ndarray:
        """Of the columns, as dimensions and coordinates have them."""
        known = None if self.schema is None else self.schema.names
        numbers = range(self.n_columns) if known is None else known
        return np.array([name if isinstance(name, str) else f"x{name}" for name in numbers])

    def rows(self, X: Any) -> np.ndarray:
        """(n, p) matrix of other rows, or of the model's own when None."""
        rows = self.X if X is None else inputs_at(X, self.schema)
        if len(rows) == 0:
            raise ValueError(f"{self.name} is asked at no rows: give X at least one.")
        return rows

    def each_draw(self, X: np.ndarray | HeldRows) -> Iterator[tuple[int, int, np.ndarray]]:
        """Chain, draw, and the values at the rows of X, the rows last."""
        width = max(1, BLOCK // max(1, int(np.prod(self.outputs))))
        starts = range(0, len(X), width)
        for chain, draw in np.ndindex(*self.shape):
            values = [np.ascontiguousarray(d[chain, draw].to_numpy()) for d in self.draws]
            parts = [
                np.moveaxis(self._compiled(np.ascontiguousarray(rows), *values), self.axis, -1)
                for rows in (X[i : i + width] for i in starts)
            ]
            yield chain, draw, self.func(np.concatenate(parts, axis=-1))

    def reduced(
        self,
        X: np.ndarray | HeldRows,
        reduce: Callable,
        dims: dict[str, Any],
        progressbar: bool = False,
    ) -> xr.DataArray:
        """What ``reduce`` makes of the values at the rows of X, for each draw.

        It takes an array whose last axis is that of the rows, and returns the axes of the outputs
        and then those of ``dims``.
        """
        found = np.empty((*self.shape, *self.outputs, *(len(of) for of in dims.values())))
        total, quiet = int(np.prod(self.shape)), not progressbar
        each = track(self.each_draw(X), self.name, total, disable=quiet, transient=True)
        for chain, draw, values in each:
            found[chain, draw] = reduce(values)
        named = (*SAMPLE, *self.dims, *dims)
        return xr.DataArray(found, coords=self.coords | dims, dims=named, name=self.name)

    def _shape(self) -> tuple[int, tuple[int, ...]]:
        """Axis of the rows among those of the function, and lengths of the others."""
        values = [d[0, 0].to_numpy() for d in self.draws]
        two, three = (self._compiled(self.X[[0] * n], *values).shape for n in (2, 3))
        [axis] = [k for k, (a, b) in enumerate(zip(two, three, strict=True)) if a != b]
        return axis, two[:axis] + two[axis + 1 :]


def _as_it_is(values):
    return values


def _name_of(model: pm.Model, var_name: str | None) -> str:
    """Name of a function of trees, or an error that lists those there are."""
    known = {one.name: one for one in model.deterministics if _is_function(one)}
    declared = [
        name
        for name, one in known.items()
        if not any(other in known.values() for other in ancestors([one]) if other is not one)
    ]
    if var_name is None and len(declared) == 1:
        return declared[0]
    if var_name is None:
        if not declared:
            raise ValueError("The model has no function of trees: declare one by BART.")
        raise ValueError(f"The model has the functions {declared}: choose one by var_name.")
    if var_name not in known:
        raise ValueError(
            f"var_name={var_name!r} is no function of trees alone: choose from {list(known)}."
        )
    return var_name


def _is_function(variable: Variable) -> bool:
    """Whether a Deterministic depends on trees and on nothing else that is random.

    What the prior of the trees depends on, split weights say, does not matter once they are known.
    """
    trees = [one.tree for one in evaluations([variable])]
    random = [
        v
        for v in ancestors([variable], blockers=trees)
        if v.owner and isinstance(v.owner.op, RandomVariable)
    ]
    return bool(random) and all(is_tree_variable(v) for v in random)


def _inputs_of(found: list[Evaluation], name: str) -> tuple[np.ndarray, Schema | None]:
    """The present X of all evaluations, and what is known of its columns."""
    several = {one.X: getattr(one.tree.tag, "pymc_trees_columns", None) for one in found}
    X, *others = (np.asarray(one.eval(), dtype=np.float64) for one in several)
    schema, *schemas = several.values()
    if not all(np.array_equal(X, one) for one in others) or any(s != schema for s in schemas):
        raise ValueError(
            f"{name} evaluates forests at several X that differ: ask each of its functions."
        )
    return X, schema
