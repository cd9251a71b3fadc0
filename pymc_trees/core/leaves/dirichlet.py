"""Dirichlet leaf of a single tree: class probabilities.

``theta ~ Dirichlet(alpha/K, ..)``, ``y_i | theta ~ Categorical(theta)``.

With n_k rows of class k (Lakshminarayanan thesis, section 3.2; ``alpha`` is the total):

    p(y) = Gamma(alpha) / Gamma(alpha + n) * prod_k Gamma(alpha/K + n_k) / Gamma(alpha/K)
    theta | y ~ Dirichlet(alpha/K + n_k)

Tempered models have a power of p(y).
"""

import math
from typing import NamedTuple

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.leaves.contract import register_sums


class DirichletData(NamedTuple):
    """A Dirichlet leaf and its data."""

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
def _add_row(leaf, i, stats):
    if leaf.y.size > 0:
        stats[leaf.y[i]] += 1.0


@njit(cache=True)
def _log_marginal(leaf, stats):
    n = 0
    total = 0.0
    for k in range(leaf.n_classes):
        count = int(stats[k])
        total += leaf.lgamma_class[count]
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
def _log_row(leaf, i, output):
    return np.log(output[leaf.y[i]]) if leaf.y.size > 0 else 0.0


def _tempered(leaf, power):
    tables = power * leaf.lgamma_class, power * leaf.lgamma_all
    return leaf._replace(lgamma_class=tables[0], lgamma_all=tables[1])


register_sums(
    DirichletData,
    n_stats=_n_stats,
    add_row=_add_row,
    log_row=_log_row,
    log_marginal=_log_marginal,
    draw_values=_draw_values,
    tempered=_tempered,
)
