"""Functions of rows with random columns integrated out where these are unknown.

Its mean over the law of a column is a sum over the cells of the column that a draw has
(`predictors.integration`), each with its probability: exact, for any function.
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pymc as pm
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import ancestors
from pytensor.tensor import matrix

from pymc_trees.core.columns.cells import MISSING, SET
from pymc_trees.core.value.fields import UNUSED
from pymc_trees.distributions.data.random_columns import latent_part, support_of
from pymc_trees.distributions.data.table import n_random_columns
from pymc_trees.distributions.forest_inputs import training_rows
from pymc_trees.distributions.tree_variable import evaluations, is_tree_variable
from pymc_trees.posterior.draws import StoredDraws
from pymc_trees.posterior.reading.column_laws import (
    ColumnLaw,
    law_of,
    measurements_of,
    parts_of,
    random_of,
)
from pymc_trees.posterior.reading.features import Feature
from pymc_trees.posterior.reading.functions import BLOCK, HeldRows, bases_of
from pymc_trees.posterior.reading.indices import check_indices, index_checker
from pymc_trees.posterior.reading.integral import CompiledLaw, Drawn, Integral, compiled_law
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

    def _taken_apart(self, idata, var_name: str | None, data: Any) -> Any:
        self._said = ""
        self.places: dict[str, int] = {}
        """Columns of the table that are random, by name."""
        self._columns: dict[str, Variable] = {}
        """Random columns of X by name."""
        self.laws: dict[str, ColumnLaw] = {}
        """Of columns that are unknown in some row."""
        self.compiled: dict[str, CompiledLaw] = {}
        self._law_checks: list[Callable[[np.ndarray], None]] = []
        self._lowest: dict[str, float] = {}
        if any(n_random_columns(rv) for rv in self._model.free_RVs):
            self._learn(idata, self._model, var_name)
        self._first = self._split(self._model, data) if self._columns else None
        return data if self._first is None else self._first.table

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
        for column, latent in zip(self._columns, latents, strict=True):
            support = None if latent is None else support_of(latent)
            if support is not None:
                self._lowest[column] = float(support[0])
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
        self.measured = list(self._first.measured)
        """Names of measurements, in the order of their columns behind the table."""
        unknown = self._unknown(self._first)
        self.laws = {column: self._law(column, unknown) for column in unknown}
        self.beside = self._beside()
        """Columns that the function takes beside its trees."""
        of_laws = {c: parts_of(model, law, self._part) for c, law in self.laws.items()}
        more = [one for parts in of_laws.values() for one in parts]
        variables = random_of(model, more)
        lost = [rv.name for rv in variables if rv.name not in self._posterior]
        if lost:
            raise ValueError(
                f"idata lacks {lost}, which the priors of {list(self.laws)} depend on: keep them "
                f"among var_names of pm.sample, or {self.remedy(self.laws)}."
            )
        known = [
            self._checked.get(v.name) or StoredDraws(self._posterior[v.name]) for v in variables
        ]
        self.drawn, self._more = Drawn(variables, known), more
        first = dict(zip(variables, self.drawn.at(0, 0), strict=True))
        plain = {v: value for v, value in first.items() if not is_tree_variable(v)}
        try:
            check_indices(
                model, [one.variable for one in more], {v: x.shape for v, x in first.items()}
            )
            found = super()._read(model, others | plain)
        except OtherRowsError as error:
            if not more or not self._can_be_read(model, others):
                raise
            raise ValueError(
                f"{self.name} at rows where {list(self.laws)} are unknown: the priors of these "
                f"are not known there ({error}). Make what they depend on pm.Data and give it "
                f"too, or {self.remedy(self.laws)}."
            ) from error
        self.places = {name: self.table.names.index(name) for name in self._columns}
        for column, parts in of_laws.items():
            self._compile(column, parts)
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

    def _law(self, column: str, unknown: list[str]) -> ColumnLaw:
        """Of a column, with the measurements of it that are given."""
        measured = {c: self._measurements[c] for c in self.measured if self.measures(c, [column])}
        for name, one in measured.items():
            if len(both := [c for c in one.columns if c in unknown]) > 1:
                raise ValueError(
                    f"{self._argument}: {name!r} measures the random columns {both} together, "
                    f"which are unknown: leave {name!r} out, which takes the priors, or "
                    f"{self.remedy(both[1:])}."
                )
        law = law_of(self._model, self._columns, column, measured)
        if law is None:
            raise ValueError(
                f"{self._argument}: {list(measured)} measures the random column {column!r}, and "
                "the law of the column given it is known for a Normal around a Normal only, or a "
                f"discrete column: leave {list(measured)} out, which takes the prior, or "
                f"{self.remedy([column])}."
            )
        return law

    def measures(self, name: str, columns: Sequence[str]) -> bool:
        """Whether a measurement is one of some columns."""
        return bool(set(self._measurements[name].columns) & set(columns))

    def remedy(self, columns) -> str:
        """What users can do where a column is unknown."""
        return f"give the columns {list(columns)} in {self._argument}"

    def _beside(self) -> set[str]:
        """Random columns that the function takes beside the trees, or an error."""
        trees = [one.outputs for one in self.evaluated]
        seen = set(ancestors([self.variable], blockers=[*trees, *self._columns.values()]))
        found = {name for name, v in self._columns.items() if v in seen}
        if wrong := [c for c, law in self.laws.items() if c in found and not law.is_discrete]:
            raise ValueError(
                f"{self.name} takes the random columns {wrong} beside its trees, and its mean over "
                f"them is no sum over intervals between cuts: {self.remedy(wrong)}, or ask for "
                "the function of trees inside it."
            )
        return found

    def _compile(self, column: str, parts: Sequence[Part]) -> None:
        """The law of a column, as a function of rows and of draws."""
        asked = self.drawn, self.table, self._fixed, self.places[column]
        self.compiled[column] = compiled_law(self.laws[column], parts, *asked)
        at, pairs = matrix("X", dtype="float64"), zip(*self.drawn, strict=True)
        held = {v: d.shape[2:] for v, d in pairs}
        known = self.table.parts(at) | self._fixed
        self._law_checks += [
            index_checker(self._model, one.variable, held, known, at) for one in parts
        ]

    def n_cells(self, column: str, cuts: np.ndarray | None) -> int:
        """About how many numbers are held of a column for a row."""
        support = support_of(self.laws[column].latent)
        return len(support) if support is not None else 1 + (0 if cuts is None else cuts.size)

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
                by = [c for c in given.measured if self.measures(c, [column])]
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
            rows = self._held(np.array(X[start : start + BLOCK][:, :width]))
            super().check(rows)
            for check in self._law_checks:
                check(rows)

    def _held(self, rows: np.ndarray) -> np.ndarray:
        """Rows with a number that there is in place of unknown cells that pick entries."""
        for column, lowest in self._lowest.items():
            cells = rows[:, self.places[column]]
            cells[cells == MISSING] = lowest
        return rows

    def _some_rows(self, n: int) -> np.ndarray:
        rows = super()._some_rows(n)
        return rows if self._first is None else self._held(rows)

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

    def cuts_in(self, chain: int, draw: int, column: str) -> np.ndarray | None:
        """Cuts of a random column in the trees of a draw; None where they split it by sets."""
        found = [np.empty(0)]
        for one, base in zip(self.evaluated, self.bases, strict=True):
            if base not in self._inputs or column not in self._inputs[base].columns:
                continue
            p, place = training_rows(one.tree).shape[1], self._inputs[base].names.index(column)
            value = np.asarray(self.draws[self.trees.index(one.tree)][chain, draw])
            nodes = value[: one.tree.owner.op.layout.max_nodes]
            code = nodes[:, 0]
            split = (code > UNUSED) & (code >= 0)
            own = split & (code % p == place)
            if (code[own] // p >= SET).any():
                return None
            found.append(nodes[own, 1])
        return np.unique(np.concatenate(found))


def _has_nan(cells: Any) -> bool:
    """Whether cells are unknown; what holds no numbers is refused where it is read."""
    try:
        return bool(np.isnan(real_array(cells)).any())
    except (TypeError, ValueError):
        return False


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
