"""`plot_tree`: one tree of one draw as a diagram, on any backend of ArviZ-plots."""

import html
import textwrap
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pymc as pm
import xarray as xr
from arviz_base import rcParams
from arviz_plots import PlotCollection, visuals
from arviz_plots.plot_collection import backend_from_object

from pymc_trees.plots.figure import picture, wrapped
from pymc_trees.posterior.reading.forests import ForestDraws
from pymc_trees.posterior.tree_text import TreeNode, chosen, kind_of_values, nodes_of, words_of

# ----------- Where the boxes of a tree stand: leaves side by side, every split above its two sides
#
# Lengths are dots at the size of the text, so that a figure of as many dots fits it.


TEXT = 13.0
"""Height of the text."""
LETTER, LINE = 0.61 * TEXT, 1.35 * TEXT
"""Mean width of a letter, and height of a line."""
PADDING = 0.6 * TEXT
BESIDE, BELOW = 18.0, 46.0
"""Gaps between boxes: side by side, and from a split to what is below it, with yes or no."""


class Boxes(NamedTuple):
    """Boxes of the nodes of a tree, by number; y falls from 0 at the upper edge."""

    x: np.ndarray
    """Centres."""
    y: np.ndarray
    """Centres."""
    width: np.ndarray
    height: np.ndarray
    size: tuple[float, float]
    """Width and height of them all."""

    @property
    def edges(self) -> np.ndarray:
        """(box, 4) left, right, lower and upper edge."""
        half, tall = self.width / 2, self.height / 2
        edges = [self.x - half, self.x + half, self.y - tall, self.y + tall]
        return np.column_stack(edges)


def boxes_of(texts: list[str], children: list[tuple[int, ...]], depth: list[int]) -> Boxes:
    """Boxes that hold these texts, of nodes in preorder."""
    lines = [text.split("\n") for text in texts]
    width = np.array([max(map(len, one)) * LETTER for one in lines]) + 2 * PADDING
    height = np.array([len(one) * LINE for one in lines]) + 2 * PADDING
    spread = width.copy()
    for k in reversed(range(len(texts))):
        if children[k]:
            spread[k] = max(width[k], _below(spread, children[k]))
    x = _centres(children, width, spread)
    levels = np.asarray(depth)
    tall = np.array([height[levels == d].max() for d in range(levels.max() + 1)])
    upper = np.concatenate([[0.0], np.cumsum(tall + BELOW)[:-1]])
    y = -(upper + tall / 2)[levels]
    return Boxes(x, y, width, height, (float(spread[0]), float(upper[-1] + tall[-1])))


def _below(spread: np.ndarray, pair: tuple[int, ...]) -> float:
    """Width of what is below a split."""
    return float(sum(spread[child] for child in pair)) + BESIDE


def _centres(children, width, spread) -> np.ndarray:
    """A split stands between its children, as far as the width that is its own allows."""
    start = np.zeros(len(children))
    for k, pair in enumerate(children):
        if pair:
            left, right = pair
            start[left] = start[k] + (spread[k] - _below(spread, pair)) / 2
            start[right] = start[left] + spread[left] + BESIDE
    x = start + spread / 2
    for k in reversed(range(len(children))):
        if children[k]:
            half = width[k] / 2
            between = x[list(children[k])].mean()
            x[k] = np.clip(between, start[k] + half, start[k] + spread[k] - half)
    return x


# --------------------------------- Boxes, edges and words of a tree, on any backend of ArviZ-plots


MARGINS = {"matplotlib": (20, 50), "plotly": (170, 190), "bokeh": (60, 70), "none": (0, 0)}
"""Dots of the margins of a figure, by backend."""
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
    layout: dict[str, Any] = {"aes": {"color": ["node"]}, "color": colours} | pc_kwargs
    if ax is not None:
        viz = {"plot": np.array(ax, dtype=object), "figure": np.array(ax.figure, dtype=object)}
        return PlotCollection(data, xr.DataTree(xr.Dataset(viz)), backend=backend, **layout)
    beside, above = MARGINS[backend]
    size = (max(boxes.size[0], SMALLEST) + beside, boxes.size[1] + above)
    return wrapped(data, size, backend, layout)


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


# -------------------------------------------------- `plot_tree`: one tree of one draw as a diagram


LETTERS = 26
"""Characters after which the text of a rule is continued on the next line."""
SPLIT = "#ffffff"
LOW, MIDDLE, HIGH = "#8ec3e6", "#f5f5f5", "#f5b885"
CLASSES = ("#8ec3e6", "#f5b885", "#9bd6a3", "#d7a8dc", "#f3e08a", "#c9b7a0", "#a4e0db", "#f2a3a0")


@picture
def plot_tree(
    idata,
    model: pm.Model | None = None,
    *,
    forest: str | None = None,
    chain: int = 0,
    draw: int = -1,
    tree: int = 0,
    ax=None,
    backend: str | None = None,
    **pc_kwargs,
):
    """One tree of one draw as a diagram: rules in words, leaf values, and shares of the rows.

    Shares are those of the training rows, with random columns of the fixed reference rows
    (`with_columns`). Rows for which a rule holds go left. Leaf colours range from blue for the
    smallest value of the tree to orange for the largest; with classes, leaves have the colour of
    the most probable class, paler if it is less probable.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of `pymc.sample`, or the same read from a file.
    model : pymc.Model, optional
        Default: the model on the context stack.
    forest : str, optional
        Name of a forest or of its function, if the model has several.
    chain, draw : int, default 0 and -1
        Positions of the chain and the draw, counted from 0, or from the end if negative;
        `summarise_trees` returns those of the most probable trees.
    tree : int, default 0
        Number of the tree.
    ax : matplotlib.axes.Axes, optional
        Where to draw; the text shrinks where the tree needs more room. Default: a new figure, as
        large as the tree.
    backend : {"matplotlib", "plotly", "bokeh", "none"}, optional
        Default: matplotlib with ``ax``, else that of ArviZ-plots.
    **pc_kwargs
        For `arviz_plots.PlotCollection.wrap`.

    Returns
    -------
    arviz_plots.PlotCollection
        Its ``viz`` holds ``box`` and ``text`` along the dimension node, in the order of
        `tree_text`, and ``edges``, ``outlines``, ``yes`` and ``no``.

    Raises
    ------
    ValueError
        For a chain, draw or tree that does not exist; the message says how many there are; for soft
        trees.
    TypeError
        For an ``ax`` that is not an Axes.

    Examples
    --------
    >>> import numpy as np, pymc as pm, xarray as xr, pymc_trees as pmt
    >>> X = np.array([[0.1], [0.4], [0.6], [0.9]])
    >>> with pm.Model() as model:
    ...     mu = pmt.DecisionTree("mu", X, leaf=pmt.NormalLeaf(0, 1))
    ...     prior = pm.sample_prior_predictive(9, random_seed=4)
    >>> draws = xr.DataTree.from_dict({"posterior": prior["prior"].to_dataset()})
    >>> drawn = pmt.plot_tree(draws, model, draw=0, backend="none")
    """
    backend = backend_of(ax, backend)
    draws = ForestDraws(idata, pm.modelcontext(model), forest)
    if tree is None:
        raise ValueError(f"tree=None: give one number below {draws.layout.m}, or use tree_text.")
    value, [number] = chosen(draws, chain, draw, tree)
    nodes = nodes_of(draws, value, number)
    leaf = draws.variable.owner.op.leaf_type
    say = words_of(draws)
    texts = [_words(node, say, len(draws.X_train)) for node in nodes]
    children = [node.children for node in nodes]
    boxes = boxes_of(texts, children, [node.depth for node in nodes])
    collection = collection_of(boxes, _colours(nodes, leaf), ax, backend, pc_kwargs)
    n_chains, n_draws = draws.shape
    name = f"{draws.name}, tree {number}" if draws.layout.m > 1 else draws.name
    title = f"{name}\nchain {chain % n_chains}, draw {draw % n_draws}"
    size = size_of_text(collection, boxes, ax)
    draw_tree(collection, boxes, children, texts, title, size)
    return collection


def _words(node: TreeNode, say: Callable, n: int) -> str:
    """Text of a box."""
    said = [node.rule] if node.rule else say(node.values)
    lines = [part for one in said for part in textwrap.wrap(one, LETTERS, break_long_words=False)]
    rows = f"{node.rows.size} row{'s' * (node.rows.size != 1)}, {node.rows.size / n:.0%}"
    return "\n".join([*lines, rows])


def _colours(nodes: list[TreeNode], leaf) -> list[str]:
    """White splits, and leaves by their value, or all alike where they have several."""
    values = np.array([node.values for node in nodes if not node.rule])
    kind = kind_of_values(leaf, values.shape[1])
    low, high = values[:, 0].min(), values[:, 0].max()

    def of_leaf(own):
        if kind == "classes":
            best = int(own.argmax())
            certain = (own[best] * own.size - 1) / (own.size - 1)
            return _mixed(MIDDLE, CLASSES[best % len(CLASSES)], certain)
        if kind == "outputs" or low == high:
            return MIDDLE
        place = 2 * (own[0] - low) / (high - low) - 1
        return _mixed(MIDDLE, HIGH if place > 0 else LOW, abs(place))

    return [SPLIT if node.rule else of_leaf(node.values) for node in nodes]


def _mixed(one: str, other: str, share: float) -> str:
    """A colour between two."""
    ends = [np.array([int(code[i : i + 2], 16) for i in (1, 3, 5)]) for code in (one, other)]
    between = np.rint(ends[0] + share * (ends[1] - ends[0])).astype(int)
    return "#" + "".join(f"{part:02x}" for part in between)
