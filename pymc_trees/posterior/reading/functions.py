"""Functions of a model at any rows, draw by draw: expressions of trees and of other variables.

Every number in `posterior` that is about f comes from here: an expression of the model, with other
rows in place of the model's, compiled once and called for each draw. The draws are checked first
(`check_draws`).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
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

from pymc_trees.arguments import check_elementwise
from pymc_trees.distributions.data.table import encode, n_random_columns, schema_of
from pymc_trees.distributions.forest_inputs import Evaluation, training_rows
from pymc_trees.distributions.ops.evaluation import evaluate
from pymc_trees.distributions.ops.forest_rv import is_forest
from pymc_trees.distributions.tree_variable import evaluations, is_tree_variable
from pymc_trees.posterior.draws import SAMPLE, StoredDraws, checked_draws, draws_of, model_of
from pymc_trees.posterior.reading.features import column_words, output_dims
from pymc_trees.posterior.reading.indices import check_indices
from pymc_trees.posterior.reading.random_inputs import check_not_random, columns_of, inputs_at
from pymc_trees.posterior.reading.rowwise import OtherRowsError, check_rowwise
from pymc_trees.predictors.columns import Schema
from pymc_trees.progress import track

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
"""Rows times outputs evaluated in one call, which bounds the memory in addition to the result."""


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
        is read from the graph; for an Op that `targets.rows` does not know, it is checked that
        changing one row leaves the entries of the others unchanged.
    """

    def __init__(
        self, idata, model: pm.Model, variable: Variable, name: str, group: str = "posterior"
    ):
        idata = draws_of(idata, group)
        checked = checked_draws(idata, model_of(model))
        self.name, self.variable = name, variable
        self.evaluated = evaluations([variable], blockers=model.basic_RVs)
        """Where it evaluates trees."""
        self.bases = bases_of(self.evaluated, model)
        """For each of these the variable that holds the rows of X, from which its own are made."""
        self.trees = list(dict.fromkeys(one.tree for one in self.evaluated))
        posterior = idata["posterior"]
        below = random_beside(model, variable)
        self.others = [rv for rv in below if rv not in self.trees]
        """Other random variables in the expression, whose draws are inserted."""
        _check_recorded(name, self.others, model, posterior)
        self._checked, self._posterior = checked, posterior
        drawn = [*self.trees, *self.others]
        self.draws = [checked.get(v.name) or StoredDraws(posterior[v.name]) for v in drawn]
        held = {v: d.shape[2:] for v, d in zip(drawn, self.draws, strict=True)}
        check_indices(model, [variable], held)
        first = [np.array(d[0, 0], order="C") for d in self.draws]
        values_of_others = dict(zip(self.others, first[len(self.trees) :], strict=True))
        self.X, self.schema = self._read(model, values_of_others)
        """(n, p) rows that the model has now, levels as codes."""
        self.coords = {dim: posterior[dim].to_numpy() for dim in SAMPLE}
        at, values = matrix("X", dtype="float64"), [v.type(v.name) for v in drawn]
        outputs = self._at_rows(at, dict(zip(drawn, values, strict=True)))
        self._compiled = pm.compile([at, *values], outputs, on_unused_input="ignore")
        self.axis, self.outputs = self._shape(first)

    def _read(self, model: pm.Model, others: dict[Variable, np.ndarray]):
        """The rows that the model has now, and what their columns are."""
        found = inputs_of(self.evaluated, self.bases, self.name)
        check_rowwise(self.variable, self.evaluated, self.bases, self.name, others)
        return found

    def _at_rows(self, at: Variable, drawn: dict[Variable, Variable]) -> Variable:
        """The expression at a matrix of rows, with inputs for the variables that are drawn."""
        replaced = inputs_at(self.evaluated, self.bases, at) | drawn
        [outputs] = clone_replace([self.variable], replaced, rebuild_strict=False)
        return outputs

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of chains and of draws."""
        chains, draws, *_ = self.draws[0].shape
        return chains, draws

    @property
    def dims(self) -> tuple[str, ...]:
        """Names of the axes other than that of the rows, as PyMC has them."""
        axes = range(len(self.outputs) + 1)
        return tuple(f"{self.name}_dim_{k}" for k in axes if k != self.axis)

    @property
    def n_columns(self) -> int:
        """Columns of X."""
        return self.X.shape[1]

    def rows(self, X: Any, name: str = "X") -> np.ndarray:
        """(n, p) matrix of other rows, or of the model's own when None; the name is for errors."""
        rows = self.X if X is None else encode(X, self.schema, name)
        check_not_random(self.evaluated, self.name, name, None if X is None else rows)
        if len(rows) == 0:
            raise ValueError(f"{self.name} is evaluated at no rows: give {name} at least one row.")
        return rows

    @property
    def at_own_rows(self) -> bool:
        """Whether trees are evaluated at the rows of X themselves, and not at some made of them."""
        pairs = zip(self.evaluated, self.bases, strict=True)
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
        results = np.empty((*self.shape, *self.outputs, *(len(of) for of in dims.values())))
        each = track(self.each_draw(X), self.name, int(np.prod(self.shape)), progressbar)
        for chain, draw, values in each:
            results[chain, draw] = reduce(values)
        named = (*SAMPLE, *self.dims, *dims)
        return xr.DataArray(results, coords=self.coords | dims, dims=named, name=self.name)

    def _shape(self, values) -> tuple[int, tuple[int, ...]]:
        """Axis of the rows among those of the expression, and lengths of the others."""
        two, three = (self._compiled(self._some_rows(n), *values).shape for n in (2, 3))
        [axis] = [k for k, (a, b) in enumerate(zip(two, three, strict=True)) if a != b]
        return axis, two[:axis] + two[axis + 1 :]

    def _some_rows(self, n: int) -> np.ndarray:
        return self.X[[0] * n]


def random_below(
    model: pm.Model, variable: Variable, known: Iterable[Variable] = ()
) -> list[Variable]:
    """Random variables of a model that an expression depends on directly, trees among them.

    Not those that it depends on through what is known, such as rows of X with random columns.
    """
    seen = set(ancestors([variable], blockers=[*model.basic_RVs, *known]))
    return [rv for rv in model.basic_RVs if rv in seen]


def random_beside(model: pm.Model, variable: Variable) -> list[Variable]:
    """The same, without random columns of X: these are columns of the rows."""
    evaluated = evaluations([variable], blockers=model.basic_RVs)
    bases = bases_of(evaluated, model)
    columns = columns_of(evaluated, bases)
    return [rv for rv in random_below(model, variable, [*bases, *columns]) if rv not in columns]


def bases_of(evaluated: list[Evaluation], model: pm.Model) -> list[Variable]:
    """For each evaluation the variable whose rows are those of X.

    Its own X; or, where that is made of another at which the model evaluates the same tree (X with
    the treatment set to 1, say), that one.
    """
    everything = [*model.basic_RVs, *model.potentials, *model.deterministics]
    known = [(one.tree, without_cast(one.X)) for one in evaluations(everything)]
    bases = []
    for one in evaluated:
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


def rows_now(base: Variable, tree: Variable) -> np.ndarray:
    """Rows of X as the model has them; of a forest with random columns its reference rows."""
    known = training_rows(tree) if n_random_columns(tree) else base.eval()
    return np.asarray(known, dtype=np.float64)


def inputs_of(
    evaluated: list[Evaluation], bases: list[Variable], name: str
) -> tuple[np.ndarray, Schema]:
    """The current X of all evaluations, and its columns.

    Soft trees take no missing cells, and so neither does a function of these and others.
    """
    several = {base: schema_of(one.tree) for base, one in zip(bases, evaluated, strict=True)}
    trees = {base: one.tree for base, one in zip(bases, evaluated, strict=True)}
    X, *others = (rows_now(base, trees[base]) for base in several)
    plain = Schema.of_numbers(X.shape[1])  # of a value of a soft tree
    columns = [plain if one is None else one for one in several.values()]
    complete = any(one.complete for one in columns)
    rules = columns[0].rules  # each forest may have its own
    schema, *schemas = (one._replace(complete=complete, rules=rules) for one in columns)
    if not all(np.array_equal(X, one) for one in others) or any(s != schema for s in schemas):
        raise OtherRowsError(
            f"{name} evaluates forests at different X: use its functions one by one."
        )
    return X, schema


# --------------------------------------------------------------------------------------------------
# The functions of a model, by name: expressions of trees, and of other variables of the draws.


NOTHING: Mapping[Variable, np.ndarray] = MappingProxyType({})


class Function(Expression):
    """A function of the rows of X under the draws of a model.

    The Deterministic registered by BART, DecisionTree or SoftDecisionTree, or a Deterministic of
    these and of other random variables, such as a scale, whose drawn values are taken; for a
    `Forest` that the model evaluates without a Deterministic, the evaluated function, under the
    name of the forest.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of `pymc.sample`, or the same read from a file.
    model : pymc.Model
        The model.
    var_name : str, optional
        The function; may be left out when the model has one, or leaves with several parameters:
        then it is the mean.
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
        model = model_of(model)
        super().__init__(idata, model, *self._named_by(model, var_name), group)
        self.func: Callable = _as_it_is if func is None else check_elementwise("func", func)
        self._named = model.named_vars_to_dims.get(self.name) or ()
        for own, dim in zip(self._own_dims, self.dims, strict=True):
            if model.coords.get(own) is not None:
                self.coords[dim] = np.asarray(model.coords[own])

    def _named_by(self, model: pm.Model, var_name: str | None) -> tuple[Variable, str]:
        return function_of(model, var_name)

    @property
    def dims(self) -> tuple[str, ...]:
        """Names of the axes other than that of the rows: the model's, where answers have others."""
        return output_dims(self._own_dims)

    @property
    def _own_dims(self) -> tuple[str, ...]:
        """The same as the model has them, or PyMC."""
        kept = [name for k, name in enumerate(self._named) if k != self.axis]
        usual = super().dims
        return tuple(a or b for a, b in zip(kept, usual, strict=True)) if kept else usual

    @property
    def names(self) -> np.ndarray:
        """Of the columns, as dimensions and coordinates have them."""
        known = None if self.schema is None else self.schema.names
        return np.array(column_words(known, self.n_columns))

    def each_draw(self, X: np.ndarray | HeldRows) -> Iterator[tuple[int, int, np.ndarray]]:
        """Chain, draw, and the values at the rows of X, the rows last."""
        for chain, draw, values in super().each_draw(X):
            yield chain, draw, self.func(values)


def _as_it_is(values):
    return values


def function_of(
    model: pm.Model, var_name: str | None, can_be_asked: Callable | None = None
) -> tuple[Variable, str]:
    """A function of trees and its name, or an error that lists those there are.

    ``can_be_asked`` says it of an expression, its evaluations of trees, and values of the other
    random variables below it.
    """
    evaluated = {one.name: one for one in model.deterministics if _evaluates_trees(model, one)}
    if var_name is not None and var_name in evaluated:
        # `Expression` checks that it is a function of single rows
        return evaluated[var_name], var_name
    of_trees = [one for one in evaluated.values() if _is_of_trees(model, one)]
    known = {one.name: one for one in of_trees if _is_of_single_rows(model, one)}
    single = set(known)
    declared = [
        name
        for name, one in known.items()
        if not any(other in known.values() for other in ancestors([one]) if other is not one)
    ]
    bare = _without_name(model, list(known.values()))
    known, declared = known | bare, [*_first_parameters(known, declared), *bare]
    if var_name is None and len(declared) == 1:
        return known[declared[0]], declared[0]
    if var_name is not None and var_name in known:
        return known[var_name], var_name
    # functions that also depend on other variables, such as a scale, or on data of the rows
    mixed = [name for name, one in evaluated.items() if one not in of_trees or name not in single]
    several = [*(declared if var_name is None else known), *mixed]
    choices = _that_can_be_asked(model, several, can_be_asked or _is_of_one_X)
    if not choices:
        raise ValueError("The model has no function of trees: declare one by BART.")
    if var_name is None:
        raise ValueError(f"The model has the functions {choices}: choose one by var_name.")
    raise ValueError(f"var_name={var_name!r} is not a function of trees: choose from {choices}.")


def _first_parameters(known: dict[str, Variable], declared: list[str]) -> list[str]:
    """Functions without the second and later parameters of a leaf, such as a precision."""

    def is_further(name):
        evaluated = evaluations([known[name]])
        if len(evaluated) != 1 or not is_forest(evaluated[0].tree):
            return False
        _, *suffixes = evaluated[0].tree.owner.op.leaf_type.suffixes
        first = [name.removesuffix(one) for one in suffixes if name.endswith(one)]
        return any(
            one in declared and evaluations([known[one]])[0].tree is evaluated[0].tree
            for one in first
        )

    return [name for name in declared if not is_further(name)]


def _evaluates_trees(model: pm.Model, variable: Variable) -> bool:
    """Whether a Deterministic evaluates trees, and not only through a random variable."""
    return bool(evaluations([variable], blockers=model.basic_RVs))


def _is_of_trees(model: pm.Model, variable: Variable) -> bool:
    """Whether a Deterministic depends on trees and on nothing else that is random."""
    random = random_beside(model, variable)
    return bool(random) and all(is_tree_variable(v) for v in random)


def _is_of_single_rows(
    model: pm.Model, variable: Variable, others: Mapping[Variable, np.ndarray] = NOTHING
) -> bool:
    """Whether entry i of a function of trees depends on row i of X alone."""
    evaluated = evaluations([variable], blockers=model.basic_RVs)
    try:
        check_rowwise(variable, evaluated, bases_of(evaluated, model), variable.name, others)
    except OtherRowsError:
        return False
    return True


def _that_can_be_asked(model: pm.Model, names: list[str], can_be_asked: Callable) -> list[str]:
    """Those of the functions that an error may propose: known at other rows."""
    rng = np.random.default_rng(0)

    def can_be(variable):
        others = [rv for rv in random_beside(model, variable) if not is_tree_variable(rv)]
        if any(rv in model.observed_RVs for rv in others):
            return False
        # any values will do; different ones, where an entry of them is taken
        shapes = model.eval_rv_shapes() if others else {}
        drawn = {rv: rng.random(shapes[rv.name]).astype(rv.dtype) for rv in others}
        return can_be_asked(model, variable, drawn)

    registered = {one.name: one for one in model.deterministics}
    return [name for name in names if name not in registered or can_be(registered[name])]


def _is_of_one_X(model: pm.Model, variable: Variable, drawn) -> bool:
    """Whether it is known at other rows of one X."""
    found = evaluations([variable], blockers=model.basic_RVs)
    try:
        inputs_of(found, bases_of(found, model), variable.name)
    except ValueError:
        return False
    return _is_of_single_rows(model, variable, drawn)


def _without_name(model: pm.Model, named: list[Variable]) -> dict[str, Variable]:
    """By the name of their forest, functions that the model evaluates and does not register."""
    seen = {one.tree for one in evaluations(named)}
    found = evaluations([*model.basic_RVs, *model.potentials])
    at = {one.tree: one.X for one in found if one.tree not in seen and is_forest(one.tree)}
    functions = {forest.name: evaluate(forest, X) for forest, X in at.items()}
    return {name: one for name, one in functions.items() if isinstance(one, Variable)}
