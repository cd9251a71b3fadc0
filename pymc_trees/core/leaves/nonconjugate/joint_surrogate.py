"""Whole trees under a likelihood of all rows together: surrogate, weights, leaf values."""

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.leaves.contract import register
from pymc_trees.core.leaves.nonconjugate.gaussian_rows import gaussian_row
from pymc_trees.core.leaves.nonconjugate.joint import (
    JointData,
    fit_tree,
    label_leaves,
    log_likelihood_at,
    log_weight,
    write_leaves,
)
from pymc_trees.core.leaves.nonconjugate.native import call_native
from pymc_trees.core.leaves.nonconjugate.proposal import draw_proposal

# Statistics of a leaf: the joint log weight for the first leaf and 0 for others, the value (K).


@njit(cache=True)
def _keep(stats, values, weight, leaf_number):
    """Write the statistics of one leaf."""
    n_values = stats.size - 1
    stats[0] = weight if leaf_number == 0 else 0.0
    for a in range(n_values):
        stats[1 + a] = values[leaf_number * n_values + a]


@njit(cache=True)
def _next_tree(leaf, trees, old, new, nodes, n_nodes, stats):
    offset, values = leaf.offset, trees.values
    n, n_values = offset.shape
    if old >= 0:
        leaf_of = trees.leaf_of[old]
        for i in range(n):
            for k in range(n_values):
                offset[i, k] += values[leaf_of[i], k]
    if new < 0:
        return
    leaf_of = trees.leaf_of[new]
    for i in range(n):
        for k in range(n_values):
            offset[i, k] -= values[leaf_of[i], k]
    number = np.empty(trees.column.size, dtype=np.int32)
    present = label_leaves(leaf, trees.column, trees.values, leaf_of, nodes, n_nodes, number)
    fit = fit_tree(leaf, present.size // n_values)
    weight = log_weight(leaf, fit, present, log_likelihood_at(leaf, present))
    n_leaves = 0
    for k in range(n_nodes):
        if trees.column[nodes[k]] < 0:
            _keep(stats[nodes[k], : 1 + n_values], present, weight, n_leaves)
            n_leaves += 1


@njit(cache=True)
def _fill_surrogate(leaf, output, r, w):
    """Expand about the mode of a tree that is one leaf; rows bend as they do all together."""
    offset, outputs, result, labels = leaf.offset, leaf.outputs, leaf.result, leaf.labels
    n, n_values = offset.shape
    labels[:] = 0
    mode = fit_tree(leaf, 1).mode
    for i in range(n):
        for k in range(n_values):
            outputs[i, k] = offset[i, k] + mode[k]
            outputs[n + i, k] = 1.0 if k == output else 0.0
    call_native(leaf.product_at, 2 * n, labels, outputs, leaf.table, leaf.data, result)
    for i in range(n):
        w[i] = -result[i, output]
    call_native(leaf.gradient_at, n, labels, outputs, leaf.table, leaf.data, result)
    for i in range(n):
        r[i], w[i] = gaussian_row(mode[output], result[i, output], w[i])


@njit(cache=True)
def _finish_tree(leaf, rng, particles, c):
    labels, rows, column = leaf.labels, particles.rows[c], particles.column[c]
    n_values = leaf.mean.size
    n_leaves = 0
    for k in range(particles.n_nodes[c]):
        if column[k] < 0:
            for i in range(particles.start[c, k], particles.stop[c, k]):
                labels[rows[i]] = n_leaves
            n_leaves += 1
    fit = fit_tree(leaf, n_leaves)
    drawn = np.empty(n_leaves * n_values)
    draw_proposal(rng, fit.mean, fit.sd, fit.mode, fit.factor, drawn)
    weight = log_weight(leaf, fit, drawn, log_likelihood_at(leaf, drawn))
    n_leaves = 0
    for k in range(particles.n_nodes[c]):
        if column[k] < 0:
            _keep(particles.stats[c, k, : 1 + n_values], drawn, weight, n_leaves)
            n_leaves += 1
    return weight


@njit(cache=True)
def _draw_leaves(leaf, rng, column, values, leaf_of, nodes, n_nodes, stats):
    """Values of a tree after its move, then one independence Metropolis step of them all."""
    n_values = values.shape[1]
    number = np.empty(column.size, dtype=np.int32)
    present = label_leaves(leaf, column, values, leaf_of, nodes, n_nodes, number)
    n_leaves = 0
    for k in range(n_nodes):
        if column[nodes[k]] < 0:
            for v in range(n_values):
                present[n_leaves * n_values + v] = stats[nodes[k], 1 + v]
            n_leaves += 1
    fit = fit_tree(leaf, n_leaves)
    total = log_likelihood_at(leaf, present)
    drawn = np.empty(present.size)
    draw_proposal(rng, fit.mean, fit.sd, fit.mode, fit.factor, drawn)
    new_total = log_likelihood_at(leaf, drawn)
    ratio = log_weight(leaf, fit, drawn, new_total) - log_weight(leaf, fit, present, total)
    if np.log(rng.random()) < ratio:
        present, total = drawn, new_total
    leaf.total[0] = total
    write_leaves(column, values, nodes, n_nodes, present)


register(
    JointData,
    next_tree=_next_tree,
    draw_leaves=_draw_leaves,
    fill_surrogate=_fill_surrogate,
    finish_tree=_finish_tree,
)
