"""r ~ N(0, exp(e)^2), e = slope f + offset; numbers: r, slope, offset."""

import math

from pymc_trees.core.compile.cache import njit

HALF_LOG_2_PI = 0.5 * math.log(2.0 * math.pi)


@njit(cache=True)
def value(numbers, f):
    """Log-likelihood of a row."""
    e = numbers[1] * f + numbers[2]
    z = numbers[0] * math.exp(-e)
    return -HALF_LOG_2_PI - e - 0.5 * z * z


@njit(cache=True)
def slopes(numbers, f):
    """Its first and second derivative."""
    slope = numbers[1]
    z = numbers[0] * math.exp(-(slope * f + numbers[2]))
    return slope * (z * z - 1.0), -2.0 * (slope * z) ** 2
