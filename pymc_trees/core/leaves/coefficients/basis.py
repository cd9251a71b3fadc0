"""Normal coefficients of a basis, Gaussian rows: ``r_i ~ N(b_i . beta, 1/w_i)``.

With ``beta_k ~ N(mean_k, sd_k**2)`` independent, marginal and conditional are those of
`posterior`. In a sum of trees r is the residual of the other trees.
"""

from typing import NamedTuple

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.leaves.coefficients.posterior import draw, factor, log_row
from pymc_trees.core.leaves.normal import log_rows_about
from pymc_trees.core.leaves.sums import register_sums


class BasisData(NamedTuple):
    """Coefficients of d columns of a basis, and the data."""

    mean: np.ndarray
    """(d,)"""
    sd: np.ndarray
    """(d,)"""
    basis: np.ndarray
    """(n, d) rows b_i."""
    r: np.ndarray
    """(n,) working residual: target minus all trees, or minus all trees but the open one."""
    w: np.ndarray
    """(n,) precision of each row, or (1,) of all rows; 0 for rows without a likelihood."""
    work: np.ndarray
    """(d + 1, d) workspace of `posterior`."""


def make_basis(mean, sd, basis, residual, precision) -> BasisData:
    """Leaf model of a residual (used in place)."""
    mean, sd, basis = (np.ascontiguousarray(v, dtype=np.float64) for v in (mean, sd, basis))
    precision = np.atleast_1d(np.asarray(precision, dtype=np.float64))
    return BasisData(mean, sd, basis, residual, precision, np.zeros((mean.size + 1, mean.size)))


@njit(cache=True)
def _n_stats(leaf):
    d = leaf.mean.size
    return d * (d + 1) // 2 + d  # lower triangle of A by rows, then c


@njit(cache=True)
def _n_outputs(leaf, n_values):
    return 1


@njit(cache=True)
def _leaf_output(leaf, values, row):
    total = 0.0
    for k in range(leaf.mean.size):
        total += leaf.basis[row, k] * values[k]
    return (total,)


@njit(cache=True)
def _add_row(leaf, i, stats):
    d = leaf.mean.size
    w = leaf.w[0] if leaf.w.size == 1 else leaf.w[i]
    r = w * leaf.r[i]
    at, first = 0, d * (d + 1) // 2
    for j in range(d):
        b = leaf.basis[i, j]
        for k in range(j + 1):
            stats[at] += w * b * leaf.basis[i, k]
            at += 1
        stats[first + j] += r * b


@njit(cache=True)
def _log_marginal(leaf, stats):
    """Leaves the input of `draw` in the workspace."""
    d, sd, mean, work = leaf.mean.size, leaf.sd, leaf.mean, leaf.work
    at, first = 0, d * (d + 1) // 2
    for j in range(d):
        work[d, j] = stats[first + j]
    for j in range(d):
        for k in range(j + 1):
            a = stats[at]
            at += 1
            work[j, k] = sd[j] * a * sd[k]
            work[d, j] -= a * mean[k]
            if k < j:
                work[d, k] -= a * mean[j]
    for j in range(d):
        work[d, j] *= sd[j]
    return factor(work, d)


@njit(cache=True)
def _draw_values(leaf, rng, stats, out):
    _log_marginal(leaf, stats)
    d = leaf.mean.size
    draw(rng, leaf.work, d)
    for j in range(d):
        out[j] = leaf.mean[j] + leaf.sd[j] * leaf.work[d, j]


def _log_constant(leaf):
    return log_rows_about(leaf, leaf.basis @ leaf.mean)


register_sums(
    BasisData,
    n_stats=_n_stats,
    add_row=_add_row,
    log_row=log_row,
    log_marginal=_log_marginal,
    draw_values=_draw_values,
    residual=True,
    n_outputs=_n_outputs,
    leaf_output=_leaf_output,
    log_constant=_log_constant,
)
