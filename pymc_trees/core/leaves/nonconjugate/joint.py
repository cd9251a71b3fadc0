"""Normal leaf values under a likelihood that is not a product over rows: joint draws.

All leaf values of a tree are proposed together, given the other trees, from an approximation to
their joint conditional. With Z the (n, L) indicators of the leaves, o the sum of the other trees
and mu the L values (times K outputs each),

    log p(mu | tree) = l(o + Z mu) + sum log N(mu; mean, sd^2) + const

whose gradient ``Z' grad l`` and second derivatives ``Z' H Z`` take one gradient and as many
products of H with a direction as there are values. What `laplace` says of weights and of where
Newton's steps start holds here for the whole tree.
"""

import math
from typing import NamedTuple

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.leaves.contract import register
from pymc_trees.core.leaves.nonconjugate.native import call_native
from pymc_trees.core.leaves.nonconjugate.proposal import (
    LONGEST,
    MOST_STEPS,
    NEAR,
    cholesky,
    log_prior,
    log_proposal,
    solve_lower,
    solve_upper,
)


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
    """(2n, K) room."""
    result: np.ndarray
    """(n, K) room."""
    total: np.ndarray
    """(1,) log-likelihood of the present trees."""


def make_joint(mean, sd, value_at, gradient_at, product_at, table, data, offset):
    """Leaf model of a native likelihood; ``offset``, the sum of all trees, is used in place."""
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
def log_likelihood_at(leaf, values):
    """Log-likelihood when the open tree has the (D,) values; -inf instead of NaN."""
    offset, labels, outputs = leaf.offset, leaf.labels, leaf.outputs
    n, n_values = offset.shape
    for i in range(n):
        for k in range(n_values):
            outputs[i, k] = offset[i, k] + values[labels[i] * n_values + k]
    call_native(leaf.value_at, n, labels, outputs, leaf.table, leaf.data, leaf.result)
    value = leaf.result[0, 0]
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
def label_leaves(leaf, column, leaf_values, leaf_of, nodes, n_nodes, number):
    """Number the leaves in preorder, label the rows; the leaves' values, (L K,).

    ``number`` is room for a number of each node of the pool.
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


@njit(cache=True)
def _derivatives(leaf, values, gradient, precision):
    """Gradient, and minus the second derivatives, of the log-likelihood in the tree's values."""
    offset, labels, outputs, result = leaf.offset, leaf.labels, leaf.outputs, leaf.result
    n, n_values = offset.shape
    for i in range(n):
        for k in range(n_values):
            outputs[i, k] = offset[i, k] + values[labels[i] * n_values + k]
    call_native(leaf.gradient_at, n, labels, outputs, leaf.table, leaf.data, result)
    _sum_by_leaf(result, labels, 1.0, gradient)
    for d in range(values.size):
        for i in range(n):
            for k in range(n_values):
                outputs[n + i, k] = 1.0 if labels[i] * n_values + k == d else 0.0
        call_native(leaf.product_at, 2 * n, labels, outputs, leaf.table, leaf.data, result)
        _sum_by_leaf(result, labels, -1.0, precision[d])
    for d in range(values.size):  # of sums of rounded numbers
        for e in range(d):
            even = 0.5 * (precision[d, e] + precision[e, d])
            precision[d, e], precision[e, d] = even, even


@njit(cache=True)
def _sum_by_leaf(result, labels, factor, out):
    n_values = result.shape[1]
    out[:] = 0.0
    for i in range(labels.size):
        for k in range(n_values):
            if np.isfinite(result[i, k]):
                out[labels[i] * n_values + k] += factor * result[i, k]


@njit(cache=True)
def _n_stats(leaf):
    return 1 + leaf.mean.size  # at least the 2 of the flat leaf that moves are proposed with


@njit(cache=True)
def _log_likelihood(leaf, trees):
    return leaf.total[0]


register(JointData, n_stats=_n_stats, log_likelihood=_log_likelihood)
