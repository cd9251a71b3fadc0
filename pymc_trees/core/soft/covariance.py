"""Covariance of the importance proposals of one chain."""

import numpy as np

SMALLEST = 1e-8
"""Smallest variance of a coordinate; a chain that did not move would have 0."""


def chain_covariance(draws: np.ndarray) -> np.ndarray:
    """Covariance over all post-warm-up draws of a chain, regularised when they are few.

    Off-diagonal entries are shrunk by n / (n + d), which keeps the matrix positive definite even
    with fewer draws than coordinates; with many draws it is the empirical covariance.

    Parameters
    ----------
    draws : (n, d) array

    Returns
    -------
    (d, d) array
    """
    n, d = draws.shape
    covariance = np.atleast_2d(np.cov(draws, rowvar=False, bias=True)) if n > 1 else np.eye(d)
    variances = np.maximum(np.diag(covariance), SMALLEST)
    covariance = covariance * (n / (n + d))
    covariance[np.diag_indices(d)] = variances
    return covariance
