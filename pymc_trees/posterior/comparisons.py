"""Functions of a model at rows, and their change with a column: `predictions`, `comparisons`.

The questions, and their names, are those of Arel-Bundock, Greifer and Heiss (2024): quantities of
each row, or their means over all rows or groups of rows, computed draw by draw, which gives the
posterior of each mean.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np
import pymc as pm
import xarray as xr

from pymc_trees.arguments import check_elementwise
from pymc_trees.core.columns.cells import MISSING
from pymc_trees.posterior.maps import (
    Rows,
    check_summary,
    summaries_at,
    summarised,
    values_at,
)
from pymc_trees.posterior.reading.features import (
    MISSING_LABEL,
    Feature,
    dimension_of,
    dimensions_of,
    feature_of,
    features_of,
    free_name,
    is_missing,
)
from pymc_trees.posterior.reading.marginal import MarginalFunction

COMPARISONS: dict[str, Callable] = {
    "difference": lambda new, old: new - old,
    "ratio": lambda new, old: new / old,
}


def predictions(
    idata,
    model: pm.Model | None = None,
    data=None,
    *,
    by=None,
    var_name=None,
    func=None,
    draws: int | None = None,
    summary=None,
    where=None,
    random_state=None,
    progressbar: bool = True,
) -> xr.Dataset:
    """Values of f, or of any Deterministic of trees, at rows, or their means, draw by draw.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of `pymc.sample`, or the same read from a file.
    model : pymc.Model, optional
        Default: the model on the context stack.
    data : (n, p) array or frame, or dict of str and array or frame, optional
        Rows of X. A dict gives new values of any data of the model by name, X among them, for this
        call: ``{"X": X_new, "exposure": 1.0}``. One number stands for all rows, and groups may go
        by their labels. Default: the rows currently in the model, and where a dict leaves X out.
        Random columns of X (`with_columns`) may be left out, or NaN: see the notes.
    by : bool or column, optional
        True for the mean over all rows, a column for the means over the rows with each of its
        values. Columns are those of X and data with an entry for each row, such as ``"exposure"``.
        Default: one value for each row.
    var_name : str, optional
        A function of trees, or any Deterministic that evaluates trees and whose entry i depends on
        row i alone: of X, of other data, of group effects that data pick. Other variables have
        their values of the draw. May be left out if the model has one function.
    func : callable, optional
        Applied elementwise to the values before any mean; an inverse link such as `numpy.exp`, for
        example.
    draws : int, optional
        Number of draws, over all chains and evenly spaced. Default: all.
    summary : "mean", "sd", float, or sequence of these, optional
        What is returned of the draws: their mean, standard deviation (divided by their number), and
        quantiles of these probabilities. Rows are computed in blocks, so that the memory is that of
        the answer. Default: all draws.
    where : (n,) array of bool, or "present", optional
        Rows that are computed, or those with a cell of X that is not missing: the others are NaN,
        and left out of means. Default: all.
    random_state : numpy.random.Generator or seed, optional
        For effects of groups that were not seen, where the model's coords have new labels.
    progressbar : bool, default True
        Whether to show a progress bar.

    Returns
    -------
    xarray.Dataset
        ``prediction`` with the dimensions chain and draw, or ``summary``, with the coordinate
        ``"mean"``, ``"0.05"``, ...; those of the outputs; and ``row``, none, or that of ``by``,
        named by the column (``x{number}`` for an array; ``row_`` and the like where that is the
        name of another).

    Raises
    ------
    ValueError
        For a column, function or data that do not exist; the message lists those that do. For a
        Deterministic whose entries belong to no one row, for data that are lacking for new rows,
        and for draws of more than 2 GB.
    IndexError
        For a group past the end of the effects.

    Notes
    -----
    Where rows lack a random column, the function is integrated over the prior of the column given
    its parents at the row (columns of X, data, forests), in each draw and exactly: a sum over the
    intervals between the cuts of the trees, or over the values of a discrete column (10,000 at
    most). Such data are columns of a frame, or entries of a dict. Where the rows have a measurement
    under the name of the observed variable or of its data, the column is integrated given it: a
    Normal measurement of a Normal column, and any of a discrete one. The response takes no part. At
    the rows that the model was fitted to, the column has its draws. The attribute
    ``random_columns`` of the result says what was done.

    Examples
    --------
    >>> import numpy as np, pymc as pm, pymc_trees as pmt
    >>> X = np.random.default_rng(0).random((30, 2))
    >>> with pm.Model() as model:
    ...     mu = pmt.BART("mu", X, X[:, 0], m=5)
    ...     y = pm.Normal("y", mu, 0.1, observed=X[:, 0], shape=mu.shape)
    ...     idata = pm.sample(tune=10, draws=5, chains=1, random_seed=1, progressbar=False,
    ...                       compute_convergence_checks=False)
    >>> dict(pmt.predictions(idata, model, [[0.1, 0.5], [0.9, 0.5]])["prediction"].sizes)
    {'chain': 1, 'draw': 5, 'row': 2}

    Rates with an exposure, and their summary:

    >>> with pm.Model() as model:
    ...     data, exposure = pm.Data("X", X), pm.Data("exposure", np.ones(30))
    ...     f = pmt.BART("f", data, m=5, leaf=pmt.NormalLeaf(0, 0.3))
    ...     rate = pm.Deterministic("rate", exposure * pm.math.exp(f))
    ...     y = pm.Poisson("y", rate, observed=np.ones(30, dtype=int))
    ...     idata = pm.sample(tune=10, draws=5, chains=1, random_seed=1, progressbar=False,
    ...                       compute_convergence_checks=False)
    >>> new = {"X": X[:2], "exposure": 10.0}
    >>> found = pmt.predictions(idata, model, new, var_name="rate", summary=("mean", 0.95))
    >>> dict(found["prediction"].sizes)
    {'summary': 2, 'row': 2}
    """
    wanted = None if summary is None else check_summary(summary)
    asked = {"data": data, "draws": draws, "random_state": random_state}
    function = MarginalFunction(idata, pm.modelcontext(model), var_name, func, **asked)
    rows = Rows(function, data, where)
    if by is None or by is False:
        if wanted is None:
            return function.noted(xr.Dataset({"prediction": values_at(rows, progressbar)}))
        return function.noted(xr.Dataset({"prediction": summaries_at(rows, wanted, progressbar)}))
    _, taken = rows.together()
    share, dims = means_over(function, taken, by, function.dims)
    means = function.reduced(taken, share, dims, progressbar)
    found = means if wanted is None else summarised(means, wanted)
    return function.noted(xr.Dataset({"prediction": found}))


def comparisons(
    idata,
    model: pm.Model | None = None,
    variables: Any = 0,
    data=None,
    *,
    comparison: str | Callable = "difference",
    by=None,
    var_name=None,
    func=None,
    draws: int | None = None,
    random_state=None,
    progressbar: bool = True,
) -> xr.Dataset:
    """How f, or any Deterministic of trees, changes when a column changes, draw by draw.

    The other columns of each row stay as they are. A comparison is not causal in itself, and it may
    ask for rows that are rare in the data.

    Parameters
    ----------
    idata, model, data, var_name, func, draws, random_state, progressbar
        As for `predictions`.
    variables : column, list or tuple of columns, or dict of column and values
        Columns by name where X was a frame, else by number; default the first. Data with an entry
        for each row, such as a treatment with a coefficient, go by their name, columns of a matrix
        of them by their coords or as ``"W[0]"``, groups by their labels. In a dict a sequence
        of at least two values compares each with the first; None, NaN or NA among them stands for
        a missing cell. A number is added to the column's own values, which must be numeric. Without
        a dict, columns of 0 and 1, including bools, are compared at 1 and 0, other numeric columns
        are raised by 1, and levels are compared with the first level.
    comparison : {"difference", "ratio"} or callable, default "difference"
        Of the values of f after and before, arrays of one shape, elementwise.
    by : bool or column, optional
        Means of the comparisons over all rows, or groups of them, as for `predictions`.

    Returns
    -------
    xarray.Dataset
        A variable for each column, named by it (``x{number}`` for an array), with the dimensions
        chain, draw, those of the outputs, ``{column}_contrast`` and ``row``, none, or that of
        ``by`` (``{column}_`` where the column is compared). Contrasts are labelled "new - old".
        Where a number is added, rows with a missing cell have no comparison: they are NaN and left
        out of means.

    Raises
    ------
    ValueError
        For a column, value, level, function or option that does not exist; the message lists those
        that do.

    References
    ----------
    Arel-Bundock, Greifer and Heiss (2024). How to interpret statistical models using
    marginaleffects for R and Python. Journal of Statistical Software 111(9).

    Examples
    --------
    >>> import numpy as np, pymc as pm, pymc_trees as pmt
    >>> X = np.random.default_rng(0).random((30, 2))
    >>> with pm.Model() as model:
    ...     mu = pmt.BART("mu", X, X[:, 0], m=5)
    ...     y = pm.Normal("y", mu, 0.1, observed=X[:, 0], shape=mu.shape)
    ...     idata = pm.sample(tune=10, draws=5, chains=1, random_seed=1, progressbar=False,
    ...                       compute_convergence_checks=False)
    >>> found = pmt.comparisons(idata, model, {0: (0.2, 0.8)}, by=True)
    >>> found["x0"].sizes["x0_contrast"], str(found["x0_contrast"].item())
    (1, '0.8 - 0.2')
    """
    compare = _comparison(comparison)
    asked = {"data": data, "draws": draws, "random_state": random_state}
    function = MarginalFunction(idata, pm.modelcontext(model), var_name, func, **asked)
    rows = function.rows(data)
    columns = asked_columns(variables, function)
    names = dimensions_of([feature for feature, _ in columns], function.dims)
    taken = {*function.dims, *names}
    along = [free_name(f"{name}_contrast", taken) for name in names]
    share, dims = means_over(function, rows, by, {*taken, *along})
    results = {}
    for (feature, values), name, contrast_dim in zip(columns, names, along, strict=True):
        of_levels = values is None and feature.levels is not None
        if not of_levels and np.ndim(np.asarray(values, dtype=object)) == 0:
            function.check_known(feature, rows, "variables")
        x, of_model = rows[:, feature.column], function.table.cells(feature.column)
        if values is None and feature.levels is None and _is_binary(x) and _is_binary(of_model):
            values = (0, 1)
        cells, labels, defined = _cells(feature, x, values)
        contrast = np.array([f"{new} - {labels[0]}" for new in labels[1:]])
        changed = np.concatenate([with_column(rows, feature, column) for column in cells])

        def contrasts(f, defined=defined):
            parts = f.reshape(*f.shape[:-1], -1, len(rows))
            new = parts[..., 1:, :]
            return share(compare(new, np.broadcast_to(parts[..., :1, :], new.shape)), defined)

        named = {contrast_dim: contrast} | dims
        results[name] = function.reduced(changed, contrasts, named, progressbar)
    return function.noted(_together(results))


def _together(results: dict[str, xr.DataArray]) -> xr.Dataset:
    """All results; xarray drops one that has the name of a dimension."""
    found = xr.Dataset(results)
    assert set(found.data_vars) == set(results)
    return found


def means_over(
    columns, rows: np.ndarray, by, taken: Collection[str] = ()
) -> tuple[Callable, dict[str, Any]]:
    """What makes the means over rows, the last axis, and the dimension they have instead.

    It takes values and, optionally, at which rows they are defined: elsewhere they are NaN, and
    left out of means. ``columns`` knows schema and number of the columns of X, as a `Function`.
    The dimension has none of the names that are ``taken``.
    """
    if by is None or by is False:
        return _where_defined, {"row": np.arange(len(rows))}
    if by is True:
        every = np.arange(len(rows))
        return (lambda values, defined=None: _mean(values, every, defined)), {}
    feature = feature_of(by, columns.schema, columns.n_columns)
    codes, group = np.unique(rows[:, feature.column], return_inverse=True)
    members = [np.flatnonzero(group == k) for k in range(codes.size)]

    def means(values, defined=None):
        return np.stack([_mean(values, who, defined) for who in members], axis=-1)

    return means, {dimension_of(feature, taken): feature.labels(codes)}


def _where_defined(values, defined=None):
    return values if defined is None else np.where(defined, values, np.nan)


def _mean(values, who, defined):
    """Mean over some rows, of those where values are defined; NaN where they nowhere are."""
    who = who if defined is None else who[defined[who]]
    if who.size == 0:
        return np.full(values.shape[:-1], np.nan)
    return values[..., who].mean(axis=-1)


def _comparison(comparison) -> Callable:
    if callable(comparison):
        return check_elementwise("comparison", comparison)
    if not isinstance(comparison, str) or comparison not in COMPARISONS:
        raise ValueError(
            f"comparison={comparison!r}: choose from {list(COMPARISONS)}, or give a function of "
            "the values after and before."
        )
    return COMPARISONS[comparison]


def asked_columns(variables, function: MarginalFunction) -> list[tuple[Feature, Any]]:
    """Columns, and the values that are to be compared, None for the usual ones."""
    which = list(variables) if isinstance(variables, Mapping) else variables
    function.check_named("variables", which if isinstance(which, list | tuple) else [which])
    features = features_of("variables", which, function.schema, function.n_columns)
    values = variables.values() if isinstance(variables, Mapping) else [None] * len(features)
    return list(zip(features, values, strict=True))


def _is_binary(x: np.ndarray) -> bool:
    """Whether the cells that are not missing are 0 or 1."""
    return bool(np.isin(x[x != MISSING], (0.0, 1.0)).all())


def _cells(feature: Feature, x: np.ndarray, values) -> tuple[list[np.ndarray], list, np.ndarray]:
    """Contents of the column before and after, words for each, and at which rows there are any."""
    if values is None:
        values = 1 if feature.levels is None else feature.levels
    if isinstance(values, str) or not np.ndim(np.asarray(values, dtype=object)):
        if feature.levels is not None or isinstance(values, str | bool | np.bool_):
            raise ValueError(
                f"variables: {values!r} for the column {feature.name!r}: give a sequence of at "
                "least two values."
            )
        if is_missing(values):
            raise ValueError(
                f"variables: {values!r} for the column {feature.name!r} is not a step: give a "
                "finite number, or a sequence of at least two values."
            )
        step, present = feature.code(values), x != MISSING
        return [x, np.where(present, x + step, MISSING)], ["x", f"(x + {values})"], present
    if len(values) < 2:
        raise ValueError(
            f"variables: the column {feature.name!r} is compared at {list(values)}: give at least "
            "two values."
        )
    cells = [np.full(x.size, feature.code(value)) for value in values]
    words = [MISSING_LABEL if is_missing(value) else value for value in values]
    return cells, words, np.full(x.size, True)


def with_column(rows, feature, column):
    """The rows with other contents of a column."""
    changed = rows.copy()
    changed[:, feature.column] = column
    return changed


# ---------------------------------------------------------------------- Mean slopes of f: `slopes`


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
    draws: int | None = None,
    random_state=None,
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
    idata, model, data, by, var_name, func, draws, random_state, progressbar
        As for `predictions`.
    variables : column, or list or tuple of columns
        Numeric ones, by name or number, as for `comparisons`; default the first.
    step : float, optional
        Length of the interval. Default: the standard deviation of the column over the rows.

    Returns
    -------
    xarray.Dataset
        A variable for each column, named by it (``x{number}`` for an array), with the dimensions
        chain, draw, those of the outputs, and ``row``, none, or that of ``by``, as for
        `comparisons`; NaN at rows with a missing cell, which are left out of means.

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
    asked = {"data": data, "draws": draws, "random_state": random_state}
    function = MarginalFunction(idata, pm.modelcontext(model), var_name, func, **asked)
    rows, results = function.rows(data), {}
    features = [feature for feature, _ in asked_columns(variables, function)]
    names = dimensions_of(features, function.dims)
    share, dims = means_over(function, rows, by, {*function.dims, *names})
    for feature, name in zip(features, names, strict=True):
        function.check_known(feature, rows, "variables")
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
        if feature.column in function.table.of_whole and width % 2:
            raise ValueError(
                f"step={step}: {feature.name!r} holds whole numbers in the model, and goes half of "
                f"{width:g} up and down; give an even number, such as step=2, or declare it as "
                "floats."
            )
        ends = [np.where(present, x + side * width, MISSING) for side in (-0.5, 0.5)]
        changed = np.concatenate([with_column(rows, feature, column) for column in ends])

        def slope(f, width=width, present=present):
            low, high = np.split(f, 2, axis=-1)
            return share((high - low) / width, present)

        results[name] = function.reduced(changed, slope, dims, progressbar)
    return function.noted(_together(results))
