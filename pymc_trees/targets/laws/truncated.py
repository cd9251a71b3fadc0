"""Normal of mean e, truncated to an interval."""

import numpy as np
from pymc.distributions.continuous import TruncatedNormalRV

from pymc_trees.core.leaves.nonconjugate.laws import truncated
from pymc_trees.targets.affine import NotAffineError
from pymc_trees.targets.graph import dependent_on
from pymc_trees.targets.laws.contract import RowLaw, affine_pair, register_law


@register_law
class TruncatedNormalLaw(RowLaw):
    """``TruncatedNormal(e, sigma, lower, upper)``, and ``Truncated`` of a Normal."""

    of = (TruncatedNormalRV,)
    law = truncated

    def read(self, term):
        """Sd, limits, mean."""
        (mean, *others), outputs = term.opened()
        if any(one in dependent_on([one], outputs) for one in others):
            raise NotAffineError("an sd or a limit that sees the forest")
        return [*others, *affine_pair(mean, outputs)], outputs

    def numbers(self, y, found):
        """As the law takes them."""
        sigma, lower, upper, *pair = found
        if not ((y >= lower) & (y <= upper)).all():
            raise ValueError("Observed values of the truncated Normal lie outside its limits.")
        if not ((sigma > 0) & (sigma < np.inf)).all():
            raise ValueError("sigma of the truncated Normal is not positive at this point.")
        return [y, sigma, lower, upper, *pair]
