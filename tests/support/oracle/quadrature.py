"""A leaf model with no closed form: integrate the scalar leaf value numerically."""

import math

import numpy as np
from scipy.special import logsumexp


class QuadratureLeaf:
    """Leaf value ``mu`` with any prior and any likelihood, by Gauss-Legendre.

    Parameters
    ----------
    log_likelihood : function (rows, values) -> array like ``values``
        Log likelihood of the rows' data (summed over rows) at each leaf value.
    log_prior : function values -> array
        Normalised log density of the leaf value.
    lower, upper : float
        Integration limits; the posterior mass outside must be negligible.
    panels, order : int
        ``panels`` equal panels with ``order`` nodes each.
    """

    def __init__(self, log_likelihood, log_prior, lower, upper, panels=40, order=20):
        node, weight = np.polynomial.legendre.leggauss(order)
        edges = np.linspace(lower, upper, panels + 1)
        half = (edges[1] - edges[0]) / 2
        self.values = (edges[:-1, None] + half * (1 + node)).ravel()
        self._log_base = log_prior(self.values) + np.tile(np.log(weight * half), panels)
        self._log_likelihood = log_likelihood

    def _log_terms(self, rows):
        index = np.array(sorted(rows), dtype=int)
        return self._log_base + self._log_likelihood(index, self.values)

    def __call__(self, rows):
        return float(logsumexp(self._log_terms(rows)))

    def moments(self, rows):
        """Posterior mean and variance of the leaf value."""
        terms = self._log_terms(rows)
        weight = np.exp(terms - logsumexp(terms))
        mean = float(weight @ self.values)
        return mean, float(weight @ (self.values - mean) ** 2)


def normal_log_density(mean, sd):
    """Function values -> log N(mean, sd^2), for use as ``log_prior``."""

    def density(values):
        return -0.5 * math.log(2 * math.pi) - math.log(sd) - 0.5 * ((values - mean) / sd) ** 2

    return density
