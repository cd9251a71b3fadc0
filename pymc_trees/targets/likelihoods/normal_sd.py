"""Normals whose sd depends on the forest, and whose mean does not.

Kernels first. r ~ N(0, a + c), a = exp(e)^2, e = slope f + offset; numbers: r, c, slope, offset.
"""

import math

import numpy as np
import pytensor.tensor as pt
from pytensor.scalar import basic as scalars
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.random.basic import NormalRV

from pymc_trees.core.compile.cache import njit
from pymc_trees.targets.errors import NotRecognisedError
from pymc_trees.targets.graph import dependent_on
from pymc_trees.targets.likelihoods.contract import KernelLikelihood, register_row_likelihood
from pymc_trees.targets.likelihoods.expressions import log_affine_pair
from pymc_trees.targets.stacks import stripped

HALF_LOG_2_PI = 0.5 * math.log(2.0 * math.pi)


@njit(cache=True)
def added_variance_value(numbers, f):
    """Log-likelihood of a row."""
    v = math.exp(2.0 * (numbers[2] * f + numbers[3])) + numbers[1]
    return -HALF_LOG_2_PI - 0.5 * (math.log(v) + numbers[0] * numbers[0] / v)


@njit(cache=True)
def added_variance_slopes(numbers, f):
    """Its first and second derivative."""
    slope = numbers[2]
    a = math.exp(2.0 * (slope * f + numbers[3]))
    v = a + numbers[1]
    z2, share = numbers[0] * numbers[0] / v, a / v
    first = slope * share * (z2 - 1.0)
    return first, 2.0 * slope * first + 2.0 * (slope * share) ** 2 * (1.0 - 2.0 * z2)


# ------- Normal whose variance is a product with exp(2 e) plus one that, as the mean, is free of f


@register_row_likelihood
class AddedVarianceLaw(KernelLikelihood):
    """``Normal(mean, sqrt(exp(2 e) + c))``."""

    of = (NormalRV,)
    value = staticmethod(added_variance_value)
    slopes = staticmethod(added_variance_slopes)

    def read(self, term):
        """Mean, c, logarithm of the sd without it."""
        (mean, sd), outputs = term.opened()
        if mean in dependent_on([mean], outputs):
            raise NotRecognisedError("a mean that sees the forest too")
        seen, other = _summands(sd, outputs)
        return [mean, other, *log_affine_pair(pt.sqrt(seen), outputs)], outputs

    def numbers(self, y, found):
        """As the law takes them."""
        mean, least, *pair = found
        if not (np.asarray(least) >= 0).all():
            raise ValueError(
                "The variance added to that of the observed variable must not be negative."
            )
        return [y - mean, least, *pair]


def _summands(sd, outputs):
    """Variances of which one sees the forest."""
    variance = _inputs(sd, scalars.Sqrt)
    summands = _inputs(variance[0], scalars.Add) if variance else []
    if len(summands) == 2:
        first, second = (one in dependent_on([one], outputs) for one in summands)
        if first != second:
            return tuple(summands if first else summands[::-1])
    raise NotRecognisedError("an sd that is no root of two variances")


def _inputs(var, kind):
    var = stripped(var)
    op = var.owner.op if var.owner else None
    return var.owner.inputs if isinstance(op, Elemwise) and isinstance(op.scalar_op, kind) else []


# ----------------------------- r ~ N(0, exp(e)^2), e = slope f + offset; numbers: r, slope, offset


@njit(cache=True)
def log_sd_value(numbers, f):
    """Log-likelihood of a row."""
    e = numbers[1] * f + numbers[2]
    z = numbers[0] * math.exp(-e)
    return -HALF_LOG_2_PI - e - 0.5 * z * z


@njit(cache=True)
def log_sd_slopes(numbers, f):
    """Its first and second derivative."""
    slope = numbers[1]
    z = numbers[0] * math.exp(-(slope * f + numbers[2]))
    return slope * (z * z - 1.0), -2.0 * (slope * z) ** 2


# ------------- Normal whose sd is a product with exp(e), about a mean that does not see the forest


@register_row_likelihood
class LogSdLaw(KernelLikelihood):
    """``Normal(mean, exp(e))``."""

    of = (NormalRV,)
    value = staticmethod(log_sd_value)
    slopes = staticmethod(log_sd_slopes)

    def read(self, term):
        """Mean, logarithm of the sd."""
        (mean, sd), outputs = term.opened()
        if mean in dependent_on([mean], outputs):
            raise NotRecognisedError("a mean that sees the forest too")
        return [mean, *log_affine_pair(sd, outputs)], outputs

    def numbers(self, y, found):
        """As the law takes them."""
        mean, *pair = found
        return [y - mean, *pair]
