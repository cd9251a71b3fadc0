"""Counts: Poisson and NegativeBinomial, perhaps without zeros, and Binomial of many trials.

Kernels first. y ~ Poisson(exp(e)), e = slope f + offset; numbers: y, slope, offset, constant.
"""

import math

import pymc as pm
from pytensor.graph.basic import Variable
from pytensor.tensor.random.basic import BinomialRV, NegBinomialRV, PoissonRV
from scipy.special import gammaln

from pymc_trees.core.compile.cache import njit
from pymc_trees.targets.graph import constant
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


# --------------------------------------------------------- The same, given that y is at least 1
#
# The density is divided by 1 - p(y = 0). Of a Poisson of mean r, y then has the mean
# m = r / (1 - exp(-r)) and the variance m (1 + r - m), which is the derivative of m by e.


NO_RATE = 1e-12
"""Rate at which y is 1 almost surely."""


@njit(cache=True)
def log_chance(u):
    """log(1 - exp(u)) for u < 0."""
    return math.log(-math.expm1(u)) if u > -0.7 else math.log1p(-math.exp(u))


@njit(cache=True)
def positive_poisson_value(numbers, f):
    """Log-likelihood of a row."""
    e = numbers[1] * f + numbers[2]
    rate = math.exp(e)
    if rate < NO_RATE:
        return numbers[3] + (numbers[0] - 1.0) * e
    return numbers[3] + numbers[0] * e - rate - log_chance(-rate)


@njit(cache=True)
def positive_poisson_slopes(numbers, f):
    """Its first and second derivative."""
    slope = numbers[1]
    rate = math.exp(slope * f + numbers[2])
    mean = 1.0 if rate < NO_RATE else -rate / math.expm1(-rate)
    return slope * (numbers[0] - mean), -slope * slope * mean * (1.0 + rate - mean)


# Of a NegativeBinomial log p(y = 0) is u = alpha log p, and with q = 1 / (exp(-u) - 1) the
# derivatives of -log(1 - exp(u)) are q u' and q (u'' + (1 + q) u'^2). Numbers: as above, a = alpha.


ALMOST_ONE = 100.0
"""Logit of p beyond which 1 - exp(u) is alpha exp(-e) to the last bit."""


@njit(cache=True)
def positive_logistic_value(numbers, f):
    """Log-likelihood of a row."""
    e = numbers[2] * f + numbers[3]
    plain = logistic_value(numbers, f)
    if e > ALMOST_ONE:
        return plain - math.log(numbers[0]) + e
    return plain - log_chance(numbers[0] * (min(e, 0.0) - math.log1p(math.exp(-abs(e)))))


@njit(cache=True)
def positive_logistic_slopes(numbers, f):
    """Its first and second derivative."""
    alpha, slope = numbers[0], numbers[2]
    e = slope * f + numbers[3]
    first, second = logistic_slopes(numbers, f)
    if e > ALMOST_ONE:
        return first + slope, second
    p = 1.0 / (1.0 + math.exp(-e))
    rest = 1.0 / (1.0 + math.exp(e))
    q = 1.0 / math.expm1(-alpha * (min(e, 0.0) - math.log1p(math.exp(-abs(e)))))
    u1, u2 = slope * alpha * rest, -slope * slope * alpha * p * rest
    return first + q * u1, second + q * (u2 + (1.0 + q) * u1 * u1)


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


@register_row_likelihood
class PositivePoissonLikelihood(PoissonLikelihood):
    """``Truncated(Poisson.dist(exposure * exp(e)), lower=1)``."""

    of = (pm.Truncated.rv_type,)
    value = staticmethod(positive_poisson_value)
    slopes = staticmethod(positive_poisson_slopes)

    def read(self, term):
        """Logarithm of the mean of the Poisson."""
        [mean], outputs = without_zeros(term, PoissonRV)
        return log_affine_pair(mean, outputs), outputs

    def numbers(self, y, parameters):
        """Numbers of each row, as the kernels take them."""
        no_zeros(y)
        return super().numbers(y, parameters)


def without_zeros(term, base: type) -> tuple[list, Variable]:
    """Parameters of a distribution of counts from 1 on, and the outputs they depend on."""
    if isinstance(term.rv.owner.op.base_rv_op, base):
        (*parameters, lower, upper), outputs = term.opened()
        if constant(lower) == 1.0 and constant(upper) == math.inf:
            return parameters, outputs
    raise NotRecognisedError("truncated, and not to counts from 1 on")


def no_zeros(y) -> None:
    """Raise an error for counts that are not positive."""
    if not (y >= 1).all():
        raise ValueError(
            f"The observed values must be whole numbers of at least 1, but the least is {y.min()}."
        )


# --------------------- NegativeBinomial whose mean is a product with exp(e), Binomial with a logit


class LogisticLikelihood(KernelLikelihood):
    """A whole number of which p is the logistic function of e."""

    value = staticmethod(logistic_value)
    slopes = staticmethod(logistic_slopes)

    def opened(self, term):
        """Number of successes or of trials, and p."""
        return term.opened()

    def read(self, term):
        """Number of successes or of trials, and logit of p."""
        (n, p), outputs = self.opened(term)
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
class PositiveNegativeBinomialLikelihood(NegativeBinomialLikelihood):
    """``Truncated(NegativeBinomial.dist(mu, alpha), lower=1)``."""

    of = (pm.Truncated.rv_type,)
    value = staticmethod(positive_logistic_value)
    slopes = staticmethod(positive_logistic_slopes)

    def opened(self, term):
        """Number of successes, and p."""
        return without_zeros(term, NegBinomialRV)

    def numbers(self, y, parameters):
        """Numbers of each row, as the kernels take them."""
        no_zeros(y)
        return super().numbers(y, parameters)


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
