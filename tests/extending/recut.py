"""Recut: a split node keeps its column and gets another cut, drawn from the prior given its rows.

The density of the cut cancels against its proposal, and the column's probability is that of the
same rows before and after. With ``p`` the prior and likelihood of the subtree,

    ratio = p(subtree') / p(subtree) * p(old cut) / p(new cut) * choice
"""

from typing import NamedTuple

from pymc_trees.core.columns.mixed import column_of
from pymc_trees.core.columns.rules import draw_set_rule
from pymc_trees.core.compile.cache import njit
from pymc_trees.core.moves.contract import Needs, register
from pymc_trees.core.moves.problem import SPLIT, draw_node, rows_of
from pymc_trees.core.moves.subtree import (
    commit,
    load_subtree,
    log_current,
    log_proposed,
    log_proposed_choice,
)
from pymc_trees.core.random import accepts


class Recut(NamedTuple):
    """A split node gets another cut."""


@njit(cache=True)
def recut(move, rng, problem, tree, moves, node_counts, work):
    """Propose another cut at a random split node; 1 when accepted, else 0."""
    trees, design = problem.trees, problem.design
    top = draw_node(rng, trees, work.nodes, 0, node_counts.n_nodes, SPLIT, node_counts.splits)
    subtree = load_subtree(trees, top, work)
    old_code, old_cut = trees.column[top], trees.cut[top]
    column = column_of(design, old_code)
    code, cut, log_cut = draw_set_rule(rng, design, column, rows_of(trees, top, work))
    log_old = log_current(problem, subtree, work)
    trees.column[top], trees.cut[top] = code, cut
    log_new = log_proposed(problem, subtree, work, True)  # -inf where a side below runs empty
    if log_new > -1e300:
        log_ratio = (
            log_new
            - log_old
            + trees.log_cut[top]
            - log_cut
            + log_proposed_choice(trees, moves, node_counts, subtree, work)
        )
        if accepts(rng, log_ratio):
            commit(trees, tree, subtree, work)
            return 1
    trees.column[top], trees.cut[top] = old_code, old_cut
    return 0


register("recut", Recut, needs=Needs(splits=1), propose=recut)
