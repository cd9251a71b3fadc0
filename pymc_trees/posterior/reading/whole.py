"""Functions of the whole model: of the rows of X, and of model data with an entry for each row.

A Deterministic may take more for a row than the outputs of trees: an exposure, a treatment that is
a coefficient, the effect of the row's group. Data of that kind are columns beside those of X
(`table`), so that whatever is asked of a column of X can be asked of them.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import xarray as xr
from pytensor.graph.basic import Variable
from pytensor.graph.replace import clone_replace
from pytensor.graph.traversal import ancestors
from pytensor.tensor import matrix

from pymc_trees.arguments import check_seed
from pymc_trees.core.columns.cells import MISSING
from pymc_trees.distributions.data.table import schema_of
from pymc_trees.distributions.forest_inputs import Evaluation
from pymc_trees.distributions.tree_variable import evaluations
from pymc_trees.posterior.draws import SAMPLE, draws_of, model_of, with_fewer_draws
from pymc_trees.posterior.new_groups import changed_dims, with_new_groups
from pymc_trees.posterior.reading.functions import (
    BLOCK,
    Function,
    HeldRows,
    bases_of,
    function_of,
    rows_now,
)
from pymc_trees.posterior.reading.indices import PYTHON, index_checker, labels_of_index
from pymc_trees.posterior.reading.random_inputs import (
    check_not_random,
    random_inputs,
)
from pymc_trees.posterior.reading.rowwise import (
    DataBesideError,
    Opened,
    OtherRowsError,
    check_rowwise,
    no_row_of_its_own,
)
from pymc_trees.posterior.reading.table import (
    ANY_X,
    Beside,
    RowTable,
    Source,
    beside_source,
    inputs_source,
)
from pymc_trees.predictors.columns import Schema


class WholeFunction(Function):
    """A Deterministic of a model, as a function of X and of the data that have an entry for a row.

    Parameters
    ----------
    idata, model, var_name, func, group
        As for `Function`.
    data : array, frame or mapping, optional
        A mapping gives other values of any model data by name; those without an entry for each row
        are taken as they are there, X and others when rows are made (`rows`).
    draws : int, optional
        Number of draws, over all chains and evenly spaced; default all.
    random_state : numpy.random.Generator or seed, optional
        For effects of groups that were not seen.
    argument : str, default "data"
        Name under which users give ``data``, for errors.
    """

    def __init__(
        self,
        idata,
        model: pm.Model | None,
        var_name: str | None = None,
        func=None,
        group: str = "posterior",
        data: Any = None,
        draws: int | None = None,
        random_state=None,
        argument: str = "data",
    ):
        self._model, self._argument = model_of(model), argument
        model = self._model
        variable, _ = self._named_by(model, var_name)
        self._given = _given_data(model, self._taken_apart(idata, var_name, data), argument)
        self._check: Callable[[np.ndarray], None] = _no_check
        self._more: list[Part] = []
        """Further functions of the same rows."""
        idata = _with_groups(idata, model, variable, group, draws, random_state)
        super().__init__(idata, model, var_name, func)

    def _named_by(self, model: pm.Model, var_name: str | None) -> tuple[Variable, str]:
        return function_of(model, var_name, _can_be_asked)

    def _taken_apart(self, idata, var_name: str | None, data: Any) -> Any:
        """Rows of users without what is no column of the table."""
        return data

    def _read(self, model: pm.Model, others: dict[Variable, np.ndarray]):
        """The first row that the model has now, and what the columns are."""
        trees = {rv: d.shape[2:] for rv, d in zip(self.trees, self.draws, strict=False)}
        held = trees | {rv: np.shape(value) for rv, value in others.items()}
        of_rows = Part(self.variable, self.name, self.evaluated, self.bases)
        self.table, self._opened, self._fixed = opened(
            model, of_rows, others, self._given, self._more
        )
        at = matrix("rows", dtype="float64")
        parts = self.table.parts(at) | self._fixed
        self._check = index_checker(model, self.variable, held, parts, at)
        return self.table.first(), self.table.schema

    def _at_rows(self, at: Variable, drawn: dict[Variable, Variable]) -> Variable:
        """The expression at a matrix of rows, with inputs for the variables that are drawn."""
        replaced = self.table.parts(at) | drawn | self._fixed
        if not self._opened.own:
            [outputs] = clone_replace([self.variable], replaced, rebuild_strict=False)
            return outputs
        trees = [one.outputs for one in self.evaluated]
        trees = clone_replace(trees, replaced, rebuild_strict=False)
        opened, number = self._opened, at[:, -1].astype("int64")
        inputs = {v: drawn[rv] for rv, v in opened.free.items()} | self._fixed
        each = {v: _taken(v, number, axis, inputs) for v, axis in opened.own}
        rows = {opened.rows: pt.concatenate([*trees, at], axis=1)}
        [whole] = clone_replace([opened.whole], rows | inputs | each, rebuild_strict=False)
        return whole

    @property
    def n_columns(self) -> int:
        """Columns of X, and of data beside it."""
        return self.table.n_columns

    @property
    def is_beside(self) -> bool:
        """Whether it takes more for a row than the columns of one X."""
        return len(self.table.sources) > 1 or self.table.numbered

    def rows(self, X: Any, name: str = "data") -> np.ndarray:
        """(n, columns) table of rows: the model's own, or of other X and data; for `reduced`."""
        rows = self.table.now() if X is None else self.table.rows(X, self.name, name)
        for source, place in zip(self.table.sources, self.table.places, strict=True):
            if source.n_random and (rows[:, place[-source.n_random :]] == MISSING).any():
                check_not_random(self.evaluated, self.name, name)
        if len(rows) == 0:
            raise ValueError(f"{self.name} is evaluated at no rows: give {name} at least one row.")
        return rows

    def check_named(self, argument: str, which: Any) -> None:
        """Raise an error where users name data of the model that are the same for all rows."""
        known = {str(v.name) for v in self._model.data_vars} - set(map(str, self.table.names))
        names = [which] if isinstance(which, str) else which
        shared = [one for one in names if isinstance(one, str) and one in known]
        if shared:
            raise ValueError(
                f"{argument}: {shared[0]!r} is data of the model without an entry for each row of "
                f"{self.name}: compare predictions(data={{{shared[0]!r}: ...}}) at two values."
            )

    def reduced(
        self,
        X: np.ndarray | HeldRows,
        reduce: Callable,
        dims: dict[str, Any],
        progressbar: bool = False,
    ) -> xr.DataArray:
        """What ``reduce`` makes of the values at rows, for each draw, as for `Expression`."""
        self.check(X)
        return super().reduced(X, reduce, dims, progressbar)

    def check(self, X: np.ndarray | HeldRows) -> None:
        """Raise an error for rows at which data have no values, or pick entries there are not."""
        for start in range(0, len(X), BLOCK):
            rows = X[start : start + BLOCK]
            self.table.check(rows)
            self._check(rows)

    def _some_rows(self, n: int) -> np.ndarray:
        return np.ascontiguousarray(self.table.first()[[0] * n])


def _no_check(rows: np.ndarray) -> None:
    """Before it is known what indices there are."""


def _taken(v: Variable, number: Variable, axis: int, inputs: Mapping) -> Variable:
    """Of what has an entry for each row of the model, those of the rows with some numbers."""
    [copy] = clone_replace([v], dict(inputs), rebuild_strict=False) if v.owner else [v]
    return pt.take(inputs.get(copy, copy), number, axis=axis)


# ------------------------------------------------------- What an expression takes for each row


class Part(NamedTuple):
    """An expression of rows."""

    variable: Variable
    name: str
    """For errors."""
    evaluated: list[Evaluation]
    bases: list[Variable]


def opened(
    model: pm.Model,
    part: Part,
    others: Mapping[Variable, np.ndarray],
    given: Mapping[Variable, Any],
    more: Sequence[Part] = (),
) -> tuple[RowTable, Opened, dict[Variable, Variable]]:
    """Its table, the expression as a function of that, and other data as they are given.

    The table is that of more functions of the rows, too, which take no numbers of the model's rows.
    """
    parts = [part, *more]
    name, bases = part.name, [base for one in parts for base in one.bases]
    sources, beside = _inputs([one for p in parts for one in p.evaluated], bases, name), []
    variables = [one.variable for one in parts]
    below = set(ancestors(variables, blockers=model.basic_RVs))

    def labels(data):
        known = (labels_of_index(model, v, data) for v in variables)
        return next((one for one in known if one is not None), None)

    def read(table, which):
        return [
            check_rowwise(one.variable, one.evaluated, one.bases, one.name, others, table)
            for one in which
        ]

    while True:
        table = RowTable(sources)
        try:
            found, *rest = read(table, parts)
            break
        except DataBesideError as new:
            added = [one for one in new.beside if one not in beside]
            if not added:
                raise no_row_of_its_own(name) from None
            _check_not_in_X(model, name, added, bases)
            beside += added
            sources += [beside_source(model, one, labels) for one in added]
    if any(one.own for one in rest):
        raise no_row_of_its_own(more[0].name)
    if found.own:
        _check_length(name, found, others, len(sources[0].values), sources[0].name)
        of_own = set(ancestors([v for v, _ in found.own]))
        below |= of_own
        random = [rv.name for rv, v in found.free.items() if v in of_own]
        table = RowTable(sources, f"an entry of {random}" if random else "a number")
        [found] = read(table, parts[:1])
    of_rows = {v for one in sources for v in [*one.variables, *(v for v, _ in one.inner)]}
    fixed = {v: value for v, value in given.items() if v in below and v not in of_rows}
    return table, found, {v: pt.constant(_as_data(v, value)) for v, value in fixed.items()}


def _check_length(name, found: Opened, others, n: int, X: str) -> None:
    """Raise an error unless numbers of the model's rows are as many as X has rows now."""
    known = {found.free[rv]: pt.constant(value) for rv, value in others.items()}
    for v, axis in found.own:
        [length] = clone_replace([v.shape[axis]], known, rebuild_strict=False)
        if (number := int(length.eval(mode=PYTHON))) != n:
            raise OtherRowsError(
                f"{name} takes numbers or variables with an entry for each of {number} rows, but "
                f"{X} has {n} rows now: set the rows back that the model was declared with, or "
                "make indices and numbers of rows pm.Data and set them too."
            )


def _inputs(evaluated: list[Evaluation], bases: list[Variable], name: str) -> list[Source]:
    """Inputs of all forests; equal ones are one source."""
    random = random_inputs(evaluated, bases)
    sources: list[Source] = []
    schemas: list[Schema] = []
    pairs = list(zip(evaluated, bases, strict=True))
    for one, base in sorted(pairs, key=lambda pair: pair[1] not in random):
        taken_apart = random.get(base)
        X = rows_now(base, one.tree) if taken_apart is None else taken_apart.now()
        schema = schema_of(one.tree) or Schema.of_numbers(X.shape[1])
        for k, (known, old) in enumerate(zip(sources, schemas, strict=True)):
            if taken_apart is None and has_inside(known, base, X, schema):
                first = list(range(X.shape[1]))
                sources[k] = known._replace(inner=(*known.inner, (base, first)))
                break
            alike = (old.names, old.levels) == (schema.names, schema.levels)
            if base in known.variables or (alike and np.array_equal(X, known.values)):
                schemas[k] = old._replace(complete=old.complete or schema.complete)
                variables = list(dict.fromkeys([*known.variables, base]))
                inner = known.inner + tuple(taken_apart.inner if taken_apart else ())
                sources[k] = known._replace(variables=variables, schema=schemas[k], inner=inner)
                break
        else:
            sources.append(inputs_source(base.name or ANY_X, [base], X, schema, taken_apart))
            schemas.append(schema)
    if len(sources) > 1 and any(schema.names is None for schema in schemas):
        raise ValueError(
            f"{name} evaluates forests at different X: give frames, so that their columns have "
            "names, or use its functions one by one."
        )
    return sources


def has_inside(source: Source, base: Variable, X: np.ndarray, schema: Schema) -> bool:
    """Whether the first columns of inputs with random columns are those of another forest."""
    if not source.n_random:
        return False
    if any(v is base for v, _ in source.inner):
        return True
    p = X.shape[1]
    alike = schema.names in (None, source.names[:p]) and schema.levels == source.levels[:p]
    return (
        p == len(source.names) - source.n_random
        and alike
        and np.array_equal(source.values[:, :p], X)
    )


def _check_not_in_X(
    model: pm.Model, name: str, beside: list[Beside], bases: list[Variable]
) -> None:
    """Raise an error where trees are evaluated at rows that are made of data used beside them."""
    made_of = set(ancestors(bases, blockers=model.basic_RVs)) - set(bases)
    both = [str(one.variable.name) for one in beside if one.variable in made_of]
    if both:
        raise ValueError(
            f"{name} evaluates trees at rows made of {both}, and uses {both} beside them: make X "
            "one pm.Data with that column, and take it from there, X[:, k]."
        )


def _can_be_asked(model: pm.Model, variable: Variable, drawn: Mapping) -> bool:
    """Whether an expression is a function of rows."""
    found = evaluations([variable], blockers=model.basic_RVs)
    try:
        opened(model, Part(variable, variable.name, found, bases_of(found, model)), drawn, {})
    except ValueError:
        return False
    return True


# ---------------------------------------------------------- Other data, and groups that are new


def _given_data(model: pm.Model, data: Any, argument: str) -> dict[Variable, Any]:
    """Model data that a mapping gives, by variable."""
    if not isinstance(data, Mapping):
        return {}
    known = {str(v.name): v for v in model.data_vars}
    unknown = [key for key in data if key not in known and key != ANY_X]
    if unknown:
        raise ValueError(
            f"{argument}: {unknown} are not data variables of the model, which has {list(known)}."
        )
    return {known[key]: value for key, value in data.items() if key in known}


def _as_data(variable: Variable, value: Any) -> np.ndarray:
    """Other values of data that are the same for all rows."""
    now, new = np.asarray(variable.get_value()), np.asarray(value)
    if new.ndim != now.ndim or new.dtype.kind not in "biuf":
        raise ValueError(
            f"data: {variable.name} has the shape {new.shape} and the type {new.dtype}: give "
            f"numbers of shape {now.shape}, as the model has them."
        )
    if (kept := new.astype(now.dtype)).dtype.kind in "biu" and (kept != new).any():
        raise ValueError(
            f"data: {variable.name} is {now.dtype} in the model, which cannot hold {value}: give "
            "whole numbers, or declare it as floats."
        )
    return kept


def _with_groups(idata, model, variable, group, draws, random_state):
    """Draws with effects of the groups that the model has now, and as many as are wanted."""
    constant = idata.children.get("constant_data") if isinstance(idata, xr.DataTree) else None
    idata = draws_of(idata, group)
    posterior = getattr(idata, "children", {}).get("posterior")
    if posterior is None or not set(SAMPLE) <= set(posterior.dims):
        return idata  # `checked_draws` says what is wrong
    if draws is not None:
        idata = with_fewer_draws(idata, draws)
    known = idata["posterior"].to_dataset()
    changes = changed_dims(model, known, [variable])
    if not changes:
        return idata
    data = {} if constant is None else {str(k): v.to_numpy() for k, v in constant.data_vars.items()}
    rng = check_seed(random_state, "random_state")
    completed = with_new_groups(model, known, changes, data, SAMPLE, rng)
    return xr.DataTree.from_dict({"posterior": completed})
