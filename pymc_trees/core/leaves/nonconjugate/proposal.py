"""Approximate conditionals of leaf values: the mode by Newton's method, a proposal around it.

The conditional of a leaf value mu given its rows i, with ``o_i`` the sum of the other trees, is

    log p(mu | rows) = sum_i l_i(o_i + mu) + log N(mu; mean, sd^2) + const

Newton's method starts at the prior mean, so the approximation is a function of the rows, the other
trees and the data alone, never of the current value: it is the same for the reverse of a move. The
proposal is a mixture

    q = (1 - e) t_8(mode, precision^-1) + e N(mean, sd^2)

whose tails are heavy enough where the likelihood is not log-concave or the mode was not found.
"""

import math

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.leaves.nonconjugate.native import call_slopes, is_finite_sum

DEGREES = 8.0
"""Degrees of freedom of t: nearly all proposals are accepted if the conditional is Gaussian."""
PRIOR_SHARE = 0.05
"""Share e of proposals from the prior."""
MAX_STEPS = 20
TOLERANCE = 0.01
"""Squared Newton step, in units of the precision, that ends the search."""
MAX_STEP_SIZE = 3.0
"""Longest Newton step in units of the prior sd."""


@njit(cache=True)
def cholesky(a, out):
    """Lower factor of a small symmetric matrix; False when it is not positive definite."""
    n = a.shape[0]
    for i in range(n):
        for j in range(i + 1):
            total = a[i, j]
            for k in range(j):
                total -= out[i, k] * out[j, k]
            if i == j:
                if not total > 1e-12 * abs(a[i, i]):
                    return False
                out[i, i] = math.sqrt(total)
            else:
                out[i, j] = total / out[j, j]
                out[j, i] = 0.0
    return True


@njit(cache=True)
def solve_lower(factor, b, out):
    """Solve ``factor out = b``."""
    for i in range(b.size):
        total = b[i]
        for k in range(i):
            total -= factor[i, k] * out[k]
        out[i] = total / factor[i, i]


@njit(cache=True)
def solve_upper(factor, b, out):
    """Solve ``factor.T out = b``."""
    for i in range(b.size - 1, -1, -1):
        total = b[i]
        for k in range(i + 1, b.size):
            total -= factor[k, i] * out[k]
        out[i] = total / factor[i, i]


@njit(cache=True)
def fit_groups(leaf, n, n_groups):
    """Mode and precision of each group of ``work.rows[:n]`` by ``work.labels``.

    Where the likelihood is not concave (a flat region, a piecewise linear one), the squared
    gradients of the rows replace its curvature.
    """
    work, mean, sd = leaf.work, leaf.mean, leaf.sd
    open_rows, open_labels, outputs = work.open_rows, work.open_labels, work.outputs
    mode, factor, slopes = work.mode, work.factor, work.slopes
    n_values = mean.size
    gradient = np.empty((n_groups, n_values))
    curvature = np.empty((n_groups, n_values, n_values))
    squares = np.empty((n_groups, n_values, n_values))
    half, step = np.empty(n_values), np.empty(n_values)
    low, high = np.full(n_groups, -np.inf), np.full(n_groups, np.inf)
    done = np.zeros(n_groups, dtype=np.bool_)
    for g in range(n_groups):
        mode[g] = mean
    for turn in range(MAX_STEPS):
        n_open = _open_rows(leaf, n, done)
        if n_open == 0:
            break
        call_slopes(leaf, n_open, open_rows, outputs, slopes)
        gradient[:] = 0.0
        curvature[:] = 0.0
        squares[:] = 0.0
        for i in range(n_open):
            _add_slopes(slopes[i], open_labels[i], gradient, curvature, squares)
        for g in range(n_groups):
            if done[g]:
                continue
            is_concave = True
            for a in range(n_values):
                precision = 1.0 / sd[a] ** 2
                gradient[g, a] += (mean[a] - mode[g, a]) * precision
                is_concave &= curvature[g, a, a] > 0.0
                curvature[g, a, a] += precision
                squares[g, a, a] += precision
            if not (is_concave and cholesky(curvature[g], factor[g])):
                cholesky(squares[g], factor[g])
            solve_lower(factor[g], gradient[g], half)
            solve_upper(factor[g], half, step)
            size = 0.0
            shrink = 1.0
            for a in range(n_values):
                size += half[a] * half[a]
                shrink = min(shrink, MAX_STEP_SIZE * sd[a] / max(abs(step[a]), 1e-300))
            for a in range(n_values):
                mode[g, a] += shrink * step[a]
            done[g] = size < TOLERANCE
            if n_values == 1 and not done[g]:
                before = mode[g, 0] - shrink * step[0]
                if gradient[g, 0] > 0.0:
                    low[g] = before
                else:
                    high[g] = before
                outside = not (low[g] < mode[g, 0] < high[g])
                if (outside or turn % 4 == 3) and low[g] > -np.inf and high[g] < np.inf:
                    mode[g, 0] = 0.5 * (low[g] + high[g])


@njit(cache=True)
def _open_rows(leaf, n, done):
    """List the rows of unfinished groups, with their outputs at the mode; return their number."""
    work, offset = leaf.work, leaf.offset
    rows, labels, outputs, mode = work.rows, work.labels, work.outputs, work.mode
    open_rows, open_labels = work.open_rows, work.open_labels
    n_open = 0
    for i in range(n):
        g = labels[i]
        if not done[g]:
            open_rows[n_open], open_labels[n_open] = rows[i], g
            for k in range(offset.shape[1]):
                outputs[n_open, k] = offset[rows[i], k] + mode[g, k]
            n_open += 1
    return n_open


@njit(cache=True)
def _add_slopes(slopes, g, gradient, curvature, squares):
    """Add gradient, minus second derivative and squared gradient of a row, if they are finite."""
    n_values = gradient.shape[1]
    if not is_finite_sum(slopes):
        return
    for a in range(n_values):
        gradient[g, a] += slopes[a]
        for b in range(n_values):
            curvature[g, a, b] -= slopes[n_values + a * n_values + b]
            squares[g, a, b] += slopes[a] * slopes[b]


@njit(cache=True)
def draw_proposal(rng, mean, sd, mode, factor, out):
    """Draw from q."""
    size = out.size
    if rng.random() < PRIOR_SHARE:
        for a in range(size):
            out[a] = mean[a] + sd[a] * rng.standard_normal()
        return
    z = np.empty(size)
    for a in range(size):
        z[a] = rng.standard_normal()
    stretch = math.sqrt(0.5 * DEGREES / rng.standard_gamma(0.5 * DEGREES))
    solve_upper(factor, z, out)
    for a in range(size):
        out[a] = mode[a] + stretch * out[a]


@njit(cache=True)
def log_prior(mean, sd, value):
    """Log density of independent normal values."""
    total = -0.5 * value.size * math.log(2.0 * math.pi)
    for a in range(value.size):
        z = (value[a] - mean[a]) / sd[a]
        total -= 0.5 * z * z + math.log(sd[a])
    return total


@njit(cache=True)
def log_proposal(mean, sd, mode, factor, value):
    """Log density of q."""
    size = value.size
    distance = 0.0
    log_t = math.lgamma(0.5 * (DEGREES + size)) - math.lgamma(0.5 * DEGREES)
    log_t -= 0.5 * size * math.log(DEGREES * math.pi)
    for a in range(size):
        z = 0.0
        for b in range(a, size):  # factor.T (value - mode)
            z += factor[b, a] * (value[b] - mode[b])
        distance += z * z
        log_t += math.log(factor[a, a])
    log_t -= 0.5 * (DEGREES + size) * math.log1p(distance / DEGREES)
    return log_mixture(log_t, log_prior(mean, sd, value))


@njit(cache=True)
def log_mixture(log_t, log_prior):
    """Log density of q from those of its two components."""
    near, far = math.log(1.0 - PRIOR_SHARE) + log_t, math.log(PRIOR_SHARE) + log_prior
    largest = max(near, far)
    return largest + math.log(math.exp(near - largest) + math.exp(far - largest))
