"""Swap: a split node and its split parent exchange rules (Chipman 1998, section 5.1).

If both children of the parent have the same rule, both receive the parent's. The pair is uniform
over the split nodes below the root, a number that does not change, and the reverse swap undoes the
move, so that

    ratio = p(subtree') / p(subtree) * choice

with the terms of `change`. A swap that would leave any node without rows has prior 0. (A child can
never have its parent's rule: one side would be empty.)
"""

from typing import NamedTuple

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.forest.trees import child_on
from pymc_trees.core.moves.contract import Needs, register
from pymc_trees.core.moves.problem import SPLIT, draw_node
from pymc_trees.core.moves.subtree import (
    commit,
    load_subtree,
    log_current,
    log_proposed,
    log_proposed_choice,
)
from pymc_trees.core.random import accepts


class Swap(NamedTuple):
    """A split node and its split parent exchange rules."""


@njit(cache=True)
def exchange_rules(trees, child):
    """Exchange the rules of a split node and its parent; applying it twice restores them."""
    top = trees.parent[child]
    sibling = child_on(trees, top, int(trees.left[top] == child))
    both = trees.column[sibling] == trees.column[child] and trees.cut[sibling] == trees.cut[child]
    trees.column[top], trees.column[child] = trees.column[child], trees.column[top]
    trees.cut[top], trees.cut[child] = trees.cut[child], trees.cut[top]
    if both and trees.column[sibling] >= 0:
        trees.column[sibling], trees.cut[sibling] = trees.column[child], trees.cut[child]


@njit(cache=True)
def swap(move, rng, problem, tree, moves, node_counts, work):
    """Propose to exchange the rules of a random parent and child; 1 when accepted, else 0."""
    trees = problem.trees
    child = draw_node(rng, trees, work.nodes, 1, node_counts.n_nodes, SPLIT, node_counts.splits - 1)
    subtree = load_subtree(trees, trees.parent[child], work)
    exchange_rules(trees, child)
    log_new = log_proposed(problem, subtree, work, True)
    if log_new > -1e300:
        log_ratio = (
            log_new
            - log_current(problem, subtree, work)
            + log_proposed_choice(trees, moves, node_counts, subtree, work)
        )
        if accepts(rng, log_ratio):
            commit(trees, tree, subtree, work)
            return 1
    exchange_rules(trees, child)
    return 0


register("swap", Swap, needs=Needs(splits=2), uses=(), propose=swap)
