"""Leaf models of Gaussian rows that approximate a likelihood: one output, or several.

Rows in f, the sum of all trees, become those of one tree given the sum ``offset`` of the others.
"""

import math

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.compile.dispatch import generic, register
from pymc_trees.core.leaves.nonconjugate.gaussian.vector import (
    GaussianVector,
    complete_square,
    make_gaussian_vector,
)
from pymc_trees.core.leaves.nonconjugate.proposal import solve_upper
from pymc_trees.core.leaves.normal import NormalData, conditional, make_normal


def make_near(mean, sd, n: int, max_nodes: int) -> NormalData | GaussianVector:
    """Leaf model with the prior of a leaf, ``mean`` and ``sd`` (K,), and arrays for n rows."""
    if mean.size > 1:
        return make_gaussian_vector(mean, sd, n)
    return make_normal(mean[0], sd[0], np.zeros(n), np.ones(n), max_nodes)


def with_prior(near: NormalData | GaussianVector, mean, sd) -> NormalData | GaussianVector:
    """The same rows under the prior of a leaf, (K,) each."""
    if isinstance(near, NormalData):
        mean, sd = float(mean[0]), float(sd[0])
    return near._replace(mean=mean, sd=sd)


@generic("near")
def see_rows(near, linear, precision, offset, power):
    """Write Gaussian rows (n, K) and (n, K, K), raised to a power, given the other trees (n, K)."""


@generic("near")
def fit_values(near, stats, mode, factor):
    """Write mean (K,) and lower factor (K, K) of the precision of leaf values given their rows."""


@njit(cache=True)
def _see_rows_of_one(near, linear, precision, offset, power):
    r, w = near.r, near.w
    for i in range(r.size):
        w_i = precision[i, 0, 0]
        r[i] = linear[i, 0] / w_i - offset[i, 0] if w_i > 0.0 else 0.0
        w[i] = power * w_i


@njit(cache=True)
def _fit_value(near, stats, mode, factor):
    mode[0], precision = conditional(near, stats)
    factor[0, 0] = math.sqrt(precision)


register(NormalData, see_rows=_see_rows_of_one, fit_values=_fit_value)


@njit(cache=True)
def _see_rows(near, linear, precision, offset, power):
    n, k = offset.shape
    for i in range(n):
        for a in range(k):
            total = linear[i, a]
            for b in range(k):
                near.precision[i, a, b] = power * precision[i, a, b]
                total -= precision[i, a, b] * offset[i, b]
            near.linear[i, a] = power * total


@njit(cache=True)
def _fit_values(near, stats, mode, factor):
    complete_square(near, stats)
    solve_upper(near.factor, near.half, mode)
    factor[:] = near.factor


register(GaussianVector, see_rows=_see_rows, fit_values=_fit_values)
