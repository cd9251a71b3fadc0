"""`plot_pdp`, `plot_ale` and `plot_ice`: how f depends on each column, or on a pair."""

import numpy as np
import pymc as pm
import xarray as xr
from arviz_plots import PlotCollection, visuals

from pymc_trees.core.columns.cells import MISSING
from pymc_trees.plots.curves import (
    APART,
    FEW,
    POINT,
    Curve,
    along,
    draw_curves,
    interval_of,
    name_axes,
    panels,
    places,
    safe_name,
    stands_at,
    words_of,
    xy,
)
from pymc_trees.plots.figure import colour_bar, picture, targets
from pymc_trees.posterior.accumulated_effects import accumulated_effects
from pymc_trees.posterior.convergence import probability_of
from pymc_trees.posterior.dependence import partial_dependence
from pymc_trees.posterior.draws import SAMPLE, draws_of, with_fewer_draws
from pymc_trees.posterior.reading.features import all_features, pair_or_features
from pymc_trees.posterior.reading.marginal import MarginalFunction

# --------------------------------------------------------------------------------------------------
# f along a pair of columns: curves of one by the values of the other, or a map of two numbers.


BANDS = 12
"""Colours of a map."""
COLOURS = "viridis"
DODGE, ROOM = 0.12, 0.5
"""Steps of the axis: between points of one level, and at most between the first and the last."""
SPOT = 0.025
"""Of the range of a line: between points of missing cells next to it."""


def draw_pair(values, cells, few, ci_prob, rug, backend, label, **pc_kwargs):
    """A `PlotCollection` of (chain, draw, ..., first, second) values.

    ``cells`` is (n, 2), the positions of rows; ``few`` is for each column whether a curve is drawn
    for each of its values.
    """
    columns, taken = list(map(str, values.dims[-2:])), list(map(str, values.dims[:-2]))
    for column in columns:
        taken.append(safe_name(column, taken))
    first, second = taken[-2:]
    names = dict(zip((first, second), columns, strict=True))
    values = values.rename({old: new for new, old in names.items() if new != old})
    if not any(few):
        return _draw_map(values, names, cells, rug, backend, label, pc_kwargs)
    if few[0] and not few[1]:
        first, second = second, first
    values = values.transpose(..., first, second)
    return _draw_curves(values, names, all(few), ci_prob, backend, label, pc_kwargs)


def _draw_curves(pair, names, as_points, ci_prob, backend, label, pc_kwargs):
    """Along the first column, a colour for each value of the second.

    ``names`` are those of columns by those of dimensions.
    """
    first, second = map(str, pair.dims[-2:])
    words = words_of(pair[second].to_numpy())
    wide = SPOT * (len(words) - 1)
    beside = max(APART, wide / 2 + SPOT)  # points of missing cells are clear of the line
    values = pair.transpose(..., second, first)
    curve = Curve(values, np.empty(0), as_points, apart=beside)
    x, present = places(curve)
    numbers = {
        key: one.assign_coords({second: words})
        for key, one in interval_of(curve.values, first, probability_of(ci_prob)).items()
    }
    blank = xr.Dataset({first: numbers["mean"]})
    collection = panels(blank, backend, {"aes": {"color": [second]}, **pc_kwargs})
    line = present & (not as_points)
    if line.any():
        band = along(x, numbers, line, first, "kwarg")
        collection.map(visuals.fill_between_y, "band", data=xr.Dataset({first: band}), alpha=0.2)
        collection.map(
            visuals.line_xy, "line", data=xr.Dataset({first: xy(x, numbers, line, first)})
        )
    if not line.all():
        shift = xr.DataArray(np.arange(len(words)) - 0.5 * (len(words) - 1), {second: words})
        if line.any():
            step = SPOT * (np.ptp(x[line]) or 1.0)
        else:
            least = np.diff(np.unique(x)).min() if x.size > 1 else 1.0
            step = min(DODGE, ROOM / len(words)) * least
        dots = xy(x, numbers, ~line, first)
        ends = along(x, numbers, ~line, first, "plot_axis")
        for one in (dots, ends):
            at = one.sel(plot_axis="x") + step * shift
            one.loc[{"plot_axis": "x"}] = at.transpose(*one.sel(plot_axis="x").dims)
        bars = _bars(ends, f"{POINT}_{first}")
        collection.map(visuals.line_xy, "interval", data=xr.Dataset({first: bars}))
        collection.map(visuals.scatter_xy, "mean", data=xr.Dataset({first: dots}))
    name_axes(collection, {first: curve}, names, label)
    collection.add_legend(second, title=names[second])
    return collection


def _bars(ends: xr.DataArray, point: str) -> xr.DataArray:
    """Upright lines as pieces of one: ArviZ-plots' own have no legend with plotly."""
    x, low, high = (ends.sel(plot_axis=name, drop=True) for name in ("x", "y_bottom", "y_top"))
    gap = xr.full_like(x, np.nan)
    pieces = [xr.concat(parts, dim="end") for parts in ((x, x, gap), (low, high, gap))]
    flat = [one.stack({f"{point}_ends": [point, "end"]}, create_index=False) for one in pieces]
    return xr.concat(flat, dim="plot_axis").assign_coords(plot_axis=["x", "y"])


def _draw_map(values, names, cells, rug, backend, label, pc_kwargs) -> PlotCollection:
    """Posterior means over two numeric columns, as colours with their scale."""
    first, second = map(str, values.dims[-2:])
    known = {dim: ~np.isnan(values[dim].to_numpy().astype(float)) for dim in (first, second)}
    mean = values.mean(SAMPLE).isel({dim: np.flatnonzero(one) for dim, one in known.items()})
    at = [mean[dim].to_numpy().astype(float) for dim in (first, second)]
    low, high = float(mean.min()), float(mean.max())
    edges = np.linspace(low, high if high > low else low + 1.0, BANDS + 1)
    edges[-1] += 1e-9 * (edges[-1] - edges[0])  # the largest value is inside
    named = mean.rename({first: "point_x", second: "point_y"}).drop_vars(["point_x", "point_y"])
    name = safe_name(label)
    ds = xr.Dataset({name: named})
    collection = panels(ds, backend, pc_kwargs, beside=True)
    collection.map(_filled, "map", data=ds, x=at[0], y=at[1], levels=edges)
    if rug:
        lowest, highest = [one.min() for one in at], [one.max() for one in at]
        inside = ((cells >= lowest) & (cells <= highest)).all(axis=1)
        dots = xr.DataArray(cells[inside].T, {"plot_axis": ["x", "y"]}, ["plot_axis", "point_row"])
        dots = dots * xr.ones_like(named.isel(point_x=0, point_y=0, drop=True))
        marks = {"color": "white", "alpha": 0.5, "size": 4, "width": 0}
        collection.map(visuals.scatter_xy, "rug", data=xr.Dataset({name: dots}), **marks)
    colour_bar(collection, "map", name, label)
    for target, words in targets(collection, name):
        plot = visuals.backend_from_object(target)
        plot.xlabel(names[first], target)
        plot.ylabel(names[second], target)
        if words:
            plot.title(", ".join(words), target)
    return collection


def _filled(da, target, *, x, y, levels):
    plot = visuals.backend_from_object(target)
    density = da.transpose("point_x", "point_y").to_numpy()
    return plot.contourf(x, y, density, target, levels=levels, cmap=COLOURS)


# --------------------------------------------------------------------------------------------------


@picture
def plot_pdp(
    idata,
    model: pm.Model | None = None,
    features=None,
    X=None,
    *,
    var_name: str | None = None,
    func=None,
    grid=None,
    draws: int | None = 200,
    subsample: int | None = None,
    centred: bool = False,
    ci_prob: float | None = None,
    rug: bool = True,
    group: str = "posterior",
    label: str | None = None,
    backend: str | None = None,
    random_state=None,
    progressbar: bool = True,
    **pc_kwargs,
):
    """Partial dependence of f on each column, with intervals, or on a pair.

    The numbers are those of `partial_dependence`. If one column of a pair has levels or few values,
    a curve of the other is drawn for each of them. Two numeric columns give a map of the posterior
    mean, with the rows as dots: away from the rows it is an extrapolation by the prior and the
    steps of the trees.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of `pymc.sample`, or the same read from a file.
    model : pymc.Model, optional
        Default: the model on the context stack.
    features : column, list of columns, or tuple of two, optional
        By name if X was a frame, otherwise by number or as "x0". ``["a", "b"]`` has a panel for
        each; ``("a", "b")``, also within a list, is a pair. Default: all, a panel for each.
    X : (n, p) array or frame, optional
        Rows to average over. Default: the rows currently in the model.
    var_name : str, optional
        Name of the function, if the model has several.
    func : callable, optional
        Applied elementwise to the values of f before the mean; an inverse link such as `numpy.exp`,
        for example.
    grid : optional
        Values of the columns, as for `partial_dependence`.
    draws : int or None, default 200
        Number of draws to use, evenly spaced; None for all.
    subsample : int, optional
        Number of rows of X taken at random. Default: all rows.
    centred : bool, default False
        Whether every draw is shifted to 0 at the first value of the grid; not for a pair.
    ci_prob : float, optional
        Probability of the intervals, equal-tailed. Default: that of ArviZ.
    rug : bool, default True
        Whether to mark where the cells of the column are.
    group : str, default "posterior"
        Group of ``idata`` that holds the draws; "prior" gives the same quantity under the prior.
    label : str, optional
        What is drawn, with its unit, for the axis or the colour bar. Default: "partial dependence".
    backend : {"matplotlib", "plotly", "bokeh", "none"}, optional
        Default: that of ArviZ-plots.
    random_state : numpy.random.Generator or seed, optional
        For the subsample.
    progressbar : bool, default True
        Whether to show a progress bar.
    **pc_kwargs
        For `arviz_plots.PlotCollection.wrap`.

    Returns
    -------
    arviz_plots.PlotCollection

    Raises
    ------
    ValueError
        For a column or function that does not exist; the message lists those that do.

    Examples
    --------
    >>> import numpy as np, pymc as pm, pymc_trees as pmt
    >>> X = np.random.default_rng(0).random((30, 2))
    >>> with pm.Model() as model:
    ...     mu = pmt.BART("mu", X, X[:, 0], m=5)
    ...     y = pm.Normal("y", mu, 0.1, observed=X[:, 0], shape=mu.shape)
    ...     idata = pm.sample(tune=10, draws=5, chains=1, random_seed=1, progressbar=False,
    ...                       compute_convergence_checks=False)
    >>> drawn = pmt.plot_pdp(idata, model, backend="none")
    """
    idata, pair, columns, rows = asked(idata, model, features, X, var_name, draws, group)
    if pair and centred:
        raise ValueError(
            "centred=True: the picture of a pair of columns cannot be centred: leave it out, or "
            "give a list for one panel per column."
        )
    options = {"var_name": var_name, "func": func, "grid": grid, "subsample": subsample}
    options |= {"random_state": random_state, "progressbar": progressbar}
    if pair:
        both = tuple(columns)
        values = partial_dependence(idata, model, both, X, **options)["average"]
        axes = zip(columns, values.dims[-2:], strict=True)
        stand = [_on_axis(values[dim].to_numpy(), one, rows) for one, dim in axes]
        cells, few = np.stack([at for at, _ in stand], axis=1), [few for _, few in stand]
        what = label or "partial dependence"
        return draw_pair(values, cells, few, ci_prob, rug, backend, what, **pc_kwargs)
    curves = {}
    for feature in columns:
        values = partial_dependence(idata, model, feature, X, **options)["average"]
        if centred:
            values = values - values.isel({values.dims[-1]: 0})
        curves[str(values.dims[-1])] = curve_of(values, feature, rows)
    what = label or "partial dependence" + ", centred" * centred
    return draw_curves(curves, ci_prob, rug, backend, what, **pc_kwargs)


@picture
def plot_ale(
    idata,
    model: pm.Model | None = None,
    features=None,
    X=None,
    *,
    var_name: str | None = None,
    func=None,
    intervals: int = 20,
    draws: int | None = 200,
    ci_prob: float | None = None,
    rug: bool = True,
    label: str | None = None,
    backend: str | None = None,
    progressbar: bool = True,
    **pc_kwargs,
):
    """Accumulated local effects of each column on f, with intervals.

    The numbers are those of `accumulated_effects`.

    Parameters
    ----------
    idata, model, X, var_name, func, draws, ci_prob, rug, backend, progressbar, **pc_kwargs
        As for `plot_pdp`.
    label : str, optional
        What is drawn, with its unit. Default: "accumulated effect".
    features : column or list of columns, optional
        By name if X was a frame, otherwise by number. Default: all but constant ones, which have no
        effect, a panel for each.
    intervals : int, default 20
        Maximum number of quantile intervals of a numeric column.

    Returns
    -------
    arviz_plots.PlotCollection

    Raises
    ------
    ValueError
        For a column or function that does not exist; the message lists those that do.

    Examples
    --------
    >>> import numpy as np, pymc as pm, pymc_trees as pmt
    >>> X = np.random.default_rng(0).random((30, 2))
    >>> with pm.Model() as model:
    ...     mu = pmt.BART("mu", X, X[:, 0], m=5)
    ...     y = pm.Normal("y", mu, 0.1, observed=X[:, 0], shape=mu.shape)
    ...     idata = pm.sample(tune=10, draws=5, chains=1, random_seed=1, progressbar=False,
    ...                       compute_convergence_checks=False)
    >>> drawn = pmt.plot_ale(idata, model, backend="none")
    """
    idata, pair, columns, rows = asked(idata, model, features, X, var_name, draws)
    if pair:
        raise ValueError(
            f"features={features!r}: a tuple is a pair of columns, which only accumulated_effects "
            "supports; give a list for one panel per column."
        )
    options = {"var_name": var_name, "func": func, "intervals": intervals}
    options["progressbar"] = progressbar
    if features is None:
        vary = [one for one in columns if _varies(rows[:, one.column])]
        columns = vary or columns  # a constant column has an error of its own
    curves = {}
    for feature in columns:
        values = accumulated_effects(idata, model, feature, X, **options)["effect"]
        curves[str(values.dims[-1])] = curve_of(values, feature, rows)
    return draw_curves(curves, ci_prob, rug, backend, label or "accumulated effect", **pc_kwargs)


def asked(idata, model, features, X, var_name, draws, group="posterior"):
    """Draws to take, whether columns are a pair, the columns, and rows as the model holds them."""
    chosen = draws_of(idata, group)
    function = MarginalFunction(chosen, pm.modelcontext(model), var_name, data=X)
    known = (function.schema, function.n_columns)
    pair, columns = False, all_features(*known)
    if features is not None:
        pair, columns = pair_or_features("features", features, *known)
    return with_fewer_draws(chosen, draws), pair, columns, function.rows(X, "X")


def _varies(cells) -> bool:
    return np.unique(cells[cells != MISSING]).size > 1


def curve_of(values, feature, rows) -> Curve:
    """What is drawn of one column."""
    cells, few = _on_axis(values[values.dims[-1]].to_numpy(), feature, rows)
    return Curve(values, cells[~np.isnan(cells)], few)


def _on_axis(labels, feature, rows) -> tuple[np.ndarray, bool]:
    """Where rows stand on the axis of a column, and whether its values are few."""
    cells = stands_at(feature, rows[:, feature.column], labels)
    return cells, feature.levels is not None or labels.size <= FEW


# -------------------------------------------- `plot_ice`: how f depends on each column, row by row


@picture
def plot_ice(
    idata,
    model: pm.Model | None = None,
    features=None,
    X=None,
    *,
    var_name: str | None = None,
    func=None,
    grid=None,
    draws: int | None = 200,
    subsample: int | None = 30,
    centred: bool = False,
    ci_prob: float | None = None,
    rug: bool = True,
    group: str = "posterior",
    label: str | None = None,
    backend: str | None = None,
    random_state=None,
    progressbar: bool = True,
    **pc_kwargs,
):
    """Individual conditional expectations: f along each column, a line for each row.

    Thin lines are posterior means at single rows of X with the column set to each value; the thick
    one, with its interval, is their mean over the rows shown. Lines that are not parallel show an
    interaction with another column. The numbers are those of `partial_dependence`.

    Parameters
    ----------
    idata, model, features, X, var_name, func, grid, draws, ci_prob, rug, group, backend, \
random_state, progressbar, **pc_kwargs
        As for `plot_pdp`.
    label : str, optional
        What is drawn, with its unit. Default: "individual and mean prediction".
    subsample : int or None, default 30
        Number of rows of X taken at random; None for all.
    centred : bool, default False
        Whether every line starts at 0, at the first value of the grid.

    Returns
    -------
    arviz_plots.PlotCollection

    Raises
    ------
    ValueError
        For a column or function that does not exist; the message lists those that do.

    References
    ----------
    Goldstein, Kapelner, Bleich and Pitkin (2015). Peeking inside the black box: visualizing
    statistical learning with plots of individual conditional expectation. Journal of Computational
    and Graphical Statistics 24(1).

    Examples
    --------
    >>> import numpy as np, pymc as pm, pymc_trees as pmt
    >>> X = np.random.default_rng(0).random((30, 2))
    >>> with pm.Model() as model:
    ...     mu = pmt.BART("mu", X, X[:, 0], m=5)
    ...     y = pm.Normal("y", mu, 0.1, observed=X[:, 0], shape=mu.shape)
    ...     idata = pm.sample(tune=10, draws=5, chains=1, random_seed=1, progressbar=False,
    ...                       compute_convergence_checks=False)
    >>> drawn = pmt.plot_ice(idata, model, backend="none", subsample=10, progressbar=False)
    """
    idata, pair, columns, rows = asked(idata, model, features, X, var_name, draws, group)
    if pair:
        raise ValueError(
            f"features={features!r}: a tuple is a pair of columns, which only plot_pdp supports; "
            "give a list for one panel per column."
        )
    options = {"var_name": var_name, "func": func, "grid": grid, "subsample": subsample}
    options |= {"random_state": random_state, "progressbar": progressbar}
    curves = {}
    for feature in columns:
        options["kind"] = "individual"
        values = partial_dependence(idata, model, feature, X, **options)["individual"]
        if centred:
            values = values - values.isel({values.dims[-1]: 0})
        curve = curve_of(values.mean("row"), feature, rows)
        curves[str(values.dims[-1])] = curve._replace(individual=values.mean(SAMPLE))
    what = label or "individual and mean prediction" + ", centred" * centred
    return draw_curves(curves, ci_prob, rug, backend, what, **pc_kwargs)
