"""Counts: Poisson, NegativeBinomial, and Binomial of many trials.

Kernels first. y ~ Poisson(exp(e)), e = slope f + offset; numbers: y, slope, offset, constant.
"""

import math

from pytensor.tensor.random.basic import BinomialRV, NegBinomialRV, PoissonRV
from scipy.special import gammaln

from pymc_trees.core.compile.cache import njit
from pymc_trees.targets.likelihoods.contract import (
    KernelLikelihood,
    NotRecognisedError,
    bounded,
    register_row_likelihood,
    whole_numbers,
)
from pymc_trees.targets.likelihoods.expressions import (
    affine_pair,
    argument_of_link,
    log_affine_pair,
    require_fixed,
)


@njit(cache=True)
def poisson_value(numbers, f):
    """Log-likelihood of a row."""
    e = numbers[1] * f + numbers[2]
    return numbers[3] + numbers[0] * e - math.exp(e)


@njit(cache=True)
def poisson_slopes(numbers, f):
    """Its first and second derivative."""
    slope = numbers[1]
    rate = math.exp(slope * f + numbers[2])
    return slope * (numbers[0] - rate), -slope * slope * rate


# ----------------------------- log p(y) = constant + a e - t log(1 + exp(e)), e = slope f + offset
#
# Numbers: a, t, slope, offset, constant. A Binomial of t trials has a = y; a NegativeBinomial of
# shape alpha has p = 1 / (1 + exp(-e)) with a = alpha and t = alpha + y.


@njit(cache=True)
def logistic_value(numbers, f):
    """Log-likelihood of a row."""
    e = numbers[2] * f + numbers[3]
    softplus = max(e, 0.0) + math.log1p(math.exp(-abs(e)))
    return numbers[4] + numbers[0] * e - numbers[1] * softplus


@njit(cache=True)
def logistic_slopes(numbers, f):
    """Its first and second derivative."""
    slope = numbers[2]
    p = 1.0 / (1.0 + math.exp(-(slope * f + numbers[3])))
    return slope * (numbers[0] - numbers[1] * p), -slope * slope * numbers[1] * p * (1.0 - p)


# ----------------------------------------------------- Poisson whose mean is a product with exp(e)


@register_row_likelihood
class PoissonLikelihood(KernelLikelihood):
    """``Poisson(exposure * exp(e))``."""

    of = (PoissonRV,)
    value = staticmethod(poisson_value)
    slopes = staticmethod(poisson_slopes)

    def read(self, term):
        """Logarithm of the mean."""
        [mean], outputs = term.opened()
        return log_affine_pair(mean, outputs), outputs

    def numbers(self, y, parameters):
        """Numbers of each row, as the kernels take them."""
        whole_numbers(y)
        slope, offset = parameters
        return [y, slope, bounded(offset), -gammaln(y + 1)]


# --------------------- NegativeBinomial whose mean is a product with exp(e), Binomial with a logit


class LogisticLikelihood(KernelLikelihood):
    """A whole number of which p is the logistic function of e."""

    value = staticmethod(logistic_value)
    slopes = staticmethod(logistic_slopes)

    def read(self, term):
        """Number of successes or of trials, and logit of p."""
        (n, p), outputs = term.opened()
        try:
            require_fixed([n], outputs)
            logit = argument_of_link(p, outputs)
        except NotRecognisedError as error:
            raise NotRecognisedError(str(error)) from None
        return [n, *affine_pair(logit, outputs)], outputs


@register_row_likelihood
class NegativeBinomialLikelihood(LogisticLikelihood):
    """``NegativeBinomial(mu, alpha)``, p = alpha / (alpha + mu)."""

    of = (NegBinomialRV,)

    def numbers(self, y, parameters):
        """Numbers of each row, as the kernels take them."""
        whole_numbers(y)
        alpha, slope, offset = parameters
        pair = slope, bounded(offset)
        return [alpha, alpha + y, *pair, gammaln(y + alpha) - gammaln(alpha) - gammaln(y + 1)]


@register_row_likelihood
class BinomialLikelihood(LogisticLikelihood):
    """``Binomial(trials, p)``."""

    of = (BinomialRV,)

    def numbers(self, y, parameters):
        """Numbers of each row, as the kernels take them."""
        trials, slope, offset = parameters
        whole_numbers(y, trials)
        ways = gammaln(trials + 1) - gammaln(y + 1) - gammaln(trials - y + 1)
        return [y, trials, slope, bounded(offset), ways]
