"""Censored Normals and LogNormals about the linear predictor."""

from typing import ClassVar

import numpy as np
from pymc.distributions.censored import CensoredRV
from pytensor.tensor.random.basic import LogNormalRV, NormalRV
from pytensor.tensor.random.op import RandomVariable

from pymc_trees.core.leaves.latent.interval import Interval
from pymc_trees.targets.conjugate.normal import logs_of
from pymc_trees.targets.latent.contract import (
    LatentLikelihood,
    NotLatentError,
    Predictor,
    register_latent,
)
from pymc_trees.targets.latent.templates import refuse_if_seen
from pymc_trees.targets.parameters import named_parameters


@register_latent
class CensoredNormal(LatentLikelihood):
    """``Censored(Normal.dist(eta, sigma), lower, upper)``."""

    of = (CensoredRV,)
    path = Interval
    positive = slice(2, 3)
    sd = 2
    base: ClassVar[type[RandomVariable]] = NormalRV

    def read(self, term):
        """Mean; sigma and the limits."""
        (law, lower, upper), outputs = term.opened()
        given = named_parameters(law, self.base)
        if given is None:
            raise NotLatentError("censored, and of another law")
        eta, sigma = given
        refuse_if_seen([sigma, lower, upper], outputs)
        return Predictor(eta, [sigma, lower, upper], outputs)

    def numbers(self, y, parameters):
        """Bounds that are y itself where it was observed."""
        sigma, lower, upper = parameters
        if not ((y >= lower) & (y <= upper)).all():
            raise ValueError("Observed values of pm.Censored lie outside its limits.")
        return [
            np.where(y == lower, -np.inf, y),
            np.where(y == upper, np.inf, y),
            sigma,
        ]


@register_latent
class CensoredLogNormal(CensoredNormal):
    """``Censored(LogNormal.dist(eta, sigma), lower, upper)``: the logarithm is a Normal."""

    base = LogNormalRV

    def numbers(self, y, parameters):
        """Bounds of the logarithm of y."""
        sigma, lower, upper = parameters
        with np.errstate(divide="ignore"):  # below a limit of 0 there is nothing
            limits = [np.log(np.maximum(limit, 0.0)) for limit in (lower, upper)]
        return super().numbers(logs_of(y), [sigma, *limits])

    def log_scale(self, numbers):
        """The logarithm of y is denser than y by y, where y was observed."""
        lower, upper = numbers[:, 0], numbers[:, 1]
        return -float(np.sum(lower[lower == upper]))
