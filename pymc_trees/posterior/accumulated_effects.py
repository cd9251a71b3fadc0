"""How f changes along one column, where the column is: `accumulated_effects`."""

from typing import Any

import numpy as np
import pymc as pm
import xarray as xr

from pymc_trees.arguments import check_number
from pymc_trees.core.columns.mixed import MISSING
from pymc_trees.posterior.reading.features import POINTS, Feature, dimension_of, feature_of
from pymc_trees.posterior.reading.functions import Function


def accumulated_effects(
    idata,
    model: pm.Model | None = None,
    feature: Any = 0,
    X=None,
    *,
    var_name: str | None = None,
    func=None,
    intervals: int = POINTS,
    progressbar: bool = True,
) -> xr.Dataset:
    """Accumulated local effects of one column on f, draw by draw (Apley and Zhu 2020, eq. 15-16).

    Between two neighbouring values of the column, f is changed at the rows that lie there and at no
    others; the mean changes are added up. Where columns go together this asks for no rows far from
    those there are, as `partial_dependence` does. Levels are taken in the order of the training
    frame, and a step between two of them is the mean over the rows of both.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of `pymc.sample`, or the same read from a file.
    model : pymc.Model, optional
        Default: the model on the context stack.
    feature : column
        By name where X was a frame, else by number; default the first.
    X : (n, p) array or frame, optional
        Rows to average over. Default: those the model has now. Rows whose cell is missing are left
        out.
    var_name : str, optional
        The function, where the model has several.
    func : callable, optional
        Applied to the values of f, elementwise: an inverse link, `numpy.exp`.
    intervals : int, default 20
        Into which a numeric column is cut by its quantiles, at the most.
    progressbar : bool, default True
        Whether to show one.

    Returns
    -------
    xarray.Dataset
        ``effect`` with the dimensions chain, draw, those of the outputs, and one named by the
        column (``x{number}`` for an array), whose coordinate holds the ends of the intervals, or
        the levels. Its mean over the rows is 0.

    Raises
    ------
    ValueError
        A column or function that does not exist, or a column without two values.

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
    function = Function(idata, pm.modelcontext(model), var_name, func)
    column = feature_of(feature, function.schema, function.n_columns)
    rows = function.rows(X)
    rows = rows[rows[:, column.column] != MISSING]
    x = rows[:, column.column]
    points = _points(column, x, intervals)
    # Who is changed, from where, and to which step that counts.
    who, step, weight = _of_levels(x, points) if column.levels else _of_numbers(x, points)
    changed = np.concatenate([rows[who], rows[who]])
    changed[:, column.column] = np.concatenate([points[step], points[step + 1]])
    mean = (step[:, None] == np.arange(points.size - 1)).astype(np.float64)
    mean /= mean.sum(axis=0)

    def accumulate(values):
        before, after = np.split(values, 2, axis=-1)
        effect = np.zeros((*values.shape[:-1], points.size))
        effect[..., 1:] = np.cumsum((after - before) @ mean, axis=-1)
        return effect - (effect @ weight)[..., None]

    dims = {dimension_of(column): column.labels(points)}
    return xr.Dataset({"effect": function.reduced(changed, accumulate, dims, progressbar)})


def _points(column: Feature, x: np.ndarray, intervals: int) -> np.ndarray:
    """Ends of the intervals, each but the first the value of a row; or the levels that occur."""
    points = np.unique(x)
    if column.levels is None and points.size > intervals + 1:
        shares = np.linspace(0.0, 1.0, intervals + 1)
        points = np.unique(np.quantile(x, shares, method="inverted_cdf"))
    if points.size < 2:
        raise ValueError(
            f"The column {column.name!r} has {points.size} values in these rows: its effect needs "
            "two."
        )
    return points


def _of_numbers(x, points):
    """Each row in its interval; the shares of rows by which the ends are averaged."""
    step = np.maximum(np.searchsorted(points, x, side="left") - 1, 0)
    share = np.bincount(step, minlength=points.size - 1) / x.size
    weight = np.zeros(points.size)
    weight[:-1] += 0.5 * share
    weight[1:] += 0.5 * share
    return np.arange(x.size), step, weight


def _of_levels(x, points):
    """Each row at the steps up to its level and from it; the shares of rows of each level."""
    level = np.searchsorted(points, x)
    up, down = np.flatnonzero(level < points.size - 1), np.flatnonzero(level > 0)
    who = np.concatenate([up, down])
    step = np.concatenate([level[up], level[down] - 1])
    return who, step, np.bincount(level, minlength=points.size) / x.size
