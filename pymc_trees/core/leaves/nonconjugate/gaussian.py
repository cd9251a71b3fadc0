"""Gaussian rows that approximate a likelihood, for proposals and screening.

With K outputs, a row is exp(l_i' mu - mu' P_i mu / 2), and ``mu ~ N(mean, diag(sd**2))``. With
``l`` and ``P`` the sums over the rows of a leaf, and D = diag(sd**-2), completing the square gives

    m(rows) = exp((l + D mean)' Q^-1 (l + D mean) / 2 - mean' D mean / 2) sqrt(|D| / |Q|),
    mu | rows ~ N(Q^-1 (l + D mean), Q^-1),        Q = D + P.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.compile.dispatch import generic, register
from pymc_trees.core.compile.pointer import by_pointer
from pymc_trees.core.leaves.contract import log_marginal
from pymc_trees.core.leaves.contract import register as register_leaf
from pymc_trees.core.leaves.nonconjugate.native import call_slopes, is_finite_sum
from pymc_trees.core.leaves.nonconjugate.proposal import (
    cholesky,
    draw_proposal,
    log_prior,
    log_proposal,
    solve_lower,
    solve_upper,
)
from pymc_trees.core.leaves.normal import NormalData, conditional, make_normal


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
    rhs: np.ndarray
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
        leaf.rhs[a] = stats[a] + t * mean[a]
        for b in range(a + 1):
            total[a, b] = stats[d]
            total[b, a] = stats[d]
            d += 1
        total[a, a] += t
    cholesky(total, leaf.factor)
    solve_lower(leaf.factor, leaf.rhs, leaf.half)


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


register_leaf(
    GaussianVector,
    n_stats=_n_stats,
    add_row=_add_row,
    add_rows=_add_rows,
    log_marginal=_log_marginal,
    draw_values=_draw_values,
)


# ----------------------------------------------- The leaf model of one tree: one output, or several
#
# Rows in f, the sum of all trees, become rows in one tree given the sum ``offset`` of the others.


def make_gaussian_leaf(mean, sd, n: int, max_nodes: int) -> NormalData | GaussianVector:
    """Leaf model with the prior of a leaf, ``mean`` and ``sd`` (K,), and arrays for n rows."""
    if mean.size > 1:
        return make_gaussian_vector(mean, sd, n)
    return make_normal(mean[0], sd[0], np.zeros(n), np.ones(n), max_nodes)


def with_prior(gaussian, mean, sd):
    """The same rows under the prior of a leaf, (K,) each; coefficients have theirs already."""
    if not isinstance(gaussian, NormalData | GaussianVector):
        return gaussian
    if isinstance(gaussian, NormalData):
        mean, sd = float(mean[0]), float(sd[0])
    return gaussian._replace(mean=mean, sd=sd)


@generic("gaussian")
def set_gaussian_rows(gaussian, linear, precision, offset, power):
    """Write Gaussian rows (n, K) and (n, K, K), raised to a power, given the other trees (n, K)."""


@generic("gaussian")
def add_prior_mean(gaussian, outputs):
    """Add the prior mean of the outputs of one tree to (n, K) numbers."""


@generic("gaussian")
def fit_values(gaussian, stats, mode, factor):
    """Write mean (K,) and lower factor (K, K) of the precision of leaf values given their rows."""


@njit(cache=True)
def set_row_targets(gaussian, linear, precision, offset, power):
    """`set_gaussian_rows` of one output: a target and a precision of each row."""
    r, w = gaussian.r, gaussian.w
    for i in range(r.size):
        w_i = precision[i, 0, 0]
        r[i] = linear[i, 0] / w_i - offset[i, 0] if w_i > 0.0 else 0.0
        w[i] = power * w_i


@njit(cache=True)
def _fit_value(gaussian, stats, mode, factor):
    mode[0], precision = conditional(gaussian, stats)
    factor[0, 0] = math.sqrt(precision)


@njit(cache=True)
def _add_mean(gaussian, outputs):
    for i in range(outputs.shape[0]):
        outputs[i, 0] += gaussian.mean


register(
    NormalData,
    set_gaussian_rows=set_row_targets,
    add_prior_mean=_add_mean,
    fit_values=_fit_value,
)


@njit(cache=True)
def set_row_matrices(gaussian, linear, precision, offset, power):
    """`set_gaussian_rows` of several outputs: a vector and a matrix of each row."""
    n, k = offset.shape
    for i in range(n):
        for a in range(k):
            total = linear[i, a]
            for b in range(k):
                gaussian.precision[i, a, b] = power * precision[i, a, b]
                total -= precision[i, a, b] * offset[i, b]
            gaussian.linear[i, a] = power * total


@njit(cache=True)
def _fit_values(gaussian, stats, mode, factor):
    complete_square(gaussian, stats)
    solve_upper(gaussian.factor, gaussian.half, mode)
    factor[:] = gaussian.factor


@njit(cache=True)
def add_means(gaussian, outputs):
    """`add_prior_mean` of several outputs."""
    for i in range(outputs.shape[0]):
        for a in range(outputs.shape[1]):
            outputs[i, a] += gaussian.mean[a]


register(
    GaussianVector,
    set_gaussian_rows=set_row_matrices,
    add_prior_mean=add_means,
    fit_values=_fit_values,
)


# ----------------------------- Second-order expansion of a row: exp(linear' f - f' precision f / 2)


MIN_CURVATURE = 1e-3
"""Smallest curvature, relative to the squared gradient, that an expansion uses."""
JITTER = 1e-6
"""Relative increase of the diagonal of a precision: softmax is flat in one direction."""


@njit(cache=True)
def expand_row(point, slopes, linear, precision):
    """Write the Gaussian row with these slopes, gradient and second derivatives, at a point.

    If the log-likelihood is convex or nearly flat, squared gradients replace its curvature, as in
    `proposal`; a row without information, or with NaN, has precision 0.
    """
    size = point.size
    linear[:] = 0.0
    precision[:] = 0.0
    if not is_finite_sum(slopes):
        return
    is_concave = True
    for a in range(size):
        square, curvature = slopes[a] * slopes[a], -slopes[size + a * size + a]
        is_concave &= curvature > MIN_CURVATURE * square
        precision[a, a] = curvature if curvature > MIN_CURVATURE * square else square
    if size > 1 and is_concave:
        _add_other_outputs(slopes, precision)
    for a in range(size):
        if not precision[a, a] > 0.0:
            continue
        linear[a] = slopes[a]
        for b in range(size):
            linear[a] += precision[a, b] * point[b]


@njit(cache=True)
def _add_other_outputs(slopes, precision):
    """Write mixed second derivatives, if the row is concave in all outputs together."""
    size = precision.shape[0]
    full, factor = np.empty((2, size, size))
    for a in range(size):
        for b in range(size):
            full[a, b] = -slopes[size + a * size + b]
        full[a, a] *= 1.0 + JITTER
    if cholesky(full, factor):
        precision[:] = full


@njit(cache=True)
def expand_rows(points, slopes, linear, precision):
    """`expand_row` of all rows, by the first axis."""
    for i in range(points.shape[0]):
        expand_row(points[i], slopes[i], linear[i], precision[i])


# -------------------------------------------------- Rows that are the same for all trees of a sweep
#
# At the anchor a of a row, the mean of f during tuning, and with the standard deviation s of f
# there, the Gaussian row nearest to the log-likelihood ``l`` has the gradient and the curvature
#
#     g = E l'(a + s e),        H = E l''(a + s e),        e ~ N(0, 1)
#
# (Opper and Archambeau 2009, eq. 9-10), computed by three-point Gauss-Hermite quadrature along each
# output. `fit_screen` computes these rows once for one or more sweeps and all trees: a function of
# the data and of the results of tuning, never of the current trees.
#
# Far from the anchors they approximate poorly. Some visits are therefore local: `expand_at_current`
# expands rows at ``o + mean``, with o the sum of the other trees and mean the prior mean of a leaf.
# Leaf values are drawn from q, their conditional under the Gaussian rows. Its tails may be too
# light, so q is wide in local visits: 0.95 t_8 around the mean of that conditional + 0.05 of the
# prior, as in `proposal`.


LOG_2_PI = math.log(2.0 * math.pi)
ROOT_3 = math.sqrt(3.0)


@by_pointer
class Screen(NamedTuple):
    """Gaussian rows under which proposals are screened, for leaves with K values."""

    gaussian: Any
    """Leaf model of the Gaussian rows of one tree."""
    anchor: np.ndarray
    """(n, K) a, the function value at which each row's likelihood is expanded."""
    spread: np.ndarray
    """(n, K) s, its standard deviation."""
    local: np.ndarray
    """(1,) share of visits that are local."""
    linear: np.ndarray
    """(n, K) linear terms of the rows expanded at the anchors."""
    precision: np.ndarray
    """(n, K, K) their precisions."""
    local_linear: np.ndarray
    """(n, K) linear terms in a local visit."""
    local_precision: np.ndarray
    """(n, K, K) precisions in a local visit."""
    mode: np.ndarray
    """(K,) mode of a leaf."""
    factor: np.ndarray
    """(K, K) lower factor of its precision."""


def make_screen(mean, sd, anchor, spread, local, max_nodes, gaussian=None) -> Screen:
    """Screen under the prior of a leaf, with anchors but without rows.

    ``gaussian`` is the leaf model of leaves that are no K normal values.
    """
    n, k = anchor.shape
    spread = np.broadcast_to(np.asarray(spread, dtype=np.float64), (n, k)).copy()
    rows = [np.zeros(shape) for shape in 2 * [(n, k), (n, k, k)]]
    if gaussian is None:
        gaussian = make_gaussian_leaf(mean, sd, n, max_nodes)
    share = np.full(1, float(local))
    return Screen(gaussian, anchor.copy(), spread, share, *rows, np.zeros(k), np.zeros((k, k)))


@njit(cache=True)
def slopes_of_rows(leaf):
    """Gradient and second derivatives of each row's log-likelihood at ``work.outputs``."""
    work = leaf.work
    n = work.rows.size
    for i in range(n):
        work.rows[i] = i
    call_slopes(leaf, n, work.rows, work.outputs, work.slopes)
    return work.slopes


@njit(cache=True)
def fit_screen(leaf, screen):
    """Compute the Gaussian rows at the anchors, from 1 + 2 K calls of the likelihood."""
    anchor, spread, outputs = screen.anchor, screen.spread, leaf.work.outputs
    n, k = anchor.shape
    outputs[:] = anchor
    middle = slopes_of_rows(leaf).copy()
    mean = (1.0 - k / 3.0) * middle
    for a in range(k):
        for side in (-ROOT_3, ROOT_3):
            for i in range(n):
                outputs[i, a] = anchor[i, a] + side * spread[i, a]
            slopes = slopes_of_rows(leaf)
            for i in range(n):
                for d in range(slopes.shape[1]):
                    mean[i, d] += slopes[i, d] / 6.0
        outputs[:, a] = anchor[:, a]
    for i in range(n):
        if not is_finite_sum(mean[i]):  # at a boundary of its domain
            mean[i] = middle[i]
    expand_rows(anchor, mean, screen.linear, screen.precision)


@njit(cache=True)
def expand_at_anchors(offset, screen):
    """Write the rows expanded at the anchors, given the sum ``offset``, (n, K), of other trees."""
    set_gaussian_rows(screen.gaussian, screen.linear, screen.precision, offset, 1.0)


@njit(cache=True)
def expand_at_current(leaf, screen, power):
    """Write rows expanded at ``leaf.offset`` plus the prior mean, raised to ``power``."""
    offset, outputs = leaf.offset, leaf.work.outputs
    linear, precision = screen.local_linear, screen.local_precision
    outputs[:] = offset
    add_prior_mean(screen.gaussian, outputs)
    expand_rows(outputs, slopes_of_rows(leaf), linear, precision)
    set_gaussian_rows(screen.gaussian, linear, precision, offset, power)


@generic("gaussian")
def propose_values(gaussian, rng, leaf, screen, trees, n_nodes, work, is_local):
    """Draw the values of the leaves of the open tree from q."""


@generic("gaussian")
def log_correction(gaussian, leaf, screen, trees, tree, n_nodes, work, is_local):
    """Log of the product of ``p(value) / (m~ q(value))`` over the leaves of the open tree."""


@njit(cache=True)
def propose_value(rng, leaf, screen, stats, is_wide, out):
    """Draw the values of a leaf from q."""
    mode, factor = screen.mode, screen.factor
    fit_values(screen.gaussian, stats, mode, factor)
    if is_wide:
        draw_proposal(rng, leaf.mean, leaf.sd, mode, factor, out)
        return
    for a in range(out.size):
        out[a] = rng.standard_normal()
    solve_upper(factor, out, out)
    for a in range(out.size):
        out[a] += mode[a]


@njit(cache=True)
def log_value_weight(leaf, screen, stats, value, is_wide):
    """Log of ``p(value) / (m~ q(value))`` for a leaf, m~ its marginal likelihood under the screen.

    It is bounded if q is wide and so contains the prior.
    """
    mode, factor = screen.mode, screen.factor
    log_ratio = log_prior(leaf.mean, leaf.sd, value) - log_marginal(screen.gaussian, stats)
    fit_values(screen.gaussian, stats, mode, factor)
    if is_wide:
        return log_ratio - log_proposal(leaf.mean, leaf.sd, mode, factor, value)
    for a in range(value.size):
        z = 0.0
        for b in range(a, value.size):  # factor.T (value - mode)
            z += factor[b, a] * (value[b] - mode[b])
        log_ratio += 0.5 * (LOG_2_PI + z * z) - math.log(factor[a, a])
    return log_ratio


@njit(cache=True)
def _propose_values(gaussian, rng, leaf, screen, trees, n_nodes, work, is_local):
    for k in range(n_nodes):
        node = work.nodes[k]
        if trees.column[node] < 0:
            propose_value(rng, leaf, screen, work.stats[node], is_local, trees.values[node])


@njit(cache=True)
def _log_correction(gaussian, leaf, screen, trees, tree, n_nodes, work, is_local):
    total = 0.0
    for k in range(n_nodes):
        node = work.nodes[k]
        if trees.column[node] < 0:
            stats, value = work.stats[node], trees.values[node]
            total += log_value_weight(leaf, screen, stats, value, is_local)
    return total


for kind in (NormalData, GaussianVector):
    register(kind, propose_values=_propose_values, log_correction=_log_correction)
