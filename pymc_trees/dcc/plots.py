"""`plot_soft_tree`, one drawn soft tree, and `plot_topologies`, the posterior of topologies."""

import matplotlib.pyplot as plt
import numpy as np

from pymc_trees.arguments import check_number
from pymc_trees.dcc.kernels.encode import label_of, node_depths, node_table
from pymc_trees.dcc.soft_tree_rv import is_soft_tree
from pymc_trees.posterior.draws import check_draws, model_of

# ----------------------------------------------------------- `plot_soft_tree`: one drawn soft tree


MENTIONED = 0.05
"""Smallest weight of an input that the text of a split mentions."""


def plot_soft_tree(idata, model=None, *, chain=0, draw=0, names=None, ax=None):
    """Draw one tree of the posterior: the rule of each split, and the leaf values.

    A split is written as its weights and threshold in scaled inputs, such as
    ``0.96 x0 + 0.04 x2 > 0.43``; rows for which it holds go left, softly.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of `sample_dcc` or `pymc.sample`.
    model : pymc.Model, optional
        Default: the model on the context stack.
    chain, draw : int, default 0
        Which draw.
    names : sequence of p str, optional
        Names of the inputs; default x0, x1, ...
    ax : matplotlib.axes.Axes, optional
        Default: a new figure.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ValueError
        If the model has no soft tree, the draws are not of this model (`check_draws`), there is no
        such draw, or ``names`` has the wrong length.

    Examples
    --------
    >>> import numpy as np, pymc as pm, xarray as xr, pymc_trees as pmt
    >>> with pm.Model() as model:
    ...     mu = pmt.SoftDecisionTree("mu", np.eye(3))
    ...     prior = pm.sample_prior_predictive(1, random_seed=1)
    >>> draws = xr.DataTree.from_dict({"posterior": prior["prior"].to_dataset()})
    >>> ax = pmt.plot_soft_tree(draws, model)
    >>> len(ax.texts) > 0
    True
    """
    model = model_of(model)
    trees = [rv for rv in model.free_RVs if is_soft_tree(rv)]
    if not trees:
        raise ValueError("The model has no SoftDecisionTree.")
    op = trees[0].owner.op
    names = [f"x{j}" for j in range(op.p)] if names is None else list(names)
    if len(names) != op.p:
        raise ValueError(f"names has {len(names)} entries, but the tree has {op.p} inputs.")
    check_draws(idata, model)
    draws = idata["posterior"][trees[0].name].values
    for setting, number, n in (("chain", chain, len(draws)), ("draw", draw, draws.shape[1])):
        if not isinstance(number, int | np.integer) or not -n <= number < n:
            raise ValueError(f"{setting}={number!r}: there are {n}, counted from 0.")
    value = draws[chain, draw]
    label = label_of(value)
    x, depth = _places(label)
    if ax is None:
        ax = plt.subplots(figsize=(2.0 + 1.6 * label.count("L"), 1.5 + 1.2 * depth.max()))[1]
    table = node_table(label)
    for node, kind in enumerate(label):
        if kind == "S":
            for child, style in ((node + 1, "-"), (table[node, 0], "--")):
                ax.plot(x[[node, child]], -depth[[node, child]], "0.6", ls=style, zorder=0)
            text = _split(value[node, 2 : 2 + op.p], value[node, 1], names)
        else:
            text = ", ".join(f"{v:.3g}" for v in value[node, 1 : 1 + op.n_values])
        box = {"boxstyle": "round", "fc": "w", "ec": "C0" if kind == "S" else "C2"}
        ax.text(x[node], -depth[node], text, ha="center", va="center", bbox=box, fontsize=9)
    ax.set(xlim=(-0.7, label.count("L") - 0.3), ylim=(-depth.max() - 0.5, 0.5))
    ax.set_title("solid: the split holds, dashed: it does not", fontsize=9)
    ax.axis("off")
    return ax


def _places(label):
    """Leaves side by side, every split in the middle of its children."""
    table, depth = node_table(label), node_depths(label)
    x = np.where([kind == "L" for kind in label], table[:, 1], 0.0).astype(float)
    for node in range(len(label) - 1, -1, -1):
        if label[node] == "S":
            x[node] = 0.5 * (x[node + 1] + x[table[node, 0]])
    return x, depth


def _split(weights, threshold, names):
    order = np.argsort(-weights, kind="stable")
    shown = [f"{weights[j]:.2f} {names[j]}" for j in order if weights[j] >= MENTIONED]
    return f"{' + '.join(shown)}\n> {threshold:.2f}"


# -------------------- `plot_topologies`: the posterior of the topologies (Cochrane 2024, figure 1)


def plot_topologies(idata, top=15, *, highlight=None, ax=None):
    """Bar chart of the posterior and prior weights of topologies.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of `sample_dcc`.
    top : int, default 15
        Number of topologies shown, in order of decreasing weight.
    highlight : str, optional
        Label of a topology to show in another colour, for example the one behind the data.
    ax : matplotlib.axes.Axes, optional
        Default: a new figure.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ValueError
        If ``idata`` has no group ``topologies``, or ``top`` is not a whole number of at least 1.

    References
    ----------
    Cochrane, Wills and Johnson (2024). Divide, conquer, combine Bayesian decision tree sampling,
    figure 1.

    Examples
    --------
    >>> import numpy as np, xarray as xr, pymc_trees as pmt
    >>> found = xr.Dataset(
    ...     {"weight": ("topology", [0.9, 0.1]), "log_prior": ("topology", [-1.3, -3.0])},
    ...     coords={"topology": ["SLL", "L"]},
    ... )
    >>> ax = pmt.plot_topologies(xr.DataTree.from_dict({"topologies": found}))
    >>> [bar.get_height() for bar in ax.containers[0]]
    [np.float64(0.9), np.float64(0.1)]
    """
    if "topologies" not in getattr(idata, "children", {}):
        raise ValueError("idata has no group 'topologies': pass the result of sample_dcc.")
    first = slice(check_number("top", top, 1))
    shown = idata["topologies"].to_dataset().isel(topology=first)
    labels = shown["topology"].values.tolist()
    ax = plt.subplots(figsize=(1.5 + 0.5 * len(labels), 3.5))[1] if ax is None else ax
    at = np.arange(len(labels))
    colours = ["C3" if label == highlight else "C0" for label in labels]
    ax.bar(at, shown["weight"].values, 0.8, color=colours, label="posterior")
    ax.plot(at, np.exp(shown["log_prior"].values), "k_", ms=12, label="prior")
    ax.set_xticks(at, labels, rotation=60, ha="right", family="monospace")
    ax.set_ylabel("probability")
    ax.legend(frameon=False)
    return ax
