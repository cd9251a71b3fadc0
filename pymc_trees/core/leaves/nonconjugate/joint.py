"""Normal leaf values under a likelihood that is not a product over rows: joint draws.

All leaf values of a tree are proposed together, given the other trees, from an approximation to
their joint conditional. Weights are as in `rowwise`, Newton's method as in `proposal`.
"""

import math
from typing import NamedTuple

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.compile.pointer import by_pointer
from pymc_trees.core.leaves.contract import add_outputs, register, subtract_outputs
from pymc_trees.core.leaves.nonconjugate.native import STEP, call_native, is_finite_sum
from pymc_trees.core.leaves.nonconjugate.proposal import (
    MAX_STEP_SIZE,
    MAX_STEPS,
    TOLERANCE,
    cholesky,
    draw_proposal,
    log_prior,
    log_proposal,
    solve_lower,
    solve_upper,
)

# ------------------------------------------------------------ Mode and curvature of the conditional
#
# With Z the (n, L) indicators of the leaves, o the sum of the other trees and mu the L values
# (times K outputs each),
#
#     log p(mu | tree) = l(o + Z mu) + sum log N(mu; mean, sd^2) + const
#
# with gradient ``Z' grad l`` and second derivatives ``Z' H Z``: one gradient, and a product of H
# with a direction for each value. Where these are not finite, differences of gradients or of l
# replace them, as in `native`.


@by_pointer
class TreeFit(NamedTuple):
    """Approximate conditional of the D = L K values of a tree."""

    mean: np.ndarray
    """(D,) prior mean"""
    sd: np.ndarray
    """(D,) prior sd"""
    mode: np.ndarray
    """(D,)"""
    factor: np.ndarray
    """(D, D) lower Cholesky factor of the precision."""


@njit(cache=True)
def fit_tree(leaf, n_leaves):
    """Mode and precision of all values of the open tree, given ``leaf.labels``."""
    n_values = leaf.mean.size
    size = n_leaves * n_values
    mean, sd = np.empty(size), np.empty(size)
    for d in range(size):
        mean[d], sd[d] = leaf.mean[d % n_values], leaf.sd[d % n_values]
    mode, factor = mean.copy(), np.zeros((size, size))
    gradient, precision = np.empty(size), np.empty((size, size))
    half, step = np.empty(size), np.empty(size)
    for _ in range(MAX_STEPS):
        _derivatives(leaf, mode, gradient, precision)
        for d in range(size):
            gradient[d] += (mean[d] - mode[d]) / sd[d] ** 2
            precision[d, d] += 1.0 / sd[d] ** 2
        if not cholesky(precision, factor):
            for d in range(size):
                for e in range(size):
                    factor[d, e] = 0.0
                curvature = max(precision[d, d] - 1.0 / sd[d] ** 2, 0.0)
                factor[d, d] = math.sqrt(1.0 / sd[d] ** 2 + curvature)
        solve_lower(factor, gradient, half)
        solve_upper(factor, half, step)
        distance, shrink = 0.0, 1.0
        for d in range(size):
            distance += half[d] * half[d]
            shrink = min(shrink, MAX_STEP_SIZE * sd[d] / max(abs(step[d]), 1e-300))
        for d in range(size):
            mode[d] += shrink * step[d]
        if distance < TOLERANCE:
            break
    return TreeFit(mean, sd, mode, factor)


@njit(cache=True)
def _derivatives(leaf, values, gradient, precision):
    """Gradient, and minus the second derivatives, of the log-likelihood in the tree's values."""
    labels, outputs, result = leaf.labels, leaf.outputs, leaf.result
    n, n_values = leaf.offset.shape
    _write_outputs(leaf, values)
    call_native(leaf.gradient_at, n, labels, outputs, leaf.table, leaf.data, result)
    has_gradient = _sum_by_leaf(result, labels, 1.0, gradient)
    has_products = True
    for d in range(values.size):
        for i in range(n):
            for k in range(n_values):
                outputs[n + i, k] = 1.0 if labels[i] * n_values + k == d else 0.0
        call_native(leaf.product_at, 2 * n, labels, outputs, leaf.table, leaf.data, result)
        has_products &= _sum_by_leaf(result, labels, -1.0, precision[d])
    if not (has_gradient and has_products):
        if not (has_gradient and _difference_gradients(leaf, values, precision)):
            _difference_values(leaf, values, gradient, precision)
    for d in range(values.size):  # symmetric despite rounding
        for e in range(d):
            mean = 0.5 * (precision[d, e] + precision[e, d])
            precision[d, e], precision[e, d] = mean, mean


@njit(cache=True)
def _write_outputs(leaf, values):
    """Write the outputs of all rows when the open tree has the (D,) values."""
    offset, labels, outputs = leaf.offset, leaf.labels, leaf.outputs
    n, n_values = offset.shape
    for i in range(n):
        for k in range(n_values):
            outputs[i, k] = offset[i, k] + values[labels[i] * n_values + k]


@njit(cache=True)
def _sum_by_leaf(result, labels, factor, out):
    """Write the sum of the finite numbers of each leaf; return whether all were finite."""
    n_values = result.shape[1]
    out[:] = 0.0
    are_finite = True
    for i in range(labels.size):
        for k in range(n_values):
            if np.isfinite(result[i, k]):
                out[labels[i] * n_values + k] += factor * result[i, k]
            else:
                are_finite = False
    return are_finite


@njit(cache=True)
def _difference_gradients(leaf, values, precision):
    """Write second derivatives as differences of gradients; return whether these were finite."""
    labels, result = leaf.labels, leaf.result
    n, n_values = leaf.offset.shape
    size = values.size
    point, above, below = values.copy(), np.empty(size), np.empty(size)
    differences = np.empty((size, size))
    for d in range(size):
        h = STEP * leaf.sd[d % n_values]
        point[d] = values[d] + h
        _write_outputs(leaf, point)
        call_native(leaf.gradient_at, n, labels, leaf.outputs, leaf.table, leaf.data, result)
        if not _sum_by_leaf(result, labels, 1.0, above):
            return False
        point[d] = values[d] - h
        _write_outputs(leaf, point)
        call_native(leaf.gradient_at, n, labels, leaf.outputs, leaf.table, leaf.data, result)
        if not _sum_by_leaf(result, labels, 1.0, below):
            return False
        point[d] = values[d]
        for e in range(size):
            differences[d, e] = (below[e] - above[e]) / (2.0 * h)
    precision[:] = differences
    return True


@njit(cache=True)
def _difference_values(leaf, values, gradient, precision):
    """Write both derivatives as differences of the log-likelihood, if it is finite."""
    n_values, size = leaf.mean.size, values.size
    point, slope, curvature = values.copy(), np.empty(size), np.empty((size, size))
    above, below = np.empty(size), np.empty(size)
    middle = _value_at(leaf, point)
    for d in range(size):
        h = STEP * leaf.sd[d % n_values]
        point[d] = values[d] + h
        above[d] = _value_at(leaf, point)
        point[d] = values[d] - h
        below[d] = _value_at(leaf, point)
        point[d] = values[d]
        slope[d] = (above[d] - below[d]) / (2.0 * h)
        curvature[d, d] = (2.0 * middle - above[d] - below[d]) / (h * h)
    if not (is_finite_sum(slope) and np.isfinite(middle)):
        return
    for d in range(size):
        for e in range(d):
            h, g = STEP * leaf.sd[d % n_values], STEP * leaf.sd[e % n_values]
            point[d], point[e] = values[d] + h, values[e] + g
            total = _value_at(leaf, point)
            point[d], point[e] = values[d] - h, values[e] - g
            total += _value_at(leaf, point) + 2.0 * middle
            point[d], point[e] = values[d], values[e]
            total -= above[d] + below[d] + above[e] + below[e]
            curvature[d, e] = -total / (2.0 * h * g)
            curvature[e, d] = curvature[d, e]
    if is_finite_sum(curvature.reshape(size * size)):
        gradient[:] = slope
        precision[:] = curvature


@njit(cache=True)
def _value_at(leaf, values):
    """Log-likelihood at the values of the open tree."""
    n, labels = leaf.labels.size, leaf.labels
    _write_outputs(leaf, values)
    call_native(leaf.value_at, n, labels, leaf.outputs, leaf.table, leaf.data, leaf.result)
    return leaf.result[0, 0]


# --------------------------------------------------------------------------------------------------


class JointData(NamedTuple):
    """A normal leaf and a native likelihood of all rows together."""

    mean: np.ndarray
    """(K,)"""
    sd: np.ndarray
    """(K,)"""
    value_at: int
    """Address of the log-likelihood: one number for the (n, K) outputs."""
    gradient_at: int
    """Address of its (n, K) gradient."""
    product_at: int
    """Address of the (n, K) product of its second derivatives with a direction; outputs and
    direction are the two halves of a (2n, K) array."""
    table: np.ndarray
    data: np.ndarray
    offset: np.ndarray
    """(n, K) sum of all trees, or of all but the open one."""
    labels: np.ndarray
    """(n,) int64: leaf of each row in the open tree, counted in preorder."""
    outputs: np.ndarray
    """(2n, K) overwritten."""
    result: np.ndarray
    """(n, K) overwritten."""
    total: np.ndarray
    """(1,) log-likelihood of the current trees."""


def make_joint(mean, sd, value_at, gradient_at, product_at, numbers, offset):
    """Leaf model of a native likelihood and its ``table`` and ``data``.

    ``offset``, the sum of all trees, is used in place.
    """
    table, data = numbers
    n, k = offset.shape
    return JointData(
        np.broadcast_to(np.asarray(mean, dtype=np.float64), (k,)).copy(),
        np.broadcast_to(np.asarray(sd, dtype=np.float64), (k,)).copy(),
        value_at,
        gradient_at,
        product_at,
        table,
        data,
        offset,
        np.zeros(n, dtype=np.int64),
        np.zeros((2 * n, k)),
        np.zeros((n, k)),
        np.zeros(1),
    )


@njit(cache=True)
def log_likelihood_at(leaf, values):
    """Log-likelihood when the open tree has the (D,) values; -inf instead of NaN."""
    value = _value_at(leaf, values)
    return value if value < np.inf else -np.inf


@njit(cache=True)
def log_weight(leaf, fit, values, total):
    """Log weight of the values of a tree whose log-likelihood is ``total``."""
    return (
        total
        + log_prior(fit.mean, fit.sd, values)
        - log_proposal(fit.mean, fit.sd, fit.mode, fit.factor, values)
    )


@njit(cache=True)
def label_leaves(leaf, column, leaf_values, leaf_of, nodes, n_nodes, number):
    """Number the leaves in preorder and label the rows; return the leaves' values, (L K,).

    ``number``, (max_nodes,), is overwritten with the number of each leaf.
    """
    labels, n_values = leaf.labels, leaf_values.shape[1]
    values = np.empty(((n_nodes + 1) // 2) * n_values)
    n_leaves = 0
    for k in range(n_nodes):
        node = nodes[k]
        if column[node] < 0:
            number[node] = n_leaves
            for v in range(n_values):
                values[n_leaves * n_values + v] = leaf_values[node, v]
            n_leaves += 1
    for i in range(labels.size):
        labels[i] = number[leaf_of[i]]
    return values


@njit(cache=True)
def write_leaves(column, leaf_values, nodes, n_nodes, values):
    """Write the values of the leaves in preorder."""
    n_values = leaf_values.shape[1]
    n_leaves = 0
    for k in range(n_nodes):
        if column[nodes[k]] < 0:
            for v in range(n_values):
                leaf_values[nodes[k], v] = values[n_leaves * n_values + v]
            n_leaves += 1


# Statistics of a leaf: the joint log weight for the first leaf and 0 for others, the value (K).


@njit(cache=True)
def write_leaf_stats(stats, values, weight, leaf_number):
    """Write the statistics of one leaf."""
    n_values = stats.size - 1
    stats[0] = weight if leaf_number == 0 else 0.0
    for a in range(n_values):
        stats[1 + a] = values[leaf_number * n_values + a]


@njit(cache=True)
def _n_stats(leaf):
    return 1 + leaf.mean.size  # at least 2, as many as the flat leaf under which moves are proposed


@njit(cache=True)
def _log_likelihood(leaf, trees):
    return leaf.total[0]


@njit(cache=True)
def _swap_residual(leaf, trees, old, new, nodes, n_nodes, stats):
    offset, values = leaf.offset, trees.values
    n, n_values = offset.shape
    if old >= 0:
        add_outputs(leaf, values, trees.leaf_of[old], offset)
    if new < 0:
        return
    leaf_of = trees.leaf_of[new]
    subtract_outputs(leaf, values, leaf_of, offset)
    number = np.empty(trees.column.size, dtype=np.int32)
    current = label_leaves(leaf, trees.column, trees.values, leaf_of, nodes, n_nodes, number)
    fit = fit_tree(leaf, current.size // n_values)
    weight = log_weight(leaf, fit, current, log_likelihood_at(leaf, current))
    n_leaves = 0
    for k in range(n_nodes):
        if trees.column[nodes[k]] < 0:
            write_leaf_stats(stats[nodes[k], : 1 + n_values], current, weight, n_leaves)
            n_leaves += 1


@njit(cache=True)
def _draw_leaves(leaf, rng, column, values, leaf_of, nodes, n_nodes, stats):
    """Write the values of a tree after its move, then one independence step of them all."""
    n_values = values.shape[1]
    number = np.empty(column.size, dtype=np.int32)
    moved = stats[:, 1 : 1 + n_values]
    current = label_leaves(leaf, column, moved, leaf_of, nodes, n_nodes, number)
    fit = fit_tree(leaf, current.size // n_values)
    total = log_likelihood_at(leaf, current)
    drawn = np.empty(current.size)
    draw_proposal(rng, fit.mean, fit.sd, fit.mode, fit.factor, drawn)
    new_total = log_likelihood_at(leaf, drawn)
    ratio = log_weight(leaf, fit, drawn, new_total) - log_weight(leaf, fit, current, total)
    if np.log(rng.random()) < ratio:
        current, total = drawn, new_total
    leaf.total[0] = total
    write_leaves(column, values, nodes, n_nodes, current)


@njit(cache=True)
def evaluate_values(leaf, column, values, leaf_of, nodes, n_nodes):
    """Evaluate the likelihood at the values of the leaves of the open tree."""
    number = np.empty(column.size, dtype=np.int32)
    current = label_leaves(leaf, column, values, leaf_of, nodes, n_nodes, number)
    leaf.total[0] = log_likelihood_at(leaf, current)


register(
    JointData,
    n_stats=_n_stats,
    swap_residual=_swap_residual,
    draw_leaves=_draw_leaves,
    log_likelihood=_log_likelihood,
)
