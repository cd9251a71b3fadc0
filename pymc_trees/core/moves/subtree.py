"""A subtree whose rules were replaced: send its rows down again and compare.

Every term that depends on the rows is added up anew: the density of each cut, the probability of
each column among those that vary in its node, that of a split at its time or of none, and the
likelihood of the leaves. A node whose cut leaves its new ``[min, max)`` has prior 0.
"""

from typing import NamedTuple

import numpy as np

from pymc_trees.core.columns.design import partition_rows
from pymc_trees.core.columns.mixed import column_of
from pymc_trees.core.columns.rules import log_rule
from pymc_trees.core.compile.cache import njit
from pymc_trees.core.forest.rows import all_rows, rows_below
from pymc_trees.core.forest.trees import preorder
from pymc_trees.core.leaves.contract import add_rows, log_marginal
from pymc_trees.core.moves.census import Census
from pymc_trees.core.moves.choice import log_choice_ratio
from pymc_trees.core.priors.contract import Place, log_column, log_split_at, log_stop, survey


class Subtree(NamedTuple):
    """A subtree whose nodes in preorder and rows are in the workspace."""

    n_nodes: int
    """Nodes of ``work.below``, the top first."""
    n_rows: int
    """Rows of ``work.rows``."""


@njit(cache=True, inline="always")
def gather(trees, tree, top, work):
    """The `Subtree` below a node, with its nodes and rows written to ``work``."""
    n_below = preorder(trees, top, work.below)
    if trees.parent[top] < 0:
        n = all_rows(work.rows.size, work.rows)
    else:
        n = rows_below(trees.leaf_of[tree], trees, work.below, n_below, work.inside, work.rows)
    return Subtree(n_below, n)


@njit(cache=True, inline="always")
def log_current(problem, subtree, work):
    """Log of prior and likelihood of the subtree as it is, from what the nodes keep."""
    trees, prior, leaf = problem.trees, problem.prior, problem.leaf
    below, stats, column = work.below, work.stats, trees.column
    log_cut, log_share, depth, unsplittable = (
        trees.log_cut,
        trees.log_column,
        trees.depth,
        trees.unsplittable,
    )
    times, rate, parent = trees.time, trees.rate, trees.parent
    total = 0.0
    for k in range(subtree.n_nodes):
        node = below[k]
        start = times[parent[node]] if parent[node] >= 0 else 0.0
        place = Place(depth[node], start, rate[node], unsplittable[node])
        if column[node] >= 0:
            total += log_cut[node] + log_share[node] + log_split_at(prior, place, times[node])
        else:
            total += log_stop(prior, place)
            total += log_marginal(leaf, stats[node])
    return total


@njit(cache=True, inline="always")
def log_replaced(problem, subtree, work, with_top):
    """Log of prior and likelihood of the subtree under the rules now in ``trees``; -inf if empty.

    ``with_top`` says whether the rule of the top node counts and is checked. What `commit` needs
    is left in ``work``, the top's terms only then.
    """
    trees, design, prior, leaf = problem
    below, rows, starts, stops = work.below, work.rows, work.start, work.stop
    columns, cuts, lefts, rights = trees.column, trees.cut, trees.left, trees.right
    log_cut, log_share, unsplittable, depth = (
        work.log_cut,
        work.log_column,
        work.unsplittable,
        trees.depth,
    )
    new_stats, buffer = work.new_stats, work.buffer
    times, rate, parent = trees.time, work.rate, trees.parent
    starts[below[0]], stops[below[0]] = 0, subtree.n_rows
    total = 0.0
    for k in range(subtree.n_nodes):  # preorder: a node's rows are known before its children's
        node = below[k]
        start, stop = starts[node], stops[node]
        column = columns[node]
        unsplittable[node], rate[node] = survey(prior, design, rows, start, stop)
        begin = times[parent[node]] if parent[node] >= 0 else 0.0
        place = Place(depth[node], begin, rate[node], unsplittable[node])
        if column >= 0:
            cut = cuts[node]
            total += log_split_at(prior, place, times[node])
            if k > 0 or with_top:
                log_cut[node] = log_rule(design, column, cut, rows, start, stop)
                if log_cut[node] == -np.inf:
                    return -np.inf
                share_of = column_of(design, column)
                log_share[node] = log_column(
                    prior, design, share_of, log_cut[node], rate[node], rows, start, stop
                )
                total += log_cut[node] + log_share[node]
            middle = partition_rows(design, column, cut, rows, start, stop, buffer)
            left, right = lefts[node], rights[node]
            starts[left], stops[left] = start, middle
            starts[right], stops[right] = middle, stop
        else:
            add_rows(leaf, rows, start, stop, new_stats[node])
            total += log_stop(prior, place)
            total += log_marginal(leaf, new_stats[node])
    return total


@njit(cache=True, inline="always")
def log_replaced_choice(trees, moves, census, subtree, work):
    """`log_choice_ratio` when the rules of the subtree are replaced: what can split may change."""
    below, column, unsplittable, new_unsplittable = (
        work.below,
        trees.column,
        trees.unsplittable,
        work.unsplittable,
    )
    open_after = census.open_leaves
    for k in range(subtree.n_nodes):
        node = below[k]
        if column[node] < 0:
            open_after += int(unsplittable[node]) - int(new_unsplittable[node])
    after = Census(census.n_nodes, open_after, census.splits, census.nogs)
    return log_choice_ratio(moves, census, after)


@njit(cache=True, inline="always")
def commit(trees, tree, subtree, work):
    """Make the proposed subtree the current one."""
    below, rows, starts, stops = work.below, work.rows, work.start, work.stop
    leaf_of, column, unsplittable, stats = (
        trees.leaf_of[tree],
        trees.column,
        trees.unsplittable,
        work.stats,
    )
    for k in range(subtree.n_nodes):
        node = below[k]
        start, stop = starts[node], stops[node]
        trees.count[node] = stop - start
        trees.rate[node] = work.rate[node]
        if column[node] >= 0:
            trees.log_cut[node] = work.log_cut[node]
            trees.log_column[node] = work.log_column[node]
            unsplittable[node] = False
        else:
            unsplittable[node] = work.unsplittable[node]
            for d in range(stats.shape[1]):
                stats[node, d] = work.new_stats[node, d]
            for i in range(start, stop):
                leaf_of[rows[i]] = node
