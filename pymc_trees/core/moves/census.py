"""What a tree offers to be moved, and the probability of choosing each kind of move."""

from typing import NamedTuple

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.forest.trees import is_nog, preorder

GROW, PRUNE, CHANGE, SWAP = 0, 1, 2, 3
MOVES = ("grow", "prune", "change", "swap")


class Census(NamedTuple):
    """Counts over one tree."""

    n_nodes: int
    open_leaves: int
    """Leaves with a valid split: where grow can act."""
    splits: int
    """Split nodes: where change can act; all but the root can swap with their parent."""
    nogs: int
    """Split nodes with two leaves as children: where prune can act."""


@njit(cache=True, inline="always")
def take_census(trees, tree, nodes):
    """Count one tree; ``nodes`` receives it in preorder."""
    column, left, right, unsplittable = trees.column, trees.left, trees.right, trees.unsplittable
    n_nodes = preorder(trees, trees.roots[tree], nodes)
    open_leaves, splits, nogs = 0, 0, 0
    for k in range(n_nodes):
        node = nodes[k]
        if column[node] >= 0:
            splits += 1
            nogs += is_nog(column, left, right, node)
        else:
            open_leaves += not unsplittable[node]
    return Census(n_nodes, open_leaves, splits, nogs)


@njit(cache=True, inline="always")
def available_weight(weights, open_leaves, splits):
    """Sum of the weights of the moves that a tree with these counts allows."""
    total = 0.0
    if open_leaves > 0:
        total += weights[GROW]
    if splits > 0:
        total += weights[PRUNE] + weights[CHANGE]
    if splits > 1:
        total += weights[SWAP]
    return total


@njit(cache=True, inline="always")
def choose_move(rng, weights, census):
    """Kind of move by weight among those available; -1 when there is none."""
    total = available_weight(weights, census.open_leaves, census.splits)
    if total <= 0.0:
        return -1
    u = rng.random() * total
    last = -1
    for kind in range(4):
        if weights[kind] <= 0.0:
            continue
        if kind == GROW and census.open_leaves == 0:
            continue
        if kind != GROW and census.splits == 0:
            continue
        if kind == SWAP and census.splits < 2:
            continue
        last = kind
        u -= weights[kind]
        if u < 0.0:
            break
    return last


@njit(cache=True, inline="always")
def pick(rng, n):
    """Whole number uniform over ``0 .. n - 1``."""
    return min(int(rng.random() * n), n - 1)


@njit(cache=True, inline="always")
def accepts(rng, log_ratio):
    """Metropolis-Hastings decision; a ratio that is NaN is refused."""
    return np.log(rng.random()) < log_ratio
