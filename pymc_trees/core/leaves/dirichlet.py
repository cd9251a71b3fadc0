"""Dirichlet leaf of a single tree: class probabilities.

``theta ~ Dirichlet(alpha/K, ..)``, ``y_i | theta ~ Categorical(theta)``.

With n_k rows of class k (Lakshminarayanan thesis, section 3.2; ``alpha`` is the total):

    p(y) = Gamma(alpha) / Gamma(alpha + n) * prod_k Gamma(alpha/K + n_k) / Gamma(alpha/K)
    theta | y ~ Dirichlet(alpha/K + n_k)
"""

import math
from typing import NamedTuple

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.leaves.contract import register


class DirichletData(NamedTuple):
    """A Dirichlet leaf and the rows it sees."""

    alpha: float
    n_classes: int
    y: np.ndarray
    """(n,) int64 classes 0 .. K-1; (0,) without data."""
    lgamma_class: np.ndarray
    """(n + 1,) log Gamma(alpha/K + k) / Gamma(alpha/K), for k rows of a class."""
    lgamma_all: np.ndarray
    """(n + 1,) log Gamma(alpha + k) / Gamma(alpha)."""


def make_dirichlet(alpha, n_classes, y) -> DirichletData:
    """Leaf model of observed classes; an empty ``y`` for no data."""
    alpha, n_classes, y = float(alpha), int(n_classes), np.asarray(y, dtype=np.int64)
    return DirichletData(
        alpha, n_classes, y, log_rising(alpha / n_classes, y.size), log_rising(alpha, y.size)
    )


@njit(cache=True)
def log_rising(a, n):
    """Log of the rising factorials Gamma(a + k) / Gamma(a), for k = 0 .. n."""
    out = np.empty(n + 1)
    for k in range(n + 1):
        out[k] = math.lgamma(a + k) - math.lgamma(a)
    return out


@njit(cache=True)
def _n_stats(leaf):
    return leaf.n_classes


@njit(cache=True)
def _next_tree(leaf, trees, old, new, nodes, n_nodes, stats):
    if new < 0:
        return
    for k in range(n_nodes):
        stats[nodes[k]] = 0.0
    for i in range(leaf.y.size):
        stats[trees.leaf_of[new, i], leaf.y[i]] += 1.0


@njit(cache=True)
def _add_rows(leaf, rows, start, stop, out):
    out[:] = 0.0
    if leaf.y.size == 0:
        return
    for k in range(start, stop):
        out[leaf.y[rows[k]]] += 1.0


@njit(cache=True)
def _add_sides(leaf, cells, cut, rows, n, left, right):
    left[:] = 0.0
    right[:] = 0.0
    n_left = 0
    for k in range(n):
        i = rows[k]
        is_left = cells[i] <= cut
        n_left += is_left
        if leaf.y.size > 0:
            out = left if is_left else right
            out[leaf.y[i]] += 1.0
    return n_left


@njit(cache=True)
def _log_marginal(leaf, stats):
    lgamma_class = leaf.lgamma_class
    n = 0
    total = 0.0
    for k in range(leaf.n_classes):
        count = int(stats[k])
        total += lgamma_class[count]
        n += count
    return total - leaf.lgamma_all[n]


@njit(cache=True)
def _draw_values(leaf, rng, stats, out):
    # In logs, Gamma(a) = Gamma(a + 1) U**(1/a): a gamma of small shape would underflow.
    each = leaf.alpha / leaf.n_classes
    largest = -np.inf
    for k in range(leaf.n_classes):
        shape = each + stats[k]
        out[k] = np.log(rng.standard_gamma(shape + 1.0)) + np.log1p(-rng.random()) / shape
        largest = max(largest, out[k])
    total = 0.0
    for k in range(leaf.n_classes):
        out[k] = max(np.exp(out[k] - largest), np.finfo(np.float64).tiny)
        total += out[k]
    for k in range(leaf.n_classes):
        out[k] /= total


@njit(cache=True)
def _log_likelihood(leaf, trees):
    total = 0.0
    for i in range(leaf.y.size):
        total += np.log(trees.values[trees.leaf_of[0, i], leaf.y[i]])
    return total


register(
    DirichletData,
    n_stats=_n_stats,
    next_tree=_next_tree,
    add_rows=_add_rows,
    add_sides=_add_sides,
    log_marginal=_log_marginal,
    draw_values=_draw_values,
    log_likelihood=_log_likelihood,
)
