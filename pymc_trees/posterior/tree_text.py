"""Trees to be read, or to be drawn by Graphviz: `tree_text`.

One tree of one draw as nodes, with their rules and values in words.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import arviz as az
import numpy as np
import pymc as pm
import xarray as xr

from pymc_trees.arguments import check_choice, check_number
from pymc_trees.core.value.text import rule_text, sent_left, tree_starts
from pymc_trees.distributions.forest_inputs import declared
from pymc_trees.distributions.leaves.contract import LeafPrior
from pymc_trees.distributions.leaves.dirichlet import DirichletLeaf
from pymc_trees.posterior.draws import SAMPLE
from pymc_trees.posterior.reading.forests import ForestDraws

# ------------------------------------------------ What the values of a leaf are, and how they read


def kind_of_values(leaf: type[LeafPrior], n_values: int) -> str:
    """What a leaf holds: "number", "classes", "parameters" by name, or "outputs" by number."""
    if issubclass(leaf, DirichletLeaf):
        return "classes"
    if n_values == 1:
        return "number"
    return "parameters" if len(leaf.suffixes) == n_values else "outputs"


def words_of(draws: ForestDraws) -> Callable[[np.ndarray], list[str]]:
    """What turns the values of a leaf of a forest into phrases."""
    variable = draws.variable
    constants, columns = declared(variable).constants, draws.names
    return partial(leaf_words, variable.owner.op.leaf_type, constants=constants, columns=columns)


def leaf_words(
    leaf: type[LeafPrior], values: np.ndarray, constants: np.ndarray, columns: list[str]
) -> list[str]:
    """A phrase for each value: the number, with what it is of where there are several."""
    own = leaf.words(values, constants, columns)
    if own is not None:
        return own
    kind, numbers = kind_of_values(leaf, len(values)), [f"{value:.4g}" for value in values]
    if kind == "number":
        return numbers
    names = {
        "classes": [f"P({k})" for k in range(len(values))],
        "parameters": [suffix.removeprefix("_") or "mu" for suffix in leaf.suffixes],
        "outputs": [f"output {k}" for k in range(len(values))],
    }[kind]
    return [f"{name} = {number}" for name, number in zip(names, numbers, strict=True)]


# ----------------------------- One tree of one draw, as nodes with their rules and values in words


class TreeNode(NamedTuple):
    """A node of a tree."""

    depth: int
    column: str
    """Name of the column of a split; empty in a leaf."""
    rule: str
    """What sends a row to the left child; empty in a leaf."""
    values: np.ndarray
    """Of a leaf; empty elsewhere."""
    children: tuple[int, ...]
    """Places of the left and the right child in the list; none of a leaf."""
    rows: np.ndarray
    """Training rows that reach it."""


def nodes_of(draws: ForestDraws, value: np.ndarray, tree: int) -> list[TreeNode]:
    """Nodes of one tree of an encoded forest, in preorder."""
    layout, X, names = draws.layout, draws.X_train, draws.names
    row, nodes = tree_starts(value, layout)[tree], list[TreeNode]()
    levels, cells = draws.levels, draws.cells

    def below(rows, depth):
        nonlocal row
        here, row, place = row, row + 1, len(nodes)
        code = int(value[here, 0])
        if code < 0:
            leaf = value[here, 1 : 1 + layout.n_values]
            nodes.append(TreeNode(depth, "", "", leaf, (), rows))
            return place
        cut = value[here, 1]
        way, column = divmod(code, len(names))
        rule = rule_text(code, cut, names, levels, cells)
        nodes.append(TreeNode(depth, names[column], rule, np.empty(0), (), rows))
        left = sent_left(X[rows, column], way, cut)
        children = below(rows[left], depth + 1), below(rows[~left], depth + 1)
        nodes[place] = nodes[place]._replace(children=children)
        return place

    below(np.arange(len(X)), 0)
    return nodes


def chosen(draws: ForestDraws, chain: int, draw: int, tree: int | None):
    """Encoded value of a draw, and the numbers of the trees meant, or an error."""
    n_chains, n_draws = draws.shape
    check_place("chain", chain, n_chains)
    check_place("draw", draw, n_draws)
    value = draws.value(chain, draw)
    m = draws.layout.m
    if tree is None:
        return value, list(range(m))
    return value, [check_place("tree", tree, m)]


def check_place(name: str, place, size: int) -> int:
    """An index from 0 to ``size - 1``; a negative one counts from the end."""
    check_number(name, place, -size, ", the first of them counted from the end")
    if place >= size:
        raise ValueError(f"{name}={place}: there are {size}, counted from 0.")
    return place % size


# --------------------------------------- `tree_text`: trees to be read, or to be drawn by Graphviz


FORMATS = ("text", "dot")
INDENT = "    "


def tree_text(
    idata,
    model: pm.Model | None = None,
    *,
    forest: str | None = None,
    chain: int = 0,
    draw: int = -1,
    tree: int | None = 0,
    format: str = "text",
) -> str:
    """One tree of one draw as text, or all trees.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of `pymc.sample`, or the same read from a file.
    model : pymc.Model, optional
        Default: the model on the context stack.
    forest : str, optional
        Name of a forest or of its function, if the model has several.
    chain, draw : int, default 0 and -1
        Positions of the chain and the draw, counted from 0, or from the end if negative.
    tree : int or None, default 0
        Number of the tree; None for all of them.
    format : {"text", "dot"}, default "text"
        "text": one line per node with the number of training rows in brackets (with random columns
        of the fixed reference rows, `with_columns`); below a split, indented, first the side that
        satisfies the rule, then the other. "dot": Graphviz source, which also shows the share of
        rows. Leaves with several values label each of them.

    Returns
    -------
    str

    Raises
    ------
    ValueError
        For a chain, draw or tree that does not exist; the message says how many there are.

    Examples
    --------
    >>> import numpy as np, pymc as pm, xarray as xr, pymc_trees as pmt
    >>> X = np.array([[0.1], [0.4], [0.6], [0.9]])
    >>> with pm.Model() as model:
    ...     mu = pmt.DecisionTree("mu", X, leaf=pmt.NormalLeaf(0, 1))
    ...     prior = pm.sample_prior_predictive(9, random_seed=4)
    >>> draws = xr.DataTree.from_dict({"posterior": prior["prior"].to_dataset()})
    >>> print(pmt.tree_text(draws, model, draw=0))  # doctest: +ELLIPSIS
    x0 <= ... [4]
        ...
    """
    check_choice("format", format, FORMATS)
    draws = ForestDraws(idata, pm.modelcontext(model), forest)
    value, trees = chosen(draws, chain, draw, tree)
    several = [nodes_of(draws, value, one) for one in trees]
    say = words_of(draws)
    if format == "dot":
        return _dot(several, trees, draws.name, say)
    if tree is not None:
        return _lines(several[0], say)
    parts = (f"tree {k}\n{_lines(nodes, say)}" for k, nodes in zip(trees, several, strict=True))
    return "\n".join(parts)


def _lines(nodes: list[TreeNode], say: Callable) -> str:
    lines = []
    for node in nodes:
        words = node.rule or f"leaf {', '.join(say(node.values))}"
        lines.append(f"{INDENT * node.depth}{words} [{node.rows.size}]")
    return "\n".join(lines)


def _dot(several: list[list[TreeNode]], trees: list[int], name: str, say: Callable) -> str:
    """A cluster for each tree; yes to the left."""
    lines = [f"digraph {_quoted(name)} {{", '  node [shape=box, fontname="sans-serif"];']
    for tree, nodes in zip(trees, several, strict=True):
        lines += [f"  subgraph cluster_{tree} {{", f'    label="tree {tree}"; color="gray80";']
        for k, node in enumerate(nodes):
            style = "" if node.rule else ', style="rounded,filled", fillcolor="gray93"'
            words = [node.rule] if node.rule else say(node.values)
            share = f"{node.rows.size} rows, {node.rows.size / nodes[0].rows.size:.0%}"
            label = _quoted("\n".join([*words, share]))
            lines.append(f"    t{tree}_{k} [label={label}{style}];")
            for child, answer in zip(node.children, ("yes", "no"), strict=False):
                lines.append(f'    t{tree}_{k} -> t{tree}_{child} [label="{answer}"];')
        lines.append("  }")
    return "\n".join([*lines, "}"])


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


# --------------------------- summarise_trees: the most probable trees of a model with a single tree


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
        nodes, whatever the cuts; "partition": the same partition of the training rows, with
        random columns of the reference rows.
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
