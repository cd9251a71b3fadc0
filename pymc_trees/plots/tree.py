"""`plot_tree`: one tree of one draw as a diagram."""

import textwrap
from collections.abc import Callable

import numpy as np
import pymc as pm

from pymc_trees.plots.figure import picture
from pymc_trees.plots.tree_drawing import backend_of, collection_of, draw_tree, size_of_text
from pymc_trees.plots.tree_layout import boxes_of
from pymc_trees.posterior.reading.forests import ForestDraws
from pymc_trees.posterior.trees.leaves import kind_of_values, words_of
from pymc_trees.posterior.trees.nodes import TreeNode, chosen, nodes_of

LETTERS = 26
"""After which the text of a rule goes on in the next line."""
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

    Rows for which a rule holds go left. Leaf colours range from blue for the smallest value of the
    tree to orange for the largest; with classes, leaves have the colour of the most probable class,
    paler if it is less probable.

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
        For an ``ax`` that is no Axes.

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
