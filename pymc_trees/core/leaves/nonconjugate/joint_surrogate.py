"""Whole trees under a likelihood of all rows together: surrogate and final weights."""

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.leaves.nonconjugate.gaussian.near import see_rows
from pymc_trees.core.leaves.nonconjugate.gaussian.rows import expand_rows
from pymc_trees.core.leaves.nonconjugate.joint import (
    JointData,
    keep_leaf,
    log_likelihood_at,
    log_weight,
)
from pymc_trees.core.leaves.nonconjugate.joint_mode import fit_tree
from pymc_trees.core.leaves.nonconjugate.native import call_native
from pymc_trees.core.leaves.nonconjugate.proposal import draw_proposal
from pymc_trees.core.leaves.nonconjugate.surrogate import register_surrogate


@njit(cache=True)
def _fill_surrogate(leaf, near):
    """Expand about the mode of a tree that is one leaf; rows bend as they do all together."""
    offset, outputs, result, labels = leaf.offset, leaf.outputs, leaf.result, leaf.labels
    n, n_values = offset.shape
    labels[:] = 0
    mode = fit_tree(leaf, 1).mode
    at, slopes = np.empty((n, n_values)), np.empty((n, n_values + n_values * n_values))
    for i in range(n):
        for k in range(n_values):
            at[i, k] = offset[i, k] + mode[k]
            outputs[i, k] = at[i, k]
    for a in range(n_values):
        for i in range(n):
            for k in range(n_values):
                outputs[n + i, k] = 1.0 if k == a else 0.0
        call_native(leaf.product_at, 2 * n, labels, outputs, leaf.table, leaf.data, result)
        for i in range(n):
            for k in range(n_values):
                slopes[i, n_values + a * n_values + k] = result[i, k]
    call_native(leaf.gradient_at, n, labels, outputs, leaf.table, leaf.data, result)
    slopes[:, :n_values] = result
    linear, precision = np.empty((n, n_values)), np.empty((n, n_values, n_values))
    expand_rows(at, slopes, linear, precision)
    see_rows(near, linear, precision, offset, 1.0)


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
            keep_leaf(particles.stats[c, k, : 1 + n_values], drawn, weight, n_leaves)
            n_leaves += 1
    return weight


register_surrogate(JointData, fill_surrogate=_fill_surrogate, finish_tree=_finish_tree)
