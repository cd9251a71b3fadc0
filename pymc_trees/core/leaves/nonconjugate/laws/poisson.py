"""y ~ Poisson(exp(e)), e = slope f + offset; numbers: y, slope, offset, constant."""

import math

from pymc_trees.core.compile.cache import njit


@njit(cache=True)
def value(numbers, f):
    """Log-likelihood of a row."""
    e = numbers[1] * f + numbers[2]
    return numbers[3] + numbers[0] * e - math.exp(e)


@njit(cache=True)
def slopes(numbers, f):
    """Its first and second derivative."""
    slope = numbers[1]
    rate = math.exp(slope * f + numbers[2])
    return slope * (numbers[0] - rate), -slope * slope * rate
