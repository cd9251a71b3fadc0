"""Unconstrained coordinates of the gates of a tree: thresholds by logit, weights by stick-breaking.

The coordinates of S splits of p inputs are S numbers for the thresholds tau, then p - 1 for the
weights Delta of each split in turn. With ``g_k = logistic(stick_k - log(p - 1 - k))``, k from 0,

    Delta_k = g_k (1 - g_0) ... (1 - g_{k-1}),    Delta_{p-1} = (1 - g_0) ... (1 - g_{p-2}),

so that coordinates of 0 are equal weights. Logarithms of g and of 1 - g are computed without
cancellation.
"""

import math

from pymc_trees.core.compile.cache import njit


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
