"""How f depends on one or two columns, averaged over the others: `partial_dependence`."""

from math import prod
from typing import Any

import numpy as np
import pymc as pm
import xarray as xr

from pymc_trees.arguments import check_choice, check_seed
from pymc_trees.posterior.draws import check_answer, rows_chosen
from pymc_trees.posterior.reading.features import (
    Feature,
    dimensions_of,
    grid_of,
    grids_by_column,
    pair_or_features,
    renamed,
)
from pymc_trees.posterior.reading.functions import HeldRows
from pymc_trees.posterior.reading.marginal import MarginalFunction

KINDS = ("average", "individual", "both")
SMALLER = "a smaller grid=, or fewer draws, idata.isel(draw=slice(None, None, 10))"


@renamed
def partial_dependence(
    idata,
    model: pm.Model | None = None,
    features: Any = 0,
    X=None,
    *,
    var_name: str | None = None,
    func=None,
    grid=None,
    kind: str = "average",
    subsample: int | None = None,
    draws: int | None = None,
    group: str = "posterior",
    random_state=None,
    progressbar: bool = True,
) -> xr.Dataset:
    """Partial dependence of f on one column or a pair, draw by draw (Friedman 2001).

    For every value v of the grid, f at the rows of X with the column set to v, for each row
    (``individual``) or averaged over rows (``average``). The other columns keep their values, so
    with dependent columns the average includes rows that do not occur.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of `pymc.sample`, or the same read from a file.
    model : pymc.Model, optional
        Default: the model on the context stack.
    features : column, list of one, or tuple of two
        By name if X was a frame, otherwise by number or as "x0"; default the first. Data with an
        entry for each row go by their name, as for `comparisons`. A tuple of two,
        ``("a", "b")`` or ``[("a", "b")]``, is a pair.
    X : (n, p) array or frame, or dict, optional
        Rows to average over; a dict gives values of other data of the model too, as ``data`` of
        `predictions`. Default: the rows currently in the model.
    var_name : str, optional
        A function of trees, or any Deterministic of these and of the row's data, as for
        `predictions`. May be left out if the model has one function.
    func : callable, optional
        Applied elementwise to the values of f before the mean; an inverse link such as `numpy.exp`,
        for example.
    grid : str, int, sequence, or dict of column and one of these, optional
        Values of the columns: a sequence gives them; "quantile" (the default) or "linear" derive at
        most 20 from the numbers in X, an int that many quantiles. Columns of levels use all levels.
        Where X has missing cells in the column, the last value is a missing cell.
    kind : {"average", "individual", "both"}, default "average"
        What is returned.
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
        ``average`` with the dimensions chain, draw, those of the outputs, and one for each column,
        named by it (``x{number}`` for an array; ``row_`` and the like where the name of a column is
        also that of a dimension); ``individual`` with ``row`` before these, the numbers of the
        rows. Coordinates hold the values, levels by name; a missing cell is NaN among numbers, else
        "(missing)".

    Raises
    ------
    ValueError
        For a column, level, function or option that does not exist; the message lists those that
        do. Also for curves of single rows of more than 2 GB.

    References
    ----------
    Friedman (2001). Greedy function approximation: a gradient boosting machine. Annals of
    Statistics 29(5), section 8.2, eq. 53.
    Goldstein, Kapelner, Bleich and Pitkin (2015). Peeking inside the black box. Journal of
    Computational and Graphical Statistics 24(1) (individual curves).

    Examples
    --------
    >>> import numpy as np, pymc as pm, pymc_trees as pmt
    >>> X = np.random.default_rng(0).random((30, 2))
    >>> with pm.Model() as model:
    ...     mu = pmt.BART("mu", X, X[:, 0], m=5)
    ...     y = pm.Normal("y", mu, 0.1, observed=X[:, 0], shape=mu.shape)
    ...     idata = pm.sample(tune=10, draws=5, chains=1, random_seed=1, progressbar=False,
    ...                       compute_convergence_checks=False)
    >>> found = pmt.partial_dependence(idata, model, 0, grid=[0.1, 0.5, 0.9])
    >>> dict(found["average"].sizes)
    {'chain': 1, 'draw': 5, 'x0': 3}
    """
    check_choice("kind", kind, KINDS)
    rng = check_seed(random_state, "random_state")
    options = {"data": X, "draws": draws, "random_state": rng}
    function = MarginalFunction(idata, pm.modelcontext(model), var_name, func, group, **options)
    columns = columns_asked("features", features, function)
    rows = function.rows(X, "X")
    chosen = rows_chosen(len(rows), subsample, rng)
    grid_of_column = grids_by_column(columns, grid, function.schema, function.n_columns)
    grids = [
        grid_of(one, function.cells(one, rows), values)
        for one, values in zip(columns, grid_of_column, strict=True)
    ]
    # Before the points of a grid that is too fine are made.
    curves, remedy = (1, SMALLER) if kind == "average" else (len(chosen), f"subsample=, {SMALLER}")
    sizes = [*function.shape, *function.outputs, curves, *map(len, grids)]
    check_answer(f"kind={kind!r}", prod(sizes), remedy)
    points = np.stack(np.meshgrid(*grids, indexing="ij"), axis=-1).reshape(-1, len(columns))
    held = HeldRows(rows[chosen], [one.column for one in columns], points)
    shape = [len(values) for values in grids]
    names = dimensions_of(columns, function.dims)
    labels = [one.labels(values) for one, values in zip(columns, grids, strict=True)]
    dims = dict(zip(names, labels, strict=True))
    return function.noted(_curves(function, held, shape, chosen, dims, kind, progressbar))


def _curves(function, held, shape, chosen, dims, kind, progressbar):
    """Means over the rows for each value, the rows one by one, or both."""

    def each(values):
        curves = values.reshape(*values.shape[:-1], *shape, len(chosen))
        return np.moveaxis(curves, -1, values.ndim - 1)

    if kind == "average":

        def mean(values):
            return each(values).mean(axis=values.ndim - 1)

        return xr.Dataset({"average": function.reduced(held, mean, dims, progressbar)})
    individual = function.reduced(held, each, {"row": chosen} | dims, progressbar)
    dataset = xr.Dataset({"individual": individual})
    if kind == "both":
        dataset["average"] = individual.reduce(np.mean, "row")
    return dataset


def columns_asked(name: str, features: Any, function: MarginalFunction) -> list[Feature]:
    """One column, or the two of a pair."""
    listed = features if isinstance(features, list | tuple) else [features]
    function.check_named(
        name, [one for part in listed for one in (part if isinstance(part, tuple) else [part])]
    )
    pair, columns = pair_or_features(name, features, function.schema, function.n_columns)
    if len(columns) > 1 and not pair:
        names = tuple(one.name for one in columns)
        raise ValueError(
            f"{name}={features!r}: give one column at a time, or a pair as a tuple, such as "
            f"{names[:2]}."
        )
    return columns
