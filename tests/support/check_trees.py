"""Invariants of the working arrays (`trees.Trees`), one small function each.

As in `check`: slow and plain, and a check returns a sentence or None. The walk-dependent checks
run only when the links of every tree are right.
"""

from collections.abc import Callable

import numpy as np

from pymc_trees.core.columns.cells import MISSING
from pymc_trees.core.columns.design import Design
from pymc_trees.core.forest.trees import NONE, Trees
from pymc_trees.core.value.text import rule_density, sent_left
from support.check import sentences

Rows = dict[int, np.ndarray]
"""Training rows by node, in the order nodes are met."""

TREES_CHECKS: list[Callable[[Trees, Design, np.ndarray, list[Rows]], str | None]] = []


def check_trees(trees: Trees, design: Design, weights: np.ndarray | None = None) -> list[str]:
    """Everything that is wrong with working arrays; empty for valid ones.

    Parameters
    ----------
    trees : Trees
        Working arrays between two moves.
    design : Design
        Training columns.
    weights : (p,) array, optional
        Split weights of the prior; default equal.
    """
    weights = np.ones(len(design.columns)) if weights is None else np.asarray(weights)
    broken = check_links(trees)
    if broken is not None:
        return [broken]
    rows = [send_rows(trees, design, root) for root in trees.roots]
    return sentences(check(trees, design, weights, rows) for check in TREES_CHECKS)


def check_links(trees: Trees) -> str | None:
    """Every node is in exactly one tree or unused, and knows its parent, depth and children."""
    met: set[int] = set()
    for t, root in enumerate(trees.roots):
        if trees.parent[root] != NONE or trees.depth[root] != 0:
            return f"Tree {t}: root {root} has a parent, or a depth that is not 0."
        waiting = [int(root)]
        while waiting:
            node = waiting.pop()
            if node in met:
                return f"Node {node} is met twice."
            met.add(node)
            children = [int(trees.left[node]), int(trees.right[node])]
            if trees.column[node] < 0:
                if children != [NONE, NONE]:
                    return f"Leaf {node} has children {children}."
                continue
            for child in children:
                if not 0 <= child < trees.column.size:
                    return f"Split {node} has the child {child}, which is not in the pool."
                if trees.parent[child] != node or trees.depth[child] != trees.depth[node] + 1:
                    return f"Node {child} does not have parent {node} and its depth plus 1."
            waiting += children
    free = trees.free[: trees.n_free[0]].tolist()
    if sorted([*met, *free]) != list(range(trees.column.size)):
        return "The nodes of the trees and the unused places do not make up the pool."
    return None


def send_rows(trees: Trees, design: Design, root) -> Rows:
    """Training rows that reach each node of a tree."""
    found: Rows = {}
    waiting = [(int(root), np.arange(design.columns.shape[1]))]
    while waiting:
        node, rows = waiting.pop()
        found[node] = rows
        code = trees.column[node]
        if code >= 0:
            goes_left = lefts(design, code, trees.cut[node], rows)
            waiting.append((int(trees.left[node]), rows[goes_left]))
            waiting.append((int(trees.right[node]), rows[~goes_left]))
    return found


def lefts(design: Design, code: int, cut: float, rows: np.ndarray) -> np.ndarray:
    """Which rows a rule sends left."""
    way, column = divmod(int(code), len(design.columns))
    x = design.columns[column, rows].astype(float)
    x[x == getattr(design, "missing", MISSING)] = MISSING
    return sent_left(x, way, cut)


def varying(design: Design, rows: np.ndarray) -> np.ndarray:
    """Which columns have two different values among some rows."""
    cells = design.columns[:, rows]
    if rows.size == 0:
        return np.zeros(len(cells), dtype=bool)
    return design.varies & (cells.min(axis=1) < cells.max(axis=1))


def trees_check(check):
    """Register a check of `TREES_CHECKS`."""
    TREES_CHECKS.append(check)
    return check


@trees_check
def check_tree_rows(trees, design, weights, rows):
    """Every node has rows, and ``count`` and ``leaf_of`` agree with the walk."""
    for t, of_tree in enumerate(rows):
        for node, reached in of_tree.items():
            if reached.size == 0:
                return f"Tree {t}: no training row reaches node {node}."
            if trees.count[node] != reached.size:
                return f"Tree {t}: node {node} counts {trees.count[node]} rows of {reached.size}."
            if trees.column[node] < 0 and (trees.leaf_of[t, reached] != node).any():
                return f"Tree {t}: leaf_of sends rows of leaf {node} elsewhere."
    return None


@trees_check
def check_tree_closed(trees, design, weights, rows):
    """``unsplittable``: set for nodes that cannot split, and no others."""
    for of_tree in rows:
        for node, reached in of_tree.items():
            if trees.unsplittable[node] == varying(design, reached).any():
                return f"Node {node}: unsplittable is {trees.unsplittable[node]}, not so its rows."
    return None


@trees_check
def check_tree_terms(trees, design, weights, rows):
    """``log_cut`` and ``log_column``: those of the node's rows; 0 in leaves."""
    for of_tree in rows:
        for node, reached in of_tree.items():
            code, expected = trees.column[node], (0.0, 0.0)
            if code >= 0:
                way, column = divmod(int(code), len(design.columns))
                varies = varying(design, reached)
                if not varies[column]:
                    return f"Node {node}: its column {column} does not vary among its rows."
                x = design.columns[column, reached].astype(float)
                x[x == getattr(design, "missing", MISSING)] = MISSING
                kinds = getattr(design, "kinds", None)
                chance = rule_density(
                    x, way, trees.cut[node], 0 if kinds is None else kinds[column]
                )
                share = weights[column] / weights[varies].sum()
                expected = (np.log(chance * (1.0 if kinds is None else 0.5)), np.log(share))
            if not np.allclose((trees.log_cut[node], trees.log_column[node]), expected):
                return f"Node {node}: log_cut, log_column are not {expected}."
    return None


@trees_check
def check_tree_values(trees, design, weights, rows):
    """Leaf values are finite."""
    for of_tree in rows:
        for node in of_tree:
            if trees.column[node] < 0 and not np.isfinite(trees.values[node]).all():
                return f"Leaf {node} has the values {trees.values[node]}."
    return None
