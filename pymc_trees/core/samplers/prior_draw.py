"""A tree from its prior, and a whole forest with its leaf values."""

import numpy as np

from pymc_trees.core.columns.design import float_design, partition_rows
from pymc_trees.core.columns.rules import draw_rule
from pymc_trees.core.compile.cache import njit
from pymc_trees.core.forest.trees import make_stumps, make_trees, preorder, reset_tree, split_leaf
from pymc_trees.core.leaves.contract import draw_values, n_stats, prior_at
from pymc_trees.core.leaves.path import write_path
from pymc_trees.core.order.contract import is_ordered
from pymc_trees.core.priors.contract import (
    context_of,
    draw_column,
    draw_time,
    log_column,
    log_split,
    node_summary,
)
from pymc_trees.core.priors.mondrian import make_mondrian
from pymc_trees.core.value.encode import encode


@njit(cache=True)
def draw_tree(rng, trees, tree, design, prior, rows, buffer):
    """Grow tree ``tree``, a stump, from the prior; False if the pool is full.

    The caller sets leaf values.
    """
    n = rows.size
    for i in range(n):
        rows[i] = i
    starts = np.empty(trees.column.size, dtype=np.int64)
    stops = np.empty(trees.column.size, dtype=np.int64)
    stack = np.empty(trees.column.size, dtype=np.int32)
    root = trees.roots[tree]
    starts[root], stops[root] = 0, n
    stack[0] = root
    height = 1
    while height > 0:
        height -= 1
        node = stack[height]
        start, stop = starts[node], stops[node]
        trees.count[node] = stop - start
        trees.unsplittable[node], trees.rate[node] = node_summary(prior, design, rows, start, stop)
        context = context_of(trees, node)
        if context.unsplittable or np.log(rng.random()) >= log_split(prior, context):
            for k in range(start, stop):
                trees.leaf_of[tree, rows[k]] = node
            continue
        column = draw_column(rng, prior, design, rows, start, stop)
        code, cut, log_cut = draw_rule(rng, design, column, rows, start, stop)
        if not split_leaf(trees, node, code, cut):
            return False
        trees.log_cut[node] = log_cut
        trees.log_column[node] = log_column(
            prior, design, column, log_cut, context.rate, rows, start, stop
        )
        trees.time[node] = draw_time(rng, prior, context)
        middle = partition_rows(design, code, cut, rows, start, stop, buffer)
        left, right = trees.left[node], trees.right[node]
        starts[left], stops[left] = start, middle
        starts[right], stops[right] = middle, stop
        stack[height] = right
        stack[height + 1] = left
        height += 2
    return True


MAX_TRIES = 100_000
"""Maximal number of draws of a tree whose leaf values must be in order."""


@njit(cache=True)
def draw_forest(rng, trees, design, prior, leaf, nodes, rows, buffer, order=None):
    """Grow every stump of ``trees`` from the prior and draw all leaf values; False if too large.

    A tree whose leaf values are not in ``order`` is drawn again, with them (`order.contract`).
    """
    no_stats = np.zeros(n_stats(leaf))
    for t in range(trees.roots.size):
        for trial in range(MAX_TRIES):
            if not draw_tree(rng, trees, t, design, prior, rows, buffer):
                return False
            for k in range(preorder(trees, trees.roots[t], nodes)):
                if trees.column[nodes[k]] < 0:
                    write_path(leaf, design, trees, nodes[k], no_stats)
                    draw_values(leaf, rng, no_stats, trees.values[nodes[k]])
            if is_ordered(order, trees, t):
                break
            if trial == MAX_TRIES - 1:
                raise ValueError(
                    "None of 100,000 trees drawn from the prior had leaf values in the order that "
                    "monotone requires: declare a prior of smaller trees, by a smaller alpha or "
                    "larger beta, or a shorter lifetime."
                )
            reset_tree(trees, t, nodes)
    return True


@njit(cache=True)
def draw_value(rng, design, prior, leaf, outputs, sizes, fingerprint, order=None):
    """Encoded forest drawn from the prior; ValueError if it does not fit ``max_nodes``.

    Parameters
    ----------
    leaf : leaf model
        Leaf values are drawn from its prior.
    outputs : leaf model
        Leaf model of the outputs at the training rows; may be the same.
    order : order, optional
        Constraint on leaf values.
    """
    leaf_of = np.empty((sizes.m, sizes.n_rows), dtype=np.uint32)
    trees = make_stumps(sizes.max_nodes, sizes.n_values, leaf_of)
    nodes = np.empty(sizes.max_nodes, dtype=np.int32)
    rows = np.empty(sizes.n_rows, dtype=np.uint32)
    buffer = np.empty(sizes.n_rows, dtype=np.uint32)
    prior_leaf = prior_at(leaf, outputs)
    if not draw_forest(rng, trees, design, prior, prior_leaf, nodes, rows, buffer, order):
        raise ValueError(
            "A forest drawn from the prior has more nodes than max_nodes: declare it with a larger "
            "max_nodes, or a prior of smaller trees: a smaller alpha or larger beta, a shorter "
            "lifetime."
        )
    return encode(trees, design, prior, sizes, fingerprint, nodes)


def stumps_value(design, prior, centre, spread, sizes, fingerprint):
    """Encoded forest of stumps whose leaves have (V,) values, ``centre`` plus and minus ``spread``.

    Uses only kernels that a step needs anyway, since chains start here: less to compile.
    """
    design = design._replace(varies=design.varies & (prior.weights > 0))
    trees = make_trees(sizes.m, sizes.max_nodes, sizes.n_values, sizes.n_rows)
    rows = np.arange(sizes.n_rows, dtype=np.uint32)
    unsplittable, rate = node_summary(prior, design, rows, 0, sizes.n_rows)
    trees.values[trees.roots] = centre + np.resize([[1.0], [-1.0]], (sizes.m, 1)) * spread
    trees.unsplittable[trees.roots] = unsplittable
    trees.rate[trees.roots] = rate
    nodes = np.empty(sizes.max_nodes, dtype=np.int32)
    return encode(trees, design, prior, sizes, fingerprint, nodes)


@njit(cache=True)
def mean_nodes(rng, X, lifetimes):
    """Mean number of nodes of trees of Mondrian processes, one of each lifetime."""
    n, p = X.shape
    design = float_design(X, np.empty(0), np.empty(0, dtype=np.int64), np.ones(p))
    rows, buffer = np.empty(n, dtype=np.uint32), np.empty(n, dtype=np.uint32)
    nodes = np.empty(2 * n - 1, dtype=np.int32)
    total = 0
    for lifetime in lifetimes:
        trees = make_stumps(2 * n - 1, 1, np.empty((1, n), dtype=np.uint32))
        draw_tree(rng, trees, 0, design, make_mondrian(lifetime, 0.0, np.ones(p)), rows, buffer)
        total += preorder(trees, 0, nodes)
    return total / lifetimes.size
