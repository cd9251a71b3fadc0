"""Poisson whose mean is a product with exp(e)."""

from pytensor.tensor.random.basic import PoissonRV
from scipy.special import gammaln

from pymc_trees.core.leaves.nonconjugate.laws import poisson
from pymc_trees.targets.laws.contract import (
    RowLaw,
    bounded,
    log_affine_pair,
    register_law,
    whole_numbers,
)


@register_law
class PoissonLaw(RowLaw):
    """``Poisson(exposure * exp(e))``."""

    of = (PoissonRV,)
    law = poisson

    def read(self, term):
        """Logarithm of the mean."""
        [mean], outputs = term.opened()
        return log_affine_pair(mean, outputs), outputs

    def numbers(self, y, found):
        """As the law takes them."""
        whole_numbers(y)
        slope, offset = found
        return [y, slope, bounded(offset), -gammaln(y + 1)]
