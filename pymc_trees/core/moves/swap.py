"""Swap: a split node and its split parent exchange rules (Chipman 1998, section 5.1).

When both children of the parent carry the same rule, both receive the parent's. The pair is
uniform over the split nodes below the root, a number that does not change, and the reverse swap
undoes the move, so that

    ratio = p(subtree') / p(subtree) * choice

with the terms of `change`. A swap that would leave any node without rows has prior 0. (A child
can never carry its parent's own rule: one side of it would be empty.)
"""

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.moves.census import accepts, pick
from pymc_trees.core.moves.subtree import (
    commit,
    gather,
    log_choice_ratio,
    log_current,
    log_replaced,
)


@njit(cache=True)
def exchange(trees, child):
    """Exchange the rules of a split node and its parent; applying it twice restores them."""
    top = trees.parent[child]
    sibling = trees.right[top] if trees.left[top] == child else trees.left[top]
    both = trees.column[sibling] == trees.column[child] and trees.cut[sibling] == trees.cut[child]
    trees.column[top], trees.column[child] = trees.column[child], trees.column[top]
    trees.cut[top], trees.cut[child] = trees.cut[child], trees.cut[top]
    if both and trees.column[sibling] >= 0:
        trees.column[sibling], trees.cut[sibling] = trees.column[child], trees.cut[child]


@njit(cache=True, inline="always")
def swap(rng, trees, tree, design, prior, leaf, weights, census, work):
    """Propose to exchange the rules of a random parent and child; 1 when accepted, else 0."""
    columns, nodes = trees.column, work.nodes
    target = pick(rng, census.splits - 1)
    child = -1
    for k in range(1, census.n_nodes):
        if columns[nodes[k]] >= 0:
            if target == 0:
                child = nodes[k]
                break
            target -= 1
    n_below, n = gather(trees, tree, trees.parent[child], work)
    exchange(trees, child)
    log_new = log_replaced(trees, design, prior, leaf, n_below, n, work, True)
    if log_new > -1e300:
        log_ratio = (
            log_new
            - log_current(trees, prior, leaf, n_below, work)
            + log_choice_ratio(trees, weights, census, n_below, work)
        )
        if accepts(rng, log_ratio):
            commit(trees, tree, n_below, work)
            return 1
    exchange(trees, child)
    return 0
