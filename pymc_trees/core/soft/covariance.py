"""Covariance of the importance proposals of one chain."""

import numpy as np

UNMOVED = 1e-8
"""Variance of a coordinate that did not move."""
ROUNDING = 1e-14
"""Standard deviation of such a coordinate, in units of its size, at most: that of rounding."""


def chain_covariance(draws: np.ndarray) -> np.ndarray:
    """Covariance over all post-warm-up draws of a chain, regularised when they are few.

    Off-diagonal entries are shrunk by n / (n + d), which keeps the matrix positive definite even
    with fewer draws than coordinates; with many draws it is the empirical covariance. In other
    units of the coordinates it is the same.

    Parameters
    ----------
    draws : (n, d) array

    Returns
    -------
    (d, d) array
    """
    n, d = draws.shape
    covariance = np.atleast_2d(np.cov(draws, rowvar=False, bias=True)) if n > 1 else np.eye(d)
    variances = np.diag(covariance).copy()
    variances[variances <= (ROUNDING * np.abs(draws).max(axis=0)) ** 2] = UNMOVED
    covariance = covariance * (n / (n + d))
    covariance[np.diag_indices(d)] = variances
    return covariance
