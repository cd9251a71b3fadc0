"""Mode and curvature of the joint conditional of all leaf values of a tree.

With Z the (n, L) indicators of the leaves, o the sum of the other trees and mu the L values (times
K outputs each),

    log p(mu | tree) = l(o + Z mu) + sum log N(mu; mean, sd^2) + const

whose gradient ``Z' grad l`` and second derivatives ``Z' H Z`` take one gradient and as many
products of H with a direction as there are values. Where these are not finite they take differences
of gradients in the values, or of l, as in `slopes`.
"""

import math
from typing import NamedTuple

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.compile.pointer import by_pointer
from pymc_trees.core.leaves.nonconjugate.native import call_native
from pymc_trees.core.leaves.nonconjugate.proposal import (
    LONGEST,
    MOST_STEPS,
    NEAR,
    cholesky,
    solve_lower,
    solve_upper,
)
from pymc_trees.core.leaves.nonconjugate.slopes import STEP, is_finite_sum


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
    for _ in range(MOST_STEPS):
        _derivatives(leaf, mode, gradient, precision)
        for d in range(size):
            gradient[d] += (mean[d] - mode[d]) / sd[d] ** 2
            precision[d, d] += 1.0 / sd[d] ** 2
        if not cholesky(precision, factor):
            for d in range(size):
                for e in range(size):
                    factor[d, e] = 0.0
                bend = max(precision[d, d] - 1.0 / sd[d] ** 2, 0.0)
                factor[d, d] = math.sqrt(1.0 / sd[d] ** 2 + bend)
        solve_lower(factor, gradient, half)
        solve_upper(factor, half, step)
        distance, shrink = 0.0, 1.0
        for d in range(size):
            distance += half[d] * half[d]
            shrink = min(shrink, LONGEST * sd[d] / max(abs(step[d]), 1e-300))
        for d in range(size):
            mode[d] += shrink * step[d]
        if distance < NEAR:
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
        if not (has_gradient and _take_differences(leaf, values, precision)):
            _take_differences_of_values(leaf, values, gradient, precision)
    for d in range(values.size):  # of sums of rounded numbers
        for e in range(d):
            even = 0.5 * (precision[d, e] + precision[e, d])
            precision[d, e], precision[e, d] = even, even


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
    """Sum the finite numbers of each leaf; whether all were finite."""
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
def _take_differences(leaf, values, precision):
    """Second derivatives as differences of gradients, if these are finite; whether they were."""
    labels, result = leaf.labels, leaf.result
    n, n_values = leaf.offset.shape
    size = values.size
    at, above, below = values.copy(), np.empty(size), np.empty(size)
    found = np.empty((size, size))
    for d in range(size):
        h = STEP * leaf.sd[d % n_values]
        at[d] = values[d] + h
        _write_outputs(leaf, at)
        call_native(leaf.gradient_at, n, labels, leaf.outputs, leaf.table, leaf.data, result)
        if not _sum_by_leaf(result, labels, 1.0, above):
            return False
        at[d] = values[d] - h
        _write_outputs(leaf, at)
        call_native(leaf.gradient_at, n, labels, leaf.outputs, leaf.table, leaf.data, result)
        if not _sum_by_leaf(result, labels, 1.0, below):
            return False
        at[d] = values[d]
        for e in range(size):
            found[d, e] = (below[e] - above[e]) / (2.0 * h)
    precision[:] = found
    return True


@njit(cache=True)
def _take_differences_of_values(leaf, values, gradient, precision):
    """Both derivatives from the log-likelihood, if it is finite."""
    n_values, size = leaf.mean.size, values.size
    at, slope, bend = values.copy(), np.empty(size), np.empty((size, size))
    above, below = np.empty(size), np.empty(size)
    middle = _value_at(leaf, at)
    for d in range(size):
        h = STEP * leaf.sd[d % n_values]
        at[d] = values[d] + h
        above[d] = _value_at(leaf, at)
        at[d] = values[d] - h
        below[d] = _value_at(leaf, at)
        at[d] = values[d]
        slope[d] = (above[d] - below[d]) / (2.0 * h)
        bend[d, d] = (2.0 * middle - above[d] - below[d]) / (h * h)
    if not (is_finite_sum(slope) and np.isfinite(middle)):
        return
    for d in range(size):
        for e in range(d):
            h, g = STEP * leaf.sd[d % n_values], STEP * leaf.sd[e % n_values]
            at[d], at[e] = values[d] + h, values[e] + g
            total = _value_at(leaf, at)
            at[d], at[e] = values[d] - h, values[e] - g
            total += _value_at(leaf, at) + 2.0 * middle
            at[d], at[e] = values[d], values[e]
            total -= above[d] + below[d] + above[e] + below[e]
            bend[d, e] = -total / (2.0 * h * g)
            bend[e, d] = bend[d, e]
    if is_finite_sum(bend.reshape(size * size)):
        gradient[:] = slope
        precision[:] = bend


@njit(cache=True)
def _value_at(leaf, values):
    """Log-likelihood at the values of the open tree."""
    n, labels = leaf.labels.size, leaf.labels
    _write_outputs(leaf, values)
    call_native(leaf.value_at, n, labels, leaf.outputs, leaf.table, leaf.data, leaf.result)
    return leaf.result[0, 0]
