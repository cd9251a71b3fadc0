"""log p(y) = constant + a e - t log(1 + exp(e)), e = slope f + offset.

Numbers: a, t, slope, offset, constant. A Binomial of t trials has a = y; a NegativeBinomial of
shape alpha has p = 1 / (1 + exp(-e)) with a = alpha and t = alpha + y.
"""

import math

from pymc_trees.core.compile.cache import njit


@njit(cache=True)
def value(numbers, f):
    """Log-likelihood of a row."""
    e = numbers[2] * f + numbers[3]
    softplus = max(e, 0.0) + math.log1p(math.exp(-abs(e)))
    return numbers[4] + numbers[0] * e - numbers[1] * softplus


@njit(cache=True)
def slopes(numbers, f):
    """Its first and second derivative."""
    slope = numbers[2]
    p = 1.0 / (1.0 + math.exp(-(slope * f + numbers[3])))
    return slope * (numbers[0] - numbers[1] * p), -slope * slope * numbers[1] * p * (1.0 - p)
