"""BART with the defaults of Chipman, George and McCulloch (2010), as the paper takes them.

nu = 3, q = 0.9, k = 2. The estimate of sigma that q refers to is the sd of y, one of the two that
the paper names, and the one of the authors' program.
"""

from typing import NamedTuple

import pymc as pm
from scipy import stats

import pymc_trees as pmt

NU, Q = 3.0, 0.9


class Declared(NamedTuple):
    """A model, and the inverse gamma prior of its noise variance."""

    model: pm.Model
    shape: float
    scale: float


def noise_prior(y):
    """Shape and scale of sigma^2 with P(sigma < sd of y) = q."""
    nu_lambda = y.var() * stats.chi2.ppf(1 - Q, NU)
    return NU / 2, nu_lambda / 2


def declare(data, m, beta):
    """Sum of ``m`` trees with alpha = 0.95."""
    shape, scale = noise_prior(data.y)
    with pm.Model() as model:
        mu = pmt.BART("mu", data.X, data.y, m=m, alpha=0.95, beta=beta)
        variance = pm.InverseGamma("variance", shape, scale)
        pm.Normal("y", mu, pm.math.sqrt(variance), observed=data.y, shape=mu.shape)
    return Declared(model, shape, scale)
