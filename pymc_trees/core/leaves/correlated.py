"""K normal values of a leaf, rows of several outputs with correlated errors.

With U_i and e_i as in `targets.likelihoods.correlated`, the log-likelihood of a row is that at 0
plus ``h_i'f_i - f_i'P_i f_i / 2``, where ``P_i = U_i'U_i`` and ``h_i = U_i'e_i``. Where other trees
add g_i to the outputs, h_i is ``U_i'e_i - P_i g_i``. With ``A = sum P_i`` and ``c = sum h_i`` over
the rows of a leaf, marginal and conditional are those of `coefficients`.
"""

from typing import NamedTuple

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.leaves.coefficients import draw, log_marginal_of_sums
from pymc_trees.core.leaves.contract import register


class CorrelatedData(NamedTuple):
    """Prior of the K values, and the data."""

    mean: np.ndarray
    """(K,)"""
    sd: np.ndarray
    """(K,)"""
    P: np.ndarray
    """(n, K, K), or (1, K, K) for all rows."""
    h: np.ndarray
    """(n, K) where the outputs are those of all trees, or of all trees but the open one."""
    h_at_0: np.ndarray
    """(n, K) where the outputs are 0."""
    work: np.ndarray
    """(K + 1, K) workspace of `coefficients`."""


def make_correlated(mean, sd, P, h_at_0, fit) -> CorrelatedData:
    """Leaf model where the outputs of the trees are ``fit``, (n, K)."""
    mean, sd, P, h_at_0, fit = (
        np.ascontiguousarray(v, dtype=np.float64) for v in (mean, sd, P, h_at_0, fit)
    )
    h = h_at_0 - (P @ fit[:, :, None])[:, :, 0]
    return CorrelatedData(mean, sd, P, h, h_at_0, np.zeros((mean.size + 1, mean.size)))


@njit(cache=True)
def _n_stats(leaf):
    k = leaf.mean.size
    return k * (k + 1) // 2 + k  # lower triangle of A by rows, then c


@njit(cache=True)
def _precision(leaf, i):
    return leaf.P[i if leaf.P.shape[0] > 1 else 0]


@njit(cache=True)
def _add_row(leaf, i, stats):
    k, P = leaf.mean.size, _precision(leaf, i)
    entry, first = 0, k * (k + 1) // 2
    for a in range(k):
        for b in range(a + 1):
            stats[entry] += P[a, b]
            entry += 1
        stats[first + a] += leaf.h[i, a]


@njit(cache=True)
def _add_rows(leaf, rows, start, stop, out):
    out[:] = 0.0
    for k in range(start, stop):
        _add_row(leaf, rows[k], out)


@njit(cache=True)
def _add_values(leaf, values, leaf_of, sign):
    """Add a multiple of P times the values of a tree to h."""
    k = leaf.mean.size
    for i in range(leaf_of.size):
        P, value = _precision(leaf, i), values[leaf_of[i]]
        for a in range(k):
            total = 0.0
            for b in range(k):
                total += P[a, b] * value[b]
            leaf.h[i, a] += sign * total


@njit(cache=True)
def _swap_residual(leaf, trees, old, new, nodes, n_nodes, stats):
    if old >= 0:
        _add_values(leaf, trees.values, trees.leaf_of[old], -1.0)
    if new < 0:
        return
    leaf_of = trees.leaf_of[new]
    _add_values(leaf, trees.values, leaf_of, 1.0)
    for k in range(n_nodes):
        stats[nodes[k]] = 0.0
    for i in range(leaf_of.size):
        _add_row(leaf, i, stats[leaf_of[i]])


@njit(cache=True)
def _draw_values(leaf, rng, stats, out):
    log_marginal_of_sums(leaf, stats)
    k = leaf.mean.size
    draw(rng, leaf.work, k)
    for j in range(k):
        out[j] = leaf.mean[j] + leaf.sd[j] * leaf.work[k, j]


@njit(cache=True)
def _log_likelihood(leaf, trees):
    """Less that where the outputs are 0: half of (h at 0 + h) times the outputs."""
    total = 0.0
    for t in range(trees.leaf_of.shape[0]):
        leaf_of = trees.leaf_of[t]
        for i in range(leaf_of.size):
            for k in range(leaf.mean.size):
                both = leaf.h_at_0[i, k] + leaf.h[i, k]
                total += 0.5 * both * trees.values[leaf_of[i], k]
    return total


def _log_constant(leaf):
    at_mean = (leaf.P @ leaf.mean) * (len(leaf.h) / len(leaf.P))
    return float(leaf.h.sum(axis=0) @ leaf.mean - 0.5 * at_mean.sum(axis=0) @ leaf.mean)


register(
    CorrelatedData,
    n_stats=_n_stats,
    add_row=_add_row,
    add_rows=_add_rows,
    swap_residual=_swap_residual,
    log_marginal=log_marginal_of_sums,
    draw_values=_draw_values,
    log_likelihood=_log_likelihood,
    log_constant=_log_constant,
)
