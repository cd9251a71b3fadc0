"""Evidence of soft trees on one input, by quadrature.

Given thresholds and noise the leaf means integrate out: y is normal with covariance
``sigma^2 I + Phi Phi'`` for means with prior N(0, 1). What is left is summed over midpoints of the
thresholds, uniform on [0, 1], and over the quantiles of the noise's prior.
"""

import numpy as np
from scipy import special, stats

from support.soft_models import leaf_shares


def log_evidence(label, x, y, h, n_tau=100, n_sigma=400):
    """Log p(y | topology) of `soft_models.regression` on one input, x on [0, 1]."""
    splits = len(label) // 2
    taus = (np.arange(n_tau) + 0.5) / n_tau
    grids = np.meshgrid(*[taus] * splits, indexing="ij") if splits else []
    points = np.stack([g.ravel() for g in grids], axis=1) if splits else np.zeros((1, 0))
    delta = np.ones((splits, 1))
    sigmas = sigma_grid(n_sigma)
    out = np.empty((len(points), n_sigma))
    for k, tau in enumerate(points):
        phi = leaf_shares(label, x, delta, tau, h)
        out[k] = log_marginal(phi, y, sigmas)
    return special.logsumexp(out) - np.log(out.size)


def sigma_grid(n):
    """Midpoints of equal parts of the prior's mass."""
    return stats.invgamma(1.5, scale=1.5).ppf((np.arange(n) + 0.5) / n)


def log_marginal(phi, y, sigmas):
    """Log density of y for every noise, leaf means integrated out, by the eigenvalues of Phi."""
    basis, singular, _ = np.linalg.svd(phi, full_matrices=False)
    along = basis.T @ y
    rest = y @ y - along @ along
    variances = sigmas[:, None] ** 2 + singular**2
    n, L = phi.shape
    log_det = np.log(variances).sum(axis=1) + 2 * (n - L) * np.log(sigmas)
    square = (along**2 / variances).sum(axis=1) + rest / sigmas**2
    return -0.5 * (n * np.log(2 * np.pi) + log_det + square)
