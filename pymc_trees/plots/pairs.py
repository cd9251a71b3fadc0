"""f along a pair of columns: curves of one by the values of the other, or a map of two numbers."""

import numpy as np
import xarray as xr
from arviz_plots import PlotCollection, visuals

from pymc_trees.plots.curves import (
    APART,
    POINT,
    Curve,
    along,
    interval_of,
    name_axes,
    panels,
    places,
    words_of,
    xy,
)
from pymc_trees.plots.figure import targets
from pymc_trees.posterior.check.check_draws import SAMPLE
from pymc_trees.posterior.convergence import probability_of

BANDS = 12
"""Colours of a map."""
COLOURS = "viridis"
DODGE, ROOM = 0.12, 0.5
"""Steps of the axis: between points of one level, and at most between the first and the last."""
SPOT = 0.025
"""Of the range of a line: between points of missing cells beside it."""


def draw_pair(found, cells, few, ci_prob, rug, backend, label, **pc_kwargs):
    """A `PlotCollection` of (chain, draw, ..., first, second) values.

    ``cells`` is (n, 2), where rows stand; ``few`` says of each column whether a curve is drawn for
    each of its values.
    """
    first, second = found.dims[-2:]
    if not any(few):
        return _draw_map(found, cells, rug, backend, label, pc_kwargs)
    if few[0] and not few[1]:
        found, first, second = found.transpose(..., second, first), second, first
    return _draw_curves(
        found, str(first), str(second), all(few), ci_prob, backend, label, pc_kwargs
    )


def _draw_curves(found, first, second, as_points, ci_prob, backend, label, pc_kwargs):
    """Along the first column, a colour for each value of the second."""
    words = words_of(found[second].to_numpy())
    wide = SPOT * (len(words) - 1)
    beside = max(APART, wide / 2 + SPOT)  # points of missing cells are clear of the line
    values = found.transpose(..., second, first)
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
    name_axes(collection, {first: curve}, label)
    collection.add_legend(second)
    return collection


def _bars(ends: xr.DataArray, point: str) -> xr.DataArray:
    """Upright lines as pieces of one: ArviZ-plots' own have no legend with plotly."""
    x, low, high = (ends.sel(plot_axis=name, drop=True) for name in ("x", "y_bottom", "y_top"))
    gap = xr.full_like(x, np.nan)
    pieces = [xr.concat(parts, dim="end") for parts in ((x, x, gap), (low, high, gap))]
    flat = [one.stack({f"{point}_ends": [point, "end"]}, create_index=False) for one in pieces]
    return xr.concat(flat, dim="plot_axis").assign_coords(plot_axis=["x", "y"])


def _draw_map(found, cells, rug, backend, label, pc_kwargs) -> PlotCollection:
    """Posterior means over two numeric columns, colours from dark to light."""
    first, second = map(str, found.dims[-2:])
    known = {dim: ~np.isnan(found[dim].to_numpy().astype(float)) for dim in (first, second)}
    mean = found.mean(SAMPLE).isel({dim: np.flatnonzero(one) for dim, one in known.items()})
    at = [mean[dim].to_numpy().astype(float) for dim in (first, second)]
    low, high = float(mean.min()), float(mean.max())
    edges = np.linspace(low, high if high > low else low + 1.0, BANDS + 1)
    edges[-1] += 1e-9 * (edges[-1] - edges[0])  # the largest value is inside
    named = mean.rename({first: "point_x", second: "point_y"}).drop_vars(["point_x", "point_y"])
    ds = xr.Dataset({label: named})
    collection = panels(ds, backend, pc_kwargs)
    collection.map(_filled, "map", data=ds, x=at[0], y=at[1], levels=edges)
    if rug:
        inside = ((cells >= [at[0][0], at[1][0]]) & (cells <= [at[0][-1], at[1][-1]])).all(axis=1)
        dots = xr.DataArray(cells[inside].T, {"plot_axis": ["x", "y"]}, ["plot_axis", "point_row"])
        dots = dots * xr.ones_like(named.isel(point_x=0, point_y=0, drop=True))
        marks = {"color": "white", "alpha": 0.5, "size": 4, "width": 0}
        collection.map(visuals.scatter_xy, "rug", data=xr.Dataset({label: dots}), **marks)
    scale = f"{low:.3g} (dark) to {high:.3g} (light)"
    for target, words in targets(collection, label):
        plot = visuals.backend_from_object(target)
        plot.xlabel(first, target)
        plot.ylabel(second, target)
        plot.title("\n".join([", ".join([label, *words]), scale]), target)
    return collection


def _filled(da, target, *, x, y, levels):
    plot = visuals.backend_from_object(target)
    density = da.transpose("point_x", "point_y").to_numpy()
    return plot.contourf(x, y, density, target, levels=levels, cmap=COLOURS)
