"""One normal observation per row, with the mean and the precision of its leaf."""

import numpy as np
from pytensor.tensor.random.basic import NormalRV

from pymc_trees.core.leaves.normal_gamma import make_normal_gamma
from pymc_trees.targets.affine import NotAffineError, power_of
from pymc_trees.targets.conjugate.columns import unwrapped_column
from pymc_trees.targets.conjugate.contract import ConjugateLikelihood, refusal, register_likelihood

WANTED = "a NormalGammaLeaf needs pm.Normal(mu=mu, tau=tau) with both outputs of the tree"


@register_likelihood("normal_gamma")
class NormalGammaLikelihood(ConjugateLikelihood):
    """``y ~ Normal(mu, tau=tau)``."""

    treated = (
        "a NormalGammaLeaf tree in pm.Normal(mu=mu, tau=tau) with both of its outputs; "
        "for another sd use a NormalLeaf"
    )
    n_stats = 3

    def read(self, term):
        """Observed values."""
        if not isinstance(term.rv.owner.op, NormalRV):
            raise refusal(term.graph, f"{term.rv.name} is {term.says}; {WANTED}")
        (mean, sd), outputs = term.opened()
        try:
            direct = unwrapped_column(mean, outputs) == 0
            exponent = power_of(sd, outputs, 1)
        except NotAffineError as error:
            raise refusal(term.graph, f"{WANTED} ({error} is in the way)") from None
        if not direct or exponent != -0.5:
            raise refusal(term.graph, WANTED)
        return [term.value], outputs

    def leaf_data(self, settings, seen, fit):
        """Observed values; there is no residual."""
        a, nu, lam = settings.leaf
        y = np.empty(0) if seen is None else self.rows(*seen)
        return make_normal_gamma(a, nu, lam, y), None
