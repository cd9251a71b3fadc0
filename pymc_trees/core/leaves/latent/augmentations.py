"""Latent variables given which a row is Gaussian: one type for each kind of likelihood."""

import math
from typing import NamedTuple

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.leaves.latent.rows import register_augmentation

# ----------------------------------- A Normal of mean eta and known sd that lies between two bounds
#
# Probit regression has the bounds 0 and infinity, ordered probit two cut points (Albert and Chib
# 1993), a censored Normal the limit and infinity; if both bounds are equal, it is observed. The
# latent variable is the Normal itself, truncated to the bounds: an observation of eta.


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
    """`draw_truncated` for two positive bounds."""
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
def _draw_interval_row(augmentation, rng, numbers, eta):
    low, high, sd = numbers[0], numbers[1], numbers[2]
    observation = low
    if low < high:
        observation = eta + sd * draw_truncated(rng, (low - eta) / sd, (high - eta) / sd)
    return observation, 1.0 / (sd * sd)


@njit(cache=True)
def _log_interval_row(augmentation, numbers, eta):
    low, high, sd = (numbers[0] - eta) / numbers[2], (numbers[1] - eta) / numbers[2], numbers[2]
    if low < high:
        return log_between(low, high)
    return -0.5 * (low * low + math.log(2.0 * math.pi)) - math.log(sd)


register_augmentation(Interval, draw_row=_draw_interval_row, log_row=_log_interval_row)


# ----------------------- ``y ~ StudentT(nu, eta, sd)``: a Normal with a gamma-distributed precision
#
# With lambda ~ Gamma(nu / 2, rate nu / 2), y ~ N(eta, sd^2 / lambda), and (West 1987)
#
#     lambda | y, eta ~ Gamma((nu + 1) / 2, rate (nu + z^2) / 2),      z = (y - eta) / sd.


class ScaleMixture(NamedTuple):
    """Numbers of a row: y, nu, sd."""


@njit(cache=True)
def _draw_scale_mixture_row(augmentation, rng, numbers, eta):
    y, nu, sd = numbers[0], numbers[1], numbers[2]
    z = (y - eta) / sd
    scale = rng.standard_gamma(0.5 * (nu + 1.0)) / (0.5 * (nu + z * z))
    return y, scale / (sd * sd)


@njit(cache=True)
def _log_scale_mixture_row(augmentation, numbers, eta):
    nu, sd = numbers[1], numbers[2]
    z = (numbers[0] - eta) / sd
    constant = math.lgamma(0.5 * (nu + 1.0)) - math.lgamma(0.5 * nu)
    constant -= 0.5 * math.log(nu * math.pi) + math.log(sd)
    return constant - 0.5 * (nu + 1.0) * math.log1p(z * z / nu)


register_augmentation(
    ScaleMixture, draw_row=_draw_scale_mixture_row, log_row=_log_scale_mixture_row
)


# ------------------ Mixture of Normals with means eta + shift; the latent variable is the component


class NormalMixture(NamedTuple):
    """Numbers of a row: y; then for each component log of its weight, shift, sd."""


@njit(cache=True)
def _log_component(numbers, k, eta):
    log_weight, shift, sd = numbers[3 * k + 1], numbers[3 * k + 2], numbers[3 * k + 3]
    z = (numbers[0] - eta - shift) / sd
    return log_weight - 0.5 * (z * z + math.log(2.0 * math.pi)) - math.log(sd)


@njit(cache=True)
def _log_normal_mixture_row(augmentation, numbers, eta):
    largest, total = -np.inf, 0.0
    for k in range(numbers.size // 3):
        term = _log_component(numbers, k, eta)
        if term > largest:
            total = total * math.exp(largest - term) + 1.0
            largest = term
        elif term > -np.inf:
            total += math.exp(term - largest)
    return largest + math.log(total)


@njit(cache=True)
def _draw_normal_mixture_row(augmentation, rng, numbers, eta):
    point = math.log(rng.random()) + _log_normal_mixture_row(augmentation, numbers, eta)
    below, chosen = -np.inf, 0
    for k in range(numbers.size // 3):
        term = _log_component(numbers, k, eta)
        if term == -np.inf:
            continue
        chosen = k
        larger, smaller = max(below, term), min(below, term)
        below = larger + math.log1p(math.exp(smaller - larger))
        if point < below:
            break
    sd = numbers[3 * chosen + 3]
    return numbers[0] - numbers[3 * chosen + 2], 1.0 / (sd * sd)


register_augmentation(
    NormalMixture, draw_row=_draw_normal_mixture_row, log_row=_log_normal_mixture_row
)


# ----------------- ``y ~ Binomial(trials, 1 / (1 + exp(-eta)))``, with Polya-Gamma latent variables
#
# With omega ~ PG(trials, 0) and kappa = y - trials / 2 (Polson, Scott and Windle 2013, eq. 2)
#
#     p(y | eta) = 2^-trials exp(kappa eta) E exp(-omega eta^2 / 2) binomial(trials, y),
#
# so given omega, which is PG(trials, eta) given y, the row is an observation kappa / omega of eta
# with precision omega. PG(trials, eta) is a sum of that many PG(1, eta), each drawn exactly by
# alternating series (their section 4; Devroye 2009).


TRUNCATION = 0.64
"""t, where the proposal changes from an inverse Gaussian to an exponential."""


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
    root = 1.0 / math.sqrt(TRUNCATION)
    below = _normal_cdf(root * (TRUNCATION * z - 1.0))
    other = _normal_cdf(-root * (TRUNCATION * z + 1.0))
    if other > 0.0:
        below += math.exp(2.0 * z) * other
    above = 0.5 * math.pi / rate * math.exp(z - rate * TRUNCATION)
    return above / (above + 2.0 * below)


@njit(cache=True)
def _inverse_gaussian_below(rng, z):
    """Draw from IG(1 / z, 1) given that it is at most t."""
    if z < 1.0 / TRUNCATION:
        while True:
            first, second = rng.standard_exponential(), rng.standard_exponential()
            while first * first > 2.0 * second / TRUNCATION:
                first, second = rng.standard_exponential(), rng.standard_exponential()
            x = TRUNCATION / (1.0 + TRUNCATION * first) ** 2
            if rng.random() <= math.exp(-0.5 * z * z * x):
                return x
    while True:
        x = draw_inverse_gaussian(rng, 1.0 / z, 1.0)
        if x <= TRUNCATION:
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
    if x <= TRUNCATION:
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
            x = TRUNCATION + rng.standard_exponential() / rate
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
def _draw_polya_gamma_row(augmentation, rng, numbers, eta):
    y, trials = numbers[0], numbers[1]
    omega = 0.0
    for _ in range(int(trials)):
        omega += draw_polya_gamma(rng, eta)
    if omega == 0.0:  # no trials
        return 0.0, 0.0
    return (y - 0.5 * trials) / omega, omega


@njit(cache=True)
def _log_polya_gamma_row(augmentation, numbers, eta):
    softplus = max(eta, 0.0) + math.log1p(math.exp(-abs(eta)))
    return numbers[2] + numbers[0] * eta - numbers[1] * softplus


register_augmentation(PolyaGamma, draw_row=_draw_polya_gamma_row, log_row=_log_polya_gamma_row)


# -------- y with exponential tails on both sides of eta, of rate ``right`` above and ``left`` below
#
# Such a difference of two exponentials has the characteristic function
#
#     1 / ((1 - i t / right) (1 + i t / left)) = 1 / (1 - i t theta + t^2 phi2 / 2),
#     theta = 1 / right - 1 / left,      phi2 = 2 / (right left),
#
# which is that of theta v + sqrt(phi2 v) N(0, 1) with v ~ Exp(1) (Kozumi and Kobayashi 2011, eq.
# 2, whose tau^2 sigma^2 is phi2). Given y, with e = y - eta, v has the density proportional to
#
#     v^(-1/2) exp(-(e^2 / phi2) / (2 v) - (theta^2 / phi2 + 2) v / 2),
#
# so that 1 / v is inverse Gaussian of mean sqrt(a phi2) / |e| and shape a = theta^2 / phi2 + 2;
# and given v, the row is an observation y - theta v of eta with precision 1 / (phi2 v).


MIN_DISTANCE = 1e-100
"""Minimum of |e|: keeps the mean of 1 / v finite."""


class SkewedLaplace(NamedTuple):
    """Numbers of a row: y, right, left."""


@njit(cache=True)
def _draw_skewed_laplace_row(augmentation, rng, numbers, eta):
    y, right, left = numbers[0], numbers[1], numbers[2]
    theta, phi2 = 1.0 / right - 1.0 / left, 2.0 / (right * left)
    shape = theta * theta / phi2 + 2.0
    mean = math.sqrt(shape * phi2) / max(abs(y - eta), MIN_DISTANCE)
    inverse = draw_inverse_gaussian(rng, mean, shape)
    return y - theta / inverse, inverse / phi2


@njit(cache=True)
def _log_skewed_laplace_row(augmentation, numbers, eta):
    e, right, left = numbers[0] - eta, numbers[1], numbers[2]
    fall = -right * e if e > 0.0 else left * e
    return math.log(right * left / (right + left)) + fall


register_augmentation(
    SkewedLaplace, draw_row=_draw_skewed_laplace_row, log_row=_log_skewed_laplace_row
)
