"""Boxes, edges and words of a tree, on any backend of ArviZ-plots."""

import html
from typing import Any

import numpy as np
import xarray as xr
from arviz_base import rcParams
from arviz_plots import PlotCollection, visuals
from arviz_plots.plot_collection import backend_from_object

from pymc_trees.plots.figure import wrapped
from pymc_trees.plots.tree_layout import TEXT, Boxes

MARGINS = {"matplotlib": (20, 50), "plotly": (170, 190), "bokeh": (60, 70), "none": (0, 0)}
"""Dots of a figure beside its plot, by backend."""
SMALLEST = 200.0
"""Width of a plot, for its title."""
INK, QUIET = "#222222", "#7f7f7f"
ASIDE = 0.3 * TEXT
"""From an edge to its yes or no."""


def backend_of(ax, backend: str | None) -> str:
    """Name of the backend, or an error."""
    if ax is None:
        return backend or rcParams["plot.backend"]
    if not hasattr(ax, "get_window_extent") or not hasattr(ax, "plot"):
        raise TypeError(f"ax={type(ax).__name__}: must be one matplotlib Axes.")
    if backend not in (None, "matplotlib"):
        raise ValueError(f"backend={backend!r}: ax belongs to matplotlib; leave one of them out.")
    return "matplotlib"


def collection_of(boxes: Boxes, colours: list[str], ax, backend: str, pc_kwargs) -> PlotCollection:
    """One plot, in a figure of the size of the boxes or where it is asked for."""
    numbers = np.arange(len(colours))
    edges = xr.DataArray(boxes.edges, dims=["node", "edge"], coords={"node": numbers})
    data = xr.Dataset({"tree": edges})
    given: dict[str, Any] = {"aes": {"color": ["node"]}, "color": colours} | pc_kwargs
    if ax is not None:
        viz = {"plot": np.array(ax, dtype=object), "figure": np.array(ax.figure, dtype=object)}
        return PlotCollection(data, xr.DataTree(xr.Dataset(viz)), backend=backend, **given)
    beside, above = MARGINS[backend]
    size = (max(boxes.size[0], SMALLEST) + beside, boxes.size[1] + above)
    return wrapped(data, size, backend, given)


def draw_tree(
    collection, boxes: Boxes, children: list[tuple[int, ...]], texts, title, size
) -> None:
    """All that is seen of a tree, in words of some size."""
    safe = _escape(collection.backend)
    quiet = {"ignore_aes": "all", "color": QUIET}
    links = [_edge(boxes, k, child) for k, pair in enumerate(children) for child in pair]
    around = [_outline(*edges) for edges in boxes.edges]
    collection.map(visuals.line_xy, "edges", data=_lines(links), width=1.2, **quiet)
    collection.map(_box, "box")
    collection.map(visuals.line_xy, "outlines", data=_lines(around), width=0.8, **quiet)
    nodes = range(len(children))
    centres = np.column_stack([boxes.x, boxes.y])
    _write(collection, "text", nodes, centres, map(safe, texts), color=INK, size=size)
    splits = [k for k in nodes if children[k]]
    for side, (answer, align) in enumerate((("yes", "right"), ("no", "left"))):
        middles = [_edge(boxes, k, children[k][side]).mean(axis=0) for k in splits]
        places = np.reshape(middles, (-1, 2)) + [ASIDE * (2 * side - 1), 0.0]
        above = {"horizontal_align": align, "vertical_align": "bottom"}  # of a flat edge too
        _write(collection, answer, splits, places, [answer] * len(splits), size=size, **above)
    target = collection.viz["plot"].item()
    plot = backend_from_object(target)
    room = max(SMALLEST - boxes.size[0], 0.0) / 2 + 2.0
    plot.xlim((-room, boxes.size[0] + room), target)
    plot.ylim((-boxes.size[1] - 2.0, 2.0), target)
    plot.remove_axis(target, axis="both")
    if collection.backend == "bokeh":  # elsewhere the grid goes with the axes
        plot.grid(target, axis="both", color=None)
    plot.title(safe(title), target, size=size)


def _write(collection, label: str, nodes, places, words, *, color=QUIET, **kwargs) -> None:
    """Words of some nodes."""
    at = {"node": list(nodes)}
    data = xr.Dataset({"tree": (("node", "plot_axis"), places)}, at)
    said = xr.DataArray(list(words), at, dims=["node"])
    collection.map(_text, label, data=data, words=said, color=color, **kwargs)


def size_of_text(collection, boxes: Boxes, ax) -> float:
    """Dots; for matplotlib points, fewer in given Axes that are too small for the boxes."""
    if collection.backend != "matplotlib":
        return TEXT
    points = TEXT * 72.0 / collection.viz["figure"].item().dpi
    if ax is None:
        return points
    there = ax.get_window_extent()
    return points * min(1.0, there.width / boxes.size[0], there.height / boxes.size[1])


def _escape(backend: str):
    """What keeps names of columns and levels from being read as formulas or tags."""
    if backend == "matplotlib":
        return lambda text: text.replace("$", r"\$")
    return html.escape if backend == "plotly" else str


def _box(da, target, *, color):
    left, right, low, high = da.to_numpy()
    plot = backend_from_object(target)
    across, lower, upper = np.array([[left, right], [low, low], [high, high]])
    return plot.fill_between_y(across, lower, upper, target, color=color, alpha=1.0)


def _text(da, target, *, words, **kwargs):
    x, y = da.to_numpy()
    return backend_from_object(target).text(x, y, words.item(), target, **kwargs)


def _edge(boxes: Boxes, above: int, below: int) -> np.ndarray:
    """Ends of the line from a split to a child."""
    start = boxes.x[above], boxes.y[above] - boxes.height[above] / 2
    return np.array([start, (boxes.x[below], boxes.y[below] + boxes.height[below] / 2)])


def _outline(left, right, low, high) -> np.ndarray:
    across, up = [left, right, right, left, left], [low, low, high, high, low]
    return np.column_stack([across, up])


def _lines(pieces) -> xr.Dataset:
    """Pieces of a line, NaN between them."""
    gap = np.full((1, 2), np.nan)
    points = np.concatenate([np.empty((0, 2)), *(np.vstack([one, gap]) for one in pieces)])
    place = xr.DataArray(points.T, {"plot_axis": ["x", "y"]}, dims=["plot_axis", "point"])
    return xr.Dataset({"tree": place})
