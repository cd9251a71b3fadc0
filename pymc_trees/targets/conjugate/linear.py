"""One normal observation a row of a mean affine in the function of trees with lines in leaves."""

import numpy as np

from pymc_trees.core.leaves.coefficients.linear import make_linear
from pymc_trees.core.leaves.contract import n_stats
from pymc_trees.targets.conjugate.contract import register_likelihood
from pymc_trees.targets.conjugate.normal import NormalLikelihood, is_far


@register_likelihood("linear")
class LinearLikelihood(NormalLikelihood):
    """``y = a f + b + sd noise``, as for a `NormalLeaf`."""

    treated = (
        "a LinearLeaf forest in the mean of one pm.Normal, or mu of one pm.LogNormal: f, times and "
        "plus other terms, row by row, with any sd that does not see f"
    )

    def __init__(self, layout, outputs):
        super().__init__(layout, outputs)
        self.n_stats = n_stats(outputs)

    def leaf_data(self, settings, seen, fit):
        """Residual of ``fit``, and the target it was subtracted from unless that is too far."""
        n = self.layout.n_rows
        mean, sd, slope_sd, share = settings.leaf
        target, precision = (np.zeros(n), np.zeros(1)) if seen is None else self.scaled(*seen)
        residual = target - fit[:, 0]
        leaf = make_linear(mean, sd, slope_sd, share, self.outputs, residual, precision)
        return leaf, None if is_far(target, fit, mean, sd) else target
