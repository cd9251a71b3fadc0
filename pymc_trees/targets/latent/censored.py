"""Censored Normals about the linear predictor."""

import numpy as np
from pymc.distributions.censored import CensoredRV
from pytensor.tensor.random.basic import NormalRV

from pymc_trees.core.leaves.latent.interval import Interval
from pymc_trees.targets.latent.contract import (
    LatentLikelihood,
    NotLatentError,
    Predictor,
    register_latent,
)
from pymc_trees.targets.latent.templates import refuse_if_seen


@register_latent
class CensoredNormal(LatentLikelihood):
    """``Censored(Normal.dist(eta, sigma), lower, upper)``."""

    of = (CensoredRV,)
    path = Interval
    positive = slice(2, 3)
    sd = 2

    def read(self, term):
        """Mean; sigma and the limits."""
        (law, lower, upper), outputs = term.opened()
        if not (law.owner and isinstance(law.owner.op, NormalRV)):
            raise NotLatentError("censored, and not a Normal")
        eta, sigma = law.owner.op.dist_params(law.owner)
        refuse_if_seen([sigma, lower, upper], outputs)
        return Predictor(eta, [sigma, lower, upper], outputs)

    def numbers(self, y, parameters):
        """Bounds that are y itself where it was observed."""
        sigma, lower, upper = parameters
        if not ((y >= lower) & (y <= upper)).all():
            raise ValueError("Observed values of pm.Censored lie beyond its limits.")
        return [
            np.where(y == lower, -np.inf, y),
            np.where(y == upper, np.inf, y),
            sigma,
        ]
