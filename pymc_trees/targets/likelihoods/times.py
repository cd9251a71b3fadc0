"""Positive numbers: Gamma, Exponential and Weibull, perhaps censored.

Kernels first. y ~ Gamma(shape exp(u), scale exp(v)), u and v affine in f.
"""

import math

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.graph.basic import Constant
from pytensor.tensor.random.basic import ExponentialRV, GammaRV
from scipy.special import gammaln

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.compile.polygamma import digamma, polygamma
from pymc_trees.targets.graph import NotRecognisedError, dependent_on, named_parameters
from pymc_trees.targets.likelihoods.contract import (
    KernelLikelihood,
    log_of_times,
    register_row_likelihood,
)
from pymc_trees.targets.likelihoods.expressions import log_affine_pair


@njit(cache=True)
def gamma_value(numbers, f):
    """Log-likelihood of a row."""
    y, log_y, slope = numbers[0], numbers[1], numbers[2]
    shape = math.exp(slope * f + numbers[3])
    v = numbers[4] * f + numbers[5]
    log_gamma = numbers[6] if slope == 0.0 else math.lgamma(shape)
    return (shape - 1.0) * log_y - y * math.exp(-v) - shape * v - log_gamma


@njit(cache=True)
def gamma_slopes(numbers, f):
    """Its first and second derivative."""
    a, b = numbers[2], numbers[4]
    shape = math.exp(a * f + numbers[3])
    v = b * f + numbers[5]
    ratio = numbers[0] * math.exp(-v)
    first, second = b * (ratio - shape), -b * b * ratio
    if a != 0.0:
        apart = numbers[1] - v - digamma(shape)
        first += a * shape * apart
        second += a * a * shape * (apart - shape * polygamma(1, shape)) - 2.0 * a * b * shape
    return first, second


# ---------- y ~ Weibull(alpha, exp(e)), e = slope f + offset, or y known to be larger than a limit
#
# With z = (y / exp(e))^alpha the density is alpha / y z exp(-z), and p(Y > y) = exp(-z). Numbers:
# log y, alpha, 1 where y was observed and 0 where it is the limit, slope, offset, constant.


@njit(cache=True)
def weibull_value(numbers, f):
    """Log-likelihood of a row."""
    log_z = numbers[1] * (numbers[0] - numbers[3] * f - numbers[4])
    return numbers[5] + numbers[2] * log_z - math.exp(log_z)


@njit(cache=True)
def weibull_slopes(numbers, f):
    """Its first and second derivative."""
    alpha, slope = numbers[1], numbers[3]
    z = math.exp(alpha * (numbers[0] - slope * f - numbers[4]))
    return slope * alpha * (z - numbers[2]), -((slope * alpha) ** 2) * z


# ------------------ Gamma and Exponential whose shape and scale are products with powers of exp(e)


@register_row_likelihood
class GammaLikelihood(KernelLikelihood):
    """``Gamma(alpha, beta)``, ``Gamma(mu, sigma)``, ``Exponential(lam)``."""

    of = (GammaRV, ExponentialRV)
    value = staticmethod(gamma_value)
    slopes = staticmethod(gamma_slopes)

    def read(self, term):
        """Logarithms of shape and scale."""
        (*shape, scale), outputs = term.opened()
        self.is_exponential = not shape
        [shape] = shape or [pt.ones(1)]
        return [*log_affine_pair(shape, outputs), *log_affine_pair(scale, outputs)], outputs

    def numbers(self, y, parameters):
        """Numbers of each row, as the kernels take them."""
        slope, offset, *scale = parameters
        return [
            y,
            log_of_times(y, self.is_exponential),
            slope,
            offset,
            *scale,
            gammaln(np.exp(offset)),
        ]


# -------------------- Weibull of scale exp(e), perhaps censored from above; a censored Exponential


@register_row_likelihood
class WeibullLikelihood(KernelLikelihood):
    """``Weibull(alpha, beta)``, or ``Censored`` of it or of an Exponential, lower=None."""

    of = (pm.Weibull.rv_type, pm.Censored.rv_type)
    value = staticmethod(weibull_value)
    slopes = staticmethod(weibull_slopes)

    def read(self, term):
        """Shape, limit, logarithm of the scale."""
        parameters, outputs = term.opened()
        upper = pt.constant(np.inf)
        if isinstance(term.rv.owner.op, pm.Censored.rv_type):
            base, lower, upper = parameters
            if not (isinstance(lower, Constant) and (lower.data == -np.inf).all()):
                raise NotRecognisedError("censored from below")
            parameters = named_parameters(base, (pm.Weibull.rv_type, ExponentialRV))
        if parameters is None:
            raise NotRecognisedError("censored, and no Weibull")
        *shape, scale = parameters
        self.is_exponential = not shape
        [shape] = shape or [pt.ones(1)]
        dependent = dependent_on([shape, upper], outputs)
        if shape in dependent or upper in dependent:
            raise NotRecognisedError("a shape or limit that depends on the forest")
        return [shape, upper, *log_affine_pair(scale, outputs)], outputs

    def numbers(self, y, parameters):
        """Numbers of each row, as the kernels take them."""
        shape, upper, *pair = parameters
        if not (y <= upper).all():
            raise ValueError("Observed values of pm.Censored lie outside its limits.")
        seen, log_y = (y < upper).astype(np.float64), log_of_times(y, self.is_exponential)
        return [log_y, shape, seen, *pair, seen * (np.log(shape) - log_y)]
