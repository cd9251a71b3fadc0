"""`summarise_trees`: the most probable trees of a model with a single tree."""

import arviz as az
import numpy as np
import pymc as pm
import xarray as xr

from pymc_trees.arguments import check_choice, check_number
from pymc_trees.posterior.draws import SAMPLE
from pymc_trees.posterior.reading.forests import ForestDraws
from pymc_trees.posterior.tree_text import TreeNode, check_place, nodes_of

KINDS = ("partition", "columns")


def summarise_trees(
    idata,
    model: pm.Model | None = None,
    *,
    forest: str | None = None,
    tree: int | None = None,
    by: str = "columns",
    top: int | None = 10,
    progressbar: bool = True,
) -> xr.Dataset:
    """The most probable trees of a `DecisionTree`, with their posterior probabilities.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of `pymc.sample` or `sample_tree_smc`, or the same read from a file.
    model : pymc.Model, optional
        Default: the model on the context stack.
    forest : str, optional
        Name of a forest or of its function, if the model has several.
    tree : int, optional
        Number of a tree in a sum of trees. The trees of a sum are exchangeable: in another draw
        another tree may play the same role, so this says little about the sum. Not needed for a
        single tree.
    by : {"columns", "partition"}, default "columns"
        Which trees count as equal: "columns": the same shape and the same columns at the same
        nodes, whatever the cuts; "partition": the same partition of the training rows.
    top : int or None, default 10
        Number of trees returned, in order of decreasing probability; None for all.
    progressbar : bool, default True
        Whether to show a progress bar.

    Returns
    -------
    xarray.Dataset
        With the dimension topology: ``probability``, the share of the draws, ``mcse``, its Monte
        Carlo standard error (of the indicator, by `arviz.mcse`), ``n_leaves``, and ``chain_of`` and
        ``draw_of``, the position of one draw with this topology, for `tree_text`; ``label``
        (coordinate) the columns from the root, "." for a leaf, or the numbers of rows in each part.
        ``topology_of`` (chain, draw) says which topology each draw has, -1 for one not among the
        top.

    Raises
    ------
    ValueError
        For a sum of trees without ``tree``, or invalid arguments.

    References
    ----------
    Chipman, George and McCulloch (1998). Bayesian CART model search. Journal of the American
    Statistical Association 93, section 5.2.

    Examples
    --------
    >>> import numpy as np, pymc as pm, pymc_trees as pmt
    >>> X = np.array([[0.1], [0.4], [0.6], [0.9]])
    >>> with pm.Model() as model:
    ...     mu = pmt.DecisionTree("mu", X, leaf=pmt.NormalLeaf(0, 1))
    ...     y = pm.Normal("y", mu, 0.5, observed=[0.0, 0.1, 2.1, 2.0], shape=mu.shape)
    ...     idata = pmt.sample_tree_smc(50, islands=2, cores=1, random_seed=1, progressbar=False)
    >>> found = pmt.summarise_trees(idata, model)
    >>> bool(found["probability"].sum() <= 1)
    True
    """
    check_choice("by", by, KINDS)
    top = None if top is None else check_number("top", top, 1)
    draws = ForestDraws(idata, pm.modelcontext(model), forest)
    if tree is None and draws.layout.m > 1:
        raise ValueError(
            f"{draws.name} is a sum of {draws.layout.m} trees, which are exchangeable between "
            "draws: use shap_values or partial_dependence, or choose one with tree."
        )
    key_of = _columns if by == "columns" else _partition
    known: dict = {}
    labels: list[str] = []
    leaves: list[int] = []
    first: list[tuple[int, int]] = []
    codes = np.empty(draws.shape, dtype=np.int64)
    own = check_place("tree", 0 if tree is None else tree, draws.layout.m)
    for chain, draw, value in draws.each_draw(progressbar):
        nodes = nodes_of(draws, value, own)
        key, label = key_of(nodes)
        if key not in known:
            known[key] = len(known)
            labels.append(label)
            leaves.append(sum(not node.rule for node in nodes))
            first.append((chain, draw))
        codes[chain, draw] = known[key]
    counts = np.bincount(codes.ravel())
    order = np.argsort(-counts, kind="stable")[:top]
    rank = np.full(counts.size, -1)
    rank[order] = np.arange(order.size)
    places = np.array(first)[order]
    variables = {
        "probability": ("topology", counts[order] / codes.size),
        "mcse": ("topology", [_error(codes == k) for k in order]),
        "n_leaves": ("topology", np.array(leaves)[order]),
        "chain_of": ("topology", places[:, 0]),
        "draw_of": ("topology", places[:, 1]),
        "topology_of": (SAMPLE, rank[codes]),
    }
    names = {"topology": np.arange(order.size), "label": ("topology", np.array(labels)[order])}
    return xr.Dataset(variables, draws.coords | names)


def _error(has: np.ndarray) -> float:
    """Standard error of the share of draws, NaN where there are too few to tell."""
    if has.shape[1] < 4 or has.all():
        return 0.0 if has.all() else np.nan
    indicator = xr.DataArray(has.astype(float), dims=SAMPLE)
    return float(az.mcse(indicator, method="mean"))


def _columns(nodes: list[TreeNode]):
    """Columns in preorder, in words that are nested as the nodes are."""

    def label(k):
        if not nodes[k].children:
            return "."
        left, right = (label(child) for child in nodes[k].children)
        return f"{nodes[k].column}({left}, {right})"

    text = label(0)
    return text, text


def _partition(nodes: list[TreeNode]):
    """Parts of the training rows, and their sizes from the left."""
    parts = [node.rows for node in nodes if not node.children]
    key = frozenset(part.tobytes() for part in parts)
    return key, " | ".join(str(part.size) for part in parts)
