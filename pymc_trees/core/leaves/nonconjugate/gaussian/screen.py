"""Gaussian rows that approximate any likelihood of rows, at little cost for each tree.

At the anchor a of a row, the mean of f during tuning, and with the standard deviation s of f there,
the Gaussian row nearest to the log-likelihood ``l`` has the gradient and the curvature

    g = E l'(a + s e),        H = E l''(a + s e),        e ~ N(0, 1)

(the condition of Opper and Archambeau 2009, eq. 9-10, of the best Gaussian), here from three points
of Gauss and Hermite along each output. These rows are computed once for one or more sweeps
(`fit_screen`) and are the same for all trees: a function of the data and of the results of tuning,
never of the current trees.

Far from the anchors they are a poor approximation. Some visits are therefore local: their rows are
expanded at ``o + mean``, with o the sum of the other trees and mean the prior mean of a leaf
(`aim_locally`). Leaf values are drawn from q, their conditional under the Gaussian rows. Its tails
may be too light, so q is wide in local visits: as in `proposal`, 0.95 t_8 around the mean of that
conditional + 0.05 of the prior.
"""

import math
from typing import NamedTuple

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.compile.pointer import by_pointer
from pymc_trees.core.leaves.contract import log_marginal
from pymc_trees.core.leaves.nonconjugate.gaussian.near import fit_values, make_near, see_rows
from pymc_trees.core.leaves.nonconjugate.gaussian.rows import expand_rows
from pymc_trees.core.leaves.nonconjugate.gaussian.vector import GaussianVector
from pymc_trees.core.leaves.nonconjugate.proposal import (
    draw_proposal,
    log_prior,
    log_proposal,
    solve_upper,
)
from pymc_trees.core.leaves.nonconjugate.slopes import call_slopes, is_finite_sum
from pymc_trees.core.leaves.normal import NormalData

LOG_2_PI = math.log(2.0 * math.pi)
ROOT_3 = math.sqrt(3.0)


@by_pointer
class Screen(NamedTuple):
    """Arrays for the Gaussian rows of a leaf with K values, and their inputs."""

    near: NormalData | GaussianVector
    """With the prior of a leaf; its rows are those of one tree."""
    anchor: np.ndarray
    """(n, K) a, the function value at which each row's likelihood is expanded."""
    spread: np.ndarray
    """(n, K) s, its standard deviation."""
    local: np.ndarray
    """(1,) share of visits that are local."""
    linear: np.ndarray
    """(n, K) of the Gaussian rows about the anchors,"""
    precision: np.ndarray
    """(n, K, K) and their precisions."""
    local_linear: np.ndarray
    local_precision: np.ndarray
    """The same of a local visit."""
    mode: np.ndarray
    """(K,) of a leaf,"""
    factor: np.ndarray
    """(K, K) and the lower factor of its precision."""


def make_screen(mean, sd, anchor, spread, local, max_nodes) -> Screen:
    """Screen under the prior of a leaf, with anchors but without rows."""
    n, k = anchor.shape
    spread = np.broadcast_to(np.asarray(spread, dtype=np.float64), (n, k)).copy()
    rows = [np.zeros(shape) for shape in 2 * [(n, k), (n, k, k)]]
    near, share = make_near(mean, sd, n, max_nodes), np.full(1, float(local))
    return Screen(near, anchor.copy(), spread, share, *rows, np.zeros(k), np.zeros((k, k)))


@njit(cache=True)
def slopes_of_rows(leaf):
    """Gradient and second derivatives of each row's log-likelihood at ``work.outputs``."""
    work = leaf.work
    n = work.rows.size
    for i in range(n):
        work.rows[i] = i
    call_slopes(leaf, n, work.rows, work.outputs, work.slopes)
    return work.slopes


@njit(cache=True)
def fit_screen(leaf, screen):
    """Compute the Gaussian rows at the anchors, from 1 + 2 K calls of the likelihood."""
    anchor, spread, outputs = screen.anchor, screen.spread, leaf.work.outputs
    n, k = anchor.shape
    outputs[:] = anchor
    middle = slopes_of_rows(leaf).copy()
    mean = (1.0 - k / 3.0) * middle
    for a in range(k):
        for side in (-ROOT_3, ROOT_3):
            for i in range(n):
                outputs[i, a] = anchor[i, a] + side * spread[i, a]
            slopes = slopes_of_rows(leaf)
            for i in range(n):
                for d in range(slopes.shape[1]):
                    mean[i, d] += slopes[i, d] / 6.0
        outputs[:, a] = anchor[:, a]
    for i in range(n):
        if not is_finite_sum(mean[i]):  # a boundary of the likelihood's domain
            mean[i] = middle[i]
    expand_rows(anchor, mean, screen.linear, screen.precision)


@njit(cache=True)
def aim_screen(offset, screen):
    """Write the Gaussian rows of a tree, given the sum ``offset``, (n, K), of the others."""
    see_rows(screen.near, screen.linear, screen.precision, offset, 1.0)


@njit(cache=True)
def aim_locally(leaf, screen, power):
    """The same about ``leaf.offset`` and the prior mean, the precisions times ``power``."""
    offset, outputs, mean = leaf.offset, leaf.work.outputs, leaf.mean
    linear, precision = screen.local_linear, screen.local_precision
    for i in range(offset.shape[0]):
        for a in range(mean.size):
            outputs[i, a] = offset[i, a] + mean[a]
    expand_rows(outputs, slopes_of_rows(leaf), linear, precision)
    see_rows(screen.near, linear, precision, offset, power)


@njit(cache=True)
def propose_value(rng, leaf, screen, stats, is_wide, out):
    """Draw the values of a leaf from q."""
    mode, factor = screen.mode, screen.factor
    fit_values(screen.near, stats, mode, factor)
    if is_wide:
        draw_proposal(rng, leaf.mean, leaf.sd, mode, factor, out)
        return
    for a in range(out.size):
        out[a] = rng.standard_normal()
    solve_upper(factor, out, out)
    for a in range(out.size):
        out[a] += mode[a]


@njit(cache=True)
def log_value_weight(leaf, screen, stats, value, is_wide):
    """Log of ``p(value) / (m~ q(value))`` for a leaf, m~ its marginal likelihood under the screen.

    It is bounded if q is wide and so contains the prior.
    """
    mode, factor = screen.mode, screen.factor
    log_ratio = log_prior(leaf.mean, leaf.sd, value) - log_marginal(screen.near, stats)
    fit_values(screen.near, stats, mode, factor)
    if is_wide:
        return log_ratio - log_proposal(leaf.mean, leaf.sd, mode, factor, value)
    for a in range(value.size):
        z = 0.0
        for b in range(a, value.size):  # factor.T (value - mode)
            z += factor[b, a] * (value[b] - mode[b])
        log_ratio += 0.5 * (LOG_2_PI + z * z) - math.log(factor[a, a])
    return log_ratio
