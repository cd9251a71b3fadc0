"""y ~ Weibull(alpha, exp(e)), e = slope f + offset, or y known to be larger than a limit.

With z = (y / exp(e))^alpha the density is alpha / y z exp(-z), and p(Y > y) = exp(-z). Numbers:
log y, alpha, 1 where y was observed and 0 where it is the limit, slope, offset, constant.
"""

import math

from pymc_trees.core.compile.cache import njit


@njit(cache=True)
def value(numbers, f):
    """Log-likelihood of a row."""
    log_z = numbers[1] * (numbers[0] - numbers[3] * f - numbers[4])
    return numbers[5] + numbers[2] * log_z - math.exp(log_z)


@njit(cache=True)
def slopes(numbers, f):
    """Its first and second derivative."""
    alpha, slope = numbers[1], numbers[3]
    z = math.exp(alpha * (numbers[0] - slope * f - numbers[4]))
    return slope * alpha * (z - numbers[2]), -((slope * alpha) ** 2) * z
