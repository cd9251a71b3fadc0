"""Trees to be read, or to be drawn by Graphviz: `tree_text`.

One tree of one draw as nodes, with their rules and values in words.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
import pymc as pm

from pymc_trees.arguments import check_choice, check_number
from pymc_trees.core.value.text import rule_text, sent_left, tree_starts
from pymc_trees.distributions.forest_inputs import declared
from pymc_trees.distributions.leaves.contract import LeafPrior
from pymc_trees.distributions.leaves.dirichlet import DirichletLeaf
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
        "text": one line per node with the number of training rows in brackets; below a split,
        indented, first the side that satisfies the rule, then the other. "dot": Graphviz source,
        which also shows the share of rows. Leaves with several values label each of them.

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
