"""y ~ N(e, sigma^2) truncated to a <= y <= b, e = slope f + offset.

With alpha = (a - e) / sigma, beta = (b - e) / sigma and P = Phi(beta) - Phi(alpha) the density is
phi((y - e) / sigma) / (sigma P). Numbers: y, sigma, a, b, slope, offset.
"""

import math

from pymc_trees.core.compile.cache import njit

HALF_LOG_2_PI = 0.5 * math.log(2.0 * math.pi)
ROOT_HALF = math.sqrt(0.5)
FAR = 30.0
"""Standard deviations beyond which the tail of a Normal is computed by its series."""


@njit(cache=True)
def log_tail(x):
    """log(1 - Phi(x)) for x >= 0; the series errs by less than 945 / x^10."""
    if x < FAR:
        return math.log(0.5 * math.erfc(x * ROOT_HALF))
    if x == math.inf:
        return -math.inf
    u = 1.0 / (x * x)
    series = -u * (1.0 - 3.0 * u * (1.0 - 5.0 * u * (1.0 - 7.0 * u)))
    return -0.5 * x * x - HALF_LOG_2_PI - math.log(x) + math.log1p(series)


@njit(cache=True)
def log_between(low, high):
    """log(Phi(high) - Phi(low)), without cancellation in either tail."""
    if high <= 0.0:
        low, high = -high, -low
    if low >= 0.0:
        first = log_tail(low)
        return first + math.log1p(-math.exp(log_tail(high) - first))
    return math.log1p(-0.5 * (math.erfc(-low * ROOT_HALF) + math.erfc(high * ROOT_HALF)))


@njit(cache=True)
def value(numbers, f):
    """Log-likelihood of a row."""
    sigma, e = numbers[1], numbers[4] * f + numbers[5]
    z = (numbers[0] - e) / sigma
    inside = log_between((numbers[2] - e) / sigma, (numbers[3] - e) / sigma)
    return -HALF_LOG_2_PI - math.log(sigma) - 0.5 * z * z - inside


@njit(cache=True)
def _share(x, inside):
    """phi(x) / P, and x times that; 0 at infinity."""
    if math.isinf(x):
        return 0.0, 0.0
    density = math.exp(-0.5 * x * x - HALF_LOG_2_PI - inside)
    return density, x * density


@njit(cache=True)
def slopes(numbers, f):
    """Its first and second derivative: y minus the truncated mean, and minus the variance."""
    sigma, slope = numbers[1], numbers[4]
    e = slope * f + numbers[5]
    low, high = (numbers[2] - e) / sigma, (numbers[3] - e) / sigma
    inside = log_between(low, high)
    first_low, second_low = _share(low, inside)
    first_high, second_high = _share(high, inside)
    mean = first_low - first_high
    variance = 1.0 + second_low - second_high - mean * mean
    rate = slope / sigma
    return rate * ((numbers[0] - e) / sigma - mean), -rate * rate * max(variance, 0.0)
