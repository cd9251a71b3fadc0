"""Rows of a likelihood as Gaussian ones, from gradient and second derivatives at a point.

A row with K outputs f becomes exp(linear' f - f' precision f / 2).
"""

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.leaves.nonconjugate.proposal import cholesky
from pymc_trees.core.leaves.nonconjugate.slopes import is_finite_sum

LEAST_BEND = 1e-3
"""Smallest curvature, relative to the squared gradient, that is used as such."""
JITTER = 1e-6
"""Relative increase of precisions of single outputs: softmax is flat in one direction."""


@njit(cache=True)
def expand_row(at, slopes, linear, precision):
    """Write the Gaussian row with these slopes, gradient and second derivatives, ``at`` a point.

    If the log-likelihood is convex or nearly flat, squared gradients replace its curvature, as in
    `proposal`; a row without information, or with NaN, has precision 0.
    """
    size = at.size
    linear[:] = 0.0
    precision[:] = 0.0
    if not is_finite_sum(slopes):
        return
    bends = True
    for a in range(size):
        square, bend = slopes[a] * slopes[a], -slopes[size + a * size + a]
        bends &= bend > LEAST_BEND * square
        precision[a, a] = bend if bend > LEAST_BEND * square else square
    if size > 1 and bends:
        _add_other_outputs(slopes, precision)
    for a in range(size):
        if not precision[a, a] > 0.0:
            continue
        linear[a] = slopes[a]
        for b in range(size):
            linear[a] += precision[a, b] * at[b]


@njit(cache=True)
def _add_other_outputs(slopes, precision):
    """Write the mixed second derivatives of two outputs, if the row is concave in both."""
    size = precision.shape[0]
    all_of_it, factor = np.empty((2, size, size))
    for a in range(size):
        for b in range(size):
            all_of_it[a, b] = -slopes[size + a * size + b]
        all_of_it[a, a] *= 1.0 + JITTER
    if cholesky(all_of_it, factor):
        precision[:] = all_of_it


@njit(cache=True)
def expand_rows(at, slopes, linear, precision):
    """`expand_row` of all rows, by the first axis."""
    for i in range(at.shape[0]):
        expand_row(at[i], slopes[i], linear[i], precision[i])
