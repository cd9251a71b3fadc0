"""Class counts, and two estimates of the class probabilities from them.

``counts[j, k]`` is the number n_jk of rows with label k below node j. The model is a hierarchy of
normalized stable processes (thesis, (5.2)): G_j, the label distribution of node j, has the mean
G_parent and the variance ``(1 - d_j) / (1 + theta) G_parent (1 - G_parent)``, with the discount
``d_j = exp(-gamma (tau_j - tau_parent))`` and the concentration theta, 0 in the thesis; above the
root is the uniform distribution. g and g' are the estimates at a node and at its parent.

**One table a label** (interpolated Kneser-Ney; thesis, 5.4.1). A node passes each label that it has
seen to its parent once. With c_jk = n_jk customers at a leaf, at a split node the number of
children that have seen k, t_jk = min(c_jk, 1), and sums c_j and t_j over k,

    g_k = (c_jk - d_j t_jk + (theta + d_j t_j) g'_k) / (c_j + theta).                    (1)

A new point that branches off after u, above j, has a parent with the discount e = exp(-gamma u)
and one customer for each label below j:

    g_k = (1 - e) t_jk / t_j + e g'_k.                                                   (2)

With theta = 0 this is the posterior mean as all d_j go to 0: further tables have powers of d_j as
weights. There a point has one label, and rows at one place with several have probability 0; of
their shares only the set of labels goes up. So it is at each place of a leaf without an end, where
d_j = 0.

**Shares.** The best linear estimate of G_j from g' and the n_j rows below j, as draws from G_j. The
share s_jk = n_jk / n_j has, given G_parent, the variance of G_j and that of n_j draws from it; in
units of G_parent (1 - G_parent) these are (1 - d_j) / (1 + theta) and
(theta + d_j) / ((1 + theta) n_j). So

    g = g' + w_j (s_j - g'),    w_j = n_j (1 - d_j) / (n_j (1 - d_j) + d_j + theta).     (3)

For theta = 0 that is (1) with n_jk for c_jk and n_jk / (n_j (1 - d_j) + d_j) tables: one in all as
d_j goes to 0, one for each row as d_j goes to 1. For many rows w_j goes to 1. The distribution
after u has, for theta = 0, the covariance 1 - e with s_j, and

    g = g' + (1 - e) v_j (s_j - g'),    v_j = n_j / (n_j (1 - d_j) + d_j).               (4)

At u = tau_j - tau_parent that is (3) with theta = 0. The concentration is for points *at* places
that have rows, on which all trees agree: their average smooths nothing there. Elsewhere trees
differ, and (4) leaves it out.

For one row below j, and for rows of one label as d_j goes to 0, (3) and (4) with theta = 0 are (1)
and (2). At split nodes they differ: one counts rows, the other children that have seen a label.
"""

from typing import NamedTuple

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.mondrian.kernels.labels import register
from pymc_trees.mondrian.kernels.tree import FURTHEST, ROOT, distance

MOST_COUNTED = np.iinfo(np.int32).max
"""Rows of a class in a node, beyond which they are counted no more."""


class Categories(NamedTuple):
    """Statistics of class labels 0, 1, ..."""

    counts: np.ndarray
    """(nodes, classes) rows of each class below the node; at most `MOST_COUNTED`."""


class Smoothing(NamedTuple):
    """How class probabilities are estimated."""

    one_table: bool
    """By (1) and (2), otherwise by (3) and (4)."""
    gamma: float
    concentration: float


def make_categories(n_classes, n_nodes):
    """Statistics of no rows."""
    return Categories(np.zeros((n_nodes, n_classes), dtype=np.int32))


@njit(cache=True)
def _with_label_nodes(labels, n):
    counts = labels.counts
    copy = np.empty((n, counts.shape[1]), dtype=np.int32)
    kept = min(n, counts.shape[0])
    copy[:kept] = counts[:kept]
    return Categories(copy)


@njit(cache=True)
def _add(labels, node, y):
    if labels.counts[node, y] < MOST_COUNTED:
        labels.counts[node, y] += 1


@njit(cache=True)
def _fill_leaf(labels, node, y, rows, start, stop):
    counts = labels.counts[node]
    counts[:] = 0
    for k in range(start, stop):
        counts[y[rows[k]]] += 1


@njit(cache=True)
def _sum_up(labels, node, left, right):
    counts = labels.counts
    for k in range(counts.shape[1]):
        counts[node, k] = min(np.int64(counts[left, k]) + counts[right, k], MOST_COUNTED)


register(
    Categories,
    with_label_nodes=_with_label_nodes,
    pass_through=_add,
    fill_leaf=_fill_leaf,
    fill_split=_sum_up,
    join_leaves=_sum_up,
    add_to_leaf=_add,
)

_ROUNDING = 4.0 * np.finfo(np.float64).eps
"""Relative distance within which two numbers are the same but for rounding."""


@njit(cache=True)
def _away(box, x, size):
    """Distance of a point from a box; 0 where rounding explains it. ``size``: sum of abs(x)."""
    total = distance(box, x)
    if 0.0 < total <= _ROUNDING * min(size, FURTHEST):
        low, high = box[0], box[1]
        for d in range(x.size):
            if max(x[d] - high[d], low[d] - x[d]) > _ROUNDING * min(abs(x[d]), FURTHEST):
                return total
        return 0.0
    return total


@njit(cache=True)
def _one_table(tree, counts, j, d, theta, share, own):
    """Write t_j / sum(t_j) of (2) and what (1) adds to a multiple of g'; return the multiple."""
    left, right, is_leaf = tree.left[j], tree.right[j], tree.column[j] < 0
    customers, tables = 0, 0
    for k in range(share.size):
        c = counts[j, k] if is_leaf else (counts[left, k] > 0) + (counts[right, k] > 0)
        own[k] = c
        share[k] = 1.0 if c > 0 else 0.0
        customers += c
        tables += c > 0
    total = customers + theta
    for k in range(share.size):
        own[k] = (own[k] - d * share[k]) / total
        share[k] /= tables
    return (theta + d * tables) / total


@njit(cache=True)
def _shares(counts, j, d, theta, share, own):
    """Write s_j and what (3) adds to a multiple of g'; return the multiple, and v_j of (4)."""
    n = 0
    for k in range(share.size):
        n += counts[j, k]
    apart = n * (1.0 - d)
    weight = apart / (apart + d + theta)
    for k in range(share.size):
        share[k] = counts[j, k] / n
        own[k] = weight * share[k]
    return 1.0 - weight, n / (apart + d)


@njit(cache=True, nogil=True)
def add_class_probabilities(tree, labels, smoothing, X, out):
    """Add to ``out`` each row's class probabilities, averaged over all extensions (alg. 5.8)."""
    counts, column, cut, box = labels.counts, tree.column, tree.cut, tree.box
    left, right, time, lifetime = tree.left, tree.right, tree.time, tree.lifetime[0]
    one_table, gamma, theta = smoothing
    n_classes = counts.shape[1]
    g, share, own = np.empty(n_classes), np.empty(n_classes), np.empty(n_classes)
    for i in range(X.shape[0]):
        x, s = X[i], out[i]
        g[:] = 1.0 / n_classes  # above the root, and then the estimate at the parent
        stays = 1.0  # probability of not having branched off
        size = np.abs(x).sum()
        j, start = tree.state[ROOT], 0.0
        while True:
            is_leaf = column[j] < 0
            end = min(time[j], lifetime)
            delta = end - start
            eta = _away(box[j], x, size)
            d = np.exp(-gamma * delta)
            if one_table:
                above, v = _one_table(tree, counts, j, d, theta, share, own), 1.0
            else:
                above, v = _shares(counts, j, d, theta, share, own)
            if eta > 0.0:
                branches = -np.expm1(-delta * eta)
                # branches times the mean of exp(-gamma u), u from the exponential with rate eta
                # truncated to [0, delta]
                discount = eta / (eta + gamma) * -np.expm1(-(eta + gamma) * delta)
                old = v * (branches - discount)
                new = stays * (branches - old)
                for k in range(n_classes):
                    s[k] += new * g[k] + stays * old * share[k]
                stays *= 1.0 - branches
            for k in range(n_classes):
                g[k] = own[k] + above * g[k]
            if is_leaf:
                for k in range(n_classes):
                    s[k] += stays * g[k]
                break
            if stays == 0.0:
                break
            j, start = (left[j] if x[column[j]] <= cut[j] else right[j]), end
