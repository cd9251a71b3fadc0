"""`plot_variable_importance` and `plot_scatter_submodels`: how well few columns predict f."""

from collections.abc import Callable, Sequence

import numpy as np
import pymc as pm
import xarray as xr
from arviz_plots import PlotCollection, visuals

from pymc_trees.arguments import check_elementwise, check_number
from pymc_trees.plots.figure import name_values, panels_in_a_row, picture, targets, wrapped
from pymc_trees.posterior.convergence import probability_of
from pymc_trees.posterior.draws import SAMPLE
from pymc_trees.posterior.importance.submodels import check_submodels
from pymc_trees.posterior.inclusion import get_variable_inclusion

HEIGHT, STEP, MARGIN = 320, 65, 80
"""Dots of a panel of R2: its height, the width of each submodel, and that of its margin."""
SQUARE = 260
"""Dots of a panel of points."""
MOST = 5000
"""Points in a panel."""
LONGEST = 8
"""Letters of a name that stands level under the axis."""


@picture
def plot_variable_importance(
    importance: xr.Dataset,
    submodels: Sequence[int] | None = None,
    *,
    ci_prob: float | None = None,
    backend: str | None = None,
    **pc_kwargs,
):
    """R2 of submodels, one column more in each, with intervals.

    The band shows ``reference``, how well f in one draw predicts f in another, with its mean: a
    submodel that reaches it predicts f to within posterior uncertainty.

    Parameters
    ----------
    importance : xarray.Dataset
        Result of `compute_variable_importance`.
    submodels : sequence of int, optional
        Numbers of columns of the submodels that are shown. Default: all.
    ci_prob : float, optional
        Probability of the intervals, equal-tailed. Default: that of ArviZ.
    backend : {"matplotlib", "plotly", "bokeh", "none"}, optional
        Default: that of ArviZ-plots.
    **pc_kwargs
        For `arviz_plots.PlotCollection.wrap`.

    Returns
    -------
    arviz_plots.PlotCollection
        A panel for each output.

    Raises
    ------
    ValueError
        When ``importance`` is something else, or a submodel is not in it.

    Examples
    --------
    >>> import numpy as np, pymc as pm, pymc_trees as pmt
    >>> X = np.random.default_rng(0).random((30, 2))
    >>> with pm.Model() as model:
    ...     mu = pmt.BART("mu", X, X[:, 0], m=5)
    ...     y = pm.Normal("y", mu, 0.1, observed=X[:, 0], shape=mu.shape)
    ...     idata = pm.sample(tune=10, draws=5, chains=1, random_seed=1, progressbar=False,
    ...                       compute_convergence_checks=False)
    >>> found = pmt.compute_variable_importance(idata, model, progressbar=False)
    >>> drawn = pmt.plot_variable_importance(found, backend="none")
    """
    chosen, labels = _chosen(importance, submodels)
    prob = probability_of(ci_prob)
    r2, reference = chosen["r2"], chosen["reference"]
    outputs = [str(dim) for dim in reference.dims[2:]]
    mean, low, high = _interval(r2, prob)
    x = xr.DataArray(np.arange(len(labels), dtype=float), dims=["submodel"])
    number = int(np.prod([r2.sizes[dim] for dim in outputs]))
    panel = (MARGIN + STEP * len(labels), HEIGHT)
    collection = _panels(mean, outputs, number, panel, backend, {"sharey": True}, pc_kwargs)
    if not reference.isnull().all():
        middle, bottom, top = _interval(reference, prob)
        ends = xr.DataArray([-0.5, len(labels) - 0.5], dims=["end"])
        band = _stacked("kwarg", x=ends, y_bottom=bottom, y_top=top)
        collection.map(visuals.fill_between_y, "reference", data=band, color="gray", alpha=0.2)
        line = {"color": "gray", "linestyle": "C1"}
        collection.map(visuals.line_xy, "reference_mean", data=_xy(ends, middle), **line)
    bars = _stacked("plot_axis", x=x, y_bottom=low, y_top=high)
    collection.map(visuals.ci_line_y, "interval", data=bars, color="C0")
    collection.map(visuals.scatter_xy, "mean", data=_xy(x, mean), color="C0")
    rotation = 0 if max(map(len, labels)) <= LONGEST else 45
    name_values(collection, "r2", "variance of f explained, R²")
    for target, words in targets(collection, "r2"):
        plot = visuals.backend_from_object(target)
        plot.xticks(x.to_numpy(), labels, target, rotation=rotation)
        plot.xlim((-0.5, len(labels) - 0.5), target)
        plot.ylim((-0.02, 1.05), target)
        if outputs:
            plot.title(", ".join(words), target)
    return collection


@picture
def plot_scatter_submodels(
    importance: xr.Dataset,
    func: Callable | None = None,
    submodels: Sequence[int] | None = None,
    *,
    backend: str | None = None,
    **pc_kwargs,
):
    """Values of f against the predictions of submodels, one panel per submodel.

    A point is a row in a draw, at most 5,000 of them, evenly spaced. On the line both agree.

    Parameters
    ----------
    importance : xarray.Dataset
        Result of `compute_variable_importance`.
    func : callable, optional
        Applied elementwise to both; an inverse link such as `numpy.exp`, for example.
    submodels : sequence of int, optional
        Numbers of columns of the submodels that are shown. Default: all.
    backend : {"matplotlib", "plotly", "bokeh", "none"}, optional
        Default: that of ArviZ-plots.
    **pc_kwargs
        For `arviz_plots.PlotCollection.wrap`: ``col_wrap`` is the number of panels in a row.

    Returns
    -------
    arviz_plots.PlotCollection

    Raises
    ------
    ValueError
        When ``importance`` is something else, or a submodel is not in it.

    Examples
    --------
    >>> import numpy as np, pymc as pm, pymc_trees as pmt
    >>> X = np.random.default_rng(0).random((30, 2))
    >>> with pm.Model() as model:
    ...     mu = pmt.BART("mu", X, X[:, 0], m=5)
    ...     y = pm.Normal("y", mu, 0.1, observed=X[:, 0], shape=mu.shape)
    ...     idata = pm.sample(tune=10, draws=5, chains=1, random_seed=1, progressbar=False,
    ...                       compute_convergence_checks=False)
    >>> found = pmt.compute_variable_importance(idata, model, progressbar=False)
    >>> drawn = pmt.plot_scatter_submodels(found, backend="none")
    """
    chosen, labels = _chosen(importance, submodels)
    points = _xy(chosen["prediction"], chosen["full"])["r2"]
    points = points.stack(point=(*SAMPLE, "row"), create_index=False)
    every = np.linspace(0, points.sizes["point"] - 1, min(MOST, points.sizes["point"]))
    points = points.isel(point=every.round().astype(int))
    if func is not None:
        points = points.copy(data=check_elementwise("func", func)(points.to_numpy()))
    ends = np.array([points.min(), points.max()], dtype=float)
    ends += np.array([-0.04, 0.04]) * (np.ptp(ends) or 1.0)
    outputs = [str(dim) for dim in chosen["reference"].dims[2:]]
    facets = [*outputs, "submodel"]
    blank = points.isel(point=0, plot_axis=0, drop=True)
    number, shared = blank.size, {"sharey": True}
    wrap = min(number, panels_in_a_row(number, pc_kwargs))
    collection = _panels(blank, facets, number, (SQUARE, SQUARE), backend, shared, pc_kwargs)
    line = xr.zeros_like(blank) + xr.DataArray(ends, dims=["end"])
    dashed = {"color": "gray", "linestyle": "C1"}
    collection.map(visuals.line_xy, "agreement", data=_xy(line, line), **dashed)
    spots = {"color": "C0", "alpha": 0.25, "width": 0, "size": 8}
    collection.map(visuals.scatter_xy, "points", data=xr.Dataset({"r2": points}), **spots)
    name_values(collection, "r2", "prediction of all columns")
    for k, (target, words) in enumerate(targets(collection, "r2")):
        plot = visuals.backend_from_object(target)
        plot.title(", ".join([*words[:-1], labels[k % len(labels)]]), target)
        plot.xlim(tuple(ends), target)
        plot.ylim(tuple(ends), target)
        if k + wrap >= number:  # nothing stands below
            plot.xlabel("prediction of the submodel", target)
    return collection


def _chosen(importance, submodels) -> tuple[xr.Dataset, list[str]]:
    """The submodels that are shown, and what each adds."""
    check_submodels(importance)
    there = importance["submodel"].to_numpy().tolist()
    chosen = there if submodels is None else sorted({int(one) for one in np.ravel(submodels)})
    if not chosen or not set(chosen) <= set(there):
        raise ValueError(f"submodels={submodels!r}: choose from {there}.")
    kept = importance.sel(submodel=chosen)
    names = kept["feature"].to_numpy()
    return kept, ["+ " * (k > 1) + str(name) for k, name in zip(chosen, names, strict=True)]


def _interval(values: xr.DataArray, prob: float) -> list[xr.DataArray]:
    """Mean over draws and ends of the interval."""
    low, high = (values.quantile(q, SAMPLE) for q in (0.5 - prob / 2, 0.5 + prob / 2))
    return [values.mean(SAMPLE), *(one.drop_vars("quantile") for one in (low, high))]


def _stacked(axis: str, **parts: xr.DataArray) -> xr.Dataset:
    """Coordinates of what is drawn, along an axis of these names."""
    alike = xr.broadcast(*parts.values())
    r2 = xr.concat([one.drop_vars("feature", errors="ignore") for one in alike], dim=axis)
    return xr.Dataset({"r2": r2.assign_coords({axis: list(parts)})})


def _xy(x: xr.DataArray, y: xr.DataArray) -> xr.Dataset:
    return _stacked("plot_axis", x=x, y=y)


def _panels(one, facets, number, size, backend, shared, pc_kwargs) -> PlotCollection:
    """Panels of one size for each value of some dimensions."""
    wrap = panels_in_a_row(number, pc_kwargs)
    rows, cols = -(-number // wrap), min(number, wrap)
    layout = {"col_wrap": wrap, "cols": ["__variable__", *facets], **pc_kwargs}
    ds = xr.Dataset({"r2": one.drop_vars("feature", errors="ignore")})
    return wrapped(ds, (size[0] * cols, size[1] * rows), backend, layout, **shared)


# ------------------------------------ plot_variable_inclusion: which columns the trees are split on


WIDTH, INCLUSION_HEIGHT, ROW = 600, 250, 25
"""Dots: width of the figure, its height without the columns, and the height of each column."""


@picture
def plot_variable_inclusion(
    idata,
    model: pm.Model | None = None,
    *,
    forest: str | None = None,
    top: int | None = None,
    ci_prob: float | None = None,
    backend: str | None = None,
    progressbar: bool = True,
    **pc_kwargs,
):
    """Share of splits on each column, with intervals, the largest first.

    The numbers are those of `get_variable_inclusion`. The line is the share that each column would
    have if all columns, including those not shown, were split equally often.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of `pymc.sample`, or the same read from a file.
    model : pymc.Model, optional
        Default: the model on the context stack.
    forest : str, optional
        Name of a forest, or of a function, if the model has several forests. For a function with
        one forest per output, the splits of all its forests are counted.
    top : int, optional
        Number of columns shown. Default: all.
    ci_prob : float, optional
        Probability of the intervals, equal-tailed. Default: that of ArviZ.
    backend : {"matplotlib", "plotly", "bokeh", "none"}, optional
        Default: that of ArviZ-plots.
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
        For a model without a forest, or with several; the message lists their names.

    Examples
    --------
    >>> import numpy as np, pymc as pm, pymc_trees as pmt
    >>> X = np.random.default_rng(0).random((30, 2))
    >>> with pm.Model() as model:
    ...     mu = pmt.BART("mu", X, X[:, 0], m=5)
    ...     y = pm.Normal("y", mu, 0.1, observed=X[:, 0], shape=mu.shape)
    ...     idata = pm.sample(tune=10, draws=5, chains=1, random_seed=1, progressbar=False,
    ...                       compute_convergence_checks=False)
    >>> drawn = pmt.plot_variable_inclusion(idata, model, backend="none")
    """
    share = get_variable_inclusion(idata, model, forest=forest, progressbar=progressbar)["share"]
    prob = probability_of(ci_prob)
    top = None if top is None else check_number("top", top, 1)
    mean, alike = share.mean(SAMPLE), 1 / share.sizes["feature"]
    order = np.argsort(-mean.to_numpy(), kind="stable")[:top]
    mean, share = mean.isel(feature=order), share.isel(feature=order)
    y = -np.arange(order.size, dtype=float)
    low, high = (share.quantile(q, SAMPLE) for q in (0.5 - prob / 2, 0.5 + prob / 2))
    one = xr.Dataset({"share": xr.DataArray(0.0)})
    size = (WIDTH, INCLUSION_HEIGHT + ROW * order.size)
    collection = wrapped(one, size, backend, {"cols": ["__variable__"], **pc_kwargs})
    collection.map(visuals.vline, "alike", data=one + alike, color="gray")
    for k in range(order.size):
        ends = xr.DataArray([float(low[k]), float(high[k])], dims=["end"])
        kept = {"data": xr.Dataset({"share": ends}), "y": y[k], "color": "C0"}
        collection.map(visuals.line_x, f"interval_{k}", **kept)
    points = xr.DataArray([mean.to_numpy(), y], dims=["plot_axis", "column"])
    points = points.assign_coords(plot_axis=["x", "y"])
    collection.map(visuals.scatter_xy, "mean", data=xr.Dataset({"share": points}), color="C0")
    target = collection.viz["plot"].to_dataset()["share"].item()
    plot = visuals.backend_from_object(target)
    plot.xlabel("share of splits", target)
    plot.yticks(y, [str(name) for name in mean["feature"].to_numpy()], target)
    return collection
