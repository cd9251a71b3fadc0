"""A move from outside the package: a split node keeps its column and gets a new cut.

The cut comes from the prior given the node's rows, so that its density cancels, as in `change`:

    ratio = p(subtree' without its top rule) / p(subtree without its top rule) * choice
"""

from typing import NamedTuple

from pymc_trees.core.columns.mixed import column_of
from pymc_trees.core.columns.rules import draw_rule
from pymc_trees.core.compile.cache import njit
from pymc_trees.core.moves.census import SPLIT, draw_node
from pymc_trees.core.moves.contract import register
from pymc_trees.core.moves.subtree import (
    commit,
    gather,
    log_current,
    log_replaced,
    log_replaced_choice,
)
from pymc_trees.core.random import accepts


class Recut(NamedTuple):
    """A split node gets a new cut."""


@njit(cache=True)
def can_recut(move, census):
    """Whether there is a split."""
    return census.splits > 0


@njit(cache=True)
def recut(move, rng, problem, tree, moves, census, work):
    """Propose a new cut at a random split node; 1 when accepted, else 0."""
    trees, design = problem.trees, problem.design
    top = draw_node(rng, trees, work.nodes, 0, census.n_nodes, SPLIT, census.splits)
    subtree = gather(trees, tree, top, work)
    column = column_of(design, trees.column[top])
    code, cut, log_cut = draw_rule(rng, design, column, work.rows, 0, subtree.n_rows)
    log_old = log_current(problem, subtree, work) - trees.log_cut[top]
    old = trees.column[top], trees.cut[top]
    trees.column[top], trees.cut[top] = code, cut
    log_new = log_replaced(problem, subtree, work, False) + trees.log_column[top]
    choice = 0.0
    if log_new > -1e300:
        choice = log_replaced_choice(trees, moves, census, subtree, work)
    if not accepts(rng, log_new - log_old + choice):
        trees.column[top], trees.cut[top] = old
        return 0
    log_share = trees.log_column[top]  # of the column, which stays
    commit(trees, tree, subtree, work)
    trees.log_cut[top], trees.log_column[top] = log_cut, log_share
    return 1


register("recut", Recut, is_available=can_recut, propose=recut)
