"""`plot_shap`: Shapley values of all rows, a swarm for each column."""

import numpy as np
import xarray as xr
from arviz_plots import PlotCollection, visuals

from pymc_trees.arguments import check_number
from pymc_trees.plots.figure import picture, targets, wrapped
from pymc_trees.posterior.convergence import probability_of
from pymc_trees.posterior.draws import SAMPLE

COLOURS = ("#30123b", "#3b6fd8", "#1fc8a4", "#b4dd2c", "#f5841f")
"""Of the cells of a column, from low to high."""
VALUE = "value of the column"
"""Title of the legend."""
MISSING, QUIET = "#9a9a9a", "#bbbbbb"
LABELS = ("low", "rather low", "middle", "rather high", "high", "missing")
"""What the colours are called."""
WIDTH, STEP, MARGIN, LEGEND = 480, 44, 110, 120
"""Dots of a panel, for each column in it, of its margins, and of the legend."""
BINS, SPREAD = 60, 0.38
"""Parts of the axis in which points make room for one another, and how far they may go."""


@picture
def plot_shap(
    explanation: xr.Dataset,
    *,
    top: int | None = 10,
    ci_prob: float | None = None,
    label: str = "Shapley value",
    backend: str | None = None,
    **pc_kwargs,
):
    """Shapley values of all rows, column by column, with intervals: a bee swarm.

    A point is a row: the posterior mean of its Shapley value, coloured by its value of the column,
    grey where that is missing; the line is the interval.
    Columns are sorted by their mean absolute value.

    Parameters
    ----------
    explanation : xarray.Dataset
        Result of `shap_values`.
    top : int or None, default 10
        Number of columns shown; None for all.
    ci_prob : float, optional
        Probability of the intervals, equal-tailed. Default: that of ArviZ.
    label : str, default "Shapley value"
        What is drawn, with its unit, for the axis.
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
        When ``explanation`` is something else, or an option makes no sense.

    References
    ----------
    Lundberg et al. (2020). From local explanations to global understanding with explainable AI for
    trees. Nature Machine Intelligence 2 (the bee swarm).

    Examples
    --------
    >>> import numpy as np, pymc as pm, pymc_trees as pmt
    >>> X = np.random.default_rng(0).random((30, 2))
    >>> with pm.Model() as model:
    ...     mu = pmt.BART("mu", X, X[:, 0], m=5)
    ...     y = pm.Normal("y", mu, 0.1, observed=X[:, 0], shape=mu.shape)
    ...     idata = pm.sample(tune=10, draws=5, chains=1, random_seed=1, progressbar=False,
    ...                       compute_convergence_checks=False)
    >>> found = pmt.shap_values(idata, model, progressbar=False)
    >>> drawn = pmt.plot_shap(found, backend="none")
    """
    if not isinstance(explanation, xr.Dataset) or not {"values", "data"} <= set(explanation):
        raise ValueError("explanation must be a result of shap_values.")
    if "other" in explanation.dims:
        raise ValueError("explanation holds interactions: pass a result of shap_values.")
    prob = probability_of(ci_prob)
    values = explanation["values"]
    mean = values.mean(SAMPLE)
    outputs = [str(dim) for dim in mean.dims if dim not in ("row", "feature")]
    size = abs(mean).mean([*outputs, "row"]).to_numpy()
    shown = size.size if top is None else min(check_number("top", top, 1), size.size)
    order = np.argsort(-size, kind="stable")[:shown]
    mean, values = mean.isel(feature=order), values.isel(feature=order)
    low, high = (values.quantile(q, SAMPLE) for q in (0.5 - prob / 2, 0.5 + prob / 2))
    height = xr.apply_ufunc(_swarm, mean, input_core_dims=[["row"]], output_core_dims=[["row"]])
    height = height - xr.DataArray(np.arange(shown), dims=["feature"])
    names = [str(one) for one in mean["feature"].to_numpy()]

    panels = mean.isel(row=0, feature=0, drop=True)
    share = _shares(explanation["data"].isel(feature=order))
    kinds = [k for k in range(len(LABELS)) if (share == k).any()]
    collection = _panels(panels, outputs, shown, backend, kinds, pc_kwargs)
    quiet = {"color": QUIET, "ignore_aes": "all"}
    collection.map(visuals.vline, "zero", data=_named(xr.zeros_like(panels)), **quiet)
    lines = [_flat(one) for one in _segments(low, high, height)]
    thin = {"alpha": 0.6, "width": 0.7, **quiet}
    collection.map(visuals.line_xy, "interval", data=_named(_xy(*lines)), **thin)
    cells = xr.DataArray(kinds, {VALUE: [LABELS[k] for k in kinds]}, [VALUE])
    here = (share == cells).broadcast_like(mean)
    points = _xy(*(_flat(one.where(here)) for one in (mean, height)))
    look = {"size": 14, "width": 0, "alpha": 0.8}
    collection.map(visuals.scatter_xy, "rows", data=_named(points), **look)
    collection.add_legend(VALUE)
    for k, (target, words) in enumerate(targets(collection, "shap")):
        plot = visuals.backend_from_object(target)
        plot.yticks(-np.arange(shown), names if k == 0 else [""] * shown, target)
        plot.ylim((0.6 - shown, 0.6), target)
        plot.xlabel(label, target)
        if outputs:
            plot.title(", ".join(words), target)
    return collection


def _swarm(x: np.ndarray) -> np.ndarray:
    """Heights, along the last axis, that spread points of equal values out."""
    shifts = np.zeros(x.shape)
    for at in np.ndindex(x.shape[:-1]):
        wide = np.ptp(x) or 1.0
        bins = np.floor((x[at] - x.min()) / wide * BINS).astype(int)
        most = int(np.bincount(bins).max())
        for b in np.unique(bins):
            who = np.flatnonzero(bins == b)
            turn = np.arange(who.size)
            shifts[at][who] = (turn + 1) // 2 * np.where(turn % 2, 1, -1)
        shifts[at] *= 2 * SPREAD / max(most, 8)
    return shifts


def _shares(cells: xr.DataArray) -> xr.DataArray:
    """(row, feature) number of the colour, by the rank in the column; 5 where it is missing."""
    last = len(COLOURS) - 1
    bands = np.full(cells.shape, last + 1)
    for j, column in enumerate(cells.transpose("row", "feature").to_numpy().T):
        there = ~np.isnan(column)
        kinds, rank = np.unique(column[there], return_inverse=True)
        spread = max(kinds.size - 1, 1)
        bands[there, j] = np.rint(rank / spread * last) if kinds.size > 1 else last // 2
    return xr.DataArray(bands, dims=["row", "feature"])


def _segments(low, high, height):
    """Ends of all intervals and their heights, NaN after each."""
    gap = xr.full_like(low, np.nan)
    x = xr.concat([low.drop_vars("quantile"), high.drop_vars("quantile")], dim="end")
    x = xr.concat([x, gap.drop_vars("quantile")], dim="end")
    return x, height.broadcast_like(x)


def _flat(values: xr.DataArray) -> xr.DataArray:
    """All rows and columns along ``point``."""
    dims = [dim for dim in ("feature", "row", "end") if dim in values.dims]
    kept = values.drop_vars(dims, errors="ignore")
    return kept.stack(point=dims, create_index=False)


def _xy(x: xr.DataArray, y: xr.DataArray) -> xr.DataArray:
    return xr.concat(xr.broadcast(x, y), dim="plot_axis").assign_coords(plot_axis=["x", "y"])


def _named(values: xr.DataArray) -> xr.Dataset:
    return xr.Dataset({"shap": values})


def _panels(one, outputs, shown, backend, kinds: list[int], pc_kwargs) -> PlotCollection:
    """Panels side by side, one for each output, with a colour for each kind of value."""
    size = (WIDTH * one.size + LEGEND, STEP * shown + MARGIN)
    coloured = one.expand_dims({VALUE: [LABELS[k] for k in kinds]})
    layout = {"col_wrap": max(one.size, 1), "cols": ["__variable__", *outputs]}
    layout |= {"aes": {"color": [VALUE]}, "color": [(*COLOURS, MISSING)[k] for k in kinds]}
    return wrapped(_named(coloured), size, backend, layout | pc_kwargs)
