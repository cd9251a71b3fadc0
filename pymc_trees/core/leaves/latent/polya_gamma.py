"""``y ~ Binomial(trials, 1 / (1 + exp(-eta)))``, with Polya-Gamma latent variables.

With omega ~ PG(trials, 0) and kappa = y - trials / 2 (Polson, Scott and Windle 2013, eq. 2)

    p(y | eta) = 2^-trials exp(kappa eta) E exp(-omega eta^2 / 2) binomial(trials, y),

so given omega, which is PG(trials, eta) given y, the row is an observation kappa / omega of eta
with precision omega. PG(trials, eta) is a sum of that many PG(1, eta), each drawn exactly by
alternating series (their section 4; Devroye 2009).
"""

import math
from typing import NamedTuple

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.leaves.latent.contract import register_path

NEAR = 0.64
"""t, where the proposal changes from an inverse Gaussian to an exponential (near-optimal)."""


class PolyaGamma(NamedTuple):
    """Numbers of a row: y, trials, log of the binomial coefficient."""


@njit(cache=True)
def _normal_cdf(x):
    return 0.5 * math.erfc(-x / math.sqrt(2.0))


@njit(cache=True)
def _share_above(z):
    """Share of the proposal beyond t: p / (p + q) of Polson, Scott and Windle, algorithm 1."""
    rate = 0.125 * math.pi**2 + 0.5 * z * z
    # both times exp(z): q = 2 exp(-z) P(IG(1 / z, 1) <= t), p = pi / (2 K) exp(-K t)
    root = 1.0 / math.sqrt(NEAR)
    below = _normal_cdf(root * (NEAR * z - 1.0))
    other = _normal_cdf(-root * (NEAR * z + 1.0))
    if other > 0.0:
        below += math.exp(2.0 * z) * other
    above = 0.5 * math.pi / rate * math.exp(z - rate * NEAR)
    return above / (above + 2.0 * below)


@njit(cache=True)
def _inverse_gaussian_below(rng, z):
    """Draw from IG(1 / z, 1) given that it is at most t."""
    if z < 1.0 / NEAR:
        while True:
            first, second = rng.standard_exponential(), rng.standard_exponential()
            while first * first > 2.0 * second / NEAR:
                first, second = rng.standard_exponential(), rng.standard_exponential()
            x = NEAR / (1.0 + NEAR * first) ** 2
            if rng.random() <= math.exp(-0.5 * z * z * x):
                return x
    while True:
        x = draw_inverse_gaussian(rng, 1.0 / z, 1.0)
        if x <= NEAR:
            return x


@njit(cache=True)
def draw_inverse_gaussian(rng, mean, shape):
    """Draw from an inverse Gaussian (Michael, Schucany and Haas 1976).

    The smaller root of their quadratic equation is computed as a quotient, without cancellation.
    """
    normal = rng.standard_normal()
    t = 0.5 * mean * normal * normal / shape
    x = mean / (1.0 + t + math.sqrt(t * (t + 2.0)))
    return x if rng.random() * (mean + x) <= mean else mean * (mean / x)


@njit(cache=True)
def _coefficient(n, x):
    """a_n(x) of Polson, Scott and Windle, eq. 12-13; Devroye 2009, section 2."""
    k = n + 0.5
    if x <= NEAR:
        return math.pi * k * (2.0 / (math.pi * x)) ** 1.5 * math.exp(-2.0 * k * k / x)
    return math.pi * k * math.exp(-0.5 * k * k * math.pi**2 * x)


@njit(cache=True)
def draw_polya_gamma(rng, tilt):
    """Draw from PG(1, tilt)."""
    z = 0.5 * abs(tilt)
    rate = 0.125 * math.pi**2 + 0.5 * z * z
    share = _share_above(z)
    while True:
        if rng.random() < share:
            x = NEAR + rng.standard_exponential() / rate
        else:
            x = _inverse_gaussian_below(rng, z)
        total = _coefficient(0, x)
        height = rng.random() * total
        n = 0
        while True:
            n += 1
            if n % 2 == 1:
                total -= _coefficient(n, x)
                if height <= total:
                    return 0.25 * x
            else:
                total += _coefficient(n, x)
                if height > total:
                    break


@njit(cache=True)
def _draw_row(path, rng, numbers, eta):
    y, trials = numbers[0], numbers[1]
    omega = 0.0
    for _ in range(int(trials)):
        omega += draw_polya_gamma(rng, eta)
    if omega == 0.0:  # no trials
        return 0.0, 0.0
    return (y - 0.5 * trials) / omega, omega


@njit(cache=True)
def _log_row(path, numbers, eta):
    softplus = max(eta, 0.0) + math.log1p(math.exp(-abs(eta)))
    return numbers[2] + numbers[0] * eta - numbers[1] * softplus


register_path(PolyaGamma, draw_row=_draw_row, log_row=_log_row)
