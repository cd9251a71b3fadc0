"""Soft gates: the probability with which a row reaches each leaf, and its gradient.

At split j a row goes left with probability ``g = logistic((x . Delta_j - tau_j) / h)`` (eq. 4); the
probability of a leaf is the product along its path (eq. 5). Rows are scaled inputs, one input after
the other, so that a node is computed for several rows at a time, without a branch or a call: in
short loops over few arrays, as a compiler must tell that no two of them are the same memory.
"""

import math

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.compile.lanes import masked_product_sum, masked_sum

STEEPEST = 100.0
"""Distance to a gate, in units of h, beyond which a row is on one side: exp(-100) is 4e-44."""

_PER_LOG2 = 1.0 / math.log(2.0)
# Of log 2, the high part has 32 bits: its products with a small whole number are exact.
_LOG2_HIGH, _LOG2_LOW = 0.6931471803691238, 1.9082149292705877e-10
_TAYLOR = tuple(1.0 / math.factorial(k) for k in range(14))
_ROUNDS = 1.5 * 2.0**52
"""A number added to this is rounded to a whole one, which the lowest bits of the sum hold."""
_EXPONENT_OF_1 = np.int64(1023) + np.float64(_ROUNDS).view(np.int64)
_MANTISSA = np.int64(52)


@njit(cache=True)
def exp_of_minus(s, fraction, out, bits):
    """Write exp(-s) for s from 0 to `STEEPEST`, to within 4e-16 of itself.

    As ``2**-k exp(r)``, with k the whole number next to ``s / log 2``. So r is within log(2) / 2
    of 0, where the Taylor series leaves out less than 1e-17.

    Parameters
    ----------
    s : (n,) float64
    fraction : (n,) float64
        Overwritten.
    out : (n,) float64
        Written.
    bits : (n,) int64
        The memory of ``out``.
    """
    for i in range(s.size):
        whole = s[i] * _PER_LOG2 + _ROUNDS
        out[i] = whole
        k = whole - _ROUNDS
        r = (k * _LOG2_HIGH - s[i]) + k * _LOG2_LOW
        p = _TAYLOR[13] * r + _TAYLOR[12]
        p = (p * r + _TAYLOR[11]) * r + _TAYLOR[10]
        p = (p * r + _TAYLOR[9]) * r + _TAYLOR[8]
        p = (p * r + _TAYLOR[7]) * r + _TAYLOR[6]
        p = (p * r + _TAYLOR[5]) * r + _TAYLOR[4]
        p = (p * r + _TAYLOR[3]) * r + _TAYLOR[2]
        fraction[i] = (p * r + _TAYLOR[1]) * r + _TAYLOR[0]
    for i in range(s.size):
        bits[i] = (_EXPONENT_OF_1 - bits[i]) << _MANTISSA  # of 2**-k
    for i in range(s.size):
        out[i] *= fraction[i]


@njit(cache=True, error_model="numpy")
def leaf_probabilities(x, delta, tau, h, table, phi, gates):
    """Write the probability of every leaf at every row (eq. 5), and of left at every split (eq. 4).

    Parameters
    ----------
    x : (p, n) float64
        Scaled inputs.
    delta : (S, p) float64
        Weights of the inputs at each split.
    tau : (S,) float64
        Thresholds.
    h : float
        Sharpness: smaller is harder.
    table : (S + L, 2) int64
        `topology.node_table`.
    phi : (L, n) float64
        Written.
    gates : (S, n) float64
        Written.
    """
    p, n = x.shape
    nodes, per_h = table.shape[0], 1.0 / h
    reach = np.empty((nodes, n))
    z, steep, fraction, tail = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    bits, other = tail.view(np.int64), np.empty(n)
    reach[0] = 1.0
    for node in range(nodes):
        right, number = table[node, 0], table[node, 1]
        if right < 0:
            phi[number] = reach[node]
            continue
        z[:] = -tau[number]
        for j in range(p):
            weight, column = delta[number, j], x[j]
            for i in range(n):
                z[i] += weight * column[i]
        # The exponent is negative, so nothing overflows. Beyond `STEEPEST` the exponential is
        # negligible, and products of several such factors along a path would be subnormal
        # numbers, whose arithmetic is slow.
        for i in range(n):
            s = abs(z[i]) * per_h
            steep[i] = s if s < STEEPEST else STEEPEST
        exp_of_minus(steep, fraction, tail, bits)
        for i in range(n):
            tail[i] = tail[i] if steep[i] < STEEPEST else 0.0
        here, gate, on_left, on_right = reach[node], gates[number], reach[node + 1], reach[right]
        for i in range(n):
            near = 1.0 / (1.0 + tail[i])
            far = tail[i] * near
            gate[i] = near if z[i] >= 0.0 else far
            other[i] = far if z[i] >= 0.0 else near
        for i in range(n):
            on_left[i] = here[i] * gate[i]
        for i in range(n):
            on_right[i] = here[i] * other[i]


@njit(cache=True, error_model="numpy")
def gate_gradient(x, h, table, gates, weight, d_delta, d_tau):
    """Add the gradient of ``sum(weight * phi)`` with respect to Delta and tau.

    ``below[node]`` is the gradient with respect to the probability of reaching the node: a leaf has
    its weight, a split the mean over its children. So ``d/dg = reach (below_left - below_right)``.

    Parameters
    ----------
    x : (p, n) float64
        Scaled inputs.
    h : float
        Sharpness.
    table : (S + L, 2) int64
        `topology.node_table`.
    gates : (S, n) float64
        Of `leaf_probabilities`.
    weight : (L, n) float64
    d_delta : (S, p) float64
        Added to.
    d_tau : (S,) float64
        Added to.
    """
    p, n = x.shape
    nodes, per_h = table.shape[0], 1.0 / h
    reach, below, slope = np.empty((nodes, n)), np.empty((nodes, n)), np.empty(n)
    all_rows = np.full((n + 63) // 64, ~np.uint64(0))
    reach[0] = 1.0
    for node in range(nodes):
        right, number = table[node, 0], table[node, 1]
        if right >= 0:
            here, left = reach[node], gates[number]
            on_left, on_right = reach[node + 1], reach[right]
            for i in range(n):
                on_left[i] = here[i] * left[i]
            for i in range(n):
                on_right[i] = here[i] * (1.0 - left[i])
    for node in range(nodes - 1, -1, -1):
        right, number = table[node, 0], table[node, 1]
        if right < 0:
            below[node] = weight[number]
            continue
        here, left, out = reach[node], gates[number], below[node]
        of_left, of_right = below[node + 1], below[right]
        for i in range(n):
            out[i] = left[i] * of_left[i] + (1.0 - left[i]) * of_right[i]
        for i in range(n):
            g, apart = left[i], of_left[i] - of_right[i]
            slope[i] = here[i] * g * (1.0 - g) * apart * per_h
        d_tau[number] -= masked_sum(all_rows, slope)
        for j in range(p):
            d_delta[number, j] += masked_product_sum(all_rows, slope, x[j])


# --------------------------------------------------------------------------------------------------
# Unconstrained coordinates of the gates of a tree: thresholds by logit, weights by stick-
# breaking.
#
# The coordinates of S splits of p inputs are S numbers for the thresholds tau, then p - 1 for the
# weights Delta of each split in turn. With ``g_k = logistic(stick_k - log(p - 1 - k))``, k from
# 0,
#
#     Delta_k = g_k (1 - g_0) ... (1 - g_{k-1}),    Delta_{p-1} = (1 - g_0) ... (1 - g_{p-2}),
#
# so that coordinates of 0 are equal weights. Logarithms of g and of 1 - g are computed without
# cancellation.


@njit(cache=True)
def _logistic(u):
    """The logistic g of u, 1 - g, and the logarithms of both."""
    e = math.exp(-abs(u))
    near, far, log_near = 1.0 / (1.0 + e), e / (1.0 + e), -math.log1p(e)
    if u >= 0.0:
        return near, far, log_near, log_near - u
    return far, near, log_near + u, log_near


@njit(cache=True)
def gates_at(coordinates, tau, delta):
    """Write thresholds and weights; return the log of the density's change of scale.

    That is ``log |d(tau, Delta_0, ..., Delta_{p-2}) / d coordinates|``.

    Parameters
    ----------
    coordinates : (S p,) float64
    tau : (S,) float64
        Written.
    delta : (S, p) float64
        Written.
    """
    splits, p = delta.shape
    total, at = 0.0, splits
    for s in range(splits):
        tau[s], _, log_g, log_rest = _logistic(coordinates[s])
        total += log_g + log_rest
        left_over = 0.0  # log (1 - g_0) ... (1 - g_{k-1})
        for k in range(p - 1):
            _, _, log_g, log_rest = _logistic(coordinates[at] - math.log(p - 1 - k))
            delta[s, k] = math.exp(left_over + log_g)
            total += left_over + log_g + log_rest
            left_over += log_rest
            at += 1
        delta[s, p - 1] = math.exp(left_over)
    return total


@njit(cache=True)
def gates_gradient(coordinates, delta, d_tau, d_delta, d_total, out):
    """Write the gradient with respect to the coordinates, given those with respect to the gates.

    Parameters
    ----------
    coordinates : (S p,) float64
    delta : (S, p) float64
        Of `gates_at`.
    d_tau : (S,) float64
    d_delta : (S, p) float64
    d_total : float
        With respect to what `gates_at` returned.
    out : (S p,) float64
        Written.
    """
    splits, p = delta.shape
    for s in range(splits):
        g, rest, _, _ = _logistic(coordinates[s])
        out[s] = d_tau[s] * g * rest + d_total * (rest - g)
        after = d_delta[s, p - 1] * delta[s, p - 1]  # with respect to log(1 - g_k), by what follows
        for k in range(p - 2, -1, -1):
            at = splits + s * (p - 1) + k
            g, rest, _, _ = _logistic(coordinates[at] - math.log(p - 1 - k))
            of_g = d_delta[s, k] * delta[s, k] + d_total  # with respect to log g_k
            out[at] = of_g * rest - (after + d_total) * g
            after += of_g
