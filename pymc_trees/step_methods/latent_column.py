"""`LatentColumn`: a random column of X, given the forests that split on it."""

import numpy as np
import pymc as pm
from pymc.step_methods.compound import BlockedStep, Competence, StepMethodState
from pymc.step_methods.state import dataclass_state
from pymc.util import get_random_generator
from pytensor.graph.basic import Variable

from pymc_trees.core.compile.pointer import DirectCalls
from pymc_trees.core.interrupts import deferred_interrupts
from pymc_trees.core.leaves.nonconjugate.native import call_native
from pymc_trees.core.samplers.latent_column import (
    add_masses,
    add_normal_masses,
    choose_intervals,
    draw_normals,
    list_intervals,
    middle_points,
    outputs_by_cell,
)
from pymc_trees.distributions.without_dims import counterpart, random_variables, without_dims
from pymc_trees.targets.latent_columns import ColumnData, LatentColumnTarget, column_of

CELLS = 100_000
"""Cells of rows that are looked at together."""
ROUNDING = 1e-12
"""Share of the largest output below which two outputs of a row are the same."""


@dataclass_state
class LatentColumnState(StepMethodState):
    """Nothing but the generator is kept between steps."""


class LatentColumn(BlockedStep):
    """Draw random columns of X given the forests that split on them.

    Given the trees, the functions of a row are constant between two cuts of its cell, so that the
    conditional of the cell is a table: prior mass of each interval, times the likelihood of the row
    there. One pass through the trees has the functions on both sides of every cut. An interval is
    drawn by these weights, and the cell within it from the prior. This is an exact draw where all
    that depends on the column are forests, and Normal measurements of a Normal column,
    ``pm.Normal("w", z, error, observed=w)``. Anything else that depends on the column row by row
    takes part by a point of each interval, and a Metropolis-Hastings step accepts the draw.

    ``pm.sample()`` assigns this step to each column of `with_columns`.

    Parameters
    ----------
    vars : list of variables, optional
        Free variables that are columns of `with_columns`, or the missing cells of one,
        ``x_unobserved``. Default: all of them.
    model : pymc.Model, optional
        Default: the model on the context stack.
    rng : numpy.random.Generator or seed, optional
        `pymc.sample` sets its own.
    blocked, initial_point, compile_kwargs
        As `pymc.sample` passes them to every step.

    Raises
    ------
    ValueError
        For a variable that is no such column.
    UnsupportedModelError
        For a prior without quantiles (`pymc.icdf`), or a likelihood that mixes rows.

    Notes
    -----
    ``accept_column`` in ``sample_stats`` is the share of accepted rows, 1 where draws are exact.
    Where it is small, start the column near its measurements (``initval``) and give finer ``cuts``.
    Columns and trees are drawn in turn. Where a column is known only through the function itself
    they hold each other: compare chains, of predictions rather than of the column.

    See Also
    --------
    with_columns : declares such a column.

    Examples
    --------
    >>> import numpy as np, pymc as pm, pymc_trees as pmt
    >>> X = np.random.default_rng(1).random((30, 2))
    >>> with pm.Model():
    ...     z = pm.Uniform("z", shape=30)
    ...     f = pmt.BART("f", pmt.with_columns(X, z=z), X[:, 0], m=5)
    ...     y = pm.Normal("y", f, 0.1, observed=X[:, 0])
    ...     step = pmt.LatentColumn([z])
    >>> step.name
    'latentcolumn'
    """

    name = "latentcolumn"
    default_blocked = True
    finishes_iterations = True  # as forest steps do
    _state_class = LatentColumnState
    stats_dtypes_shapes: dict = {"accept_column": (np.float64, [])}

    def __init__(
        self,
        vars=None,
        *,
        model=None,
        rng=None,
        blocked=True,
        initial_point=None,
        compile_kwargs=None,
    ):
        model = pm.modelcontext(model)
        if vars is None:
            vars = [rv for rv in model.free_RVs if _is_column(model, rv)]
        rvs = random_variables(model, vars)
        unable = [getattr(rv, "name", rv) for rv in rvs if not _is_column(model, rv)]
        if unable or not rvs:
            raise ValueError(
                f"vars: {unable or 'nothing'} is not a random column of BART or DecisionTree. "
                "Declare it with pymc_trees.with_columns, or leave it to pm.sample()."
            )
        self.vars = [model.rvs_to_values[rv] for rv in rvs]
        self.rng = get_random_generator(rng)
        plain = without_dims(model)
        self._columns = [LatentColumnTarget(plain, counterpart(model, rv)) for rv in rvs]
        self._call = DirectCalls()

    def step(self, point):
        """Draw every column once."""
        point, accepted = dict(point), []
        with deferred_interrupts():
            for column in self._columns:
                cells, share = _Draw(self._call, self.rng, column, point).all_rows()
                accepted.append(share)
                point[column.value_name] = column.value_of(point, cells)
        return point, [{"accept_column": float(np.mean(accepted))}]

    @staticmethod
    def competence(var, has_grad):
        """Best for random columns of forests."""
        model = pm.Model.get_context(error_if_none=False)
        if model is not None and _is_column(model, var):
            return Competence.IDEAL
        return Competence.INCOMPATIBLE


def _is_column(model, rv) -> bool:
    model, rv = without_dims(model), counterpart(model, rv)
    if not isinstance(rv, Variable) or not any(rv is one for one in model.free_RVs):
        return False
    return column_of(model, rv) is not None


class _Draw:
    """One draw of a column."""

    def __init__(self, call, rng, column: LatentColumnTarget, point):
        self.call, self.rng, self.column = call, rng, column
        self.data: ColumnData = column.at(point)
        cuts = [forest.cuts for forest in column.forests]
        self.cuts = np.unique(np.concatenate(cuts)) if cuts else np.empty(0)
        self.edges = np.concatenate([[-np.inf], self.cuts, [np.inf]])
        self.values = [np.ascontiguousarray(point[forest.name]) for forest in column.forests]
        self.now = column.cells(point)
        self.cdf = np.empty((0, 0))
        if not column.is_normal:
            self.cdf = np.stack(
                [
                    np.zeros(len(self.now)),
                    *(column.cdf(self.data, np.full(len(self.now), c)) for c in self.cuts),
                    np.ones(len(self.now)),
                ],
                axis=1,
            )

    def all_rows(self) -> tuple[np.ndarray, float]:
        """New cells, and the share of them that were accepted."""
        n, step = len(self.now), max(1, CELLS // (self.cuts.size + 1))
        parts = [self._rows(slice(k, min(k + step, n))) for k in range(0, n, step)]
        if not parts:
            return self.now, 1.0
        cells, accepted = (np.concatenate(one) for one in zip(*parts, strict=True))
        return cells, float(accepted.mean())

    def _likelihood(self, rows, outputs) -> np.ndarray:
        """Log-likelihood of rows of X at outputs."""
        result = np.zeros((len(rows), 1))
        if self.column.value is not None and len(rows):
            seen = self.data.seen
            self.call(
                call_native,
                self.column.value.address,
                len(rows),
                np.ascontiguousarray(rows),
                np.ascontiguousarray(outputs),
                seen.table,
                seen.data,
                result,
            )
        return result[:, 0]

    def _rows(self, part: slice) -> tuple[np.ndarray, np.ndarray]:
        """Cells of some rows, and which of them were accepted."""
        column, now = self.column, self.now[part]
        rows, n_cells = column.rows[part], self.cuts.size + 1
        outputs = np.zeros((len(rows), n_cells, column.n_outputs))
        for forest, value, X in zip(column.forests, self.values, self.data.inputs, strict=True):
            arguments = value, X, forest.X_train, forest.sizes, forest.place, self.cuts, rows
            self.call(outputs_by_cell, *arguments, forest.first, outputs)
        at = np.empty((outputs.shape[0] * n_cells, column.n_outputs))
        owner, low, high = (np.empty(len(at), dtype=np.int64) for _ in range(3))
        tolerance = ROUNDING * float(np.abs(outputs).max(initial=0.0))
        merge = not column.is_direct
        n = self.call(list_intervals, outputs, merge, tolerance, at, owner, low, high)
        at, owner, low, high = at[:n], owner[:n], low[:n], high[:n]
        if column.is_direct:
            at[:, 0] = self._points(part, owner, low, high)
        weights = self._likelihood(rows[owner], at)
        weights[np.isnan(weights)] = -np.inf
        of_likelihood = weights.copy()
        self._add_masses(part, owner, low, high, weights)
        chosen = np.empty(len(rows), dtype=np.int64)
        self.call(choose_intervals, self.rng, owner, weights, chosen)
        fine = chosen >= 0
        chosen[~fine] = 0
        drawn = self._within(part, low[chosen], high[chosen])
        if column.is_direct:
            # each row has all cells here, in their order
            current = np.arange(len(rows)) * n_cells + np.searchsorted(self.cuts, now, side="left")
            fine &= self._accepts(rows, at, of_likelihood, current, now, chosen, drawn)
        return np.where(fine, drawn, now), fine

    def _accepts(self, rows, at, of_likelihood, current, now, chosen, drawn) -> np.ndarray:
        gains = []
        for interval, cells in ((chosen, drawn), (current, now)):
            exact = at[interval].copy()
            exact[:, 0] = cells
            gains.append(self._likelihood(rows, exact) - of_likelihood[interval])
        with np.errstate(invalid="ignore"):
            return np.log(self.rng.random(len(rows))) < gains[0] - gains[1]

    def _normal(self, part):
        return [one[part] for one in self.data.parameters]

    def _points(self, part, owner, low, high) -> np.ndarray:
        """A point of each interval."""
        points = np.empty(len(owner))
        if self.column.is_normal:
            self.call(middle_points, *self._normal(part), self.edges, owner, low, high, points)
            return points
        middle = (self.cdf[part][owner, low] + self.cdf[part][owner, high + 1]) / 2
        return self._quantiles(part, owner, middle, low, high)

    def _quantiles(self, part, owner, shares, low, high) -> np.ndarray:
        """Prior quantiles of rows, within their intervals."""
        parameters = [one[part][owner] for one in self.data.parameters]
        data = self.data._replace(parameters=parameters)
        found = self.column.icdf(data, shares)
        least = np.nextafter(self.edges[low], np.inf)
        return np.where(np.isnan(found), found, np.clip(found, least, self.edges[high + 1]))

    def _add_masses(self, part, owner, low, high, weights) -> None:
        if self.column.is_normal:
            given = *self._normal(part), self.edges
            self.call(add_normal_masses, *given, owner, low, high, weights)
        else:
            self.call(add_masses, np.ascontiguousarray(self.cdf[part]), owner, low, high, weights)

    def _within(self, part, low, high) -> np.ndarray:
        """Cells drawn from the prior within one interval of each row."""
        drawn = np.empty(len(low))
        if self.column.is_normal:
            bounds = self.edges[low], self.edges[high + 1]
            self.call(draw_normals, self.rng, *self._normal(part), *bounds, drawn)
            return drawn
        each = np.arange(len(low))
        below, above = self.cdf[part][each, low], self.cdf[part][each, high + 1]
        shares = below + self.rng.random(len(low)) * (above - below)
        return self._quantiles(part, each, shares, low, high)
