"""Change: a split node gets a new column and cut, drawn from the prior given its rows.

The number of split nodes does not change, nor do the times of splits, and the density of the new
rule cancels against its proposal, so that

    ratio = p(subtree' without its top rule) / p(subtree without its top rule) * choice

with ``p`` the prior and likelihood of `subtree` and ``choice`` the ratio of the probabilities of
choosing this kind of move.
"""

import numpy as np

from pymc_trees.core.columns.mixed import side_cells
from pymc_trees.core.columns.rules import draw_rule
from pymc_trees.core.compile.cache import njit
from pymc_trees.core.leaves.contract import add_sides, log_marginal
from pymc_trees.core.moves.census import accepts, available_weight, pick
from pymc_trees.core.moves.subtree import (
    commit,
    gather,
    log_choice_ratio,
    log_current,
    log_replaced,
)
from pymc_trees.core.priors.contract import (
    Place,
    draw_column,
    log_column,
    log_stop,
    place_of,
    survey_sides,
)


@njit(cache=True, inline="always")
def change(rng, trees, tree, design, prior, leaf, weights, census, work):
    """Propose a new rule at a random split node; 1 when accepted, else 0."""
    columns, nodes = trees.column, work.nodes
    target = pick(rng, census.splits)
    top = -1
    for k in range(census.n_nodes):
        if columns[nodes[k]] >= 0:
            if target == 0:
                top = nodes[k]
                break
            target -= 1
    n_below, n = gather(trees, tree, top, work)
    column = draw_column(rng, prior, design, work.rows, 0, n)
    code, cut, log_cut = draw_rule(rng, design, column, work.rows, 0, n)
    if n_below == 3:
        changed = change_nog(
            rng, trees, tree, design, prior, leaf, weights, census, work, top, n, code, cut
        )
    else:
        changed = change_inside(
            rng, trees, tree, design, prior, leaf, weights, census, work, n_below, n, code, cut
        )
    if changed == 1:
        trees.log_cut[top] = log_cut
        trees.log_column[top] = log_column(
            prior, design, column, log_cut, trees.rate[top], work.rows, 0, n
        )
    return changed


@njit(cache=True, inline="always")
def change_nog(rng, trees, tree, design, prior, leaf, weights, census, work, top, n, code, cut):
    """`change` at a node whose children are leaves: no row needs to move before acceptance."""
    rows, stats, new_stats, unsplittable = work.rows, work.stats, work.new_stats, trees.unsplittable
    cells, threshold = side_cells(design, code, cut, rows, 0, n)
    left, right = trees.left[top], trees.right[top]
    n_left = add_sides(leaf, cells, threshold, rows, n, new_stats[left], new_stats[right])
    left_unsplittable, right_unsplittable, left_rate, right_rate = survey_sides(
        prior, design, cells, threshold, rows, n
    )
    open_after = census.open_leaves - int(left_unsplittable) - int(right_unsplittable)
    open_after += int(unsplittable[left]) + int(unsplittable[right])
    depth, time = trees.depth[left], trees.time[top]
    log_ratio = (
        log_marginal(leaf, new_stats[left])
        + log_marginal(leaf, new_stats[right])
        - log_marginal(leaf, stats[left])
        - log_marginal(leaf, stats[right])
        + log_stop(prior, Place(depth, time, left_rate, left_unsplittable))
        + log_stop(prior, Place(depth, time, right_rate, right_unsplittable))
        - log_stop(prior, place_of(trees, left))
        - log_stop(prior, place_of(trees, right))
        + np.log(
            available_weight(weights, census.open_leaves, census.splits)
            / available_weight(weights, open_after, census.splits)
        )
    )
    if not accepts(rng, log_ratio):
        return 0
    trees.column[top], trees.cut[top] = code, cut
    trees.count[left], trees.count[right] = n_left, n - n_left
    unsplittable[left], unsplittable[right] = left_unsplittable, right_unsplittable
    trees.rate[left], trees.rate[right] = left_rate, right_rate
    for d in range(stats.shape[1]):
        stats[left, d] = new_stats[left, d]
        stats[right, d] = new_stats[right, d]
    leaf_of = trees.leaf_of[tree]
    for k in range(n):
        leaf_of[rows[k]] = left if cells[rows[k]] <= threshold else right
    return 1


@njit(cache=True, inline="always")
def change_inside(
    rng, trees, tree, design, prior, leaf, weights, census, work, n_below, n, code, cut
):
    """`change` at a node with splits below: the rows of its subtree go down again."""
    top = work.below[0]
    old_code, old_cut = trees.column[top], trees.cut[top]
    trees.column[top], trees.cut[top] = code, cut
    log_new = log_replaced(trees, design, prior, leaf, n_below, n, work, False)
    if log_new > -1e300:
        log_old = log_current(trees, prior, leaf, n_below, work)
        log_ratio = (
            log_new
            - (log_old - trees.log_cut[top] - trees.log_column[top])
            + log_choice_ratio(trees, weights, census, n_below, work)
        )
        if accepts(rng, log_ratio):
            commit(trees, tree, n_below, work)
            return 1
    trees.column[top], trees.cut[top] = old_code, old_cut
    return 0
