"""A likelihood of rows: ``y_i ~ Gumbel(mu_i, beta)``, ``mu_i = slope_i f_i + offset_i``.

With ``z = (y - mu) / beta``,

    log p(y)  = -log beta - z - exp(-z)
    first     = a (1 - exp(-z)),  second = -a**2 exp(-z),  a = slope / beta

are the log density and its derivatives by f.
"""

import math

import numpy as np
import pymc as pm

from pymc_trees.core.compile.cache import njit
from pymc_trees.targets.likelihoods.contract import KernelLikelihood, register_row_likelihood
from pymc_trees.targets.likelihoods.expressions import affine_pair, require_fixed

# 1. Kernels of one row. Its numbers are (y - offset) / beta, a and -log beta.


@njit(cache=True)
def _value(numbers, f):
    z = numbers[0] - numbers[1] * f
    return numbers[2] - z - math.exp(-z)


@njit(cache=True)
def _slopes(numbers, f):
    a = numbers[1]
    e = math.exp(a * f - numbers[0])
    return a * (1.0 - e), -a * a * e


# 2. What is read from the model's graph, once, and what becomes of it at a point.


@register_row_likelihood
class GumbelLikelihood(KernelLikelihood):
    """``pm.Gumbel(mu, beta)`` whose mu is affine in the trees, and whose beta does not see them."""

    of = (pm.Gumbel.rv_type,)
    value = staticmethod(_value)
    slopes = staticmethod(_slopes)

    def read(self, term):
        """Expressions whose numbers `numbers` takes, and the outputs they are functions of."""
        (mu, beta), outputs = term.opened()
        require_fixed([beta], outputs)
        return [beta, *affine_pair(mu, outputs)], outputs

    def numbers(self, y, parameters):
        """Columns of the numbers of each row, as the kernels take them."""
        beta, slope, offset = parameters
        return [(y - offset) / beta, slope / beta, -np.log(beta)]
