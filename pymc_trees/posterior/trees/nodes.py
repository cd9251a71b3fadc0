"""One tree of one draw, as nodes with their rules and values in words."""

from typing import NamedTuple

import numpy as np

from pymc_trees.arguments import check_number
from pymc_trees.core.value.text import rule_text, tree_starts
from pymc_trees.core.value.walk import sent_left
from pymc_trees.posterior.reading.forests import ForestDraws


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


def check_place(name: str, given, size: int) -> int:
    """One of so many, counted from 0, or from the end where it was negative."""
    check_number(name, given, -size, ", the first of them counted from the end")
    if given >= size:
        raise ValueError(f"{name}={given}: there are {size}, counted from 0.")
    return given % size
