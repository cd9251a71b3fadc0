"""r ~ N(0, a + c), a = exp(e)^2, e = slope f + offset; numbers: r, c, slope, offset.

With v = a + c, and a' = 2 slope a for the derivative by f,

    l = -(log v + r^2 / v) / 2,   l' = slope a q,   q = (r^2 / v - 1) / v,
    l'' = 2 slope^2 a (q + a (1 - 2 r^2 / v) / v^2)
"""

import math

from pymc_trees.core.compile.cache import njit

HALF_LOG_2_PI = 0.5 * math.log(2.0 * math.pi)


@njit(cache=True)
def value(numbers, f):
    """Log-likelihood of a row."""
    v = math.exp(2.0 * (numbers[2] * f + numbers[3])) + numbers[1]
    return -HALF_LOG_2_PI - 0.5 * (math.log(v) + numbers[0] * numbers[0] / v)


@njit(cache=True)
def slopes(numbers, f):
    """Its first and second derivative."""
    slope = numbers[2]
    a = math.exp(2.0 * (slope * f + numbers[3]))
    v = a + numbers[1]
    z2, share = numbers[0] * numbers[0] / v, a / v
    first = slope * share * (z2 - 1.0)
    return first, 2.0 * slope * first + 2.0 * (slope * share) ** 2 * (1.0 - 2.0 * z2)
