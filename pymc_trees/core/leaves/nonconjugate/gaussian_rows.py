"""A row's likelihood as a Gaussian, from its gradient and second derivative at a point."""

import numpy as np

from pymc_trees.core.compile.cache import njit

LEAST_BEND = 1e-3
"""Least curvature, in squared gradients, that is taken for what it is."""


@njit(cache=True)
def gaussian_row(at, gradient, bend):
    """Value and precision of an observation with this gradient and curvature at ``at``.

    Where the log-likelihood bends the wrong way or hardly, the squared gradient stands in for its
    curvature, as in `proposal`; a row that says nothing, or NaN, has precision 0.
    """
    square = gradient * gradient
    if not np.isfinite(square + bend):
        return 0.0, 0.0
    precision = bend if bend > LEAST_BEND * square else square
    if not precision > 0.0:
        return 0.0, 0.0
    return at + gradient / precision, precision
