"""Mean slopes of f: `slopes`."""

from typing import Any

import numpy as np
import pymc as pm
import xarray as xr

from pymc_trees.core.columns.mixed import MISSING
from pymc_trees.posterior.comparisons import asked_columns, means_over, with_column
from pymc_trees.posterior.reading.features import dimension_of
from pymc_trees.posterior.reading.functions import Function


def slopes(
    idata,
    model: pm.Model | None = None,
    variables: Any = 0,
    data=None,
    *,
    step: float | None = None,
    by=None,
    var_name=None,
    func=None,
    progressbar: bool = True,
) -> xr.Dataset:
    """Mean slope of f in numeric columns over an interval about each row, draw by draw.

    A sum of trees jumps at its cuts and, with constant leaves, has slope 0 between them. This
    function therefore returns

        (f(x + step / 2) - f(x - step / 2)) / step

    with a step wide enough to contain cuts; a smaller step is noisier in each row and not more
    accurate.

    Parameters
    ----------
    idata, model, data, by, var_name, func, progressbar
        As for `predictions`.
    variables : column, or list or tuple of columns
        Numeric ones, by name or number; default the first.
    step : float, optional
        Length of the interval. Default: the standard deviation of the column over the rows.

    Returns
    -------
    xarray.Dataset
        A variable for each column, named by it (``x{number}`` for an array), with the dimensions
        chain, draw, those of the outputs, and ``row``, none, or that of ``by``; NaN at rows with a
        missing cell, which are left out of means.

    Raises
    ------
    ValueError
        For a column of levels, or a column or function that does not exist; the message lists those
        that do.

    Examples
    --------
    >>> import numpy as np, pymc as pm, pymc_trees as pmt
    >>> X = np.random.default_rng(0).random((30, 2))
    >>> with pm.Model() as model:
    ...     mu = pmt.BART("mu", X, X[:, 0], m=5)
    ...     y = pm.Normal("y", mu, 0.1, observed=X[:, 0], shape=mu.shape)
    ...     idata = pm.sample(tune=10, draws=5, chains=1, random_seed=1, progressbar=False,
    ...                       compute_convergence_checks=False)
    >>> dict(pmt.slopes(idata, model, 0, by=True)["x0"].sizes)
    {'chain': 1, 'draw': 5}
    """
    function = Function(idata, pm.modelcontext(model), var_name, func)
    rows, found = function.rows(data), {}
    share, dims = means_over(function, rows, by)
    for feature, _ in asked_columns(variables, function):
        if feature.levels is not None:
            raise ValueError(
                f"variables: the column {feature.name!r} has levels and therefore no slope; use "
                "comparisons()."
            )
        x = rows[:, feature.column]
        present = x != MISSING
        width = float(np.std(x[present])) if step is None else float(step)
        if not (np.isfinite(width) and width > 0):
            raise ValueError(
                f"step={step}: the interval about {feature.name!r} has length {width}; give a "
                "positive step."
            )
        ends = [np.where(present, x + side * width, MISSING) for side in (-0.5, 0.5)]
        changed = np.concatenate([with_column(rows, feature, column) for column in ends])

        def slope(f, width=width, present=present):
            low, high = np.split(f, 2, axis=-1)
            return share((high - low) / width, present)

        found[dimension_of(feature)] = function.reduced(changed, slope, dims, progressbar)
    return xr.Dataset(found)
