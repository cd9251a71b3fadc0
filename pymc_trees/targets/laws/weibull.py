"""Weibull of scale exp(e), perhaps censored from above; a censored Exponential."""

import numpy as np
import pytensor.tensor as pt
from pymc.distributions.censored import CensoredRV
from pymc.distributions.continuous import WeibullBetaRV
from pytensor.graph.basic import Constant
from pytensor.tensor.random.basic import ExponentialRV

from pymc_trees.core.leaves.nonconjugate.laws import weibull
from pymc_trees.targets.affine import NotAffineError
from pymc_trees.targets.graph import dependent_on
from pymc_trees.targets.laws.contract import RowLaw, log_affine_pair, log_of_times, register_law
from pymc_trees.targets.parameters import named_parameters


@register_law
class WeibullLaw(RowLaw):
    """``Weibull(alpha, beta)``, or ``Censored`` of it or of an Exponential, lower=None."""

    of = (WeibullBetaRV, CensoredRV)
    law = weibull

    def read(self, term):
        """Shape, limit, logarithm of the scale."""
        found, outputs = term.opened()
        upper = pt.constant(np.inf)
        if isinstance(term.rv.owner.op, CensoredRV):
            law, lower, upper = found
            if not (isinstance(lower, Constant) and (lower.data == -np.inf).all()):
                raise NotAffineError("censored from below")
            found = named_parameters(law, (WeibullBetaRV, ExponentialRV))
        if found is None:
            raise NotAffineError("censored, and no Weibull")
        *shape, scale = found
        self.is_exponential = not shape
        [shape] = shape or [pt.ones(1)]
        seeing = dependent_on([shape, upper], outputs)
        if shape in seeing or upper in seeing:
            raise NotAffineError("a shape or limit that sees the forest")
        return [shape, upper, *log_affine_pair(scale, outputs)], outputs

    def numbers(self, y, found):
        """As the law takes them."""
        shape, upper, *pair = found
        if not (y <= upper).all():
            raise ValueError("Observed values of pm.Censored lie outside its limits.")
        seen, log_y = (y < upper).astype(np.float64), log_of_times(y, self.is_exponential)
        return [log_y, shape, seen, *pair, seen * (np.log(shape) - log_y)]
