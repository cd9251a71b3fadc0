"""Evidence of soft trees on one input, by quadrature.

Given thresholds and noise the leaf means integrate out: y is normal with covariance
``sigma^2 I + Phi Phi'`` for means with prior N(0, 1). What is left is summed over midpoints of the
thresholds, uniform on [0, 1], and over the quantiles of the noise's prior.
"""

from itertools import product

import numpy as np
from scipy import special, stats

from pymc_trees.dcc.kernels.encode import log_prior
from support.soft_models import leaf_shares


def log_evidence(label, x, y, h, n_tau=100, n_sigma=400, delta=None):
    """Log p(y | topology) of `soft_models.regression` on one input, x on [0, 1].

    On several inputs the (S, p) weights of the splits are given.
    """
    splits = len(label) // 2
    taus = (np.arange(n_tau) + 0.5) / n_tau
    grids = np.meshgrid(*[taus] * splits, indexing="ij") if splits else []
    points = np.stack([g.ravel() for g in grids], axis=1) if splits else np.zeros((1, 0))
    delta = np.ones((splits, 1)) if delta is None else delta
    sigmas = sigma_grid(n_sigma)
    out = np.empty((len(points), n_sigma))
    for k, tau in enumerate(points):
        phi = leaf_shares(label, x, delta, tau, h)
        out[k] = log_marginal(phi, y, sigmas)
    return special.logsumexp(out) - np.log(out.size)


def log_evidence_by_index(label, x, y, h, n_tau, n_sigma):
    """The same where each split has one input, all of them equally likely."""
    corners = np.eye(x.shape[1])
    each = [
        log_evidence(
            label, x, y, h, n_tau, n_sigma, delta=np.array(chosen).reshape(-1, len(corners))
        )
        for chosen in product(corners, repeat=len(label) // 2)
    ]
    return special.logsumexp(each) - np.log(len(each))


def log_evidence_of_classes(label, x, classes, h, alpha, n_tau):
    """Log p(y | topology) of eq. 8 on one input, for a leaf with ``alpha`` per class."""
    splits, shown = len(label) // 2, np.eye(classes.max() + 1)[classes]
    taus = (np.arange(n_tau) + 0.5) / n_tau
    out = []
    for tau in product(taus, repeat=splits):
        counts = leaf_shares(label, x, np.ones((splits, 1)), np.array(tau), h).T @ shown
        total = alpha * shown.shape[1]
        leaves = special.gammaln(total) - special.gammaln(counts.sum(axis=1) + total)
        each = special.gammaln(counts + alpha) - special.gammaln(alpha)
        out.append(leaves.sum() + each.sum())
    return special.logsumexp(out) - np.log(len(out))


def topology_weights(log_evidences, alpha, beta):
    """Posterior of some topologies among themselves, from their evidences by label."""
    mass = np.array([z + log_prior(label, alpha, beta) for label, z in log_evidences.items()])
    return np.exp(mass - special.logsumexp(mass))


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
