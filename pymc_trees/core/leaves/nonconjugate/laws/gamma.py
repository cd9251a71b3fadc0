"""y ~ Gamma(shape exp(u), scale exp(v)), u and v affine in f.

Numbers: y, log y, slope and offset of u, those of v, log gamma of the shape where the slope of u is
0.
"""

import math

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.compile.polygamma import digamma, polygamma


@njit(cache=True)
def value(numbers, f):
    """Log-likelihood of a row."""
    y, log_y, slope = numbers[0], numbers[1], numbers[2]
    shape = math.exp(slope * f + numbers[3])
    v = numbers[4] * f + numbers[5]
    log_gamma = numbers[6] if slope == 0.0 else math.lgamma(shape)
    return (shape - 1.0) * log_y - y * math.exp(-v) - shape * v - log_gamma


@njit(cache=True)
def slopes(numbers, f):
    """Its first and second derivative."""
    a, b = numbers[2], numbers[4]
    shape = math.exp(a * f + numbers[3])
    v = b * f + numbers[5]
    ratio = numbers[0] * math.exp(-v)
    first, second = b * (ratio - shape), -b * b * ratio
    if a != 0.0:
        apart = numbers[1] - v - digamma(shape)
        first += a * shape * apart
        second += a * a * shape * (apart - shape * polygamma(1, shape)) - 2.0 * a * b * shape
    return first, second
