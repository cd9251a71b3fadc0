"""Bernoulli and Binomial with a logistic link."""

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Constant
from pytensor.scalar import Sigmoid
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.random.basic import BernoulliRV, BinomialRV
from scipy.special import gammaln

from pymc_trees.core.leaves.latent.polya_gamma import PolyaGamma
from pymc_trees.targets.latent.contract import (
    LatentLikelihood,
    NotLatentError,
    Predictor,
    register_latent,
)
from pymc_trees.targets.latent.templates import argument_of, refuse_if_seen
from pymc_trees.targets.stacks import stripped

MOST_TRIALS = 8
"""Mean number per row, beyond which latent variables cost more than the likelihood itself."""
LINKS = [lambda x: 1.0 / (1.0 + pt.exp(-x)), lambda x: 1 / (1 + pt.exp(-x))]
"""Common ways to write the logistic function, other than ``pm.math.invlogit``."""


@register_latent
class Logit(LatentLikelihood):
    """``Bernoulli(logit_p=eta)``, ``Binomial(trials, logit_p=eta)``, trials known numbers."""

    of = (BernoulliRV, BinomialRV)
    path = PolyaGamma

    def read(self, term):
        """Argument of the link, and the trials."""
        (*trials, p), outputs = term.opened()
        refuse_if_seen(trials, outputs)
        for known in map(_constant, trials):
            if known is None or known.mean() > MOST_TRIALS:
                raise NotLatentError("many trials")
        return Predictor(argument_of_link(p, outputs), trials, outputs)

    def numbers(self, y, parameters):
        """y, trials, and the logarithm of the binomial coefficient."""
        [trials] = parameters or [np.ones(1)]
        if not ((y >= 0) & (y <= trials) & (y == np.floor(y))).all():
            raise ValueError(
                "The observed values must be whole numbers from 0 to the number of trials "
                f"(Bernoulli: 0 and 1), but lie between {y.min()} and {y.max()}."
            )
        return [y, trials, gammaln(trials + 1) - gammaln(y + 1) - gammaln(trials - y + 1)]


def argument_of_link(p, outputs):
    """The vector of which p is the logistic function; `NotLatentError` if it is not recognised."""
    inner = stripped(p)
    op = inner.owner.op if inner.owner else None
    if isinstance(op, Elemwise) and isinstance(op.scalar_op, Sigmoid):
        return inner.owner.inputs[0]
    return argument_of(inner, outputs, LINKS)


def _constant(var):
    """Values of a constant, through broadcasting, else None."""
    var = stripped(var)
    while var.owner is not None and len(var.owner.inputs) == 1:
        var = var.owner.inputs[0]
    return np.asarray(var.data) if isinstance(var, Constant) else None
