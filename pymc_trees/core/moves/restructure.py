"""Restructure: another tree with the same leaves (Wu, Tjelmeland and West 2007, section 4).

The rows of every leaf stay, and so does the likelihood, unless a leaf model uses the columns of the
splits above. A tree with this partition is drawn from the root down (`draw_same_leaves`), and the
densities q of this draw and of its reverse are known:

    ratio = p(tree') / p(tree) * q(tree) / q(tree') * choice

with p the prior and likelihood of `subtree`. The density of each rule and the weight of its column
cancel. A split with the rows S contributes ``Z(S) / W(S)``, with Z from `weigh_columns` and W the
same sum without the probabilities c_j: the probability that a rule drawn from the prior cuts no
leaf. Leaves and splits keep their indices in the pool.
"""

from typing import NamedTuple

import numpy as np

from pymc_trees.core.columns.blocks import (
    draw_separating,
    goes_left,
    make_blocks,
    p_separates,
    partition_blocks,
    record_block,
)
from pymc_trees.core.columns.design import varying
from pymc_trees.core.columns.mixed import column_of
from pymc_trees.core.columns.row_set import RowSet
from pymc_trees.core.compile.cache import njit
from pymc_trees.core.forest.trees import NONE, restore_links, save_links, set_child
from pymc_trees.core.moves.contract import Needs, log_choice_ratio, register
from pymc_trees.core.moves.problem import NodeCounts, rows_of
from pymc_trees.core.moves.subtree import (
    commit,
    count_candidates,
    load_subtree,
    log_current,
    log_proposed,
)
from pymc_trees.core.priors.contract import (
    column_weight,
    context_of,
    context_with,
    draw_time,
    log_time,
    node_summary_of_set,
)
from pymc_trees.core.random import accepts, draw_by_weight

# ---------------------------------------- Draw of a new tree with the same leaves, and its density
#
# From the root down, a node that contains several of the leaves gets
#
# - a column j, in proportion to its weight w_j under the tree prior times the probability c_j that
# a rule of it cuts no leaf (`columns.blocks`); - a rule of the column, from its prior p(rule | j)
# given that it cuts no leaf; - a time, from its prior given that the node splits.
#
# So with Z the sum of ``w_j c_j`` in the node, the density of a tree is
#
#     q = prod over splits of w_j p(rule | j) p(time | split) / Z.
#
# Such a rule always exists: in the current tree, the last common ancestor of the leaves of a node
# has a rule that separates them and cuts none; if it leaves only missing rows on one side of the
# node, the corresponding rule of the prior is missing against present.


@njit(cache=True)
def leaf_blocks(problem, subtree, work):
    """The leaves of a subtree, in preorder, as blocks of rows."""
    trees, design = problem.trees, problem.design
    blocks = make_blocks(varying(design).size, (subtree.n_nodes + 1) // 2)
    block = 0
    for k in range(subtree.n_nodes):
        node = work.below[k]
        if trees.column[node] < 0:
            record_block(design, rows_of(trees, node, work), blocks, block)
            block += 1
    return blocks


@njit(cache=True)
def weigh_columns(problem, blocks, start, stop, rows, weights):
    """Write w_j, and w_j c_j, of a node's columns to ``weights``, (2, p); the sum of the second."""
    design, prior = problem.design, problem.prior
    varies, total = varying(design), 0.0
    weights[:] = 0.0
    for j in range(varies.size):
        if varies[j]:
            p_free, extent = p_separates(design, j, blocks, start, stop, rows)
            if p_free > 0.0:
                weights[0, j] = column_weight(prior, j, extent)
                weights[1, j] = weights[0, j] * p_free
                total += weights[1, j]
    return total


@njit(cache=True)
def log_same_leaves(problem, subtree, blocks, work):
    """Log q of a subtree, whose leaves in preorder are the blocks, but for its p(rule | j)."""
    trees, design, below = problem.trees, problem.design, work.below
    weights = np.empty((2, varying(design).size))
    n_leaves = np.ones(subtree.n_nodes, dtype=np.int64)
    for k in range(subtree.n_nodes - 1, -1, -1):
        if trees.column[below[k]] >= 0:
            left, right = trees.left[below[k]], trees.right[below[k]]
            n_leaves[k] = n_leaves[work.position[left]] + n_leaves[work.position[right]]
    start, total = 0, 0.0
    for k in range(subtree.n_nodes):
        node = below[k]
        if trees.column[node] < 0:
            start += 1
            continue
        rows = rows_of(trees, node, work)
        z = weigh_columns(problem, blocks, start, start + n_leaves[k], rows, weights)
        total += np.log(weights[0, column_of(design, trees.column[node])] / z)
        total += log_time(problem.prior, context_of(trees, node), trees.time[node])
    return total


@njit(cache=True)
def union_blocks(leaves, blocks, start, stop, trees, work):
    """Write the rows of some blocks to ``work.proposed[0]``; return their number."""
    words, n = work.proposed[0], 0
    words[:] = np.uint64(0)
    for k in range(start, stop):
        leaf = leaves[blocks.order[k]]
        n += trees.count[leaf]
        for w in range(words.size):
            words[w] |= work.sets[leaf, w]
    return n


@njit(cache=True)
def draw_same_leaves(rng, problem, links, blocks, work):
    """Link the nodes of a subtree anew; log q without p(rule | j), -inf if that is impossible.

    ``links`` are those of the subtree, whose leaves in preorder are the blocks. Leaves stay leaves,
    splits stay splits, and the top stays; the caller updates the other fields of ``Trees``.
    """
    trees, design, prior = problem.trees, problem.design, problem.prior
    splits, leaves = links.nodes[links.column >= 0], links.nodes[links.column < 0]
    weights = np.empty((2, varying(design).size))
    # Ranges of blocks still to be linked, and their parents; the last one first.
    starts, stops, tops = np.empty((3, leaves.size), dtype=np.int64)
    starts[0], stops[0], tops[0] = 0, leaves.size, NONE
    height, n_splits, total = 1, 0, 0.0
    while height > 0:
        height -= 1
        start, stop, top = starts[height], stops[height], tops[height]
        is_leaf = stop - start == 1
        node = leaves[blocks.order[start]] if is_leaf else splits[n_splits]
        if top != NONE:
            set_child(trees, top, int(trees.left[top] != NONE), node)  # on the left unless occupied
            trees.depth[node] = trees.depth[top] + 1
        if is_leaf:
            continue
        n_splits += 1
        n = union_blocks(leaves, blocks, start, stop, trees, work)
        rows = RowSet(work.proposed[0], n, work.index)
        z = weigh_columns(problem, blocks, start, stop, rows, weights)
        if not z > 0.0:  # column weights that underflow
            return -np.inf
        column = draw_by_weight(weights[1], 0, weights.shape[1], rng.random() * z)
        trees.column[node], trees.cut[node] = draw_separating(
            rng, design, column, blocks, start, stop, rows
        )
        trees.left[node], trees.right[node] = NONE, NONE
        unsplittable, rate = node_summary_of_set(prior, design, rows)
        context = context_with(trees, node, rate, unsplittable)
        trees.time[node] = draw_time(rng, prior, context)
        total += np.log(weights[0, column] / z) + log_time(prior, context, trees.time[node])
        middle = partition_blocks(design, trees.column[node], trees.cut[node], blocks, start, stop)
        starts[height], stops[height], tops[height] = middle, stop, node
        starts[height + 1], stops[height + 1], tops[height + 1] = start, middle, node
        height += 2
    return total


# --------------------------------------------------------------------------------------------------


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
def restructure(move, rng, problem, tree, moves, node_counts, work):
    """Propose another tree with the same leaves; 1 when accepted, else 0."""
    trees, root, below = problem.trees, problem.trees.roots[tree], work.below
    subtree = load_subtree(trees, root, work)
    blocks = leaf_blocks(problem, subtree, work)
    log_old = log_current(problem, subtree, work)
    log_reverse = log_same_leaves(problem, subtree, blocks, work)
    log_reverse += log_rules(trees.column, trees.log_cut, below, subtree.n_nodes)
    links = save_links(trees, below, subtree.n_nodes)
    log_forward = draw_same_leaves(rng, problem, links, blocks, work)
    if log_forward > -np.inf:
        subtree = load_subtree(trees, root, work)
        log_new = log_proposed(problem, subtree, work, True)
        if log_new > -1e300:
            log_forward += log_rules(trees.column, work.log_cut, below, subtree.n_nodes)
            _, nogs = count_candidates(trees, work.unsplittable, subtree, work)
            after = NodeCounts(
                node_counts.n_nodes, node_counts.splittable_leaves, node_counts.splits, nogs
            )
            log_choice = log_choice_ratio(moves, node_counts, after)
            if accepts(rng, log_new - log_old + log_reverse - log_forward + log_choice):
                commit(trees, tree, subtree, work)
                return 1
    restore_links(trees, links)
    return 0


register(
    "restructure",
    Restructure,
    needs=Needs(splits=1),
    uses=(record_block, p_separates, draw_separating, goes_left),
    propose=restructure,
)
