"""How f changes along one column, or two, where the rows are: `accumulated_effects`.

Steps between neighbouring values of columns, the rows that lie at them, and their sums.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pymc as pm
import xarray as xr

from pymc_trees.arguments import check_choice, check_number, check_seed
from pymc_trees.core.columns.cells import MISSING
from pymc_trees.posterior.dependence import columns_asked
from pymc_trees.posterior.draws import rows_chosen
from pymc_trees.posterior.reading.features import (
    GRIDS,
    POINTS,
    Feature,
    dimensions_of,
    grid_of,
    grids_by_column,
)
from pymc_trees.posterior.reading.marginal import MarginalFunction


@dataclass(frozen=True)
class Steps:
    """Of a column along its points, for rows that all lie between the first and the last.

    A number lies at the step between two points. A level, a point itself, lies at the steps to it
    and from it.
    """

    points: np.ndarray
    """(P,) numbers in rising order, or levels by code."""
    members: list[np.ndarray]
    """(n,) step of each row, -1 for none; two of these for levels."""
    lower: np.ndarray
    """(n,) the point of each row, or the one below."""
    share: np.ndarray
    """(n,) how far each is on the way from there to the next, from 0 to 1."""
    middles: np.ndarray
    """(P - 1,) of the steps, where the column goes from 0 to 1."""

    @property
    def number(self) -> int:
        """Steps, P - 1."""
        return self.points.size - 1

    def weights(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Points that make up the value of each row, and their weights, in parts that add up."""
        return [(self.lower, 1.0 - self.share), (self.lower + 1, self.share)]


def points_of(feature: Feature, x: np.ndarray, grid: Any, intervals: int) -> np.ndarray:
    """Points of a column of cells that are present: those given, or at most ``intervals`` + 1.

    Parameters
    ----------
    feature : Feature
        The column.
    x : (n,) array
        Its cells.
    grid : None, str, int or sequence
        As for `grid_of`; quantiles are values of rows.
    intervals : int
        Used where ``grid`` names a method rather than a number.
    """
    if grid is None or isinstance(grid, str) or isinstance(grid, int | np.integer):
        by = check_choice("grid", grid, GRIDS) if isinstance(grid, str) else "quantile"
        if grid is not None and not isinstance(grid, str):
            grid_of(feature, x, grid)  # refuses bools, and numbers below 1
            intervals = int(grid) - 1
        points = np.unique(x)
        if feature.levels is None and points.size > intervals + 1:
            shares = np.linspace(0.0, 1.0, intervals + 1)
            even = points[0] + shares * (points[-1] - points[0])
            points = even if by == "linear" else np.quantile(x, shares, method="inverted_cdf")
            points = np.unique(points)
    else:
        points = grid_of(feature, x, grid)
        points = np.unique(points) if feature.levels is None else points
        if MISSING in points or np.unique(points).size < points.size:
            raise ValueError(
                f"grid of the column {feature.name!r}: it must not hold a missing cell or the "
                "same level twice; give different levels."
            )
    if points.size < 2:
        if grid is None or isinstance(grid, str) or (np.ndim(grid) == 0 and grid > 1):
            raise ValueError(
                f"The column {feature.name!r} has {points.size} values in these rows: an effect "
                "needs at least two."
            )
        raise ValueError(
            f"grid={grid!r} of the column {feature.name!r}: an effect needs at least two values."
        )
    return points


def between(feature: Feature, x: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Which rows lie between the first and the last point."""
    if feature.levels is not None:
        return np.isin(x, points)
    return (points[0] <= x) & (x <= points[-1])


def steps_of(feature: Feature, x: np.ndarray, points: np.ndarray) -> Steps:
    """`Steps` of cells that all lie between the points."""
    if feature.levels is None:
        step = np.maximum(np.searchsorted(points, x, side="left") - 1, 0)
        share = (x - points[step]) / np.diff(points)[step]
        middles = 0.5 * (points[1:] + points[:-1])
        middles = (middles - points[0]) / (points[-1] - points[0])
        return Steps(points, [step], step, share, middles)
    last = points.size - 1
    place = np.argmax(x[:, None] == points, axis=1)
    members = [np.where(place < last, place, -1), place - 1]
    lower = np.minimum(place, last - 1)
    return Steps(points, members, lower, (place - lower) * 1.0, (np.arange(last) + 0.5) / last)


class MeanChange:
    """Means of what changes at each step, or at each pair of steps of two columns.

    Parameters
    ----------
    along : list of Steps
        Of one column or two, at the same rows.

    Raises
    ------
    ValueError
        When no row is at any step.
    """

    def __init__(self, along: list[Steps]):
        shape = tuple(one.number for one in along)
        rows, cells = [], []
        for members in np.ndindex(*(len(one.members) for one in along)):
            at = np.stack([one.members[k] for one, k in zip(along, members, strict=True)])
            inside = np.flatnonzero((at >= 0).all(axis=0))
            rows.append(inside)
            cells.append(np.ravel_multi_index(tuple(at[:, inside]), shape))
        row, cell = np.concatenate(rows), np.concatenate(cells)
        order = np.argsort(cell, kind="stable")
        self.row = row[order]
        """(M,) rows that are changed, some twice."""
        self.steps = np.stack(np.unravel_index(cell[order], shape))
        """(columns, M) at which step of each column."""
        self.shape = shape
        counts = np.bincount(cell, minlength=int(np.prod(shape)))
        self._known = np.flatnonzero(counts)
        self._counts = counts[self._known]
        self._starts = np.cumsum([0, *self._counts[:-1]])
        middles = np.stack(np.meshgrid(*(one.middles for one in along), indexing="ij"), axis=-1)
        middles = middles.reshape(-1, len(along))
        self._nearest = _nearest(middles, middles[self._known])

    def __call__(self, changes: np.ndarray) -> np.ndarray:
        """(..., steps) means over the rows at each, of the (..., M) changes.

        Where no row is, the mean where the nearest ones are.
        """
        means = np.add.reduceat(changes, self._starts, axis=-1) / self._counts
        return means[..., self._nearest].reshape(*changes.shape[:-1], *self.shape)


def _nearest(places: np.ndarray, known: np.ndarray) -> np.ndarray:
    """For each place the number of the nearest known one, of equals the first."""
    nearest = np.empty(len(places), dtype=np.int64)
    for k, place in enumerate(places):
        nearest[k] = np.argmin(((known - place) ** 2).sum(axis=1))
    return nearest


def added_curve(along: Steps) -> Callable[[np.ndarray], np.ndarray]:
    """What adds mean changes up to curves, (..., P), whose mean over the rows is 0."""
    weights = _joint([along])

    def add_up(changes):
        curve = _from_zero(np.cumsum(changes, axis=-1), -1)
        return curve - (curve @ weights)[..., None]

    return add_up


def added_surface(first: Steps, second: Steps) -> Callable[[np.ndarray], np.ndarray]:
    """What adds second differences up to surfaces, (..., P, Q), without single columns."""
    weights = _joint([first, second])
    of_first, of_second = _alone(first, second), _alone(second, first)

    def add_up(changes):
        surface = np.cumsum(np.cumsum(changes, axis=-2), axis=-1)
        surface = _from_zero(_from_zero(surface, -1), -2)
        rows, columns = of_first(surface), of_second(np.swapaxes(surface, -2, -1))
        surface = surface - rows[..., :, None] - columns[..., None, :]
        return surface - (surface * weights).sum(axis=(-2, -1), keepdims=True)

    return add_up


def _alone(along: Steps, other: Steps) -> Callable[[np.ndarray], np.ndarray]:
    """What makes the curve of one column on a surface, as of any function."""
    mean = MeanChange([along])
    step = mean.steps[0]
    parts = [(point[mean.row], weight[mean.row]) for point, weight in other.weights()]

    def curve(surface):
        rise = np.diff(surface, axis=-2)
        changes = sum(rise[..., step, point] * weight for point, weight in parts)
        return _from_zero(np.cumsum(mean(changes), axis=-1), -1)

    return curve


def _joint(along: list[Steps]) -> np.ndarray:
    """(P,) or (P, Q) weights of the points in the mean over rows."""
    counts = np.zeros([one.points.size for one in along])
    for parts in product(*(one.weights() for one in along)):
        points, weights = zip(*parts, strict=True)
        np.add.at(counts, points, np.prod(weights, axis=0) / points[0].size)
    return counts


def _from_zero(values, axis):
    """The values with a 0 before them along an axis."""
    before = [(0, 0)] * values.ndim
    before[axis] = (1, 0)
    return np.pad(values, before)


# --------------------------------------------------------------------------------------------------


def accumulated_effects(
    idata,
    model: pm.Model | None = None,
    feature: Any = 0,
    X=None,
    *,
    var_name: str | None = None,
    func=None,
    intervals: int = POINTS,
    grid=None,
    subsample: int | None = None,
    draws: int | None = None,
    group: str = "posterior",
    random_state=None,
    progressbar: bool = True,
) -> xr.Dataset:
    """Accumulated local effects of a column or a pair on f, draw by draw (Apley and Zhu 2020).

    Between two neighbouring values of the column, the change of f is averaged over the rows that
    lie between them, and these averages are accumulated. With dependent columns this does not
    evaluate f far from the data, unlike `partial_dependence`. Levels are taken in the order of
    ``grid`` if it names them, otherwise in the order of an ordered category or sorted; a step
    between two levels is the mean over the rows of both.

    For a pair it is the interaction: the accumulated second differences of f between the corners of
    each cell, averaged over the rows in the cell, minus the effects of the single columns. It is 0
    if f is a sum of functions of the single columns.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of `pymc.sample`, or the same read from a file.
    model : pymc.Model, optional
        Default: the model on the context stack.
    feature : column, list of one, or tuple of two
        As ``features`` of `partial_dependence`; default the first.
    X : (n, p) array or frame, or dict, optional
        Rows to average over; a dict gives values of other data of the model too, as ``data`` of
        `predictions`. Default: the rows currently in the model. Rows whose cell is missing
        are left out.
    var_name : str, optional
        A function of trees, or any Deterministic of these and of the row's data, as for
        `predictions`. May be left out if the model has one function.
    func : callable, optional
        Applied elementwise to the values of f; an inverse link such as `numpy.exp`, for example.
    intervals : int, default 20
        Maximum number of intervals of a numeric column, if ``grid`` gives neither their ends nor
        their number.
    grid : str, int, sequence, or dict of column and one of these, optional
        Ends of the intervals: a sequence gives them, or levels in the desired order, and other rows
        are left out; "quantile" (the default) or "linear" make them of the cells, an int as many
        quantiles. Few distinct values are all taken, and all levels that occur.
    subsample : int, optional
        Number of rows of X taken at random. Default: all rows.
    draws : int, optional
        Number of draws, over all chains and evenly spaced. Default: all.
    group : str, default "posterior"
        Group of ``idata`` that holds the draws; "prior" gives the same quantity under the prior.
    random_state : numpy.random.Generator or seed, optional
        For the subsample, and for effects of groups that were not seen.
    progressbar : bool, default True
        Whether to show a progress bar.

    Returns
    -------
    xarray.Dataset
        ``effect`` with the dimensions chain, draw, those of the outputs, and one for each column,
        named by it (``x{number}`` for an array), whose coordinate holds the ends of the intervals,
        or the levels. Interpolated linearly between the ends, its mean over the rows is 0.

    Raises
    ------
    ValueError
        A column or function that does not exist, or a column without two values.

    Notes
    -----
    Apley and Zhu's estimates take the value at the upper end of its interval for each row, where
    they centre a curve (eq. 16) and where they take single columns off a pair. Here a curve is
    straight between the ends, and the surface of a pair on lines between the corners of a cell.
    The curve of one column differs from theirs by a constant; the effect of either column on the
    surface of a pair, as of any function, is 0. An interval or a cell without rows changes as the
    nearest one with rows does.

    References
    ----------
    Apley and Zhu (2020). Visualizing the effects of predictor variables in black box supervised
    learning models. Journal of the Royal Statistical Society B 82(4).

    Examples
    --------
    >>> import numpy as np, pymc as pm, pymc_trees as pmt
    >>> X = np.random.default_rng(0).random((30, 2))
    >>> with pm.Model() as model:
    ...     mu = pmt.BART("mu", X, X[:, 0], m=5)
    ...     y = pm.Normal("y", mu, 0.1, observed=X[:, 0], shape=mu.shape)
    ...     idata = pm.sample(tune=10, draws=5, chains=1, random_seed=1, progressbar=False,
    ...                       compute_convergence_checks=False)
    >>> dict(pmt.accumulated_effects(idata, model, 0, intervals=4)["effect"].sizes)
    {'chain': 1, 'draw': 5, 'x0': 5}
    """
    intervals = check_number("intervals", intervals, 1)
    rng = check_seed(random_state, "random_state")
    options = {"data": X, "draws": draws, "random_state": rng}
    function = MarginalFunction(idata, pm.modelcontext(model), var_name, func, group, **options)
    columns = columns_asked("feature", feature, function)
    grids = grids_by_column(columns, grid, function.schema, function.n_columns)
    rows = function.rows(X, "X")
    for one in columns:
        function.check_known(one, rows, "feature")
    rows = rows[rows_chosen(len(rows), subsample, rng)]
    rows = rows[(rows[:, [one.column for one in columns]] != MISSING).all(axis=1)]
    points = [
        points_of(one, rows[:, one.column], own, intervals)
        for one, own in zip(columns, grids, strict=True)
    ]
    both = list(zip(columns, points, strict=True))
    rows = rows[np.all([between(one, rows[:, one.column], ends) for one, ends in both], axis=0)]
    if len(rows) == 0:
        raise ValueError(f"grid={grid!r}: no row of X lies between these values.")
    along = [steps_of(one, rows[:, one.column], ends) for one, ends in both]
    mean = MeanChange(along)
    corners = list(np.ndindex(*(2,) * len(columns)))
    changed = np.tile(rows[mean.row], (len(corners), 1))
    for (one, ends), steps, upper in zip(both, mean.steps, np.transpose(corners), strict=True):
        changed[:, one.column] = ends[steps + upper[:, None]].ravel()
    # the highest corner counts as it is, and its neighbours the other way round
    signs = [(-1) ** (len(columns) - sum(corner)) for corner in corners]
    add_up = added_curve(*along) if len(along) == 1 else added_surface(*along)

    def accumulate(values):
        parts = np.split(values, len(corners), axis=-1)
        return add_up(mean(sum(sign * f for sign, f in zip(signs, parts, strict=True))))

    names = dimensions_of(columns, function.dims)
    dims = {name: one.labels(ends) for name, (one, ends) in zip(names, both, strict=True)}
    effect = function.reduced(changed, accumulate, dims, progressbar)
    return function.noted(xr.Dataset({"effect": effect}))
