"""Derivatives of the log gamma function, compiled.

    psi_n(x) = (-1)^(n+1) n! sum_{k >= 0} (x + k)^-(n+1),        n = 1, 2, ...

The first terms are added up until x is large enough for the asymptotic series of the rest
(Abramowitz and Stegun 1964, 6.4.6 and 6.4.11),

    (-1)^(n+1) [(n-1)! / x^n + n! / (2 x^(n+1)) + sum_k B_2k (2k+n-1)! / ((2k)! x^(2k+n))].
"""

import math

import numpy as np

from pymc_trees.core.compile.cache import njit

BERNOULLI = np.array(
    [1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798]
)
"""B_2, B_4, ..., B_18."""
LARGE = 15.0
"""Value of x - n from which the series is exact to rounding."""


@njit(cache=True)
def digamma(x):
    """Derivative of log gamma at x > 0 (Abramowitz and Stegun 1964, 6.3.5 and 6.3.18)."""
    total = 0.0
    while x < LARGE:
        if not x > 0.0:
            return math.nan
        total -= 1.0 / x
        x += 1.0
    square = 1.0 / (x * x)
    tail, power = 0.0, square
    for k in range(BERNOULLI.size):
        tail += BERNOULLI[k] * power / (2.0 * (k + 1))
        power *= square
    return total + math.log(x) - 0.5 / x - tail


@njit(cache=True)
def polygamma(n, x):
    """Derivative of order n + 1 of log gamma at x, n >= 1; infinite at 0, -1, -2, ..."""
    if not x > -1e6:  # also NaN, and arguments whose recurrence would be too long
        return math.nan
    power, total = n + 1.0, 0.0
    while x < LARGE + n:
        if x == 0.0:
            return math.inf if n % 2 == 1 else math.nan
        total += x**-power
        x += 1.0
    # terms are divided by n!: (2k+n-1)! / ((2k)! n!) follows from its value at k - 1
    tail = 1.0 / n + 0.5 / x
    factor, square = 0.5 * power / (x * x), 1.0 / (x * x)
    for k in range(BERNOULLI.size):
        tail += BERNOULLI[k] * factor
        order = 2.0 * (k + 1)
        factor *= (order + n) * (order + n + 1.0) / ((order + 1.0) * (order + 2.0)) * square
    sign = 1.0 if n % 2 == 1 else -1.0
    return sign * math.gamma(power) * (total + tail * x ** -float(n))
