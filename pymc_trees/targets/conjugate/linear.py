"""One normal observation per row; mean affine in a function of trees with linear leaves."""

from pymc_trees.core.leaves.coefficients.linear import make_linear
from pymc_trees.core.leaves.contract import n_stats
from pymc_trees.targets.conjugate.contract import register_likelihood
from pymc_trees.targets.conjugate.normal import NormalLikelihood


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

    def leaf_of(self, parameters, residual, precision):
        """Linear functions of the columns of the leaf prior."""
        mean, sd, slope_sd, share = parameters
        return make_linear(mean, sd, slope_sd, share, self.outputs, residual, precision)
