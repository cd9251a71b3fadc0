"""Kernels of a nonconjugate leaf model for redrawing whole trees.

A surrogate has Gaussian rows that approximate the likelihood given the other trees (`gaussian`).
Particles grow under it, and their leaf values and weights are then corrected
(`samplers.particle_gibbs`). Both leaf models store the log weight of the current value of a leaf,

    log p(rows | mu) + log p(mu) - log q(mu | rows),

as the first of its statistics, and the value as the next K. If the leaves of a tree are drawn
jointly, the first leaf holds the weight of all and the others hold 0.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.compile.dispatch import generic, register, registrar
from pymc_trees.core.leaves.nonconjugate.coefficients import CoefficientRows
from pymc_trees.core.leaves.nonconjugate.gaussian import expand_rows, set_gaussian_rows
from pymc_trees.core.leaves.nonconjugate.joint import (
    JointData,
    fit_tree,
    log_likelihood_at,
    log_weight,
    write_leaf_stats,
)
from pymc_trees.core.leaves.nonconjugate.native import STEP, call_native, call_slopes, is_finite_sum
from pymc_trees.core.leaves.nonconjugate.proposal import draw_proposal, fit_groups
from pymc_trees.core.leaves.nonconjugate.rowwise import RowwiseData, draw_and_weigh, weigh


@generic("leaf")
def fill_surrogate(leaf, gaussian):
    """Write the rows of the surrogate."""


@generic("leaf")
def finish_tree(leaf, rng, particles, c):
    """Draw and weight the leaf values of a particle."""


class SurrogateKernels(NamedTuple):
    """Kernels in addition to `core.leaves.contract.LeafKernels`."""

    fill_surrogate: Callable
    """``(leaf, gaussian)``: write the rows of the surrogate, a function of the data and the other
    trees alone."""
    finish_tree: Callable
    """``(leaf, rng, particles, c)``: draw values for the leaves of a finished particle, write their
    statistics, return the sum of the log weights."""


register_surrogate = registrar(SurrogateKernels)
"""Register these kernels of a leaf model."""


# --------------------------------------------------------- A likelihood that is a product over rows


@njit(cache=True)
def _fill_rowwise(leaf, gaussian):
    """Expand the rows at the mode of a stump."""
    work, offset = leaf.work, leaf.offset
    outputs = work.outputs
    n, n_values = offset.shape
    for i in range(n):
        work.rows[i] = i
        work.labels[i] = 0
    fit_groups(leaf, n, 1)
    for i in range(n):
        for k in range(n_values):
            outputs[i, k] = offset[i, k] + work.mode[0, k]
    call_slopes(leaf, n, work.rows, outputs, work.slopes)
    linear, precision = np.empty((n, n_values)), np.empty((n, n_values, n_values))
    expand_rows(outputs, work.slopes, linear, precision)
    set_gaussian_rows(gaussian, linear, precision, offset, 1.0)


@njit(cache=True)
def _finish_rowwise(leaf, rng, particles, c):
    work, rows = leaf.work, particles.rows[c]
    column, stats = particles.column[c], particles.stats[c]
    n = rows.size
    n_nodes, n_groups = particles.n_nodes[c], 0
    for k in range(n_nodes):
        if column[k] < 0:
            for i in range(particles.start[c, k], particles.stop[c, k]):
                work.labels[rows[i]] = n_groups
            n_groups += 1
    for i in range(n):
        work.rows[i] = i
    draw_and_weigh(leaf, n, n_groups)
    total, g = 0.0, 0
    for k in range(n_nodes):
        if column[k] < 0:
            weigh(leaf, g, work.drawn[g], stats[k])
            total += stats[k, 0]
            g += 1
    return total


register_surrogate(RowwiseData, fill_surrogate=_fill_rowwise, finish_tree=_finish_rowwise)
register(CoefficientRows, fill_surrogate=_fill_rowwise)


# ------------------------------------------------------------------- A joint likelihood of all rows


MAX_DIFFERENCED = 200
"""Most rows that take differences, each of which evaluates the whole likelihood."""


@njit(cache=True)
def _fill_joint(leaf, gaussian):
    """Expand the rows at the mode of a stump, with the curvature that they have jointly."""
    offset, outputs, result, labels = leaf.offset, leaf.outputs, leaf.result, leaf.labels
    n, n_values = offset.shape
    labels[:] = 0
    mode = fit_tree(leaf, 1).mode
    points, slopes = np.empty((n, n_values)), np.empty((n, n_values + n_values * n_values))
    for i in range(n):
        for k in range(n_values):
            points[i, k] = offset[i, k] + mode[k]
            outputs[i, k] = points[i, k]
    for a in range(n_values):
        for i in range(n):
            for k in range(n_values):
                outputs[n + i, k] = 1.0 if k == a else 0.0
        call_native(leaf.product_at, 2 * n, labels, outputs, leaf.table, leaf.data, result)
        for i in range(n):
            for k in range(n_values):
                slopes[i, n_values + a * n_values + k] = result[i, k]
    call_native(leaf.gradient_at, n, labels, outputs, leaf.table, leaf.data, result)
    slopes[:, :n_values] = result
    _replace_nonfinite(leaf, points, slopes)
    linear, precision = np.empty((n, n_values)), np.empty((n, n_values, n_values))
    expand_rows(points, slopes, linear, precision)
    set_gaussian_rows(gaussian, linear, precision, offset, 1.0)


@njit(cache=True)
def _replace_nonfinite(leaf, points, slopes):
    """Replace derivatives that are not finite by differences, for `MAX_DIFFERENCED` rows at most.

    Differences of gradients move all rows together, those of values one row at a time.
    """
    outputs, result, labels = leaf.outputs, leaf.result, leaf.labels
    n, k = points.shape
    if np.isfinite(slopes).all():
        return
    differences = slopes.copy()
    for a in range(k):
        h = STEP * leaf.sd[a]
        for side in (1.0, -1.0):
            outputs[:n] = points
            outputs[:n, a] += side * h
            call_native(leaf.gradient_at, n, labels, outputs, leaf.table, leaf.data, result)
            for i in range(n):
                for b in range(k):
                    before = differences[i, k + a * k + b] if side < 0.0 else 0.0
                    differences[i, k + a * k + b] = before + side * result[i, b] / (2.0 * h)
    outputs[:n] = points
    n_left = 0
    for i in range(n):
        if is_finite_sum(slopes[i]):
            continue
        if is_finite_sum(differences[i]):
            slopes[i] = differences[i]
        elif n_left < MAX_DIFFERENCED:
            n_left += 1
            _difference_values(leaf, points, i, slopes[i])


@njit(cache=True)
def _difference_values(leaf, points, i, slopes):
    """Derivatives of the log-likelihood in each output of one row, as differences."""
    k = points.shape[1]
    differences = np.zeros(slopes.size)
    middle = _value_at(leaf)
    for a in range(k):
        h = STEP * leaf.sd[a]
        leaf.outputs[i, a] = points[i, a] + h
        above = _value_at(leaf)
        leaf.outputs[i, a] = points[i, a] - h
        below = _value_at(leaf)
        leaf.outputs[i, a] = points[i, a]
        differences[a] = (above - below) / (2.0 * h)
        differences[k + a * k + a] = (above - 2.0 * middle + below) / (h * h)
    if is_finite_sum(differences):
        slopes[:] = differences


@njit(cache=True)
def _value_at(leaf):
    """Log-likelihood at ``leaf.outputs``."""
    n, labels = leaf.labels.size, leaf.labels
    call_native(leaf.value_at, n, labels, leaf.outputs, leaf.table, leaf.data, leaf.result)
    return leaf.result[0, 0]


@njit(cache=True)
def _finish_joint(leaf, rng, particles, c):
    labels, rows, column = leaf.labels, particles.rows[c], particles.column[c]
    n_values = leaf.mean.size
    n_leaves = 0
    for k in range(particles.n_nodes[c]):
        if column[k] < 0:
            for i in range(particles.start[c, k], particles.stop[c, k]):
                labels[rows[i]] = n_leaves
            n_leaves += 1
    fit = fit_tree(leaf, n_leaves)
    drawn = np.empty(n_leaves * n_values)
    draw_proposal(rng, fit.mean, fit.sd, fit.mode, fit.factor, drawn)
    weight = log_weight(leaf, fit, drawn, log_likelihood_at(leaf, drawn))
    n_leaves = 0
    for k in range(particles.n_nodes[c]):
        if column[k] < 0:
            write_leaf_stats(particles.stats[c, k, : 1 + n_values], drawn, weight, n_leaves)
            n_leaves += 1
    return weight


register_surrogate(JointData, fill_surrogate=_fill_joint, finish_tree=_finish_joint)
