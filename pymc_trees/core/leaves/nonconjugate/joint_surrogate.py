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
from pymc_trees.core.leaves.nonconjugate.slopes import STEP, is_finite_sum
from pymc_trees.core.leaves.nonconjugate.surrogate import register_surrogate

MOST_ROWS = 200
"""Rows without a gradient that take differences, each of which evaluates the whole likelihood."""


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
    _mend_rows(leaf, at, slopes)
    linear, precision = np.empty((n, n_values)), np.empty((n, n_values, n_values))
    expand_rows(at, slopes, linear, precision)
    see_rows(near, linear, precision, offset, 1.0)


@njit(cache=True)
def _mend_rows(leaf, at, slopes):
    """Differences where derivatives are not finite, as in `slopes`; some rows are left out.

    Differences of gradients move all rows together, those of values one row at a time.
    """
    outputs, result, labels = leaf.outputs, leaf.result, leaf.labels
    n, k = at.shape
    if np.isfinite(slopes).all():
        return
    found = slopes.copy()
    for a in range(k):
        h = STEP * leaf.sd[a]
        for side in (1.0, -1.0):
            outputs[:n] = at
            outputs[:n, a] += side * h
            call_native(leaf.gradient_at, n, labels, outputs, leaf.table, leaf.data, result)
            for i in range(n):
                for b in range(k):
                    before = found[i, k + a * k + b] if side < 0.0 else 0.0
                    found[i, k + a * k + b] = before + side * result[i, b] / (2.0 * h)
    outputs[:n] = at
    n_left = 0
    for i in range(n):
        if is_finite_sum(slopes[i]):
            continue
        if is_finite_sum(found[i]):
            slopes[i] = found[i]
        elif n_left < MOST_ROWS:
            n_left += 1
            _take_differences_of_values(leaf, at, i, slopes[i])


@njit(cache=True)
def _take_differences_of_values(leaf, at, i, slopes):
    """Derivatives of the log-likelihood in the outputs of one row, each by itself."""
    k = at.shape[1]
    found = np.zeros(slopes.size)
    middle = _value_at(leaf)
    for a in range(k):
        h = STEP * leaf.sd[a]
        leaf.outputs[i, a] = at[i, a] + h
        above = _value_at(leaf)
        leaf.outputs[i, a] = at[i, a] - h
        below = _value_at(leaf)
        leaf.outputs[i, a] = at[i, a]
        found[a] = (above - below) / (2.0 * h)
        found[k + a * k + a] = (above - 2.0 * middle + below) / (h * h)
    if is_finite_sum(found):
        slopes[:] = found


@njit(cache=True)
def _value_at(leaf):
    """Log-likelihood at ``leaf.outputs``."""
    n, labels = leaf.labels.size, leaf.labels
    call_native(leaf.value_at, n, labels, leaf.outputs, leaf.table, leaf.data, leaf.result)
    return leaf.result[0, 0]


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
