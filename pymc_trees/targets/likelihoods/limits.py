"""Normals between limits: truncated, censored.

Kernels first. y ~ N(e, sigma^2) truncated to a <= y <= b, e = slope f + offset.

With alpha = (a - e) / sigma, beta = (b - e) / sigma and P = Phi(beta) - Phi(alpha) the density is
phi((y - e) / sigma) / (sigma P). Numbers: y, sigma, a, b, slope, offset.
"""

import math
from typing import ClassVar

import numpy as np
import pymc as pm
from pytensor.tensor.random.basic import LogNormalRV, NormalRV
from pytensor.tensor.random.op import RandomVariable

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.leaves.latent.augmentations import Interval
from pymc_trees.targets.graph import dependent_on, named_parameters
from pymc_trees.targets.likelihoods.contract import (
    KernelLikelihood,
    LatentLikelihood,
    NotRecognisedError,
    Predictor,
    logs_of,
    register_row_likelihood,
)
from pymc_trees.targets.likelihoods.expressions import affine_pair, require_fixed

HALF_LOG_2_PI = 0.5 * math.log(2.0 * math.pi)
ROOT_HALF = math.sqrt(0.5)
FAR = 30.0
"""Standard deviations beyond which the tail of a Normal is computed by its series."""


@njit(cache=True)
def log_tail(x):
    """log(1 - Phi(x)) for x >= 0; the series errs by less than 945 / x^10."""
    if x < FAR:
        return math.log(0.5 * math.erfc(x * ROOT_HALF))
    if x == math.inf:
        return -math.inf
    u = 1.0 / (x * x)
    series = -u * (1.0 - 3.0 * u * (1.0 - 5.0 * u * (1.0 - 7.0 * u)))
    return -0.5 * x * x - HALF_LOG_2_PI - math.log(x) + math.log1p(series)


@njit(cache=True)
def log_between(low, high):
    """log(Phi(high) - Phi(low)), without cancellation in either tail."""
    if high <= 0.0:
        low, high = -high, -low
    if low >= 0.0:
        first = log_tail(low)
        return first + math.log1p(-math.exp(log_tail(high) - first))
    return math.log1p(-0.5 * (math.erfc(-low * ROOT_HALF) + math.erfc(high * ROOT_HALF)))


@njit(cache=True)
def truncated_value(numbers, f):
    """Log-likelihood of a row."""
    sigma, e = numbers[1], numbers[4] * f + numbers[5]
    z = (numbers[0] - e) / sigma
    inside = log_between((numbers[2] - e) / sigma, (numbers[3] - e) / sigma)
    return -HALF_LOG_2_PI - math.log(sigma) - 0.5 * z * z - inside


@njit(cache=True)
def _share(x, inside):
    """phi(x) / P, and x times that; 0 at infinity."""
    if math.isinf(x):
        return 0.0, 0.0
    density = math.exp(-0.5 * x * x - HALF_LOG_2_PI - inside)
    return density, x * density


@njit(cache=True)
def truncated_slopes(numbers, f):
    """Its first and second derivative: y minus the truncated mean, and minus the variance."""
    sigma, slope = numbers[1], numbers[4]
    e = slope * f + numbers[5]
    low, high = (numbers[2] - e) / sigma, (numbers[3] - e) / sigma
    inside = log_between(low, high)
    first_low, second_low = _share(low, inside)
    first_high, second_high = _share(high, inside)
    mean = first_low - first_high
    variance = 1.0 + second_low - second_high - mean * mean
    rate = slope / sigma
    return rate * ((numbers[0] - e) / sigma - mean), -rate * rate * max(variance, 0.0)


# ------------------------------------------------------ Normal of mean e, truncated to an interval


@register_row_likelihood
class TruncatedNormalLikelihood(KernelLikelihood):
    """``TruncatedNormal(e, sigma, lower, upper)``, and ``Truncated`` of a Normal."""

    of = (pm.TruncatedNormal.rv_type,)
    value = staticmethod(truncated_value)
    slopes = staticmethod(truncated_slopes)

    def read(self, term):
        """Sd, limits, mean."""
        (mean, *others), outputs = term.opened()
        if any(one in dependent_on([one], outputs) for one in others):
            raise NotRecognisedError("an sd or a limit that depends on the forest")
        return [*others, *affine_pair(mean, outputs)], outputs

    def numbers(self, y, parameters):
        """Numbers of each row, as the kernels take them."""
        sigma, lower, upper, *pair = parameters
        if not ((y >= lower) & (y <= upper)).all():
            raise ValueError("Observed values of the truncated Normal lie outside its limits.")
        if not ((sigma > 0) & (sigma < np.inf)).all():
            raise ValueError("sigma of the truncated Normal is not positive at this point.")
        return [y, sigma, lower, upper, *pair]


# -------------------------------------- Censored Normals and LogNormals about the linear predictor


@register_row_likelihood
class CensoredNormal(LatentLikelihood):
    """``Censored(Normal.dist(eta, sigma), lower, upper)``."""

    of = (pm.Censored.rv_type,)
    augmentation = Interval
    positive = slice(2, 3)
    sd = 2
    base: ClassVar[type[RandomVariable]] = NormalRV

    def read(self, term):
        """Mean; sigma and the limits."""
        (base, lower, upper), outputs = term.opened()
        named = named_parameters(base, self.base)
        if named is None:
            raise NotRecognisedError("censored, and of another distribution")
        eta, sigma = named
        require_fixed([sigma, lower, upper], outputs)
        return Predictor(eta, [sigma, lower, upper], outputs)

    def numbers(self, y, parameters):
        """Bounds that are y itself where it was observed."""
        sigma, lower, upper = parameters
        if not ((y >= lower) & (y <= upper)).all():
            raise ValueError("Observed values of pm.Censored lie outside its limits.")
        return [
            np.where(y == lower, -np.inf, y),
            np.where(y == upper, np.inf, y),
            sigma,
        ]


@register_row_likelihood
class CensoredLogNormal(CensoredNormal):
    """``Censored(LogNormal.dist(eta, sigma), lower, upper)``: the logarithm is a Normal."""

    base = LogNormalRV

    def numbers(self, y, parameters):
        """Bounds of the logarithm of y."""
        sigma, lower, upper = parameters
        with np.errstate(divide="ignore"):  # below a limit of 0 there is nothing
            limits = [np.log(np.maximum(limit, 0.0)) for limit in (lower, upper)]
        return super().numbers(logs_of(y), [sigma, *limits])

    def log_scale(self, numbers):
        """The logarithm of y is denser than y by y, where y was observed."""
        lower, upper = numbers[:, 0], numbers[:, 1]
        return -np.where(lower == upper, lower, 0.0)
