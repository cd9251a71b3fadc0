"""Class counts for the hierarchical normalized stable process, with IKN smoothing.

``counts[j, k]`` is the number of customers with dish k in restaurant j in the interpolated
Kneser-Ney approximation (thesis, 5.4.1): at a leaf the rows with label k, at a split node the
children that have seen k. A restaurant serves a dish at one table at most, ``tab = min(counts,
1)``.
"""

from typing import NamedTuple

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.mondrian.branch import distance
from pymc_trees.core.mondrian.labels import register
from pymc_trees.core.mondrian.tree import NONE, ROOT


class Categories(NamedTuple):
    """Statistics of class labels 0, 1, ..."""

    counts: np.ndarray
    """(nodes, classes) customers."""


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
def _pass_through(labels, node, y):
    pass


@njit(cache=True)
def _fill_leaf(labels, node, y, rows, start, stop):
    counts = labels.counts[node]
    counts[:] = 0
    for k in range(start, stop):
        counts[y[rows[k]]] += 1


@njit(cache=True)
def _fill_split(labels, node, left, right):
    counts = labels.counts
    for k in range(counts.shape[1]):  # alg. 5.3, line 5
        counts[node, k] = min(counts[left, k], 1) + min(counts[right, k], 1)


@njit(cache=True)
def _join_leaves(labels, node, left, right):
    labels.counts[node] = labels.counts[left] + labels.counts[right]


@njit(cache=True)
def _add_to_leaf(labels, node, y):
    labels.counts[node, y] += 1


@njit(cache=True)
def _knows(labels, node, y):
    return labels.counts[node, y] > 0


@njit(cache=True)
def _rise(labels, parents, node, y):
    counts = labels.counts
    node = parents[node]
    while node != NONE:  # alg. 5.7
        counts[node, y] += 1
        if counts[node, y] > 1:
            break
        node = parents[node]


register(
    Categories,
    with_label_nodes=_with_label_nodes,
    pass_through=_pass_through,
    fill_leaf=_fill_leaf,
    fill_split=_fill_split,
    join_leaves=_join_leaves,
    add_to_leaf=_add_to_leaf,
    knows=_knows,
    rise=_rise,
)


@njit(cache=True, nogil=True)
def add_class_probabilities(tree, labels, gamma, X, out):
    """Add to ``out`` each row's class probabilities, averaged over all extensions (alg. 5.8).

    The discount of node j is ``exp(-gamma (tau_j - tau_parent(j)))``.
    """
    counts, column, cut, box = labels.counts, tree.column, tree.cut, tree.box
    left, right, time, lifetime = tree.left, tree.right, tree.time, tree.lifetime[0]
    n_classes = counts.shape[1]
    g = np.empty(n_classes)
    for i in range(X.shape[0]):
        x, s = X[i], out[i]
        g[:] = 1.0 / n_classes  # H, and then the posterior mean at the parent
        stays = 1.0  # probability of not having branched off
        j, start = tree.state[ROOT], 0.0
        while True:
            is_leaf = column[j] < 0
            end = min(time[j], lifetime)
            delta = end - start
            eta = distance(box[j], x)
            customers, tables = 0, 0
            for k in range(n_classes):
                customers += counts[j, k]
                tables += counts[j, k] > 0
            branches = 0.0
            if eta > 0.0:
                branches = -np.expm1(-delta * eta)
                # branches times the mean of exp(-gamma Delta), Delta from the exponential with
                # rate eta truncated to [0, delta]
                discount = eta / (eta + gamma) * -np.expm1(-(eta + gamma) * delta)
                old = stays * (branches - discount) / tables
                new = stays * discount
                for k in range(n_classes):  # alg. 5.8, lines 10-12
                    s[k] += new * g[k]
                    if counts[j, k] > 0:
                        s[k] += old
            d = np.exp(-gamma * delta)
            for k in range(n_classes):  # (5.5)
                c = counts[j, k]
                g[k] = (c - d * min(c, 1) + d * tables * g[k]) / customers
            stays *= 1.0 - branches
            if is_leaf:
                for k in range(n_classes):
                    s[k] += stays * g[k]
                break
            if stays == 0.0:
                break
            j, start = (left[j] if x[column[j]] <= cut[j] else right[j]), end
