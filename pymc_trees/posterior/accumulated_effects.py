"""How f changes along one column, or two, where the rows are: `accumulated_effects`."""

from typing import Any

import numpy as np
import pymc as pm
import xarray as xr

from pymc_trees.arguments import check_number
from pymc_trees.core.columns.mixed import MISSING
from pymc_trees.posterior.dependence import columns_asked, rows_chosen
from pymc_trees.posterior.local_steps import (
    MeanChange,
    added_curve,
    added_surface,
    between,
    points_of,
    steps_of,
)
from pymc_trees.posterior.reading.features import POINTS, dimension_of, grids_by_column
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
    grid=None,
    subsample: int | None = None,
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
    X : (n, p) array or frame, optional
        Rows to average over. Default: the rows currently in the model. Rows whose cell is missing
        are left out.
    var_name : str, optional
        Name of the function, if the model has several.
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
    group : str, default "posterior"
        Group of ``idata`` that holds the draws; "prior" gives the same quantity under the prior.
    random_state : numpy.random.Generator or seed, optional
        For the subsample.
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
    function = Function(idata, pm.modelcontext(model), var_name, func, group)
    columns = columns_asked("feature", feature, function)
    grids = grids_by_column(columns, grid, function.schema, function.n_columns)
    rows = function.rows(X)
    rows = rows[rows_chosen(len(rows), subsample, random_state)]
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

    dims = {dimension_of(one): one.labels(ends) for one, ends in both}
    return xr.Dataset({"effect": function.reduced(changed, accumulate, dims, progressbar)})
