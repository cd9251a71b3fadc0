"""Normal coefficients of a leaf given its rows, in units of their prior standard deviations.

With ``u_i`` the regressors of a row, ``D = diag(sd)``, ``A = sum w_i u_i u_i'``,
``c = sum w_i (r_i - u_i . mean) u_i``, ``S = I + D A D`` and ``v = D c``, coefficients
``mean + D z`` of Gaussian rows have

    p(r) = const * det(S)^(-1/2) * exp(v' S^-1 v / 2)
    z | r ~ N(S^-1 v, S^-1)

where the constant does not depend on the partition of the rows into leaves. S >= I, so its Cholesky
factor L exists for any regressors.
"""

from typing import NamedTuple

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.leaves.contract import register_sums
from pymc_trees.core.leaves.latent.rows import LatentRows, log_rows, no_latents, redraw_latents
from pymc_trees.core.leaves.normal import log_constant_about_mean, log_rows_about


@njit(cache=True)
def factor(work, n):
    """Log of p(r) without the constant; overwrites the arguments with L and ``L^-1 v``.

    Parameters
    ----------
    work : (more than n, n or more) float64
        D A D in the lower triangle of the first n rows, v in the last row.
    """
    last = work.shape[0] - 1
    total = 0.0
    for j in range(n):
        for k in range(j):
            entry = work[j, k]
            for i in range(k):
                entry -= work[j, i] * work[k, i]
            work[j, k] = entry / work[k, k]
        square, v = 1.0 + work[j, j], work[last, j]
        for i in range(j):
            square -= work[j, i] * work[j, i]
            v -= work[j, i] * work[last, i]
        work[j, j] = np.sqrt(square)
        v /= work[j, j]
        work[last, j] = v
        total += 0.5 * v * v - np.log(work[j, j])
    return total


@njit(cache=True)
def draw(rng, work, n):
    """Replace the output of `factor` in the last row by a draw of z."""
    last = work.shape[0] - 1
    for j in range(n - 1, -1, -1):
        z = work[last, j] + rng.standard_normal()
        for i in range(j + 1, n):
            z -= work[i, j] * work[last, i]
        work[last, j] = z / work[j, j]


@njit(cache=True)
def log_row(leaf, i, output):
    """Log density of the residual of a row, of precision w."""
    w = leaf.w[0] if leaf.w.size == 1 else leaf.w[i]
    if w == 0.0:
        return 0.0
    return 0.5 * (np.log(w / (2.0 * np.pi)) - w * (leaf.r[i] - output[0]) ** 2)


@njit(cache=True)
def log_likelihood(leaf, trees):
    """Log-likelihood of all rows, latent variables integrated out."""
    if leaf.latent.log_rows != 0:
        return log_rows(leaf)
    no_output = np.zeros(1)
    total = 0.0
    for i in range(leaf.r.size):
        total += log_row(leaf, i, no_output)
    return total


# -------------------- Normal coefficients of a basis, Gaussian rows: ``r_i ~ N(b_i . beta, 1/w_i)``
#
# With ``beta_k ~ N(mean_k, sd_k**2)`` independent, marginal and conditional are those of
# `posterior`. In a sum of trees r is the residual of the other trees.


class BasisData(NamedTuple):
    """Prior of the coefficients of d basis columns, and the data."""

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
    latent: LatentRows
    """Rows with latent variables, for redrawing target and precisions, or none."""


def make_basis(mean, sd, basis, residual, precision, latent=None) -> BasisData:
    """Leaf model of a residual (used in place)."""
    mean, sd, basis = (np.ascontiguousarray(v, dtype=np.float64) for v in (mean, sd, basis))
    precision = np.atleast_1d(np.asarray(precision, dtype=np.float64))
    work, latent = np.zeros((mean.size + 1, mean.size)), no_latents() if latent is None else latent
    return BasisData(mean, sd, basis, residual, precision, work, latent)


@njit(cache=True)
def _n_stats_of_basis(leaf):
    d = leaf.mean.size
    return d * (d + 1) // 2 + d  # lower triangle of A by rows, then c


@njit(cache=True)
def _n_outputs_of_basis(leaf, n_values):
    return 1


@njit(cache=True)
def _leaf_output_of_basis(leaf, values, row):
    total = 0.0
    for k in range(leaf.mean.size):
        total += leaf.basis[row, k] * values[k]
    return (total,)


@njit(cache=True)
def _add_row_of_basis(leaf, i, stats):
    d = leaf.mean.size
    w = leaf.w[0] if leaf.w.size == 1 else leaf.w[i]
    r = w * leaf.r[i]
    entry, first = 0, d * (d + 1) // 2
    for j in range(d):
        b = leaf.basis[i, j]
        for k in range(j + 1):
            stats[entry] += w * b * leaf.basis[i, k]
            entry += 1
        stats[first + j] += r * b


@njit(cache=True)
def log_marginal_of_sums(leaf, stats):
    """Log of p(r) from A and c, as `BasisData` has them; leaves the input of `draw` in ``work``."""
    d, sd, mean, work = leaf.mean.size, leaf.sd, leaf.mean, leaf.work
    entry, first = 0, d * (d + 1) // 2
    for j in range(d):
        work[d, j] = stats[first + j]
    for j in range(d):
        for k in range(j + 1):
            a = stats[entry]
            entry += 1
            work[j, k] = sd[j] * a * sd[k]
            work[d, j] -= a * mean[k]
            if k < j:
                work[d, k] -= a * mean[j]
    for j in range(d):
        work[d, j] *= sd[j]
    return factor(work, d)


@njit(cache=True)
def _draw_values_of_basis(leaf, rng, stats, out):
    log_marginal_of_sums(leaf, stats)
    d = leaf.mean.size
    draw(rng, leaf.work, d)
    for j in range(d):
        out[j] = leaf.mean[j] + leaf.sd[j] * leaf.work[d, j]


def _log_constant(leaf):
    return log_rows_about(leaf, leaf.basis @ leaf.mean)


register_sums(
    BasisData,
    n_stats=_n_stats_of_basis,
    add_row=_add_row_of_basis,
    log_row=log_row,
    log_marginal=log_marginal_of_sums,
    draw_values=_draw_values_of_basis,
    residual=True,
    n_outputs=_n_outputs_of_basis,
    leaf_output=_leaf_output_of_basis,
    log_constant=_log_constant,
    log_likelihood=log_likelihood,
    resample_latents=redraw_latents,
)


# ------------------------- Linear function of the columns of the splits above a leaf; Gaussian rows
#
# With ``z_ij`` row i of column j, standardised, and J the columns of the leaf's path,
#
#     r_i ~ N(a + sum_{j in J} b_j z_ij, 1 / w_i),    a ~ N(mean, sd**2),  b_j ~ N(0, slope_sd**2).
#
# J is the column of the parent's rule, or all columns of the splits on the path from the root
# (empty at the root, where the leaf is constant), or a fixed set of columns. The marginal p_J and
# the conditional are those of `posterior`.
#
# A leaf whose J is not empty is constant instead with probability ``share``; with that
#
#     p(r) = share p_0(r) + (1 - share) p_J(r)
#
# and the draw of its values begins with which of the two it is.
#
# A leaf's values are a, the slopes, and a code of the slopes that exist: ``k + 1`` for slope k
# alone, or a set of slopes as bits; 0 if J is empty, and negative if the leaf is constant although
# J is not empty. Slopes are numbered among the columns that can have one.


PARENT, PATH, FIXED = 0, 1, 2
"""Columns in which a leaf has slopes: its parent's, all of its path, or a fixed set."""


class LinearData(NamedTuple):
    """Settings and data; for prediction only ``kind`` and ``z`` are used."""

    mean: float
    sd: float
    slope_sd: float
    share: float
    """Probability that a leaf with slopes is constant instead."""
    kind: int
    """`PARENT`, `PATH` or `FIXED`."""
    slope_of: np.ndarray
    """(p,) int64: number of the slope in a column of X, or -1 in a column without."""
    z: np.ndarray
    """(n, d) standardised cells of the columns with slopes, 0 where missing."""
    r: np.ndarray
    """(n,) working residual: target minus all trees, or minus all trees but the open one."""
    w: np.ndarray
    """(n,) precision of each row, or (1,) of all rows; 0 for rows without a likelihood."""
    work: np.ndarray
    """(d + 2, d + 1) workspace of `posterior`."""
    active: np.ndarray
    """(d + 1,) int64 workspace: the slopes of a leaf."""
    latent: LatentRows
    """Rows with latent variables, for redrawing target and precisions, or none."""


def make_linear(mean, sd, slope_sd, share, rows, residual, precision, latent=None) -> LinearData:
    """Leaf model of a residual (used in place), at the rows of `read_linear`."""
    precision = np.atleast_1d(np.asarray(precision, dtype=np.float64))
    latent = no_latents() if latent is None else latent
    prior = {"mean": float(mean), "sd": float(sd), "slope_sd": float(slope_sd)}
    return rows._replace(share=float(share), r=residual, w=precision, latent=latent, **prior)


@njit(cache=True)
def linear_prior(mean, sd, slope_sd, share):
    """Leaf model of the prior alone, without rows."""
    no_rows, no_slopes = np.empty(0), np.zeros(0, dtype=np.int64)
    work = np.zeros((2, 1))
    z = np.empty((0, 0))
    none, no_w = no_latents(), np.zeros(1)
    return LinearData(
        mean, sd, slope_sd, share, PARENT, no_slopes, z, no_rows, no_w, work, no_slopes, none
    )


@njit(cache=True)
def read_linear(n_values, X, constants):
    """Leaf model at rows of X.

    The constants are the kind, whether lines end at the training rows, and for each column its
    mean, its sd (0 if it has no slope), its minimum and its maximum.
    """
    n, p = X.shape
    if constants.size != 2 + 4 * p:
        raise ValueError("LinearLeaf: X has another number of columns.")
    slope_of = np.full(p, -1)
    d = 0
    for j in range(p):
        if constants[3 + 4 * j] > 0.0:
            slope_of[j] = d
            d += 1
    z = np.zeros((n, d))
    for j in range(p):
        if slope_of[j] < 0:
            continue
        mean, sd = constants[2 + 4 * j], constants[3 + 4 * j]
        low, high = constants[4 + 4 * j], constants[5 + 4 * j]
        for i in range(n):
            x = X[i, j]
            if np.isnan(x):
                continue
            if constants[1] != 0.0:
                x = min(max(x, low), high)
            z[i, slope_of[j]] = (x - mean) / sd
    work, active = np.zeros((d + 2, d + 1)), np.zeros(d + 1, dtype=np.int64)
    kind, no_rows, none, no_w = int(constants[0]), np.empty(0), no_latents(), np.zeros(1)
    return LinearData(0.0, 1.0, 1.0, 0.0, kind, slope_of, z, no_rows, no_w, work, active, none)


@njit(cache=True)
def _n_stats_of_linear(leaf):
    # W, S; of each slope the sums of w z, w z**2, w z r; of each pair that of w z_j z_k; the path
    d = leaf.active.size - 1
    pairs = 0 if leaf.kind == PARENT else d * (d - 1) // 2
    return 2 + 3 * d + pairs + 1


@njit(cache=True)
def _n_outputs_of_linear(leaf, n_values):
    return 1


@njit(cache=True)
def _reads_path(leaf):
    return True


@njit(cache=True)
def _path_below(leaf, path, column):
    slope = leaf.slope_of[column]
    if leaf.kind == PARENT:
        return slope + 1.0
    if leaf.kind == PATH and slope >= 0:
        return float(np.int64(path) | (np.int64(1) << slope))
    return path


@njit(cache=True)
def _prior_at(leaf, rows):
    return LinearData(
        leaf.mean,
        leaf.sd,
        leaf.slope_sd,
        leaf.share,
        rows.kind,
        rows.slope_of,
        rows.z,
        rows.r,
        rows.w,
        rows.work,
        rows.active,
        rows.latent,
    )


@njit(cache=True)
def _leaf_output_of_linear(leaf, values, row):
    code, z = abs(values[values.size - 1]), leaf.z
    total = values[0]
    if leaf.kind == PARENT:
        if 0.0 < code <= z.shape[1]:
            total += values[1] * z[row, int(code) - 1]
    else:
        for j in range(z.shape[1]):
            total += values[1 + j] * z[row, j]
    return (total,)


@njit(cache=True)
def _add_row_of_linear(leaf, i, stats):
    z, d = leaf.z, leaf.z.shape[1]
    w = leaf.w[0] if leaf.w.size == 1 else leaf.w[i]
    r = w * leaf.r[i]
    stats[0] += w
    stats[1] += r
    entry = 2 + 3 * d
    for j in range(d):
        x = z[i, j]
        stats[2 + 3 * j] += w * x
        stats[3 + 3 * j] += w * x * x
        stats[4 + 3 * j] += r * x
        if leaf.kind != PARENT:
            for k in range(j):
                stats[entry] += w * x * z[i, k]
                entry += 1


@njit(cache=True)
def _slopes_of(leaf, path):
    """Write the slopes of a leaf to ``active``; return their number."""
    active, d, n = leaf.active, leaf.active.size - 1, 0
    if leaf.kind == PARENT:
        if path > 0.0:
            active[0] = int(path) - 1
            n = 1
        return n
    for j in range(d):
        if leaf.kind == FIXED or (np.int64(path) >> j) & 1:
            active[n] = j
            n += 1
    return n


@njit(cache=True)
def _moment(leaf, stats, j, k):
    """``sum w_i u_ij u_ik`` for j >= k, -1 being the intercept."""
    if j < 0:
        return stats[0]
    if k < 0:
        return stats[2 + 3 * j]
    if j == k:
        return stats[3 + 3 * j]
    return stats[2 + 3 * (leaf.active.size - 1) + j * (j - 1) // 2 + k]


@njit(cache=True)
def _factor(leaf, stats, n):
    """Log marginal of intercept and n slopes; leaves the input of `draw` in the workspace."""
    work, active, last = leaf.work, leaf.active, leaf.work.shape[0] - 1
    for a in range(n + 1):
        j = active[a - 1] if a > 0 else -1
        scale = leaf.slope_sd if a > 0 else leaf.sd
        c = stats[4 + 3 * j] if a > 0 else stats[1]
        work[last, a] = scale * (c - leaf.mean * _moment(leaf, stats, j, -1))
        for b in range(a + 1):
            k = active[b - 1] if b > 0 else -1
            other = leaf.slope_sd if b > 0 else leaf.sd
            work[a, b] = scale * _moment(leaf, stats, j, k) * other
    return factor(work, n + 1)


@njit(cache=True)
def _log_parts(leaf, stats):
    """Number of slopes, and logs of ``share p_0`` and ``(1 - share) p_J``."""
    n = _slopes_of(leaf, stats[stats.size - 1])
    if n == 0:
        return 0, _factor(leaf, stats, 0), -np.inf
    constant = -np.inf
    if leaf.share > 0.0:
        constant = np.log(leaf.share) + _factor(leaf, stats, 0)
    if leaf.share >= 1.0:
        return n, constant, -np.inf
    return n, constant, np.log1p(-leaf.share) + _factor(leaf, stats, n)


@njit(cache=True)
def _log_marginal_of_linear(leaf, stats):
    _, constant, line = _log_parts(leaf, stats)
    high = max(constant, line)
    low = min(constant, line)
    return high if low == -np.inf else high + np.log1p(np.exp(low - high))


@njit(cache=True)
def _draw_values_of_linear(leaf, rng, stats, out):
    n, constant, line = _log_parts(leaf, stats)
    path = stats[stats.size - 1]
    code = path if leaf.kind != FIXED else 2.0 ** (leaf.active.size - 1) - 1.0
    if n == 0:
        code = 0.0
    elif constant > -np.inf and rng.random() < 1.0 / (1.0 + np.exp(line - constant)):
        n, code = 0, -code
    _factor(leaf, stats, n)
    draw(rng, leaf.work, n + 1)
    z = leaf.work[leaf.work.shape[0] - 1]
    out[:] = 0.0
    out[0] = leaf.mean + leaf.sd * z[0]
    for a in range(n):
        out[1 + (0 if leaf.kind == PARENT else leaf.active[a])] = leaf.slope_sd * z[1 + a]
    out[out.size - 1] = code


register_sums(
    LinearData,
    n_stats=_n_stats_of_linear,
    add_row=_add_row_of_linear,
    log_row=log_row,
    log_marginal=_log_marginal_of_linear,
    draw_values=_draw_values_of_linear,
    residual=True,
    n_outputs=_n_outputs_of_linear,
    leaf_output=_leaf_output_of_linear,
    reads_path=_reads_path,
    path_below=_path_below,
    prior_at=_prior_at,
    log_constant=log_constant_about_mean,
    log_likelihood=log_likelihood,
    resample_latents=redraw_latents,
)
