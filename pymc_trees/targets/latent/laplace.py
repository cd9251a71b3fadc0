"""Laplace and AsymmetricLaplace about the linear predictor: medians and quantiles."""

from pymc.distributions.continuous import AsymmetricLaplaceRV
from pytensor.tensor.random.basic import LaplaceRV

from pymc_trees.core.leaves.latent.skewed_laplace import SkewedLaplace
from pymc_trees.targets.latent.contract import LatentLikelihood, Predictor, register_latent
from pymc_trees.targets.latent.templates import refuse_if_seen


@register_latent
class Laplace(LatentLikelihood):
    """``Laplace(mu=eta, b)``."""

    of = (LaplaceRV,)
    path = SkewedLaplace
    positive = slice(1, 3)

    def read(self, term):
        """Location, and the scale."""
        (eta, b), outputs = term.opened()
        refuse_if_seen([b], outputs)
        return Predictor(eta, [b], outputs)

    def numbers(self, y, parameters):
        """The rate to both sides."""
        [b] = parameters
        return [y, 1.0 / b, 1.0 / b]


@register_latent
class AsymmetricLaplace(LatentLikelihood):
    """``AsymmetricLaplace(mu=eta, b, kappa or q)``."""

    of = (AsymmetricLaplaceRV,)
    path = SkewedLaplace
    positive = slice(1, 3)

    def read(self, term):
        """Location, and the other two parameters."""
        (b, kappa, eta), outputs = term.opened()
        refuse_if_seen([b, kappa], outputs)
        return Predictor(eta, [b, kappa], outputs)

    def numbers(self, y, parameters):
        """Rates above and below."""
        b, kappa = parameters
        return [y, b * kappa, b / kappa]
