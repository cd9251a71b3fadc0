"""`tree_text`: trees to be read, or to be drawn by Graphviz."""

from collections.abc import Callable

import pymc as pm

from pymc_trees.arguments import check_choice
from pymc_trees.posterior.reading.forests import ForestDraws
from pymc_trees.posterior.trees.leaves import words_of
from pymc_trees.posterior.trees.nodes import TreeNode, chosen, nodes_of

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
