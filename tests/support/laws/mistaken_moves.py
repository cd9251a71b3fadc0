"""Moves with a mistake, and one beside which a choice ratio counts.

They stand in a module that any process can import: compiled code that is kept names their types.
"""

from typing import NamedTuple

from numba import njit

from pymc_trees.core.columns.steps import step_rule
from pymc_trees.core.leaves.contract import log_marginal
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

MISTAKES = {
    "the choice of the move is left out": 1,
    "the prior of the nodes below is left out": 2,
    "steps grow with the cut": 3,
    "a set of levels is replaced by any other, whatever its density": 4,
}


class Mistaken(NamedTuple):
    """`Perturb` with a mistake."""

    mistake: int = 0


@njit(cache=True)
def perturb_wrongly(move, rng, problem, tree, moves, census, work):
    """`perturb` by the parts of `subtree`, right or wrong."""
    trees, design, leaf, mistake = problem.trees, problem.design, problem.leaf, move.mistake
    top = draw_node(rng, trees, work.nodes, 0, census.n_nodes, SPLIT, census.splits)
    subtree = load_subtree(trees, top, work)
    rows = rows_of(trees, top, work)
    old_code, old_cut = trees.column[top], trees.cut[top]
    log_old = log_current(problem, subtree, work)
    code, cut = step_rule(rng, design, old_code, old_cut, 0.3, rows)
    if mistake == 3:
        cut = old_cut + (cut - old_cut) * (0.2 + old_cut)
    trees.column[top], trees.cut[top] = code, cut
    log_new = log_proposed(problem, subtree, work, True)
    if log_new > -1e300:
        log_ratio = log_new - log_old
        if mistake != 1:
            log_ratio += log_proposed_choice(trees, moves, census, subtree, work)
        if mistake == 2:
            log_ratio = 0.0
            for k in range(subtree.n_nodes):
                node = work.below[k]
                if trees.column[node] < 0:
                    log_ratio += log_marginal(leaf, work.new_stats[node])
                    log_ratio -= log_marginal(leaf, work.stats[node])
        if mistake == 4:
            log_ratio -= work.log_cut[top] - trees.log_cut[top]
        if accepts(rng, log_ratio):
            commit(trees, tree, subtree, work)
            return 1
    trees.column[top], trees.cut[top] = old_code, old_cut
    return 0


register("perturb_wrongly", Mistaken, needs=Needs(splits=1), propose=perturb_wrongly)


class Rest(NamedTuple):
    """Nothing, often, where a single leaf can split."""


@njit(cache=True)
def rest(move, rng, problem, tree, moves, census, work):
    return 0


register("rest", Rest, needs=Needs(splittable_leaves=1, max_splittable_leaves=1), propose=rest)
