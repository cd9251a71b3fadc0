"""Curves of f along columns, one panel a column: bands of numbers, points of levels."""

from collections.abc import Collection
from typing import NamedTuple

import numpy as np
import xarray as xr
from arviz_plots import PlotCollection, visuals

from pymc_trees.core.value.text import number_labels
from pymc_trees.plots.figure import name_values, panels_in_a_row, targets, wrapped
from pymc_trees.posterior.convergence import probability_of
from pymc_trees.posterior.draws import SAMPLE
from pymc_trees.posterior.reading.features import MISSING_LABEL, Feature, free_name

FEW = 6
"""Values of a column up to which they are drawn as points."""
APART = 0.08
"""Of the range of a column: how far beyond it a missing cell stands; beyond points one step."""
CROWDED = 0.1
"""Of the range of an axis: ticks of numbers nearer than this would be written over each other."""
POINT = "point"
OURS = ("plot_axis", "kwarg", "quantile", "end", "point_x", "point_y", "point_row")
"""Dimensions and coordinates of what is drawn."""
WIDTH, HEIGHT, MARGIN = 290, 230, 60
"""Dots of a panel, and of all margins."""
ALONE, LEGEND = 1.6, 120
"""How much wider a single panel is; dots at its side for a legend."""


class Curve(NamedTuple):
    """f along one column."""

    values: xr.DataArray
    """(chain, draw, ..., column); the coordinate holds numbers, NaN for missing, or levels."""
    cells: np.ndarray
    """Where the cells of X stand on the axis, for the rug."""
    discrete: bool
    """Whether points are drawn, not a line."""
    individual: xr.DataArray | None = None
    """(..., row, column) posterior means of single rows, drawn beneath."""
    apart: float = APART


def safe_name(name: str, taken: Collection[str] = ()) -> str:
    """A name for variables and dimensions of what is drawn; trees of xarray take no slash."""
    return free_name(name.replace("/", "_"), {*OURS, *taken})


def draw_curves(curves: dict[str, Curve], ci_prob, rug, backend, label, **pc_kwargs):
    """A `PlotCollection` of curves with their intervals."""
    prob = probability_of(ci_prob)
    lines, bands, points, bars, shown, threads = {}, {}, {}, {}, {}, {}
    words: dict[str, str] = {}
    """Names of columns, by those of what is drawn."""
    for column in curves:
        words[safe_name(column, words)] = column
    curves = {name: curves[column] for name, column in words.items()}
    for name, curve in curves.items():
        x, present = places(curve)
        numbers = interval_of(curve.values, name, prob)
        shown[name] = numbers["mean"]
        as_line = present & (not curve.discrete)
        if curve.individual is not None:
            threads[name] = _threads(curve.individual, x, present, name)
        if as_line.any():
            lines[name] = xy(x, numbers, as_line, name)
            bands[name] = along(x, numbers, as_line, name, "kwarg")
        if not as_line.all():
            points[name] = xy(x, numbers, ~as_line, name)
            bars[name] = along(x, numbers, ~as_line, name, "plot_axis")
    collection = panels(xr.Dataset(shown), backend, pc_kwargs)
    if threads:
        thin = {"color": "gray", "alpha": 0.5, "width": 0.6}
        collection.map(visuals.line_xy, "individual", data=xr.Dataset(threads), **thin)
    if lines:
        band = {"color": "C0", "alpha": 0.25}
        collection.map(visuals.fill_between_y, "band", data=xr.Dataset(bands), **band)
        collection.map(visuals.line_xy, "line", data=xr.Dataset(lines), color="C0")
    if points:
        collection.map(visuals.ci_line_y, "interval", data=xr.Dataset(bars), color="C0")
        collection.map(visuals.scatter_xy, "mean", data=xr.Dataset(points), color="C0")
    if rug:
        drawn = [one.values[1:] for one in (*bands.values(), *bars.values(), *threads.values())]
        low, high = min(map(np.nanmin, drawn)), max(map(np.nanmax, drawn))
        rugs = {name: _rug(curve, low - 0.06 * (high - low)) for name, curve in curves.items()}
        marks = {"marker": "|", "color": "gray", "alpha": 0.4}
        collection.map(visuals.scatter_xy, "rug", data=xr.Dataset(rugs), **marks)
    name_axes(collection, curves, words, label)
    return collection


def panels(ds: xr.Dataset, backend, pc_kwargs, beside: bool = False) -> PlotCollection:
    """A panel for each variable and each dimension other than those of points and of colours.

    ``beside`` leaves room for a legend or a scale.
    """
    coloured = pc_kwargs.get("aes", {}).get("color", [])
    outputs = [dim for dim in ds.dims if not str(dim).startswith(POINT) and dim not in coloured]
    number = sum(int(np.prod([one.sizes.get(dim, 1) for dim in outputs])) for one in ds.values())
    wrap = panels_in_a_row(number, pc_kwargs)
    rows, cols = -(-number // wrap), min(number, wrap)
    wide = WIDTH * (ALONE if number == 1 else 1.0)
    size = (wide * cols + LEGEND * (beside or bool(coloured)), HEIGHT * rows + MARGIN)
    layout = {"col_wrap": wrap, "cols": ["__variable__", *outputs], **pc_kwargs}
    return wrapped(ds, size, backend, layout, sharey=True)


def places(curve: Curve) -> tuple[np.ndarray, np.ndarray]:
    """Positions of values on the axis, and which of them are not missing cells of numbers."""
    labels = curve.values[curve.values.dims[-1]].to_numpy()
    if are_words(labels):
        return np.arange(labels.size, dtype=float), np.ones(labels.size, dtype=bool)
    x = labels.astype(float)
    present = ~np.isnan(x)
    if not present.all():
        known = x[present] if present.any() else np.zeros(1)
        step = 1 / max(known.size - 1, 1) if curve.discrete else curve.apart
        x[~present] = known.max() + step * (np.ptp(known) or 1.0)
    return x, present


def are_words(labels: np.ndarray) -> bool:
    """Whether values of a column are levels by name, and no numbers."""
    return labels.dtype.kind in "USOb"


def words_of(labels: np.ndarray) -> list[str]:
    """What values of a column are called in a picture."""
    if not are_words(labels):
        return number_labels(labels)
    return ["missing" if one == MISSING_LABEL else str(one) for one in labels]


def _with_room(x, words, present) -> tuple[list[float], list[str]]:
    """Ticks from the left, without those of numbers that come too near to the one before."""
    order, least = np.argsort(x), CROWDED * np.ptp(x)
    kept = [order[0]]
    for k in order[1:]:
        if x[k] - x[kept[-1]] >= least or not present[k]:
            kept.append(k)
    return [x[k] for k in kept], [words[k] for k in kept]


def stands_at(feature: Feature, cells: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Where cells of a column stand on an axis of these values; NaN for those that do not."""
    own = feature.labels(cells)
    if not are_words(labels):
        return own.astype(float)
    place = {str(label): k for k, label in enumerate(labels)} | {MISSING_LABEL: np.nan}
    return np.array([place.get(str(label), np.nan) for label in own], dtype=float)


def name_axes(collection, curves: dict[str, Curve], words: dict[str, str], label: str) -> None:
    """Names of columns, ticks of levels and of missing cells, and what is drawn."""
    for name, curve in curves.items():
        name_values(collection, name, label)
        for target, outputs in targets(collection, name):
            backend = visuals.backend_from_object(target)
            backend.xlabel(words[name], target)
            if outputs:
                backend.title(", ".join(outputs), target)
            labels = curve.values[curve.values.dims[-1]].to_numpy()
            x, present = places(curve)
            if are_words(labels):
                backend.xticks(x, words_of(labels), target)
                backend.xlim((-0.5, x.size - 0.5), target)
            elif curve.discrete:
                backend.xticks(*_with_room(x, number_labels(labels), present), target)
                room = 0.25 * np.ptp(x) / max(x.size - 1, 1) or 0.5
                backend.xlim((x.min() - room, x.max() + room), target)
            elif not present.all():
                kept = np.quantile(x[present], [0.0, 0.5], method="nearest")
                backend.xticks([*kept, *x[~present]], number_labels([*kept, np.nan]), target)


def interval_of(values, name, prob) -> dict[str, xr.DataArray]:
    """Mean and ends of the interval, the values of the column along ``point``, last."""
    column = values.dims[-1]
    own = values.rename({column: f"{POINT}_{name}"}).drop_vars(f"{POINT}_{name}", errors="ignore")
    low, high = (own.quantile(q, SAMPLE) for q in (0.5 - prob / 2, 0.5 + prob / 2))
    return {
        "mean": own.mean(SAMPLE),
        "low": low.drop_vars("quantile"),
        "high": high.drop_vars("quantile"),
    }


def xy(x, numbers, which, name) -> xr.DataArray:
    """Points of the mean at some values of the column."""
    return _stacked({"x": x, "y": numbers["mean"]}, which, name, "plot_axis")


def along(x, numbers, which, name, axis) -> xr.DataArray:
    """Ends of the interval at some values of the column."""
    parts = {"x": x, "y_bottom": numbers["low"], "y_top": numbers["high"]}
    return _stacked(parts, which, name, axis)


def _stacked(parts: dict, which, name, axis) -> xr.DataArray:
    point = f"{POINT}_{name}"
    parts = parts | {"x": xr.DataArray(parts["x"], dims=[point])}
    kept = xr.broadcast(*(one.isel({point: np.flatnonzero(which)}) for one in parts.values()))
    return xr.concat(kept, dim=axis).assign_coords({axis: list(parts)})


def _threads(values, x, present, name) -> xr.DataArray:
    """A line for each row, one after the other, NaN between them."""
    column, which = values.dims[-1], np.flatnonzero(present)
    y = values.isel({column: which}).pad({column: (0, 1)}, constant_values=np.nan)
    ends = xr.DataArray(np.append(x[which], np.nan), dims=[column])
    parts = xr.broadcast(ends, y.drop_vars([column, "row"], errors="ignore"))
    flat = [one.stack({f"{POINT}_{name}": ["row", column]}, create_index=False) for one in parts]
    return xr.concat(flat, dim="plot_axis").assign_coords(plot_axis=["x", "y"])


def _rug(curve: Curve, y: float) -> xr.DataArray:
    """Cells of the column, at one height."""
    column = curve.values.dims[-1]
    x = xr.DataArray(curve.cells, dims=[f"{POINT}_{column}_row"])
    parts = [x, xr.full_like(x, y)]
    marks = xr.concat(parts, dim="plot_axis").assign_coords(plot_axis=["x", "y"])
    outputs = curve.values.dims[len(SAMPLE) : -1]
    sizes = {dim: curve.values.sizes[dim] for dim in outputs}
    known = {dim: curve.values[dim] for dim in outputs if dim in curve.values.coords}
    return marks.expand_dims(sizes).assign_coords(known)
