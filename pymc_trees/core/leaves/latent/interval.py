"""A Normal of mean eta and known sd that is known to lie between two bounds.

Probit regression has the bounds 0 and infinity, ordered probit two cut points (Albert and Chib
1993), a censored Normal the limit and infinity; if both bounds are equal, it is observed. Given the
Normal itself, which is truncated to the bounds, the row is an ordinary observation of eta.
"""

import math
from typing import NamedTuple

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.leaves.latent.contract import register_path

WIDE = math.sqrt(2.0 * math.pi)
"""Width around 0 from which normal proposals are accepted more often than uniform ones."""
FAR = 30.0
"""Standard deviations beyond which the tail of a Normal is computed by its series."""


class Interval(NamedTuple):
    """Numbers of a row: lower bound, upper bound, sd."""


@njit(cache=True)
def draw_truncated(rng, low, high):
    """Draw from a standard Normal between two bounds (Robert 1995)."""
    if high < 0.0:
        return -_draw_upper(rng, -high, -low)
    if low > 0.0:
        return _draw_upper(rng, low, high)
    if high - low > WIDE:
        while True:
            x = rng.standard_normal()
            if low <= x <= high:
                return x
    while True:
        x = low + (high - low) * rng.random()
        if rng.random() <= math.exp(-0.5 * x * x):
            return x


@njit(cache=True)
def _draw_upper(rng, low, high):
    """The same for two positive bounds."""
    root = math.sqrt(low * low + 4.0)
    # Robert 1995, section 2.2: a uniform proposal below this width, else a shifted exponential
    narrow = 2.0 / (low + root) * math.exp(0.25 * (low * low - low * root) + 0.5)
    if high - low <= narrow:
        while True:
            x = low + (high - low) * rng.random()
            if rng.random() <= math.exp(0.5 * (low - x) * (low + x)):
                return x
    rate = 0.5 * (low + root)
    while True:
        x = low + rng.standard_exponential() / rate
        if x <= high and rng.random() <= math.exp(-0.5 * (x - rate) ** 2):
            return x


@njit(cache=True)
def log_tail(x):
    """Log of P(standard Normal > x)."""
    if x < FAR:
        return math.log(0.5 * math.erfc(x / math.sqrt(2.0)))
    inverse = 1.0 / (x * x)
    series = math.log1p(inverse * (-1.0 + inverse * (3.0 - 15.0 * inverse)))
    return -0.5 * x * x - math.log(x * math.sqrt(2.0 * math.pi)) + series


@njit(cache=True)
def log_between(low, high):
    """Log of P(low < standard Normal < high)."""
    if low + high < 0.0:  # the side with small tails
        low, high = -high, -low
    if high == np.inf:
        return log_tail(low)
    if low < 0.0:
        root = math.sqrt(2.0)
        return math.log(0.5 * (math.erf(high / root) - math.erf(low / root)))
    near, far = log_tail(low), log_tail(high)
    return near + math.log(-math.expm1(far - near))


@njit(cache=True)
def _draw_row(path, rng, numbers, eta):
    low, high, sd = numbers[0], numbers[1], numbers[2]
    at = low
    if low < high:
        at = eta + sd * draw_truncated(rng, (low - eta) / sd, (high - eta) / sd)
    return at, 1.0 / (sd * sd)


@njit(cache=True)
def _log_row(path, numbers, eta):
    low, high, sd = (numbers[0] - eta) / numbers[2], (numbers[1] - eta) / numbers[2], numbers[2]
    if low < high:
        return log_between(low, high)
    return -0.5 * (low * low + math.log(2.0 * math.pi)) - math.log(sd)


register_path(Interval, draw_row=_draw_row, log_row=_log_row)
