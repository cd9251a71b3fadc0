"""Conjugate leaf models: log marginal of a leaf's data and leaf-value moments.

A leaf model is called with the rows of a leaf (any collection of row numbers) and
returns the log marginal of their data with the leaf value integrated out.
``moments(rows)`` gives the posterior (mean, variance) of the leaf value given them.
Any function ``rows -> float`` serves as a log marginal elsewhere in the oracle.
"""

import math

import numpy as np
from scipy.special import gammaln


def _index(rows):
    return np.array(sorted(rows), dtype=int)


class NormalLeaf:
    """``y_i | mu ~ N(mu, s_i^2)``, ``mu ~ N(mean, sd^2)``; sigma scalar or (n,).

    With ``r_i = y_i - mean``, ``P = 1/sd^2 + sum 1/s_i^2``, ``B = sum r_i/s_i^2``,
    completing the square in ``m = mu - mean`` gives

        log marginal = -1/2 sum [log(2 pi s_i^2) + r_i^2/s_i^2]
                       - 1/2 log(sd^2 P) + B^2 / (2 P)

    and ``mu | y ~ N(mean + B/P, 1/P)``.
    """

    def __init__(self, y, sigma, mean, sd):
        self.y = np.asarray(y, dtype=float)
        self.variance = np.broadcast_to(np.asarray(sigma, float) ** 2, self.y.shape)
        self.mean, self.sd = float(mean), float(sd)

    def _sums(self, rows):
        i = _index(rows)
        r, v = self.y[i] - self.mean, self.variance[i]
        return r, v, 1 / self.sd**2 + np.sum(1 / v), np.sum(r / v)

    def __call__(self, rows):
        r, v, P, B = self._sums(rows)
        data = -0.5 * np.sum(np.log(2 * math.pi * v) + r**2 / v)
        return float(data - 0.5 * math.log(self.sd**2 * P) + B**2 / (2 * P))

    def moments(self, rows):
        _, _, P, B = self._sums(rows)
        return self.mean + B / P, 1 / P


class NormalGammaLeaf:
    """``tau ~ Gamma(nu/2, rate nu lam/2)``, ``mu | tau ~ N(0, 1/(a tau))``, ``y_i ~ N(mu, 1/tau)``.

    With m rows, ``a0 = nu/2``, ``b0 = nu lam/2``: integrating mu at fixed tau leaves

        (2 pi)^(-m/2) tau^(m/2) (a/(a+m))^(1/2) exp(-tau/2 [sum y^2 - (sum y)^2/(a+m)])

    and integrating that against the Gamma density,

        marginal = (2 pi)^(-m/2) (a/(a+m))^(1/2) b0^a0/Gamma(a0) * Gamma(a1)/b1^a1,
        a1 = a0 + m/2,   b1 = b0 + [sum y^2 - (sum y)^2/(a+m)]/2.

    Posterior: ``tau ~ Gamma(a1, b1)``, ``mu | tau ~ N(sum y/(a+m), 1/((a+m) tau))``,
    hence ``E mu = sum y/(a+m)``, ``Var mu = E[1/tau]/(a+m) = b1/((a1-1)(a+m))`` (infinite
    if ``a1 <= 1``), ``E tau = a1/b1``, ``Var tau = a1/b1^2``.
    """

    def __init__(self, y, nu, lam, a):
        self.y = np.asarray(y, dtype=float)
        self.nu, self.lam, self.a = float(nu), float(lam), float(a)

    def _posterior(self, rows):
        y = self.y[_index(rows)]
        k = self.a + len(y)
        a1 = (self.nu + len(y)) / 2
        b1 = self.nu * self.lam / 2 + 0.5 * (np.sum(y**2) - np.sum(y) ** 2 / k)
        return len(y), np.sum(y), k, a1, b1

    def __call__(self, rows):
        m, _, k, a1, b1 = self._posterior(rows)
        a0, b0 = self.nu / 2, self.nu * self.lam / 2
        out = -0.5 * m * math.log(2 * math.pi) + 0.5 * math.log(self.a / k)
        return float(out + a0 * math.log(b0) - gammaln(a0) + gammaln(a1) - a1 * math.log(b1))

    def moments(self, rows):
        _, total, k, a1, b1 = self._posterior(rows)
        return total / k, b1 / ((a1 - 1) * k) if a1 > 1 else math.inf

    def precision_moments(self, rows):
        """Posterior mean and variance of tau in the leaf."""
        _, _, _, a1, b1 = self._posterior(rows)
        return a1 / b1, a1 / b1**2


class DirichletLeaf:
    """``p ~ Dirichlet(alpha_total/K, ..., alpha_total/K)``, ``y_i ~ Categorical(p)``.

    The Dirichlet normalising constant gives, for the sequence of labels (no
    multinomial coefficient) with counts ``c_k`` and ``c = alpha_total/K``,

        marginal = Gamma(A)/Gamma(A + m) prod_k Gamma(c + c_k)/Gamma(c),  A = alpha_total.

    Posterior ``p ~ Dirichlet(c + c_k)``: mean ``q_k = (c + c_k)/(A + m)``, variance
    ``q_k (1 - q_k)/(A + m + 1)``; `moments` returns arrays of length K.
    """

    def __init__(self, labels, n_classes, alpha_total):
        self.labels = np.asarray(labels, dtype=int)
        self.K, self.total = int(n_classes), float(alpha_total)

    def _counts(self, rows):
        return np.bincount(self.labels[_index(rows)], minlength=self.K).astype(float)

    def __call__(self, rows):
        counts, c = self._counts(rows), self.total / self.K
        out = gammaln(self.total) - gammaln(self.total + counts.sum())
        return float(out + np.sum(gammaln(c + counts) - gammaln(c)))

    def moments(self, rows):
        counts = self._counts(rows)
        whole = self.total + counts.sum()
        q = (self.total / self.K + counts) / whole
        return q, q * (1 - q) / (whole + 1)
