"""StudentT about the linear predictor."""

from pytensor.tensor.random.basic import StudentTRV

from pymc_trees.core.leaves.latent.scale_mixture import ScaleMixture
from pymc_trees.targets.latent.contract import LatentLikelihood, Predictor, register_latent
from pymc_trees.targets.latent.templates import refuse_if_seen


@register_latent
class Student(LatentLikelihood):
    """``StudentT(nu, mu=eta, sigma)``."""

    of = (StudentTRV,)
    path = ScaleMixture
    positive = slice(1, 3)

    def read(self, term):
        """Location, and the other two parameters."""
        (nu, eta, sigma), outputs = term.opened()
        refuse_if_seen([nu, sigma], outputs)
        return Predictor(eta, [nu, sigma], outputs)

    def numbers(self, y, parameters):
        """As the path takes them."""
        return [y, *parameters]
