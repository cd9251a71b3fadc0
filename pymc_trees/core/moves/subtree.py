"""A subtree whose rules were replaced: send its rows down again and compare.

Every term that depends on the rows is added up anew: the density of each cut, the probability of
each column among those that vary in its node, whether each leaf could have split, and the leaves'
likelihood. A node whose cut leaves its new ``[min, max)`` has prior 0.
"""

import numpy as np
from numba import njit

from pymc_trees.core.forest.design import (
    any_column_varies,
    column_range,
    column_varies,
    partition_rows,
)
from pymc_trees.core.forest.encode import log_column_probability
from pymc_trees.core.forest.rows import rows_below
from pymc_trees.core.forest.trees import preorder
from pymc_trees.core.leaves.contract import add_rows, log_marginal
from pymc_trees.core.moves.census import available_weight
from pymc_trees.core.priors.cgm import log_stop


@njit(cache=True)
def gather(trees, tree, top, work):
    """Nodes and rows of a subtree, to ``work.below`` and ``work.rows``; their numbers."""
    n_below = preorder(trees, top, work.below)
    n = rows_below(trees.leaf_of[tree], trees, work.below, n_below, work.inside, work.rows)
    return n_below, n


@njit(cache=True)
def log_current(trees, prior, leaf, n_below, work):
    """Log of prior and likelihood of the subtree as it is, from what the nodes keep."""
    total = 0.0
    for k in range(n_below):
        node = work.below[k]
        if trees.column[node] >= 0:
            total += trees.log_cut[node] + trees.log_column[node]
        else:
            total += log_stop(prior, trees.depth[node], trees.closed[node])
            total += log_marginal(leaf, work.stats[node])
    return total


@njit(cache=True)
def log_replaced(trees, design, prior, leaf, n_below, n, work):
    """Log of prior and likelihood of the subtree under the rules now in ``trees``; -inf if empty.

    What `commit` needs is left in ``work``.
    """
    top = work.below[0]
    work.start[top], work.stop[top] = 0, n
    total = 0.0
    for k in range(n_below):  # preorder: a node's rows are known before its children's
        node = work.below[k]
        start, stop = work.start[node], work.stop[node]
        column = trees.column[node]
        if column >= 0:
            if stop - start < 2 or not column_varies(design, column, work.rows, start, stop):
                return -np.inf
            low, high = column_range(design, column, work.rows, start, stop)
            cut = trees.cut[node]
            if not (cut >= low and cut < high):
                return -np.inf
            work.log_cut[node] = -np.log(high - low)
            work.log_column[node] = log_column_probability(
                design, prior.weights, column, work.rows, start, stop
            )
            total += work.log_cut[node] + work.log_column[node]
            middle = partition_rows(design, column, cut, work.rows, start, stop, work.spare)
            work.start[trees.left[node]], work.stop[trees.left[node]] = start, middle
            work.start[trees.right[node]], work.stop[trees.right[node]] = middle, stop
        else:
            work.closed[node] = not any_column_varies(design, work.rows, start, stop)
            add_rows(leaf, work.rows, start, stop, work.new_stats[node])
            total += log_stop(prior, trees.depth[node], work.closed[node])
            total += log_marginal(leaf, work.new_stats[node])
    return total


@njit(cache=True)
def log_choice_ratio(trees, weights, census, n_below, work):
    """Log ratio of P(this kind of move) after and before: leaves may have opened or closed."""
    open_after = census.open_leaves
    for k in range(n_below):
        node = work.below[k]
        if trees.column[node] < 0:
            open_after += int(trees.closed[node]) - int(work.closed[node])
    return np.log(
        available_weight(weights, census.open_leaves, census.splits)
        / available_weight(weights, open_after, census.splits)
    )


@njit(cache=True)
def commit(trees, tree, n_below, work):
    """Make the proposed subtree the current one."""
    for k in range(n_below):
        node = work.below[k]
        start, stop = work.start[node], work.stop[node]
        trees.count[node] = stop - start
        if trees.column[node] >= 0:
            trees.log_cut[node] = work.log_cut[node]
            trees.log_column[node] = work.log_column[node]
            trees.closed[node] = False
        else:
            trees.closed[node] = work.closed[node]
            work.stats[node] = work.new_stats[node]
            for i in range(start, stop):
                trees.leaf_of[tree, work.rows[i]] = node
