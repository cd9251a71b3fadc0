"""Gaussian rows that stand for any likelihood of rows, at hardly any cost for each tree.

About the anchor a of a row, the middle of where f was while the chain was tuned, and with its
variance s^2 there, the Gaussian row that is nearest to the log-likelihood ``l`` has the gradient
and the curvature

    g = E l'(a + s e),        h = -E l''(a + s e),        e ~ N(0, 1)

(the condition of Opper and Archambeau 2009, eq. 9-10, of the best Gaussian), here from three
points of Gauss and Hermite; its observation is a + g / h, of precision h. These rows are found
once for a sweep or many (`fit_screen`) and are the same for all trees: a function of the data and
of what tuning left, never of the present trees.

Where the chain is far from its anchors they are worth little. So some visits are local: their rows
are expanded about ``o + mean``, o being the sum of the other trees and mean the prior mean of a
leaf (`aim_locally`). The values of leaves are drawn from q, their conditional under the Gaussian
rows. Its tails may be too light, so in local visits q is wide: as in `proposal` .95 t_8 about the
mean of that + .05 of the prior.
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
POINTS = (-math.sqrt(3.0), 1.0 / 6.0), (math.sqrt(3.0), 1.0 / 6.0), (0.0, 2.0 / 3.0)
"""Of Gauss and Hermite, with their weights; the middle is the last."""


class Screen(NamedTuple):
    """Room for the Gaussian rows of a leaf with one value, and what they are made of."""

    near: NormalData
    """With the prior of a leaf; its rows are those of one tree."""
    anchor: np.ndarray
    """(n,) a, the function at each row about which its likelihood is expanded."""
    spread: np.ndarray
    """(n,) s, its standard deviation."""
    local: np.ndarray
    """(1,) share of visits that are local."""
    observed: np.ndarray
    """(n,) Gaussian observations of f."""
    precision: np.ndarray
    """(n,) and their precisions."""


def make_screen(mean, sd, anchor, spread, local, max_nodes) -> Screen:
    """Screen under the prior of a leaf, with anchors but without observations."""
    n = anchor.size
    near = make_normal(mean, sd, np.zeros(n), np.ones(n), max_nodes)
    spread = np.broadcast_to(np.asarray(spread, dtype=np.float64), (n,)).copy()
    return Screen(near, anchor.copy(), spread, np.full(1, float(local)), *np.zeros((2, n)))


@njit(cache=True)
def slopes_of_rows(leaf, at):
    """Gradient and second derivative of each row's log-likelihood at outputs, (n, 1)."""
    work = leaf.work
    n = work.rows.size
    for i in range(n):
        work.rows[i] = i
    call_native(leaf.slopes_at, n, work.rows, at, leaf.table, leaf.data, work.slopes)
    return work.slopes


@njit(cache=True)
def fit_screen(leaf, screen):
    """Find the Gaussian rows about the anchors, from three calls of the likelihood."""
    anchor, observed, precision = screen.anchor, screen.observed, screen.precision
    outputs, n = leaf.work.outputs, anchor.size
    gradient, bend = np.zeros((2, n))
    for point, weight in POINTS:
        for i in range(n):
            outputs[i, 0] = anchor[i] + point * screen.spread[i]
        slopes = slopes_of_rows(leaf, outputs)
        for i in range(n):
            gradient[i] += weight * slopes[i, 0]
            bend[i] -= weight * slopes[i, 1]
    for i in range(n):
        if not np.isfinite(gradient[i] + bend[i]):  # an edge of the likelihood
            gradient[i], bend[i] = slopes[i, 0], -slopes[i, 1]
        observed[i], precision[i] = gaussian_row(anchor[i], gradient[i], bend[i])


@njit(cache=True)
def aim_screen(offset, screen):
    """Write the Gaussian rows of a tree, given the sum ``offset``, (n, 1), of the others."""
    r, w = screen.near.r, screen.near.w
    for i in range(r.size):
        r[i], w[i] = screen.observed[i] - offset[i, 0], screen.precision[i]


@njit(cache=True)
def aim_locally(leaf, screen, power):
    """The same about ``leaf.offset`` and the prior mean, the precisions times ``power``."""
    offset, outputs, mean = leaf.offset, leaf.work.outputs, leaf.mean[0]
    r, w = screen.near.r, screen.near.w
    for i in range(r.size):
        outputs[i, 0] = offset[i, 0] + mean
    slopes = slopes_of_rows(leaf, outputs)
    for i in range(r.size):
        r[i], precision = gaussian_row(mean, slopes[i, 0], -slopes[i, 1])
        w[i] = power * precision


@njit(cache=True)
def propose_value(rng, near, stats, is_wide):
    """Draw the value of a leaf from q."""
    mode, precision = conditional(near, stats)
    if not is_wide:
        return mode + rng.standard_normal() / math.sqrt(precision)
    if rng.random() < PRIOR_SHARE:
        return near.mean + near.sd * rng.standard_normal()
    stretch = math.sqrt(0.5 * FREEDOM / (rng.standard_gamma(0.5 * FREEDOM) * precision))
    return mode + stretch * rng.standard_normal()


@njit(cache=True)
def log_value_weight(near, stats, value, is_wide):
    """Log of ``p(value) / (m~ q(value))`` for a leaf, m~ its marginal likelihood under the screen.

    It is bounded, whatever the value, where a wide q holds the prior.
    """
    mode, precision = conditional(near, stats)
    z = (value - near.mean) / near.sd
    log_prior = -0.5 * (LOG_2_PI + z * z) - math.log(near.sd)
    distance = precision * (value - mode) ** 2
    if is_wide:
        log_t = LOG_T - 0.5 * (FREEDOM + 1.0) * math.log1p(distance / FREEDOM)
        log_q = log_mixture(log_t + 0.5 * math.log(precision), log_prior)
    else:
        log_q = -0.5 * (LOG_2_PI + distance - math.log(precision))
    return log_prior - log_marginal(near, stats) - log_q
