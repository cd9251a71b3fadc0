"""Soft gates: the probability with which a row reaches each leaf, and its gradient.

At split j a row goes left with probability ``g = logistic((x . Delta_j - tau_j) / h)`` (eq. 4); the
probability of a leaf is the product along its path (eq. 5). Rows are scaled inputs.
"""

import math

import numpy as np

from pymc_trees.core.compile.cache import njit

STEEPEST = 100.0
"""Distance to a gate, in units of h, beyond which a row is on one side: exp(-100) is 4e-44."""


@njit(cache=True)
def leaf_probabilities(x, delta, tau, h, table, phi, gates):
    """Write the probability of every leaf at every row (eq. 5), and of left at every split (eq. 4).

    Parameters
    ----------
    x : (n, p) float64
        Scaled inputs.
    delta : (S, p) float64
        Weights of the inputs at each split.
    tau : (S,) float64
        Thresholds.
    h : float
        Sharpness: smaller is harder.
    table : (S + L, 2) int64
        `topology.node_table`.
    phi : (n, L) float64
        Written.
    gates : (n, S) float64
        Written.
    """
    n, p = x.shape
    nodes = table.shape[0]
    reach = np.empty(nodes)
    for i in range(n):
        reach[0] = 1.0
        for node in range(nodes):
            right, number = table[node, 0], table[node, 1]
            if right < 0:
                phi[i, number] = reach[node]
                continue
            z = -tau[number]
            for j in range(p):
                z += delta[number, j] * x[i, j]
            # The exponent is negative, so nothing overflows. Beyond `STEEPEST` the exponential is
            # negligible, and products of several such factors along a path would be subnormal
            # numbers, whose arithmetic is slow.
            steep = abs(z) / h
            tail = math.exp(-steep) if steep < STEEPEST else 0.0
            near, far = 1.0 / (1.0 + tail), tail / (1.0 + tail)
            left = near if z >= 0.0 else far
            gates[i, number] = left
            reach[node + 1] = reach[node] * left
            reach[right] = reach[node] * (far if z >= 0.0 else near)


@njit(cache=True)
def gate_gradient(x, h, table, gates, weight, d_delta, d_tau):
    """Add the gradient of ``sum(weight * phi)`` with respect to Delta and tau.

    ``below[node]`` is the gradient with respect to the probability of reaching the node: a leaf has
    its weight, a split the mean over its children. So ``d/dg = reach (below_left - below_right)``.

    Parameters
    ----------
    weight : (n, L) float64
    d_delta : (S, p) float64
        Added to.
    d_tau : (S,) float64
        Added to.
    """
    n, p = x.shape
    nodes = table.shape[0]
    reach, below = np.empty(nodes), np.empty(nodes)
    for i in range(n):
        reach[0] = 1.0
        for node in range(nodes):
            right, number = table[node, 0], table[node, 1]
            if right >= 0:
                left = gates[i, number]
                reach[node + 1] = reach[node] * left
                reach[right] = reach[node] * (1.0 - left)
        for node in range(nodes - 1, -1, -1):
            right, number = table[node, 0], table[node, 1]
            if right < 0:
                below[node] = weight[i, number]
                continue
            left = gates[i, number]
            below[node] = left * below[node + 1] + (1.0 - left) * below[right]
            slope = reach[node] * left * (1.0 - left) * (below[node + 1] - below[right]) / h
            if slope != 0.0:
                d_tau[number] -= slope
                for j in range(p):
                    d_delta[number, j] += slope * x[i, j]
