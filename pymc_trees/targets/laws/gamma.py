"""Gamma and Exponential whose shape and scale are products with powers of exp(e)."""

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.random.basic import ExponentialRV, GammaRV
from scipy.special import gammaln

from pymc_trees.core.leaves.nonconjugate.laws import gamma
from pymc_trees.targets.laws.contract import RowLaw, log_affine_pair, log_of_times, register_law


@register_law
class GammaLaw(RowLaw):
    """``Gamma(alpha, beta)``, ``Gamma(mu, sigma)``, ``Exponential(lam)``."""

    of = (GammaRV, ExponentialRV)
    law = gamma

    def read(self, term):
        """Logarithms of shape and scale."""
        (*shape, scale), outputs = term.opened()
        self.is_exponential = not shape
        [shape] = shape or [pt.ones(1)]
        return [*log_affine_pair(shape, outputs), *log_affine_pair(scale, outputs)], outputs

    def numbers(self, y, found):
        """As the law takes them."""
        slope, offset, *scale = found
        return [
            y,
            log_of_times(y, self.is_exponential),
            slope,
            offset,
            *scale,
            gammaln(np.exp(offset)),
        ]
