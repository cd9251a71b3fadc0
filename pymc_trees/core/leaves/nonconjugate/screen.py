"""Gaussian rows that stand for any likelihood of rows, at hardly any cost for each tree.

A row's log-likelihood ``l(f)`` is expanded about ``o + mean``, o being the sum of the other trees
and mean the prior mean of a leaf. Gradient and curvature there are read off parabolas through
three points about an anchor, the middle of where f was while the chain was tuned,

    l'(a + d) = g0 + g1 d + g2 d^2,      -l''(a + d) = h0 + h1 d + h2 d^2,      |d| <= 2 spread,

which are made once for a sweep or many (`fit_screen`). So the Gaussian rows of a tree are a
function of the data, the other trees and what tuning left: never of the present tree.

The value of a leaf is not drawn from its conditional under the Gaussian rows, whose tails may be
too light, but, as in `proposal`, from q = .95 t_8 about the mean of that + .05 of the prior.
"""

import math
from typing import NamedTuple

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.leaves.contract import log_marginal
from pymc_trees.core.leaves.nonconjugate.gaussian_rows import gaussian_row
from pymc_trees.core.leaves.nonconjugate.native import call_native
from pymc_trees.core.leaves.nonconjugate.proposal import FREEDOM, PRIOR_SHARE, log_mixture
from pymc_trees.core.leaves.normal import NormalData, conditional, make_normal

LOG_2_PI = math.log(2.0 * math.pi)
LOG_T = math.lgamma(0.5 * (FREEDOM + 1.0)) - math.lgamma(0.5 * FREEDOM)
LOG_T -= 0.5 * math.log(FREEDOM * math.pi)
"""Of the density of a t law at its middle."""
FARTHEST = 2.0
"""Largest d in spreads."""


class Screen(NamedTuple):
    """Room for the Gaussian rows of a leaf with one value, and what they are made of."""

    near: NormalData
    """With the prior of a leaf; its rows are those of one tree."""
    anchor: np.ndarray
    """(n,) function at each row about which its likelihood is expanded."""
    spread: np.ndarray
    """(1,) distance from it to the other two points."""
    flattened: np.ndarray
    """(1,) share of visits that take the rows to a power uniform in (0, 1)."""
    gradient: np.ndarray
    """(n, 3): g0, g1, g2."""
    bend: np.ndarray
    """(n, 3): h0, h1, h2."""


def make_screen(mean, sd, anchor, spread, flattened, max_nodes) -> Screen:
    """Screen under the prior of a leaf, with anchors but without parabolas."""
    n = anchor.size
    near = make_normal(mean, sd, np.zeros(n), np.ones(n), max_nodes)
    given = np.full(1, float(spread)), np.full(1, float(flattened))
    return Screen(near, anchor.copy(), *given, *np.zeros((2, n, 3)))


@njit(cache=True)
def fit_screen(leaf, screen):
    """Find the parabolas of all rows about their anchors, from three calls of the likelihood."""
    anchor, spread, gradient, bend = screen.anchor, screen.spread[0], screen.gradient, screen.bend
    work = leaf.work
    rows, outputs, slopes = work.rows, work.outputs, work.slopes
    n = anchor.size
    for i in range(n):
        rows[i] = i
    for k in range(3):
        for i in range(n):
            outputs[i, 0] = anchor[i] + (k - 1) * spread
        call_native(leaf.slopes_at, n, rows, outputs, leaf.table, leaf.data, slopes)
        for i in range(n):
            gradient[i, k], bend[i, k] = slopes[i, 0], -slopes[i, 1]
    for i in range(n):
        _to_parabola(gradient[i], spread)
        _to_parabola(bend[i], spread)


@njit(cache=True)
def _to_parabola(values, step):
    """Values at -step, 0 and step become the coefficients of 1, d and d^2."""
    low, middle, high = values[0], values[1], values[2]
    values[0] = middle
    values[1] = (high - low) / (2.0 * step)
    values[2] = (high - 2.0 * middle + low) / (2.0 * step * step)
    if not np.isfinite(values[1] + values[2]):  # an edge of the likelihood
        values[1], values[2] = 0.0, 0.0


@njit(cache=True)
def aim_screen(offset, screen, mean, power):
    """Write the Gaussian rows of a tree, given the sum ``offset``, (n, 1), of the others.

    Their precision is multiplied by ``power``.
    """
    anchor, gradient, bend = screen.anchor, screen.gradient, screen.bend
    r, w = screen.near.r, screen.near.w
    most = FARTHEST * screen.spread[0]
    for i in range(r.size):
        d = min(max(offset[i, 0] + mean - anchor[i], -most), most)
        slope = gradient[i, 0] + d * (gradient[i, 1] + d * gradient[i, 2])
        curve = bend[i, 0] + d * (bend[i, 1] + d * bend[i, 2])
        at, precision = gaussian_row(mean, slope, curve)
        r[i], w[i] = at, power * precision


@njit(cache=True)
def propose_value(rng, near, stats):
    """Draw the value of a leaf from q."""
    if rng.random() < PRIOR_SHARE:
        return near.mean + near.sd * rng.standard_normal()
    mode, precision = conditional(near, stats)
    stretch = math.sqrt(0.5 * FREEDOM / (rng.standard_gamma(0.5 * FREEDOM) * precision))
    return mode + stretch * rng.standard_normal()


@njit(cache=True)
def log_value_weight(near, stats, value):
    """Log of ``p(value) / (m~ q(value))`` for a leaf, m~ its marginal likelihood under the screen.

    It is bounded, whatever the value, as q holds the prior.
    """
    mode, precision = conditional(near, stats)
    z = (value - near.mean) / near.sd
    log_prior = -0.5 * (LOG_2_PI + z * z) - math.log(near.sd)
    log_t = LOG_T - 0.5 * (FREEDOM + 1.0) * math.log1p(precision * (value - mode) ** 2 / FREEDOM)
    log_q = log_mixture(log_t + 0.5 * math.log(precision), log_prior)
    return log_prior - log_marginal(near, stats) - log_q
