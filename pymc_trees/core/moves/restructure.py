"""Restructure: another tree with the same leaves (Wu, Tjelmeland and West 2007, section 4).

The rows of every leaf stay, and so does the likelihood, unless a leaf model uses the columns of the
splits above. A tree with this partition is drawn from the root down (`same_leaves`), and the
densities q of this draw and of its reverse are known:

    ratio = p(tree') / p(tree) * q(tree) / q(tree') * choice

with p the prior and likelihood of `subtree`. The density of each rule and the weight of its column
cancel. A split with the rows S contributes ``Z(S) / W(S)``, with Z from `same_leaves` and W the
same sum without the probabilities c_j: the probability that a rule drawn from the prior cuts no
leaf. Leaves and splits keep their indices in the pool.
"""

from typing import NamedTuple

import numpy as np

from pymc_trees.core.columns.blocks import chance_uncut, draw_uncut, goes_left, note_block
from pymc_trees.core.compile.cache import njit
from pymc_trees.core.forest.outline import outline_of, put_back
from pymc_trees.core.forest.trees import is_nog
from pymc_trees.core.moves.census import Census
from pymc_trees.core.moves.choice import log_choice_ratio
from pymc_trees.core.moves.contract import Needs, register
from pymc_trees.core.moves.same_leaves import blocks_of, draw_same_leaves, log_same_leaves
from pymc_trees.core.moves.subtree import commit, gather, log_current, log_replaced
from pymc_trees.core.random import accepts


class Restructure(NamedTuple):
    """Another tree with the same leaves."""


@njit(cache=True)
def log_rules(column, log_cut, below, n_nodes):
    """Log of the product of p(rule | column) over the splits of a subtree."""
    total = 0.0
    for k in range(n_nodes):
        if column[below[k]] >= 0:
            total += log_cut[below[k]]
    return total


@njit(cache=True)
def count_nogs(trees, below, n_nodes):
    """Splits of a subtree that can be pruned."""
    nogs = 0
    for k in range(n_nodes):
        nogs += trees.column[below[k]] >= 0 and is_nog(trees, below[k])
    return nogs


@njit(cache=True)
def restructure(move, rng, problem, tree, moves, census, work):
    """Propose another tree with the same leaves; 1 when accepted, else 0."""
    trees, root, below = problem.trees, problem.trees.roots[tree], work.below
    subtree = gather(trees, root, work)
    blocks = blocks_of(problem, subtree, work)
    log_old = log_current(problem, subtree, work)
    log_back = log_same_leaves(problem, subtree, blocks, work)
    log_back += log_rules(trees.column, trees.log_cut, below, subtree.n_nodes)
    outline = outline_of(trees, below, subtree.n_nodes)
    log_there = draw_same_leaves(rng, problem, outline, blocks, work)
    if log_there > -np.inf:
        subtree = gather(trees, root, work)
        log_new = log_replaced(problem, subtree, work, True)
        if log_new > -1e300:
            log_there += log_rules(trees.column, work.log_cut, below, subtree.n_nodes)
            nogs = count_nogs(trees, below, subtree.n_nodes)
            after = Census(census.n_nodes, census.open_leaves, census.splits, nogs)
            log_choice = log_choice_ratio(moves, census, after)
            if accepts(rng, log_new - log_old + log_back - log_there + log_choice):
                commit(trees, tree, subtree, work)
                return 1
    put_back(trees, outline)
    return 0


register(
    "restructure",
    Restructure,
    needs=Needs(splits=1),
    asks=(note_block, chance_uncut, draw_uncut, goes_left),
    propose=restructure,
)
