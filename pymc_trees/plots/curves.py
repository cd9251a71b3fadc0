"""Curves of f along columns, one panel a column: bands of numbers, points of levels."""

from typing import NamedTuple

import numpy as np
import xarray as xr
from arviz_plots import PlotCollection, visuals

from pymc_trees.posterior.check.check_draws import SAMPLE
from pymc_trees.posterior.convergence import probability_of

FEW = 6
"""Values of a column up to which they are drawn as points."""
APART = 0.08
"""Of the range of a column: how far beyond it a missing cell stands."""
POINT = "point"
WIDTH, HEIGHT, MARGIN = 290, 280, 100
"""Dots of a panel, and of all margins."""


class Curve(NamedTuple):
    """f along one column."""

    values: xr.DataArray
    """(chain, draw, ..., column); the coordinate holds numbers, NaN for missing, or levels."""
    cells: np.ndarray
    """What the column holds in X, for the rug; levels by their number."""
    discrete: bool


def draw_curves(curves: dict[str, Curve], ci_prob, rug, backend, label, **pc_kwargs):
    """A `PlotCollection` of curves with their intervals."""
    prob = probability_of(ci_prob)
    lines, bands, points, bars, shown = {}, {}, {}, {}, {}
    for name, curve in curves.items():
        x, present = places(curve)
        numbers = _numbers(curve.values, name, prob)
        shown[name] = numbers["mean"]
        as_line = present & (not curve.discrete)
        if as_line.any():
            lines[name] = _xy(x, numbers, as_line, name)
            bands[name] = _band(x, numbers, as_line, name)
        if not as_line.all():
            points[name] = _xy(x, numbers, ~as_line, name)
            bars[name] = _bar(x, numbers, ~as_line, name)
    collection = panels(xr.Dataset(shown), backend, pc_kwargs)
    if lines:
        band = {"color": "C0", "alpha": 0.25}
        collection.map(visuals.fill_between_y, "band", data=xr.Dataset(bands), **band)
        collection.map(visuals.line_xy, "line", data=xr.Dataset(lines), color="C0")
    if points:
        collection.map(visuals.ci_line_y, "interval", data=xr.Dataset(bars), color="C0")
        collection.map(visuals.scatter_xy, "mean", data=xr.Dataset(points), color="C0")
    if rug:
        drawn = [part[1:] for one in (*bands.values(), *bars.values()) for part in [one.values]]
        low, high = min(part.min() for part in drawn), max(part.max() for part in drawn)
        found = {name: _rug(curve, low - 0.06 * (high - low)) for name, curve in curves.items()}
        marks = {"marker": "|", "color": "gray", "alpha": 0.4}
        collection.map(visuals.scatter_xy, "rug", data=xr.Dataset(found), **marks)
    name_axes(collection, curves, label)
    return collection


def panels(ds: xr.Dataset, backend, pc_kwargs) -> PlotCollection:
    """A panel for each variable and whatever dimension is no point of a curve."""
    outputs = [dim for dim in ds.dims if not str(dim).startswith(POINT)]
    number = sum(int(np.prod([one.sizes.get(dim, 1) for dim in outputs])) for one in ds.values())
    wrap = pc_kwargs.get("col_wrap", 4)
    rows, cols = -(-number // wrap), min(number, wrap)
    size = (WIDTH * cols, HEIGHT * rows + MARGIN)
    figure = {"figsize": size, "figsize_units": "dots", "sharey": True}
    given = {"col_wrap": wrap, "cols": ["__variable__", *outputs], **pc_kwargs}
    given["figure_kwargs"] = figure | pc_kwargs.get("figure_kwargs", {})
    return PlotCollection.wrap(ds, backend=backend, **given)


def places(curve: Curve) -> tuple[np.ndarray, np.ndarray]:
    """Where values stand on the axis, and which of them are no missing cells of numbers."""
    labels = curve.values[curve.values.dims[-1]].to_numpy()
    if labels.dtype.kind in "US" or labels.dtype == object:
        return np.arange(labels.size, dtype=float), np.ones(labels.size, dtype=bool)
    present = ~np.isnan(labels)
    x = labels.astype(float)
    if not present.all():
        spread = np.ptp(x[present]) if present.any() else 1.0
        x[~present] = (x[present].max() if present.any() else 0.0) + APART * (spread or 1.0)
    return x, present


def name_axes(collection, curves: dict[str, Curve], label: str) -> None:
    """Names of columns, ticks of levels and of missing cells, and what is drawn."""
    first = True
    for name, curve in curves.items():
        targets = np.ravel(collection.viz["plot"].to_dataset()[name].to_numpy())
        for target in targets:
            backend = visuals.backend_from_object(target)
            backend.xlabel(name, target)
            if first:
                backend.ylabel(label, target)
                first = False
            labels = curve.values[curve.values.dims[-1]].to_numpy()
            x, present = places(curve)
            if labels.dtype.kind in "US" or labels.dtype == object:
                backend.xticks(x, [str(one) for one in labels], target)
                backend.xlim((-0.5, x.size - 0.5), target)
            elif not present.all():
                kept = np.quantile(x[present], [0.0, 0.5], method="nearest")
                words = [f"{one:.3g}" for one in kept]
                backend.xticks([*kept, *x[~present]], [*words, "missing"], target)
            if curve.discrete and present.all() and labels.dtype.kind not in "USO":
                backend.xticks(x, [f"{one:.4g}" for one in x], target)
                room = 0.25 * np.ptp(x) / max(x.size - 1, 1) or 0.5
                backend.xlim((x.min() - room, x.max() + room), target)


def _numbers(values, name, prob) -> dict[str, xr.DataArray]:
    """Mean and interval, the values of the column along ``point``, last."""
    column = values.dims[-1]
    own = values.rename({column: f"{POINT}_{name}"}).drop_vars(f"{POINT}_{name}", errors="ignore")
    low, high = (own.quantile(q, SAMPLE) for q in (0.5 - prob / 2, 0.5 + prob / 2))
    return {
        "mean": own.mean(SAMPLE),
        "low": low.drop_vars("quantile"),
        "high": high.drop_vars("quantile"),
    }


def _stacked(parts: dict, which, axis, name) -> xr.DataArray:
    kept = xr.broadcast(*(one.isel({f"{POINT}_{name}": which}) for one in parts.values()))
    return xr.concat(kept, dim=axis).assign_coords({axis: list(parts)})


def _along(x, name) -> xr.DataArray:
    return xr.DataArray(x, dims=[f"{POINT}_{name}"])


def _xy(x, numbers, which, name):
    parts = {"x": _along(x, name), "y": numbers["mean"]}
    return _stacked(parts, np.flatnonzero(which), "plot_axis", name)


def _band(x, numbers, which, name):
    parts = {"x": _along(x, name), "y_bottom": numbers["low"], "y_top": numbers["high"]}
    return _stacked(parts, np.flatnonzero(which), "kwarg", name)


def _bar(x, numbers, which, name):
    parts = {"x": _along(x, name), "y_bottom": numbers["low"], "y_top": numbers["high"]}
    return _stacked(parts, np.flatnonzero(which), "plot_axis", name)


def _rug(curve: Curve, y: float) -> xr.DataArray:
    """Cells of the column, at one height."""
    column = curve.values.dims[-1]
    x = xr.DataArray(curve.cells.astype(float), dims=[f"{POINT}_{column}_row"])
    parts = [x, xr.full_like(x, y)]
    marks = xr.concat(parts, dim="plot_axis").assign_coords(plot_axis=["x", "y"])
    outputs = curve.values.dims[len(SAMPLE) : -1]
    sizes = {dim: curve.values.sizes[dim] for dim in outputs}
    known = {dim: curve.values[dim] for dim in outputs if dim in curve.values.coords}
    return marks.expand_dims(sizes).assign_coords(known)
