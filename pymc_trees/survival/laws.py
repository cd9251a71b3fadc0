"""The distribution of times in a model, read from an observed variable, at any rows.

A Bernoulli of forests whose first column is the time is one of hazards at the times of a grid,
those in that column. For any other variable PyMC's distribution function is used, also inside
`pymc.Censored`. Any PyMC model of this form is supported.
"""

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.distributions.shape_utils import change_dist_size
from pytensor.graph.basic import Variable
from pytensor.tensor.random.basic import BernoulliRV

from pymc_trees.distributions.data.numbers import row_numbers
from pymc_trees.distributions.data.table import encode
from pymc_trees.distributions.forest_inputs import training_rows
from pymc_trees.distributions.tree_variable import evaluations, is_tree_variable
from pymc_trees.posterior.reading.functions import Expression, HeldRows, random_below
from pymc_trees.predictors.columns import Schema
from pymc_trees.targets.graph import parameters_of

POINTS = 50
"""Default number of times of a curve, for models without a grid."""


class Columns(NamedTuple):
    """Those that a subject has."""

    schema: Schema
    n_columns: int

    @classmethod
    def of_subjects(cls, expression: Expression, added: int) -> "Columns":
        """Those of the forests, without what the long form puts before them."""
        names, rules, levels, complete = expression.schema
        names = None if names is None else names[added:]
        schema = Schema(names, rules[added:], levels[added:], complete)
        return cls(schema, expression.n_columns - added)


class TimeLaw(ABC):
    """Survival functions of rows under the draws of a model, at given times."""

    stepwise: bool
    """Whether survival changes at ``times`` alone, up to the last of them."""
    expression: Expression
    columns: Columns
    times: np.ndarray
    """(T,) increasing."""

    @abstractmethod
    def rows(self, X: Any) -> np.ndarray:
        """(n, p) matrix of the columns of subjects."""

    @abstractmethod
    def survival(self, chain: int, draw: int, rows: np.ndarray) -> np.ndarray:
        """(T, n) probabilities of having no event up to the times, in a draw."""


class GridLaw(TimeLaw):
    """Hazards at the times of a grid.

    Parameters
    ----------
    idata, model, group
        As for `Expression`.
    rv : Variable
        Observed Bernoulli.
    times : optional
        Default: the grid.
    added : int, default 1
        Columns that the long form puts before those of the subjects.
    """

    def __init__(self, idata, model: pm.Model, rv: Variable, times, group: str, added: int = 1):
        [p] = rv.owner.op.dist_params(rv.owner)
        self.expression = Expression(idata, model, p, rv.name, group)
        self.grid = np.unique(training_rows(self.expression.trees[0])[:, 0])
        schema = self.expression.schema
        first = None if schema.names is None else schema.names[0]
        if first not in (None, "time"):
            raise ValueError(
                f"{rv.name} is a Bernoulli of a forest whose first column is {first!r}, not a "
                "model of hazards: on the long form the first column is 'time'."
            )
        self.columns = Columns.of_subjects(self.expression, added)
        self.times = self.grid if times is None else increasing(times)
        if self.times[-1] > self.grid[-1]:
            raise ValueError(
                f"times up to {self.times[-1]:g}, but the hazards of the model end at "
                f"{self.grid[-1]:g}: give earlier times."
            )
        self.stepwise = bool(np.isin(self.grid[self.grid <= self.times[-1]], self.times).all())

    def rows(self, X):
        """(n, p) matrix."""
        if X is None:
            raise ValueError(
                "X=None: give the subjects, because the rows of the model are those of the long "
                "form."
            )
        rows = encode(X, self.columns.schema)
        if len(rows) == 0:
            raise ValueError(
                f"{self.expression.name} is evaluated at no rows: give X at least one row."
            )
        return rows

    def hazards(self, chain, draw, rows):
        """(grid, n) probabilities of an event at each time of the grid, given none before."""
        return at_each_time(self.expression.at(chain, draw), rows, self.grid)

    def survival(self, chain, draw, rows):
        """(T, n) products of 1 - hazard."""
        return self.up_to(np.cumprod(1.0 - self.hazards(chain, draw, rows), axis=0), 1.0)

    def up_to(self, values: np.ndarray, start: float) -> np.ndarray:
        """(T, ...) of values at the times of the grid, those at the last that has come."""
        ahead = np.concatenate([np.full((1, *values.shape[1:]), start), values])
        return ahead[np.searchsorted(self.grid, self.times, side="right")]


class FreeLaw(TimeLaw):
    """A law of times by its distribution function.

    Parameters
    ----------
    idata, model, group
        As for `Expression`.
    rv : Variable
        Observed variable.
    times : optional
        Default: 50 of them, evenly spaced from 0 to the largest that was observed.
    """

    stepwise = False

    def __init__(self, idata, model: pm.Model, rv: Variable, times, group: str):
        law = rv
        if isinstance(rv.owner.op, pm.Censored.rv_type):
            law, *_ = rv.owner.op.dist_params(rv.owner)
        if times is None:
            latest = float(np.max(model.rvs_to_values[rv].eval()))
            times = np.linspace(0.0, latest, POINTS + 1)[1:]
        self.times = increasing(times)
        # a law of each time and row, whatever length it was declared with
        [first, *_] = evaluations(parameters_of(law), blockers=model.basic_RVs)
        shape = (self.times.size, first.X.shape[0])
        at = pt.broadcast_to(pt.constant(self.times)[:, None], shape)
        try:
            log_survival = pm.logccdf(change_dist_size(law, shape), at, warn_rvs=False)
        except NotImplementedError as error:
            raise ValueError(
                f"{rv.name} has a distribution without a distribution function (logcdf) in PyMC, "
                "which a survival function needs."
            ) from error
        self.expression = Expression(idata, model, log_survival, rv.name, group)
        self.columns = Columns(self.expression.schema, self.expression.n_columns)

    def rows(self, X):
        """(n, p) matrix."""
        return self.expression.rows(X)

    def survival(self, chain, draw, rows):
        """(T, n) values of 1 - F."""
        return np.exp(self.expression.at(chain, draw)(rows))


def at_each_time(function, rows: np.ndarray, grid: np.ndarray) -> np.ndarray:
    """(..., grid, n) values of a function of rows whose first column is the time."""
    ahead = np.column_stack([np.zeros(len(rows)), rows])
    values = function(HeldRows(ahead, [0], grid[:, None]))
    return values.reshape(*values.shape[:-1], grid.size, len(rows))


def read_law(idata, model: pm.Model, var_name: str | None, times, group: str) -> TimeLaw:
    """Law of the times of a model."""
    rv = observed_of(model, var_name)
    if isinstance(rv.owner.op, BernoulliRV):
        return GridLaw(idata, model, rv, times, group)
    if not rv.dtype.startswith("float"):
        kind = type(rv.owner.op).__name__.removesuffix("RV")
        raise ValueError(
            f"{rv.name} is a {kind}, not a distribution of times: a survival function needs a "
            "Bernoulli on rows of the long form, or a continuous variable, possibly in "
            "pm.Censored."
        )
    return FreeLaw(idata, model, rv, times, group)


def observed_of(model: pm.Model, var_name: str | None) -> Variable:
    """An observed variable that depends on trees, or an error that lists those there are."""
    known = {rv.name: rv for rv in model.observed_RVs if rv.ndim == 1 and _sees_trees(model, rv)}
    if var_name is None and len(known) == 1:
        return next(iter(known.values()))
    if var_name not in known:
        raise ValueError(
            f"var_name={var_name!r} is not a one-dimensional observed variable that depends on "
            f"trees: choose from {list(known)}."
        )
    return known[var_name]


def increasing(times: Any) -> np.ndarray:
    """(T,) times that were asked for."""
    grid = row_numbers("times", np.atleast_1d(times))
    if grid.size == 0 or (np.diff(grid) <= 0).any():
        raise ValueError("times: give at least one, in increasing order.")
    return grid


def _sees_trees(model: pm.Model, rv: Variable) -> bool:
    below = [v for one in parameters_of(rv) for v in random_below(model, one)]
    return any(is_tree_variable(v) for v in below)
