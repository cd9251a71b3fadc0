"""Change: a split node gets a new column and cut, drawn from the prior given its rows.

The number of split nodes does not change, and the density of the new rule cancels against its
proposal, so that

    ratio = p(subtree' without its top rule) / p(subtree without its top rule) * choice

with ``p`` the prior and likelihood of `subtree` and ``choice`` the ratio of the probabilities of
choosing this kind of move.
"""

import numpy as np
from numba import njit

from pymc_trees.core.forest.design import column_range, draw_cut
from pymc_trees.core.forest.encode import log_column_probability
from pymc_trees.core.moves.census import accepts, pick
from pymc_trees.core.moves.subtree import (
    commit,
    gather,
    log_choice_ratio,
    log_current,
    log_replaced,
)
from pymc_trees.core.priors.cgm import draw_column


@njit(cache=True, inline="always")
def change(rng, trees, tree, design, prior, leaf, weights, census, work):
    """Propose a new rule at a random split node; 1 when accepted, else 0."""
    columns, cuts, nodes = trees.column, trees.cut, work.nodes
    target = pick(rng, census.splits)
    top = -1
    for k in range(census.n_nodes):
        if columns[nodes[k]] >= 0:
            if target == 0:
                top = nodes[k]
                break
            target -= 1
    n_below, n = gather(trees, tree, top, work)
    old_column, old_cut = columns[top], cuts[top]
    column = draw_column(rng, prior, design, work.rows, 0, n)
    low, high = column_range(design, column, work.rows, 0, n)
    columns[top] = column
    cuts[top] = draw_cut(rng, design, low, high)
    log_new = log_replaced(trees, design, prior, leaf, n_below, n, work, False)
    if log_new > -1e300:
        log_old = log_current(trees, prior, leaf, n_below, work)
        log_ratio = (
            log_new
            - (log_old - trees.log_cut[top] - trees.log_column[top])
            + log_choice_ratio(trees, weights, census, n_below, work)
        )
        if accepts(rng, log_ratio):
            work.log_cut[top] = -np.log(high - low)
            work.log_column[top] = log_column_probability(
                design, prior.weights, column, work.rows, 0, n
            )
            commit(trees, tree, n_below, work)
            return 1
    columns[top], cuts[top] = old_column, old_cut
    return 0
