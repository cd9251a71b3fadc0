"""Expressions of forests and other variables, at any rows, draw by draw.

Every number in this folder that is about f comes from here: an expression of the model, with other
rows in place of the model's, compiled once and called for each draw. The draws are checked first
(`check_draws`).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pymc as pm
import xarray as xr
from pytensor.graph.basic import Variable
from pytensor.graph.replace import clone_replace
from pytensor.graph.traversal import ancestors
from pytensor.scalar.basic import Cast
from pytensor.tensor import matrix
from pytensor.tensor.elemwise import Elemwise
from rich.progress import track

from pymc_trees.distributions.data.encoding import inputs_at
from pymc_trees.distributions.data.schema import Schema
from pymc_trees.distributions.forest_inputs import Evaluation
from pymc_trees.distributions.tree_variable import evaluations
from pymc_trees.posterior.check_draws import SAMPLE, StoredDraws, checked_draws, model_of
from pymc_trees.posterior.reading.given import draws_of
from pymc_trees.posterior.reading.rows_apart import check_rowwise

# ------------------------------------------ Rows with some columns held at one point after another


@dataclass(frozen=True)
class HeldRows:
    """All rows at the first point, then all at the second, ...; made when they are sliced."""

    rows: np.ndarray
    """(n, p)"""
    columns: list[int]
    points: np.ndarray
    """(points, held columns)"""

    def __len__(self) -> int:
        return len(self.rows) * len(self.points)

    def __getitem__(self, which: slice) -> np.ndarray:
        point, row = np.divmod(np.arange(len(self))[which], len(self.rows))
        held = self.rows[row]
        held[:, self.columns] = self.points[point]
        return held


# --------------------------------------------------------------------------------------------------


BLOCK = 100_000
"""Rows times outputs evaluated in one call, which bounds the memory beside the result."""


class Expression:
    """An expression of trees and of other variables, at the rows of X, under the draws of a model.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of `pymc.sample`, or the same read from a file.
    model : pymc.Model
        The model.
    variable : Variable
        The expression; one of its axes is that of the rows.
    name : str
        For results and messages.
    group : str, default "posterior"
        Of the draws.

    Raises
    ------
    ValueError
        When draws are lacking, or entry i of the expression depends on more than row i of X, which
        is read from the graph; where an Op in it is none that `targets.rowwise` knows, one row
        after another is changed and the entries of the others have to stay.
    """

    def __init__(
        self, idata, model: pm.Model, variable: Variable, name: str, group: str = "posterior"
    ):
        idata = draws_of(idata, group)
        checked = checked_draws(idata, model_of(model))
        self.name, self.variable = name, variable
        self.found = evaluations([variable], blockers=model.basic_RVs)
        """Where it evaluates trees."""
        self.bases = bases_of(self.found, model)
        """For each of these the variable that holds the rows of X, from which its own are made."""
        self.trees = list(dict.fromkeys(one.tree for one in self.found))
        self.X, self.schema = inputs_of(self.found, self.bases, self.name)
        """(n, p) rows that the model has now, levels as codes."""
        posterior = idata["posterior"]
        self.others = [rv for rv in random_below(model, variable) if rv not in self.trees]
        """Random variables beside the trees, whose draws enter as they are."""
        _check_recorded(name, self.others, model, posterior)
        drawn = [*self.trees, *self.others]
        self.draws = [checked.get(v.name) or StoredDraws(posterior[v.name]) for v in drawn]
        first = [np.array(d[0, 0], order="C") for d in self.draws]
        values_of_others = dict(zip(self.others, first[len(self.trees) :], strict=True))
        check_rowwise(variable, self.found, self.bases, name, values_of_others)
        self.coords = {dim: posterior[dim].to_numpy() for dim in SAMPLE}
        at, values = matrix("X", dtype="float64"), [v.type(v.name) for v in drawn]
        inputs = dict.fromkeys(self.bases, at)
        replaced = [*inputs.items(), *zip(drawn, values, strict=True)]
        [outputs] = clone_replace([variable], replaced, rebuild_strict=False)
        self._compiled = pm.compile([at, *values], outputs, on_unused_input="ignore")
        self.axis, self.outputs = self._shape(first)

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of chains and of draws."""
        chains, draws, *_ = self.draws[0].shape
        return chains, draws

    @property
    def dims(self) -> tuple[str, ...]:
        """Names of the axes beside that of the rows, as PyMC has them."""
        axes = range(len(self.outputs) + 1)
        return tuple(f"{self.name}_dim_{k}" for k in axes if k != self.axis)

    @property
    def n_columns(self) -> int:
        """Columns of X."""
        return self.X.shape[1]

    def rows(self, X: Any, name: str = "X") -> np.ndarray:
        """(n, p) matrix of other rows, or of the model's own when None; the name is for errors."""
        rows = self.X if X is None else inputs_at(X, self.schema, name)
        if len(rows) == 0:
            raise ValueError(f"{self.name} is evaluated at no rows: give {name} at least one row.")
        return rows

    @property
    def at_own_rows(self) -> bool:
        """Whether trees are evaluated at the rows of X themselves, and not at some made of them."""
        pairs = zip(self.found, self.bases, strict=True)
        return all(without_cast(one.X) is base for one, base in pairs)

    def others_at(self, chain: int, draw: int) -> list[np.ndarray]:
        """Values of `others` in a draw."""
        drawn = self.draws[len(self.draws) - len(self.others) :]
        return [np.array(d[chain, draw], order="C") for d in drawn]

    def at(self, chain: int, draw: int) -> Callable[[np.ndarray | HeldRows], np.ndarray]:
        """The expression as a function of rows, in a draw; their axis is the last of the values."""
        values = [np.array(d[chain, draw], order="C") for d in self.draws]
        width = max(1, BLOCK // max(1, int(np.prod(self.outputs))))

        def values_at(X):
            parts = [
                np.moveaxis(self._compiled(np.ascontiguousarray(rows), *values), self.axis, -1)
                for rows in (X[i : i + width] for i in range(0, len(X), width))
            ]
            return np.concatenate(parts, axis=-1)

        return values_at

    def each_draw(self, X: np.ndarray | HeldRows) -> Iterator[tuple[int, int, np.ndarray]]:
        """Chain, draw, and the values at the rows of X, the rows last."""
        for chain, draw in np.ndindex(*self.shape):
            yield chain, draw, self.at(chain, draw)(X)

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

    def _shape(self, values) -> tuple[int, tuple[int, ...]]:
        """Axis of the rows among those of the expression, and lengths of the others."""
        two, three = (self._compiled(self.X[[0] * n], *values).shape for n in (2, 3))
        [axis] = [k for k, (a, b) in enumerate(zip(two, three, strict=True)) if a != b]
        return axis, two[:axis] + two[axis + 1 :]


def random_below(model: pm.Model, variable: Variable) -> list[Variable]:
    """Random variables of a model that an expression depends on directly, trees among them."""
    seen = set(ancestors([variable], blockers=model.basic_RVs))
    return [rv for rv in model.basic_RVs if rv in seen]


def bases_of(found: list[Evaluation], model: pm.Model) -> list[Variable]:
    """For each evaluation the variable whose rows are those of X.

    Its own X; or, where that is made of another at which the model evaluates the same tree (X with
    the treatment set to 1, say), that one.
    """
    everything = [*model.basic_RVs, *model.potentials, *model.deterministics]
    known = [(one.tree, without_cast(one.X)) for one in evaluations(everything)]
    bases = []
    for one in found:
        own = without_cast(one.X)
        below = set(ancestors([own])) - {own}
        of_tree = [X for tree, X in known if tree is one.tree and X in below]
        lowest = [X for X in of_tree if not (set(ancestors([X])) - {X}) & set(of_tree)]
        bases.append(lowest[0] if lowest else own)
    return bases


def without_cast(X: Variable) -> Variable:
    """X as the model has it, where an evaluation made floats of it."""
    op = X.owner.op if X.owner else None
    if not (isinstance(op, Elemwise) and isinstance(op.scalar_op, Cast)):
        return X
    [before] = X.owner.inputs
    return before


def _check_recorded(name: str, others: list[Variable], model: pm.Model, posterior) -> None:
    """An error where draws lack a variable that an expression depends on."""
    observed = [rv.name for rv in others if rv in model.observed_RVs]
    if observed:
        raise ValueError(
            f"{name} depends on the observed {observed}, which are unknown at other rows: use the "
            "function of trees inside it."
        )
    lost = [rv.name for rv in others if rv.name not in posterior]
    if lost:
        raise ValueError(
            f"idata lacks {lost}, which {name} depends on: keep them among var_names of pm.sample."
        )


def inputs_of(
    found: list[Evaluation], bases: list[Variable], name: str
) -> tuple[np.ndarray, Schema | None]:
    """The present X of all evaluations, and what is known of its columns.

    Soft trees take no missing cells, and so neither does a function of these and others.
    """
    known = zip(bases, found, strict=True)
    several = {base: getattr(one.tree.tag, "pymc_trees_columns", None) for base, one in known}
    X, *others = (np.asarray(base.eval(), dtype=np.float64) for base in several)
    complete = any(one is not None and one.complete for one in several.values())
    schema, *schemas = (
        None if one is None else one._replace(complete=complete) for one in several.values()
    )
    if not all(np.array_equal(X, one) for one in others) or any(s != schema for s in schemas):
        raise ValueError(f"{name} evaluates forests at different X: use its functions one by one.")
    return X, schema
