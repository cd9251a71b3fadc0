"""Normal-gamma leaf of a single tree: mean and precision.

``tau ~ Gamma(nu/2, rate nu lam/2)``, ``mu | tau ~ N(0, 1/(a tau))``,
``y_i | mu, tau ~ N(mu, 1/tau)``.

With n rows, mean ybar and sum of squares SS about it, let
``B = nu lam + SS + a n ybar**2 / (a + n)``. Integrating mu, then tau:

    p(y) = (2 pi)**(-n/2) sqrt(a / (a + n)) (nu lam / 2)**(nu/2) / Gamma(nu/2)
           * Gamma((n + nu)/2) / (B/2)**((n + nu)/2)
    tau | y ~ Gamma((n + nu)/2, rate B/2),   mu | tau, y ~ N(n ybar / (n + a), 1 / ((a + n) tau))

This is Parnell 2018 ("Mean and variance changing") with the plus sign in B throughout. Under a
power of the likelihood, n and the sums count each row with that weight.
"""

import math
from typing import NamedTuple

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.leaves.contract import register_sums


class NormalGammaData(NamedTuple):
    """A normal-gamma leaf and its data."""

    a: float
    nu: float
    lam: float
    y: np.ndarray
    """(n,) the rows, less ``centre``; (0,) without data."""
    centre: float
    """Subtracted from the rows, for the precision of sums of squares."""
    power: float
    """Power of the likelihood."""


def make_normal_gamma(a, nu, lam, y) -> NormalGammaData:
    """Leaf model of observed rows; an empty ``y`` for no data."""
    y = np.asarray(y, dtype=np.float64)
    centre = float(np.median(y)) if y.size else 0.0  # robust against outliers
    return NormalGammaData(float(a), float(nu), float(lam), y - centre, centre, 1.0)


@njit(cache=True)
def _n_stats(leaf):
    return 3  # n, sum, sum of squares, of the centred rows


@njit(cache=True)
def _add_row(leaf, i, stats):
    if leaf.y.size > 0:
        y = leaf.y[i]
        stats[0] += leaf.power
        stats[1] += leaf.power * y
        stats[2] += leaf.power * y * y


@njit(cache=True)
def _mean_and_b(a, nu, lam, centre, n, s, ss):
    mean = centre
    spread = 0.0
    if n > 0.0:
        mean += s / n
        spread = max(ss - s * s / n, 0.0)
    return mean, nu * lam + spread + a * n * mean * mean / (a + n)


@njit(cache=True)
def log_marginal_of(a, nu, lam, centre, n, s, ss):
    """Log p(y) of n rows with sum ``s`` and sum of squares ``ss`` about ``centre``."""
    _, b = _mean_and_b(a, nu, lam, centre, n, s, ss)
    return (
        -0.5 * n * np.log(2.0 * np.pi)
        + 0.5 * np.log(a / (a + n))
        + 0.5 * nu * np.log(0.5 * nu * lam)
        - math.lgamma(0.5 * nu)
        + math.lgamma(0.5 * (n + nu))
        - 0.5 * (n + nu) * np.log(0.5 * b)
    )


@njit(cache=True)
def _log_marginal(leaf, stats):
    return log_marginal_of(leaf.a, leaf.nu, leaf.lam, leaf.centre, stats[0], stats[1], stats[2])


@njit(cache=True)
def _draw_values(leaf, rng, stats, out):
    n = stats[0]
    mean, b = _mean_and_b(leaf.a, leaf.nu, leaf.lam, leaf.centre, n, stats[1], stats[2])
    tau = rng.standard_gamma(0.5 * (n + leaf.nu)) / (0.5 * b)
    tau = max(tau, np.finfo(np.float64).tiny)  # a gamma draw may underflow
    out[0] = n * mean / (n + leaf.a) + rng.standard_normal() / np.sqrt((leaf.a + n) * tau)
    out[1] = tau


@njit(cache=True)
def _log_row(leaf, i, output):
    if leaf.y.size == 0:
        return 0.0
    mean, tau = output[0], output[1]
    error = leaf.y[i] + leaf.centre - mean
    return 0.5 * (np.log(tau / (2.0 * np.pi)) - tau * error * error)


def _tempered(leaf, power):
    return leaf._replace(power=power * leaf.power)


register_sums(
    NormalGammaData,
    n_stats=_n_stats,
    add_row=_add_row,
    log_row=_log_row,
    log_marginal=_log_marginal,
    draw_values=_draw_values,
    tempered=_tempered,
)
