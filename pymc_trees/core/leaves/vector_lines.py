"""Linear functions of K outputs in a leaf, of the columns above it; Gaussian rows of all outputs.

As `coefficients.LinearData`, for K outputs that share their trees. With ``u_i`` the regressors of a
row, 1 and the z_ij of the columns J of the leaf's path, and one coefficient c for each regressor
and output, the outputs are ``f_i = (u_i . c_1, .., u_i . c_K)``, and a row is

    exp(l_i . f_i - f_i' P_i f_i / 2).

All ``K (1 + |J|)`` coefficients are drawn together, in units of their prior sds. Whether a leaf
whose J is not empty is constant instead, with probability ``share``, is the same for all outputs.
The values of a leaf are K intercepts, K numbers for each slope, and the code of `LinearData`.
"""

from typing import NamedTuple

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.leaves.coefficients import (
    FIXED,
    PARENT,
    PATH,
    draw,
    factor,
    read_linear,
)
from pymc_trees.core.leaves.contract import add_row, register


class VectorLines(NamedTuple):
    """Settings and data; for prediction only ``mean.size``, ``kind`` and ``z`` are used."""

    mean: np.ndarray
    """(K,) of the intercepts."""
    sd: np.ndarray
    """(K,)"""
    slope_sd: np.ndarray
    """(K,)"""
    share: float
    """Probability that a leaf with slopes is constant instead."""
    kind: int
    """As in `LinearData`."""
    slope_of: np.ndarray
    """(p,) int64: number of the slope in a column of X, or -1 in a column without."""
    z: np.ndarray
    """(n, d) standardised cells of the columns with slopes, 0 where missing."""
    linear: np.ndarray
    """(n, K) l"""
    precision: np.ndarray
    """(n, K, K) P"""
    work: np.ndarray
    """(K (1 + d) + 1, K (1 + d)) workspace of `factor`."""
    active: np.ndarray
    """(d + 1,) int64 workspace: the slopes of a leaf."""


def make_vector_lines(mean, sd, slope_sd, share, rows, n) -> VectorLines:
    """Leaf model with arrays for n Gaussian rows, at the rows of `read_vector_lines`."""
    k = mean.size
    arrays = {"linear": np.zeros((n, k)), "precision": np.zeros((n, k, k))}
    prior = {"mean": mean, "sd": sd, "slope_sd": slope_sd}
    prior = {name: np.ascontiguousarray(v, dtype=np.float64) for name, v in prior.items()}
    return rows._replace(share=float(share), **prior, **arrays)


@njit(cache=True)
def vector_lines_prior(mean, sd, slope_sd, share):
    """Leaf model of the prior alone, without rows."""
    k = mean.size
    return VectorLines(
        np.ascontiguousarray(mean),
        np.ascontiguousarray(sd),
        np.ascontiguousarray(slope_sd),
        share,
        PARENT,
        np.zeros(0, dtype=np.int64),
        np.empty((0, 0)),
        np.empty((0, k)),
        np.empty((0, k, k)),
        np.zeros((k + 1, k)),
        np.zeros(1, dtype=np.int64),
    )


@njit(cache=True)
def read_vector_lines(n_values, X, constants):
    """Leaf model at rows of X; the constants are those of `read_linear`."""
    lines = read_linear(n_values, X, constants)
    d = lines.z.shape[1]
    k = (n_values - 1) // (2 if lines.kind == PARENT else 1 + d)
    size = k * (1 + d)
    return VectorLines(
        np.zeros(k),
        np.ones(k),
        np.ones(k),
        0.0,
        lines.kind,
        lines.slope_of,
        lines.z,
        np.empty((0, k)),
        np.empty((0, k, k)),
        np.zeros((size + 1, size)),
        lines.active,
    )


@njit(cache=True)
def _prior_at(leaf, rows):
    return VectorLines(
        leaf.mean,
        leaf.sd,
        leaf.slope_sd,
        leaf.share,
        rows.kind,
        rows.slope_of,
        rows.z,
        rows.linear,
        rows.precision,
        rows.work,
        rows.active,
    )


@njit(cache=True)
def _n_outputs(leaf, n_values):
    return leaf.mean.size


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
def _leaf_output(leaf, values, row):
    code, z, k = abs(values[values.size - 1]), leaf.z, leaf.mean.size
    out = np.empty(k)
    for a in range(k):
        out[a] = values[a]
    if leaf.kind == PARENT:
        if 0.0 < code <= z.shape[1]:
            for a in range(k):
                out[a] += values[k + a] * z[row, int(code) - 1]
    else:
        for j in range(z.shape[1]):
            for a in range(k):
                out[a] += values[k + j * k + a] * z[row, j]
    return out


# --------------------------------------------------------------------------------------- Statistics
#
# With T = K (K + 1) / 2 numbers of the lower half of a (K, K) matrix: sum P (T), sum l (K); of each
# slope sum z P (T), sum z**2 P (T), sum z l (K); of each pair of slopes sum z_j z_k P (T), unless
# leaves have one slope at most; the path.


@njit(cache=True)
def _n_stats(leaf):
    k, d = leaf.mean.size, leaf.active.size - 1
    half = k * (k + 1) // 2
    pairs = 0 if leaf.kind == PARENT else d * (d - 1) // 2
    return half + k + d * (2 * half + k) + pairs * half + 1


@njit(cache=True)
def _add_row(leaf, i, stats):
    k, z, d = leaf.mean.size, leaf.z, leaf.z.shape[1]
    half = k * (k + 1) // 2
    entry = 0
    for a in range(k):
        for b in range(a + 1):
            p = leaf.precision[i, a, b]
            stats[entry] += p
            pair = half + k + d * (2 * half + k) + entry
            for j in range(d):
                x = z[i, j]
                first = half + k + j * (2 * half + k)
                stats[first + entry] += x * p
                stats[first + half + entry] += x * x * p
                if leaf.kind != PARENT:
                    for other in range(j):
                        stats[pair] += x * z[i, other] * p
                        pair += half
            entry += 1
    for a in range(k):
        stats[half + a] += leaf.linear[i, a]
        for j in range(d):
            stats[half + k + j * (2 * half + k) + 2 * half + a] += z[i, j] * leaf.linear[i, a]


@njit(cache=True)
def _add_rows(leaf, rows, start, stop, out):
    out[:] = 0.0
    for place in range(start, stop):
        add_row(leaf, rows[place], out)


@njit(cache=True)
def _moment(leaf, stats, j, other, a, b):
    """Sum of ``u_j u_other P_ab`` for j >= other and a >= b, regressor -1 being the intercept."""
    k, d = leaf.mean.size, leaf.active.size - 1
    half, entry = k * (k + 1) // 2, a * (a + 1) // 2 + b
    if j < 0:
        return stats[entry]
    first = half + k + j * (2 * half + k)
    if other < 0:
        return stats[first + entry]
    if j == other:
        return stats[first + half + entry]
    pair = j * (j - 1) // 2 + other
    return stats[half + k + d * (2 * half + k) + pair * half + entry]


@njit(cache=True)
def _sum_of_l(leaf, stats, j, a):
    k = leaf.mean.size
    half = k * (k + 1) // 2
    return stats[half + a] if j < 0 else stats[half + k + j * (2 * half + k) + 2 * half + a]


@njit(cache=True)
def _slopes_of(leaf, path):
    """Write the slopes of a leaf to ``active``; return their number."""
    active, n = leaf.active, 0
    if leaf.kind == PARENT:
        if path > 0.0:
            active[0] = int(path) - 1
            n = 1
        return n
    for j in range(active.size - 1):
        if leaf.kind == FIXED or (np.int64(path) >> j) & 1:
            active[n] = j
            n += 1
    return n


@njit(cache=True)
def _factor(leaf, stats, n):
    """Log marginal with intercepts and n slopes; leaves the input of `draw` in the workspace."""
    work, active, k, last = leaf.work, leaf.active, leaf.mean.size, leaf.work.shape[0] - 1
    for u in range(n + 1):
        j = active[u - 1] if u > 0 else -1
        for a in range(k):
            row = u * k + a
            scale = leaf.slope_sd[a] if u > 0 else leaf.sd[a]
            c = _sum_of_l(leaf, stats, j, a)
            for b in range(k):
                c -= _moment(leaf, stats, j, -1, max(a, b), min(a, b)) * leaf.mean[b]
            work[last, row] = scale * c
            for v in range(u + 1):
                other = active[v - 1] if v > 0 else -1
                for b in range(a + 1 if v == u else k):
                    moment = _moment(leaf, stats, j, other, max(a, b), min(a, b))
                    size = leaf.slope_sd[b] if v > 0 else leaf.sd[b]
                    work[row, v * k + b] = scale * moment * size
    return factor(work, k * (n + 1))


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
def _log_marginal(leaf, stats):
    _, constant, line = _log_parts(leaf, stats)
    high = max(constant, line)
    low = min(constant, line)
    return high if low == -np.inf else high + np.log1p(np.exp(low - high))


@njit(cache=True)
def _draw_values(leaf, rng, stats, out):
    n, constant, line = _log_parts(leaf, stats)
    k, path = leaf.mean.size, stats[stats.size - 1]
    code = path if leaf.kind != FIXED else 2.0 ** (leaf.active.size - 1) - 1.0
    if n == 0:
        code = 0.0
    elif constant > -np.inf and rng.random() < 1.0 / (1.0 + np.exp(line - constant)):
        n, code = 0, -code
    _factor(leaf, stats, n)
    draw(rng, leaf.work, k * (n + 1))
    z = leaf.work[leaf.work.shape[0] - 1]
    out[:] = 0.0
    for a in range(k):
        out[a] = leaf.mean[a] + leaf.sd[a] * z[a]
        for u in range(n):
            place = 0 if leaf.kind == PARENT else leaf.active[u]
            out[k + place * k + a] = leaf.slope_sd[a] * z[(1 + u) * k + a]
    out[out.size - 1] = code


register(
    VectorLines,
    n_stats=_n_stats,
    n_outputs=_n_outputs,
    leaf_output=_leaf_output,
    reads_path=_reads_path,
    path_below=_path_below,
    prior_at=_prior_at,
    add_row=_add_row,
    add_rows=_add_rows,
    log_marginal=_log_marginal,
    draw_values=_draw_values,
)
