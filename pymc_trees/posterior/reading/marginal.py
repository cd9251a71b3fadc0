"""Functions of rows with random columns integrated out where these are unknown.

A forest is constant in a column between two cuts, and so is all that is made of forests. Its mean
over the law of the column is therefore a sum over the intervals between the cuts that a draw has,
each with its probability: exact, for any function.
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pymc as pm
from pytensor.graph.basic import Variable
from pytensor.graph.replace import clone_replace
from pytensor.graph.traversal import ancestors
from pytensor.tensor import matrix
from pytensor.tensor.random.basic import NormalRV

from pymc_trees.core.columns.cells import MISSING
from pymc_trees.core.value.fields import UNUSED
from pymc_trees.distributions.data.random_columns import latent_part
from pymc_trees.distributions.data.table import n_random_columns
from pymc_trees.distributions.forest_inputs import training_rows
from pymc_trees.distributions.tree_variable import evaluations, is_tree_variable
from pymc_trees.posterior.draws import StoredDraws, model_of
from pymc_trees.posterior.reading.column_laws import (
    ColumnLaw,
    cdf_of,
    law_of,
    measurements_of,
    parts_of,
    random_of,
)
from pymc_trees.posterior.reading.features import Feature
from pymc_trees.posterior.reading.functions import BLOCK, HeldRows, bases_of
from pymc_trees.posterior.reading.indices import check_indices, index_checker
from pymc_trees.posterior.reading.integral import Integral
from pymc_trees.posterior.reading.random_inputs import random_inputs
from pymc_trees.posterior.reading.rowwise import OtherRowsError
from pymc_trees.posterior.reading.table import ANY_X
from pymc_trees.posterior.reading.whole import Part, WholeFunction
from pymc_trees.predictors.columns import column_names, is_lazy, real_array
from pymc_trees.predictors.rows import frame_of

_log = logging.getLogger("pymc.trees")
ATTRIBUTE = "random_columns"
"""Of results: what was done with them."""


class Given(NamedTuple):
    """Rows of users, taken apart."""

    table: Any
    """For `RowTable.rows`; None for the model's own."""
    cells: dict[str, np.ndarray]
    """Of random columns that are given by name."""
    measured: dict[str, np.ndarray]
    """Measurements of random columns."""
    own: bool
    """Whether they are the rows at which the columns were drawn."""


class MarginalFunction(WholeFunction):
    """A `WholeFunction` of rows that may lack random columns of X.

    At the rows that the model was fitted to, an unknown cell has its values of the draws. At other
    rows the function is integrated over the prior of the cell given its parents at the row, and
    over measurements of it that the rows have, in each draw.

    Parameters
    ----------
    idata, model, var_name, func, group, data, draws, random_state, argument
        As for `WholeFunction`.
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
        model = model_of(model)
        self._argument, self._said = argument, ""
        self.places: dict[str, int] = {}
        """Columns of the table that are random, by name."""
        self._columns: dict[str, Variable] = {}
        """Random columns of X by name."""
        self._law_checks: list[Callable[[np.ndarray], None]] = []
        self.laws: dict[str, ColumnLaw] = {}
        """Of columns that are unknown in some row."""
        if any(n_random_columns(rv) for rv in model.free_RVs):
            self._learn(idata, model, var_name)
        self._first = self._split(model, data) if self._columns else None
        rest = data if self._first is None else self._first.table
        asked = {"data": rest, "draws": draws, "random_state": random_state, "argument": argument}
        super().__init__(idata, model, var_name, func, group, **asked)

    def _learn(self, idata, model: pm.Model, var_name: str | None) -> None:
        """Random columns, what measures them, and the data that they depend on."""
        variable, name = self._named_by(model, var_name)
        evaluated = evaluations([variable], blockers=model.basic_RVs)
        bases = bases_of(evaluated, model)
        self._part = Part(variable, name, evaluated, bases)
        self._inputs = random_inputs(evaluated, bases)
        for one in self._inputs.values():
            for column, v in one.columns.items():
                if self._columns.setdefault(column, v) is not v:
                    raise ValueError(
                        f"{name} evaluates forests with different random columns of the name "
                        f"{column!r}: give one of them another name in with_columns."
                    )
        self._measurements = measurements_of(model, self._columns)
        latents = [latent_part(model, v) for v in self._columns.values()]
        self._parents = {v for v in ancestors(latents) if v in model.data_vars}
        constants = {v for one in self._inputs.values() for v in ancestors([one.constant])}
        self._names_of_X = {str(v.name) for v in model.data_vars if v in constants} | {ANY_X}
        known = idata.children.get("constant_data") if hasattr(idata, "children") else None
        self._as_fitted = all(
            np.array_equal(
                one.now()[:, : -len(one.columns)],
                training_rows(one.tree)[:, : -len(one.columns)],
                equal_nan=True,
            )
            for one in self._inputs.values()
        ) and not any(
            known is not None
            and v.name in known
            and not np.array_equal(known[v.name].to_numpy(), v.get_value())
            for v in self._parents
        )

    # ------------------------------------------------------------------------ What rows are given

    def _split(self, model: pm.Model, data: Any) -> Given:
        """Rows of users without what is no column of the table."""
        given = dict(data) if isinstance(data, Mapping) else {}
        cells = {c: _numbers(self._argument, c, given.pop(c)) for c in self._columns if c in given}
        X = data if data is not None and not isinstance(data, Mapping) else None
        at = next((key for key in given if key in self._names_of_X), ANY_X)
        X = given.get(at) if X is None else X
        names = () if X is None or is_lazy(X) else column_names(X) or ()
        own = {n for one in self._inputs.values() for n in one.names}
        beside = {str(v.name) for v in model.data_vars if v.ndim == 1} - set(given)
        extra = [n for n in names if n not in own and (n in self._measurements or n in beside)]
        if extra:
            given |= {n: np.asarray(frame_of(X, [n])).ravel() for n in extra}
            X = frame_of(X, [n for n in names if n not in extra])
        if X is not None:
            given[at] = X
        measured = {
            n: _numbers(self._argument, n, given.pop(n)) for n in self._measurements if n in given
        }
        changed = any(str(v.name) in given for v in self._parents)
        is_own = self._as_fitted and X is None and not measured and not changed
        plain = X is not None and list(given) == [at]
        table = X if plain and not isinstance(data, Mapping) else given or None
        return Given(table, cells, measured, is_own)

    def _unknown(self, given: Given) -> list[str]:
        """Random columns of which some cell is neither given nor drawn."""
        if given.own:
            return []
        X = given.table
        if isinstance(X, Mapping):
            X = next((X[key] for key in X if key in self._names_of_X), None)
        return [c for c in self._columns if self._lacks(c, X, given.cells.get(c))]

    def _lacks(self, column: str, X: Any, cells: np.ndarray | None) -> bool:
        if cells is None and X is not None:
            names = column_names(X)
            if names is not None:
                if column not in names:
                    return True
                return not is_lazy(X) and _has_nan(frame_of(X, [column]))
            for one in self._inputs.values():
                p = training_rows(one.tree).shape[1]
                if column in one.columns and len(np.shape(X)) == 2 and np.shape(X)[1] == p:
                    place = one.names.index(column)
                    return _has_nan(
                        X[:, place] if isinstance(X, np.ndarray) else np.asarray(X)[:, place]
                    )
        return cells is None or bool(np.isnan(cells).any())

    # ------------------------------------------------------------------ What is compiled, and rows

    def _read(self, model: pm.Model, others: dict[Variable, np.ndarray]):
        """The first row that the model has now, and what the columns are."""
        if self._first is None:
            return super()._read(model, others)
        self._measured = list(self._first.measured)
        for column in self._unknown(self._first):
            errors = self._errors(column)
            self.laws[column] = law_of(model, self._columns, column, errors)
            if not self.laws[column].latent.dtype.startswith("float"):
                raise ValueError(
                    f"{self._argument}: the random column {column!r} is discrete, and no mean over "
                    f"its values is taken: {self.remedy([column])}, or draw it at new rows with "
                    "pm.sample_posterior_predictive."
                )
        self._check_constant_between_cuts()
        of_laws = {c: parts_of(model, law, c, self._part) for c, law in self.laws.items()}
        more = [one for parts in of_laws.values() for one in parts]
        drawn = random_of(model, more)
        lost = [rv.name for rv in drawn if rv.name not in self._posterior]
        if lost:
            raise ValueError(
                f"idata lacks {lost}, which the priors of {list(self.laws)} depend on: keep them "
                f"among var_names of pm.sample, or {self.remedy(self.laws)}."
            )
        draws = [self._checked.get(v.name) or StoredDraws(self._posterior[v.name]) for v in drawn]
        first = {v: np.array(d[0, 0], order="C") for v, d in zip(drawn, draws, strict=True)}
        self._law_draws, self._more = draws, more
        known = {v: value for v, value in first.items() if not is_tree_variable(v)}
        try:
            check_indices(
                model, [one.variable for one in more], {v: x.shape for v, x in first.items()}
            )
            found = super()._read(model, others | known)
        except OtherRowsError as error:
            if not more or not self._can_be_read(model, others):
                raise
            raise ValueError(
                f"{self.name} at rows where {list(self.laws)} are unknown: the priors of these "
                f"are not known there ({error}). Make what they depend on pm.Data and give it "
                f"too, or {self.remedy(self.laws)}."
            ) from error
        self.places = {name: self.table.names.index(name) for name in self._columns}
        self._compile_laws(drawn, of_laws)
        self.own_draws = {
            name: StoredDraws(self._posterior[v.name])
            for name, v in self._columns.items()
            if v.name in self._posterior
        }
        return found

    def _can_be_read(self, model, others) -> bool:
        """Whether the function is one of single rows by itself."""
        self._more = []
        try:
            super()._read(model, others)
        except ValueError:
            return False
        return True

    def _errors(self, column: str) -> dict[str, Variable]:
        """Sds of the measurements of a column that are given."""
        errors = {}
        assert self._first is not None
        for name in self._first.measured:
            one = self._measurements[name]
            if one.column != column:
                continue
            latent = latent_part(self._model, self._columns[column])
            assert latent is not None
            if one.sd is None or not isinstance(latent.owner.op, NormalRV):
                raise ValueError(
                    f"{self._argument}: {name!r} measures the random column {column!r}, and the "
                    "law of the column given it is known for a Normal around a Normal only: leave "
                    f"{name!r} out, which takes the prior, or {self.remedy([column])}."
                )
            errors[name] = one.sd
        return errors

    def remedy(self, columns) -> str:
        """What users can do where a column is unknown."""
        return f"give the columns {list(columns)} in {self._argument}"

    def _check_constant_between_cuts(self) -> None:
        """Raise an error where the function takes an unknown column beside the trees."""
        trees = [one.outputs for one in self.evaluated]
        seen = set(ancestors([self.variable], blockers=[*trees, *self._columns.values()]))
        if wrong := [name for name in self.laws if self._columns[name] in seen]:
            raise ValueError(
                f"{self.name} takes the random columns {wrong} beside its trees, and its mean over "
                f"them is no sum over intervals between cuts: {self.remedy(wrong)}, or ask for "
                "the function of trees inside it."
            )

    def _compile_laws(self, drawn: list[Variable], of_laws: Mapping[str, Sequence[Part]]) -> None:
        """Parameters of all laws, as a function of rows and of draws."""
        if not of_laws:
            return
        at, values = matrix("X", dtype="float64"), [v.type(v.name) for v in drawn]
        replaced = self.table.parts(at) | dict(zip(drawn, values, strict=True)) | self._fixed
        each = [one.variable for parts in of_laws.values() for one in parts]
        outputs = clone_replace(each, replaced, rebuild_strict=False)
        self._parameters = pm.compile([at, *values], outputs, on_unused_input="ignore")
        held = {v: d.shape[2:] for v, d in zip(drawn, self._law_draws, strict=True)}
        parts = self.table.parts(at) | self._fixed
        self._law_checks = [index_checker(self._model, v, held, parts, at) for v in each]
        self.cdfs = {column: cdf_of(law) for column, law in self.laws.items()}

    def rows(self, X: Any, name: str = "data") -> np.ndarray:
        """(n, more columns) rows; behind those of the table measurements, and numbers of rows."""
        if self._first is None:
            return super().rows(X, name)
        given = self._split(self._model, X)
        known = given.table
        rows = self.table.now() if known is None else self.table.rows(known, self.name, name)
        n = len(rows)
        if n == 0:
            raise ValueError(f"{self.name} is evaluated at no rows: give {name} at least one row.")
        rows = np.array(rows, dtype=np.float64)
        for column, cells in given.cells.items():
            rows[:, self.places[column]] = _each(name, column, cells, n)
        measured = [_each(name, c, cells, n) for c, cells in given.measured.items()]
        number = np.arange(n) if given.own else np.full(n, MISSING)
        if given.own and (lost := [c for c in self._columns if c not in self.own_draws]):
            raise ValueError(
                f"idata lacks {[self._columns[c].name for c in lost]}, which {self.name} depends "
                f"on: keep them among var_names of pm.sample, or {self.remedy(lost)}."
            )
        unknown = [c for c in self._columns if (rows[:, self.places[c]] == MISSING).any()]
        if lost := [c for c in unknown if not given.own and c not in self.laws]:
            raise ValueError(f"{name} has missing cells in {lost}: {self.remedy(lost)}.")
        self._say(given, unknown)
        return np.column_stack([rows, *measured, number])

    def _say(self, given: Given, unknown: list[str]) -> None:
        """Note what is done with random columns."""
        if not unknown:
            return
        if given.own:
            said = f"{', '.join(unknown)}: draws at the rows of the model"
        else:
            each = []
            for column in unknown:
                by = [c for c in given.measured if self._measurements[c].column == column]
                given_these = f" given {', '.join(by)}" if by else ""
                each.append(f"{column}: integrated over its prior at each row{given_these}")
            said = "; ".join(each)
        if said != self._said:
            _log.info(f"Random columns of {self.name}. {said}.")
        self._said = said

    def noted(self, found):
        """A result, with a note of what was done with random columns."""
        return found.assign_attrs({ATTRIBUTE: self._said}) if self._said else found

    def check(self, X: np.ndarray | HeldRows) -> None:
        """As for `WholeFunction`."""
        if self._first is None:
            super().check(X)
            return
        width = self.table.width
        for start in range(0, len(X), BLOCK):
            rows = np.ascontiguousarray(X[start : start + BLOCK][:, :width])
            super().check(rows)
            for check in self._law_checks:
                check(rows)

    def check_known(self, feature: Feature, rows: np.ndarray, argument: str) -> None:
        """Raise an error for a random column that is unknown at rows, where it is to change."""
        column = next((c for c, k in self.places.items() if k == feature.column), None)
        if self._first is not None and column and (rows[:, feature.column] == MISSING).any():
            raise ValueError(
                f"{argument}: the random column {column!r} is unknown at these rows, so it cannot "
                f"be changed by a step: give values, {{{column!r}: (0.0, 1.0)}} in comparisons, or "
                f"{self.remedy([column])}."
            )

    def cells(self, feature: Feature, rows: np.ndarray) -> np.ndarray:
        """Cells from which values of a column are chosen: where it is random, reference rows."""
        own = rows[:, feature.column]
        if self._first is None or (own != MISSING).any():
            return own
        for one in self._inputs.values():
            for j, name in zip(range(-len(one.columns), 0), one.columns, strict=True):
                if self.places[name] == feature.column:
                    return training_rows(one.tree)[:, j]
        return own

    # ---------------------------------------------------------------------------------- Its values

    def each_draw(self, X: np.ndarray | HeldRows) -> Iterator[tuple[int, int, np.ndarray]]:
        """Chain, draw, and the values at the rows of X, the rows last."""
        if self._first is None:
            yield from super().each_draw(X)
            return
        for chain, draw in np.ndindex(*self.shape):
            one = Integral(self, chain, draw)
            yield chain, draw, np.concatenate([one(rows) for rows in self._blocks(X)], axis=-1)

    def _blocks(self, X) -> Iterator[np.ndarray]:
        width = max(1, BLOCK // max(1, int(np.prod(self.outputs))))
        return (np.array(X[start : start + width]) for start in range(0, len(X), width))

    def cuts_in(self, chain: int, draw: int, column: str) -> np.ndarray:
        """Cuts of a random column in the trees of a draw."""
        found = [np.empty(0)]
        for one, base in zip(self.evaluated, self.bases, strict=True):
            if base not in self._inputs or column not in self._inputs[base].columns:
                continue
            p, place = training_rows(one.tree).shape[1], self._inputs[base].names.index(column)
            value = np.asarray(self.draws[self.trees.index(one.tree)][chain, draw])
            nodes = value[: one.tree.owner.op.layout.max_nodes]
            code = nodes[:, 0]
            split = (code > UNUSED) & (code >= 0)
            found.append(nodes[split & (code % p == place), 1])
        return np.unique(np.concatenate(found))

    def laws_at(self, chain: int, draw: int, rows: np.ndarray) -> dict[str, list[np.ndarray]]:
        """Parameters of the laws of unknown columns at rows, in a draw."""
        values = [np.array(d[chain, draw], order="C") for d in self._law_draws]
        numbers = iter(self._parameters(np.ascontiguousarray(rows[:, : self.table.width]), *values))
        found = {}
        for column, law in self.laws.items():
            parameters = [next(numbers) for _ in law.parameters]
            for name in law.errors:
                error = next(numbers)
                seen = rows[:, self.table.width + self._measured.index(name)]
                parameters = _given_measurement(parameters, seen, error)
            found[column] = parameters
        return found


def _has_nan(cells: Any) -> bool:
    """Whether cells are unknown; what holds no numbers is refused where it is read."""
    try:
        return bool(np.isnan(real_array(cells)).any())
    except (TypeError, ValueError):
        return False


def _given_measurement(prior: list[np.ndarray], seen: np.ndarray, error: np.ndarray) -> list:
    """Mean and sd of a Normal given a Normal measurement, where there is one."""
    mean, sd = prior
    precision, of_error = 1.0 / sd**2, np.where(seen == MISSING, 0.0, 1.0 / error**2)
    total = precision + of_error
    return [(precision * mean + of_error * seen) / total, 1.0 / np.sqrt(total)]


def _numbers(argument: str, name: str, given: Any) -> np.ndarray:
    """Cells of a column that is given by name, NaN where unknown."""
    try:
        cells = real_array(given)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{argument}: {name!r} must be numbers ({error}).") from error
    if cells.ndim > 1 or np.isinf(cells).any():
        raise ValueError(
            f"{argument}: {name!r} has the shape {cells.shape}: give a number for each row, or one "
            "for all, and NaN where it is unknown."
        )
    return cells


def _each(argument: str, name: str, cells: np.ndarray, n: int) -> np.ndarray:
    """One for each of n rows, `MISSING` for NaN."""
    if cells.ndim == 1 and cells.size not in (1, n):
        raise ValueError(
            f"{argument}: {name!r} has {cells.size} entries, but there are {n} rows: give one for "
            "each row, or one for all."
        )
    return np.broadcast_to(np.where(np.isnan(cells), MISSING, cells), (n,))
