"""Where does a new point leave the tree, and when?

A point at distance eta from the box of a node that has no split between ``start`` and ``end``
branches off there at the first event of a Poisson process with rate eta: after u with density
``eta exp(-eta u)``, if that is before ``end`` (thesis, 5.5.3).
"""

import numpy as np

from pymc_trees.core.compile.cache import njit

FURTHEST = 1e300
"""Maximal distance; sums of two such distances do not overflow."""


@njit(cache=True)
def distance(box, x):
    """Distance of a point from a box, summed over the columns; at most `FURTHEST`."""
    low, high = box[0], box[1]
    total = 0.0
    for d in range(x.size):
        total += max(x[d] - high[d], low[d] - x[d], 0.0)
    return min(total, FURTHEST)


def _legendre(n):
    points, weights = np.polynomial.legendre.leggauss(n)
    return (points + 1.0) / 2.0, weights / 2.0


_X, _W = _legendre(10)
_X_LATE, _W_LATE = _legendre(4)
_POWER = 3
_LATE = 8.0  # exp(-8): the remaining change after that
MAX_TIMES = _X.size + _X_LATE.size


@njit(cache=True)
def branching_times(eta, gamma, delta, weight, decay):
    """Quadrature over the time u in [0, delta] of branching off; returns the number of points.

    Sum of ``weight * f(decay)`` is the integral of ``eta exp(-eta u) f(exp(-gamma u))`` for smooth
    f. With variables in which both factors are smooth, ten points (fourteen if branching is slow)
    have an error below 4e-6 of the range of a logistic f and of its square.
    """
    alpha = gamma / eta
    if alpha <= 1.0:
        # Branching before f changes much: z**3 = exp(-eta u).
        least = np.exp(-eta * delta / _POWER)
        for k in range(_X.size):
            z = least + (1.0 - least) * _X[k]
            weight[k] = _W[k] * (1.0 - least) * _POWER * z ** (_POWER - 1)
            decay[k] = z ** (_POWER * alpha)
        return _X.size
    # f changes early and then hardly: v**3 = exp(-gamma u) at first, exp(-eta u) later.
    switch = min(delta, _LATE / gamma)
    least = np.exp(-gamma * switch / _POWER)
    total = 0.0
    for k in range(_X.size):
        v = least + (1.0 - least) * _X[k]
        weight[k] = _W[k] * v ** (_POWER / alpha - 1.0)
        decay[k] = v**_POWER
        total += weight[k]
    mass = -np.expm1(-eta * switch)
    for k in range(_X.size):
        weight[k] *= mass / total
    if delta <= switch:
        return _X.size
    first, last = np.exp(-eta * switch), np.exp(-eta * delta)
    for k in range(_X_LATE.size):
        r = last + (first - last) * _X_LATE[k]
        weight[_X.size + k] = _W_LATE[k] * (first - last)
        decay[_X.size + k] = r**alpha
    return MAX_TIMES
