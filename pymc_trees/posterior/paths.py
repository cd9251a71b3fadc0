"""What happens in one step of a path: functions, draws and rules, and the columns they fill.

A step computes its states one after another: the value of a function of the model at a row, a draw
of its likelihood there, or what a rule of the user makes of the states so far. Columns of the rows
are filled with states of this step or of earlier ones before each function is evaluated.
"""

import inspect
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pymc as pm
import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from pytensor.graph.replace import clone_replace
from pytensor.tensor.random.op import RandomVariable

from pymc_trees.core.columns.cells import MISSING
from pymc_trees.distributions.tree_variable import evaluations
from pymc_trees.posterior.reading.features import Feature
from pymc_trees.posterior.reading.indices import PYTHON
from pymc_trees.posterior.reading.table import ANY_X, Source
from pymc_trees.posterior.reading.whole import WholeFunction
from pymc_trees.predictors.columns import column_names
from pymc_trees.targets.graph import parameters_of

# ------------------------------------------------------- An observed variable, and draws of it


def observed_with_trees(model: pm.Model) -> dict[str, Variable]:
    """Observed vectors of a model whose parameters depend on trees, by name."""
    blockers = model.basic_RVs

    def sees_trees(rv):
        return rv.ndim == 1 and bool(evaluations(parameters_of(rv), blockers=blockers))

    return {rv.name: rv for rv in model.observed_RVs if sees_trees(rv)}


def observed_values(model: pm.Model, rv: Variable, fitted: Any) -> np.ndarray | None:
    """(rows,) values of an observed vector in the order of the rows, NaN where some are missing.

    Those that the model was fitted to, from the group ``observed_data`` of draws if there is one;
    the model may have others now. None where there are several for each row.
    """
    known = {} if fitted is None else fitted
    found = known[rv.name].to_numpy() if rv.name in known else model.rvs_to_values[rv].eval()
    values = np.asarray(found, dtype=np.float64)
    whole = next((v for v in model.deterministics if f"{v.name}_observed" == rv.name), None)
    missing = next((v for v in model.free_RVs if v.name == f"{rv.name[:-9]}_unobserved"), None)
    if whole is None or missing is None:
        return values
    if whole.ndim != 1:
        return None
    # PyMC has taken the vector apart: numbers of its entries, put together again, say where
    length = model.eval_rv_shapes()[missing.name]
    parts = {rv: np.arange(values.size), missing: np.full(length, -1)}
    parts = {v: pt.constant(one.astype(v.dtype)) for v, one in parts.items()}
    [numbers] = clone_replace([whole], parts, rebuild_strict=False)
    at = np.asarray(numbers.eval(mode=PYTHON)).astype(int)
    return np.where(at >= 0, values[at], np.nan)


class Likelihood(WholeFunction):
    """Parameters of an observed variable, as a function of rows; and draws given these.

    Parameters
    ----------
    idata, model, data, draws, random_state
        As for `WholeFunction`.
    observed : str
        Name of the variable.
    """

    def __init__(self, idata, model: pm.Model, observed: str, **options):
        self._observed = observed
        super().__init__(idata, model, observed, **options)

    def _named_by(self, model: pm.Model, var_name: str | None) -> tuple[Variable, str]:
        if not hasattr(self, "_parameters"):
            rv = observed_with_trees(model)[self._observed]
            self.op, known = rv.owner.op, parameters_of(rv)
            self._types = [one.dtype for one in known]
            self._parameters = self._together(known)
        return self._parameters, f"the distribution of {self._observed}"

    def _together(self, known: list[Variable]) -> Variable:
        """All parameters as one array: those that are numbers stand below each other."""
        numbers = isinstance(self.op, RandomVariable) and not any(self.op.ndims_params)
        if numbers and len(known) > 1:
            known = [one.astype("float64") for one in known]
            return pt.stack(pt.broadcast_arrays(*known), axis=0)
        if isinstance(self.op, RandomVariable) and len(known) == 1:
            return known[0]
        kind = type(self.op).__name__.removesuffix("RV")
        raise ValueError(
            f"{self._observed} is a {kind}, which cannot be drawn here: name a function of the "
            "model by var_name, and draw by sample=."
        )

    def draw(self, rng, values: np.ndarray) -> np.ndarray:
        """(rows,) draws, for (..., rows) parameters."""
        n = values.shape[-1]
        each = [values] if len(self._types) == 1 else list(values)
        types = zip(each, self._types, strict=True)
        parameters = [np.moveaxis(one, -1, 0).astype(dtype) for one, dtype in types]
        return np.asarray(self.op.rng_fn(rng, *parameters, (n,)), dtype=np.float64)


# ------------------------------------------------ Functions of users, which name what they take


class Asked:
    """A function of a user, called with what its parameters name.

    Parameters
    ----------
    what : str
        Of the function, for errors.
    function : callable
        Takes some of ``known`` and of the variables of the draws by name.
    """

    def __init__(self, what: str, function: Callable, known: tuple[str, ...], posterior):
        if not callable(function):
            raise TypeError(f"{what} must be a function, not {type(function).__name__}.")
        self.what, self._function = what, function
        parameters = inspect.signature(function).parameters.values()
        named = [one for one in parameters if one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)]
        self.own = [one.name for one in named if one.name in known]
        self.variables = [
            one.name for one in named if one.name in posterior and one.name not in known
        ]
        taken = {*self.own, *self.variables}
        wrong = [one.name for one in named if one.name not in taken and one.default is one.empty]
        if wrong:
            raise ValueError(
                f"{what} takes {wrong}, which are not known in a step: name {list(known)}, or "
                "variables of the draws."
            )

    def __call__(self, **known) -> Any:
        """Its value; all of ``known`` and the variables of the draw are at hand."""
        return self._function(**{name: known[name] for name in (*self.own, *self.variables)})


# ------------------------------------------------------------------------------- States of a step


class Fill(NamedTuple):
    """A column of a table that is filled with a state."""

    column: int
    state: str
    lag: int
    levels: tuple | None

    def cells(self, values: np.ndarray) -> np.ndarray:
        """The state as the table holds it."""
        if self.levels is None:
            return np.where(np.isnan(values), MISSING, values)
        feature = Feature(self.column, f"column {self.column}", self.levels)
        return np.array([feature.code(one) for one in values.tolist()])


class State:
    """What is computed once in a step.

    Parameters
    ----------
    name : str
        Of the state.
    function : WholeFunction, optional
        Of the rows; none for a rule.
    rows : (steps, n, columns) ndarray
        Of its table.
    fills : list of Fill
        Columns that are filled.
    ask : Asked, optional
        Draws the state, given the value of the function, or computes it.
    """

    def __init__(self, name: str, function=None, rows=None, fills=(), ask: Asked | None = None):
        self.name, self.function, self.rows, self.fills, self.ask = name, function, rows, fills, ask

    @cached_property
    def is_drawn(self) -> bool:
        """Whether the state is a response, and neither a value of a function nor a rule."""
        return self.function is not None and (
            self.ask is not None or isinstance(self.function, Likelihood)
        )


def one_number_each(what: str, values: Any, n: int) -> np.ndarray:
    """(n,) numbers of what a function returned."""
    found = np.asarray(values, dtype=np.float64)
    if found.shape not in ((), (1,), (n,)):
        raise ValueError(
            f"{what} returned the shape {found.shape}: return a number for each of {n} rows, or "
            "one for all."
        )
    return np.broadcast_to(found, (n,))


class Paths:
    """Steps through time with the paths of one draw.

    Parameters
    ----------
    states : list of State
        In the order within a step.
    history : mapping of str and (times, n) ndarray
        Values of states before the first step.
    known : mapping of str and (steps, n) ndarray
        States that are not drawn, NaN where they are.
    steps, n : int
        Steps, and rows of each.
    """

    def __init__(self, states: list[State], history, known, steps: int, n: int):
        self.states, self.known, self.steps, self.n = states, known, steps, n
        self._starts = {one.name: len(history.get(one.name, ())) for one in states}
        self._buffers = {
            one.name: np.full((self._starts[one.name] + steps, n), np.nan) for one in states
        }
        for name, values in history.items():
            self._buffers[name][: len(values)] = values
        self._values = {one.name: np.full((steps, n), np.nan) for one in states}
        self._unknown = np.full((steps, n), np.nan)

    def walk(self, rng, functions: Mapping[str, Callable], variables) -> dict[str, np.ndarray]:
        """(steps, n) states, for the functions of rows and the variables of one draw."""
        done = dict.fromkeys(self._buffers, 0)
        for step in range(self.steps):
            for state in self.states:
                value = None
                if state.function is not None:
                    value = functions[state.name](self._rows_at(state, step))
                    if value.ndim == 1:
                        self._values[state.name][step] = value
                found = given = self.known.get(state.name, self._unknown)[step]
                if np.isnan(given).any():
                    around = self._around(rng, step, value, done, variables)
                    found = np.where(np.isnan(given), self._state(state, around), given)
                self._buffers[state.name][self._starts[state.name] + step] = found
                done[state.name] = step + 1
        return {name: self._buffers[name][start:].copy() for name, start in self._starts.items()}

    def _rows_at(self, state: State, step: int) -> np.ndarray:
        rows = state.rows[step]
        for fill in state.fills:
            at = self._starts[fill.state] + step - fill.lag
            rows[:, fill.column] = fill.cells(self._buffers[fill.state][at])
        return rows

    def _around(self, rng, step, value, done, variables) -> dict[str, Any]:
        """What functions of users may name."""
        history = {k: b[: self._starts[k] + done[k]] for k, b in self._buffers.items()}
        values = {k: v[: done[k]] for k, v in self._values.items()}
        own = {"rng": rng, "step": step, "value": value, "history": history, "values": values}
        return {**variables, **own}

    def _state(self, state: State, known) -> np.ndarray:
        if state.ask is not None:
            return one_number_each(state.ask.what, state.ask(**known), self.n)
        if isinstance(state.function, Likelihood):
            return state.function.draw(known["rng"], known["value"])
        return known["value"]


# --------------------------------------------------------------------------- Rows that are filled


def template(function: WholeFunction, given: Any, filled: set[str], n: int | None) -> np.ndarray:
    """(rows, columns) table of given rows, with any valid cells in columns that are filled.

    Columns that are filled may be lacking in frames and among data. For ``n`` rows, without any
    given, all columns of X must be filled.
    """
    parts = dict(given) if isinstance(given, Mapping) else {} if given is None else {ANY_X: given}
    inputs = [source for source in function.table.sources if source.schema is not None]
    used = {ANY_X}
    for source in function.table.sources:
        names = [source.name, *(str(v.name) for v in source.variables)]
        used |= set(names)
        if source is inputs[0] and len(inputs) == 1:
            names.append(ANY_X)
        key = next((name for name in names if name in parts), None)
        if source.schema is None:
            if key is None and len(source.names) == 1 and source.names[0] in filled:
                [parts[names[0]]] = _any_cells(source)
        elif key is None and n is not None:
            lacking = [name for name in map(str, source.names) if name not in filled]
            if lacking:
                raise ValueError(
                    f"X={n} has no columns, but {lacking} are not filled by lags or update: give "
                    "a table with them."
                )
            cells = dict(zip(source.names, _any_cells(source), strict=True))
            parts[names[0]] = pd.DataFrame(cells, index=range(n))
            if source.schema.names is None:
                parts[names[0]] = parts[names[0]].to_numpy()
        elif key is not None:
            parts[key] = _completed(parts[key], source, filled)
    parts = {k: v for k, v in parts.items() if k in used}
    return function.rows(parts[ANY_X] if list(parts) == [ANY_X] else parts, "X")


def _any_cells(source: Source) -> list:
    """For each column a cell that every model takes, as users give it."""
    cells = []
    for value, levels in zip(source.values[0].tolist(), source.levels, strict=True):
        value = 0.0 if value == MISSING else value
        cells.append(value if levels is None else levels[int(value)])
    return cells


def _completed(X: Any, source: Source, filled: set[str]) -> Any:
    """A frame with the columns of X alone; those that are filled hold any valid cells."""
    usual = zip(source.names, _any_cells(source), strict=True)
    cells = {name: cell for name, cell in usual if str(name) in filled}
    if hasattr(X, "assign"):
        X = X.assign(**{str(name): cell for name, cell in cells.items()})
        known = [name for name in source.names if name in X.columns]
        return X[known] if len(known) == len(source.names) else X
    if column_names(X) is None and np.ndim(X) == 2:
        X = np.array(X)
        for k, name in enumerate(source.names):
            if name in cells and k < X.shape[1] and source.levels[k] is None:
                X[:, k] = cells[name]
    return X
