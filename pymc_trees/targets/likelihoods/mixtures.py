"""Mixtures: a forest in the weights of two components, and Normals as a component.

What a forest in one component sees is its `observed.Part`, which goes to the likelihood of that
component: `conjugate` and `rowwise` add the other components to its rows.
"""

import numpy as np
import pymc as pm
from pytensor.tensor.random.basic import LogNormalRV, NormalRV

from pymc_trees.core.leaves.latent.augmentations import Interval
from pymc_trees.core.leaves.latent.mixtures import LogitShare, ProbitShare
from pymc_trees.targets.likelihoods.binary import PROBIT
from pymc_trees.targets.likelihoods.contract import (
    LatentLikelihood,
    NotRecognisedError,
    Predictor,
    logs_of,
    register_row_likelihood,
)
from pymc_trees.targets.likelihoods.expressions import (
    argument_of,
    argument_of_link,
    require_fixed,
)
from pymc_trees.targets.likelihoods.observed import Part, shares

# ------------------------------------------------------ Weights p and 1 - p that depend on a forest


class Share(LatentLikelihood):
    """``Mixture`` of two, one of which has the weight p and the other 1 - p."""

    of = (pm.Mixture.rv_type,)

    def argument(self, p, outputs):
        """The linear predictor of p, or `NotRecognisedError`."""
        raise NotImplementedError

    def read(self, term):
        """Argument of the link, and log densities of both components."""
        _, outputs = term.opened()
        for p, log_densities in shares(term):
            try:
                return Predictor(self.argument(p, outputs), log_densities, outputs)
            except NotRecognisedError:
                continue
        raise NotRecognisedError("weights that are no function of a linear predictor")

    def numbers(self, y, parameters):
        """Log densities."""
        return list(parameters)


@register_row_likelihood
class LogitOfShare(Share):
    """``p = invlogit(eta)``."""

    augmentation = LogitShare

    def argument(self, p, outputs):
        """The linear predictor of p."""
        return argument_of_link(p, outputs)


@register_row_likelihood
class ProbitOfShare(Share):
    """``p = invprobit(eta)``."""

    augmentation = ProbitShare
    sd = 2

    def argument(self, p, outputs):
        """The linear predictor of p."""
        return argument_of(p, outputs, PROBIT)

    def numbers(self, y, parameters):
        """Log densities, and the sd of the latent Normal."""
        return [*parameters, np.ones(1)]


# --------------------------------------------- Normals, and their exponentials, in a mixture of any


@register_row_likelihood
class NormalPart(LatentLikelihood):
    """A component ``Normal(eta, sigma)`` or ``LogNormal(eta, sigma)``, given which is conjugate."""

    of = (NormalRV, LogNormalRV)
    augmentation = Interval
    positive = slice(2, 3)

    def read(self, term):
        """Mean, and the sd."""
        if not isinstance(term, Part):
            raise NotRecognisedError("no component of a mixture")
        self.of_logs = isinstance(term.rv.owner.op, LogNormalRV)
        (eta, sigma), outputs = term.opened()
        require_fixed([sigma], outputs)
        return Predictor(eta, [sigma], outputs)

    def numbers(self, y, parameters):
        """Bounds that are y itself."""
        [sigma] = parameters
        z = logs_of(y) if self.of_logs else y
        return [z, z, sigma]

    def log_scale(self, numbers):
        """The logarithm of y is denser than y by y."""
        return -numbers[:, 0] if self.of_logs else 0.0
