"""K normal leaf values, Gaussian rows: approximation of a likelihood of several outputs.

A row is exp(l_i' mu - mu' P_i mu / 2), and ``mu ~ N(mean, diag(sd**2))``. With ``l`` and ``P`` the
sums over the rows of a leaf, and D = diag(sd**-2), completing the square in mu gives

    m(rows) = exp((l + D mean)' Q^-1 (l + D mean) / 2 - mean' D mean / 2) sqrt(|D| / |Q|),
    mu | rows ~ N(Q^-1 (l + D mean), Q^-1),        Q = D + P.

It is used for proposals and screening only, not as the leaf of a model.
"""

import math
from typing import NamedTuple

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.compile.pointer import by_pointer
from pymc_trees.core.leaves.contract import register
from pymc_trees.core.leaves.nonconjugate.proposal import cholesky, solve_lower, solve_upper


@by_pointer
class GaussianVector(NamedTuple):
    """K normal leaf values and their data."""

    mean: np.ndarray
    """(K,)"""
    sd: np.ndarray
    """(K,)"""
    linear: np.ndarray
    """(n, K) l"""
    precision: np.ndarray
    """(n, K, K) P"""
    pull: np.ndarray
    """(K,) overwritten."""
    half: np.ndarray
    """(K,) overwritten."""
    total: np.ndarray
    """(K, K) overwritten."""
    factor: np.ndarray
    """(K, K) overwritten."""


def make_gaussian_vector(mean, sd, n):
    """Leaf model with arrays for the rows."""
    k = mean.size
    work = np.zeros(k), np.zeros(k), np.zeros((k, k)), np.zeros((k, k))
    return GaussianVector(mean, sd, np.zeros((n, k)), np.zeros((n, k, k)), *work)


# Statistics of a leaf: l (K), the lower half of P by rows.


@njit(cache=True)
def _n_stats(leaf):
    k = leaf.mean.size
    return k + k * (k + 1) // 2


@njit(cache=True)
def _add_row(leaf, i, stats):
    k = leaf.mean.size
    d = k
    for a in range(k):
        stats[a] += leaf.linear[i, a]
        for b in range(a + 1):
            stats[d] += leaf.precision[i, a, b]
            d += 1


@njit(cache=True)
def _add_rows(leaf, rows, start, stop, out):
    out[: _n_stats(leaf)] = 0.0
    for k in range(start, stop):
        _add_row(leaf, rows[k], out)


@njit(cache=True)
def complete_square(leaf, stats):
    """Write l + D mean, the lower factor C of Q and C^-1 (l + D mean)."""
    mean, sd, total = leaf.mean, leaf.sd, leaf.total
    k = mean.size
    d = k
    for a in range(k):
        t = 1.0 / (sd[a] * sd[a])
        leaf.pull[a] = stats[a] + t * mean[a]
        for b in range(a + 1):
            total[a, b] = stats[d]
            total[b, a] = stats[d]
            d += 1
        total[a, a] += t
    cholesky(total, leaf.factor)
    solve_lower(leaf.factor, leaf.pull, leaf.half)


@njit(cache=True)
def _log_marginal(leaf, stats):
    mean, sd, half, factor = leaf.mean, leaf.sd, leaf.half, leaf.factor
    complete_square(leaf, stats)
    total = 0.0
    for a in range(mean.size):
        z = mean[a] / sd[a]
        total += 0.5 * (half[a] * half[a] - z * z) - math.log(sd[a] * factor[a, a])
    return total


@njit(cache=True)
def _draw_values(leaf, rng, stats, out):
    complete_square(leaf, stats)
    for a in range(out.size):
        leaf.half[a] += rng.standard_normal()
    solve_upper(leaf.factor, leaf.half, out)


register(
    GaussianVector,
    n_stats=_n_stats,
    add_row=_add_row,
    add_rows=_add_rows,
    log_marginal=_log_marginal,
    draw_values=_draw_values,
)
