"""Bernoulli and Binomial with a logistic or probit link, and ordered probit regression."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.graph.basic import Constant, equal_computations
from pytensor.graph.traversal import ancestors
from pytensor.scalar import basic as scalars
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.random.basic import BernoulliRV, BinomialRV, CategoricalRV
from scipy.special import gammaln

from pymc_trees.core.leaves.latent.augmentations import Interval, PolyaGamma
from pymc_trees.targets.graph import dependent_on, stripped
from pymc_trees.targets.likelihoods.contract import (
    LatentLikelihood,
    NotRecognisedError,
    Predictor,
    register_row_likelihood,
)
from pymc_trees.targets.likelihoods.expressions import argument_of, argument_of_link, require_fixed

# ----------------------------------------------------- Bernoulli and Binomial with a logistic link


MOST_TRIALS = 8
"""Mean number per row, beyond which latent variables cost more than the likelihood itself."""


@register_row_likelihood
class Logit(LatentLikelihood):
    """``Bernoulli(logit_p=eta)``, ``Binomial(trials, logit_p=eta)``, trials known numbers."""

    of = (BernoulliRV, BinomialRV)
    augmentation = PolyaGamma

    def read(self, term):
        """Argument of the link, and the trials."""
        (*trials, p), outputs = term.opened()
        require_fixed(trials, outputs)
        for known in map(_constant, trials):
            if known is None or known.mean() > MOST_TRIALS:
                raise NotRecognisedError("many trials")
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


def _constant(var):
    """Values of a constant, through broadcasting, else None."""
    var = stripped(var)
    while var.owner is not None and len(var.owner.inputs) == 1:
        var = var.owner.inputs[0]
    return np.asarray(var.data) if isinstance(var, Constant) else None


# ------------------------------------------------------------ Probit and ordered probit regression


PROBIT = [
    pm.math.invprobit,
    lambda x: 0.5 * (1 + pt.erf(x / pt.sqrt(2))),
    lambda x: 0.5 * (1.0 + pt.erf(x / pt.sqrt(2.0))),
    lambda x: 0.5 * (1 + pt.erf(x / np.sqrt(2))),
    lambda x: 0.5 + 0.5 * pt.erf(x / np.sqrt(2)),
    lambda x: 0.5 + 0.5 * pt.erf(x / pt.sqrt(2.0)),
    lambda x: pt.exp(pm.logcdf(pm.Normal.dist(0, 1), x)),
    lambda x: pt.exp(pm.logcdf(pm.Normal.dist(0.0, 1.0), x)),
]
"""Common ways to write the distribution function of a standard Normal."""


@register_row_likelihood
class Probit(LatentLikelihood):
    """``Bernoulli(p=invprobit(eta))``."""

    of = (BernoulliRV,)
    augmentation = Interval
    positive = slice(2, 3)
    sd = 2

    def read(self, term):
        """Argument of the link."""
        [p], outputs = term.opened()
        return Predictor(argument_of(p, outputs, PROBIT), [], outputs)

    def numbers(self, y, parameters):
        """A latent Normal is positive where y is 1."""
        if not ((y == 0) | (y == 1)).all():
            raise ValueError("The observed values of pm.Bernoulli must be 0 and 1.")
        return [np.where(y == 1, 0.0, -np.inf), np.where(y == 1, np.inf, 0.0), np.ones(1)]


@register_row_likelihood
class OrderedProbit(LatentLikelihood):
    """``OrderedProbit(eta, cutpoints, sigma)``, which is a Categorical of certain p."""

    of = (CategoricalRV,)
    augmentation = Interval
    positive = slice(2, 3)
    sd = 2

    def read(self, term):
        """Eta; cut points and sigma, of which the latent Normal lies between two."""
        [p], outputs = term.opened()
        p = stripped(p)
        dependent = dependent_on([p], outputs)
        for eta, cuts in _differences(p, dependent):
            for sigma in _divisors(p, dependent):
                if equal_computations([p], [pm.OrderedProbit.compute_p(eta, cuts, sigma)]):
                    require_fixed([cuts, sigma], outputs)
                    return Predictor(eta, [cuts, sigma], outputs)
        raise NotRecognisedError("a Categorical that is not an OrderedProbit")

    def numbers(self, y, parameters):
        """Cut points about each row."""
        cuts, sigma = parameters
        if not ((y >= 0) & (y <= cuts.size) & (y == np.floor(y))).all():
            raise ValueError(
                f"The observed values of pm.OrderedProbit must be whole numbers from 0 to "
                f"{cuts.size}, the number of cut points."
            )
        ends, place = np.concatenate([[-np.inf], cuts, [np.inf]]), y.astype(np.int64)
        if not (np.diff(cuts) > 0).all():
            raise ValueError("The cutpoints of pm.OrderedProbit must increase at every point.")
        return [ends[place], ends[place + 1], sigma]


def _differences(p, dependent):
    """Vectors less cut points, as `OrderedProbit.compute_p` subtracts them."""
    for v in ancestors([p]):
        if v.ndim == 2 and v.owner and isinstance(v.owner.op, Elemwise):
            if isinstance(v.owner.op.scalar_op, scalars.Sub):
                left, right = map(stripped_of_axes, v.owner.inputs)
                if left in dependent and left.ndim == 1 and right.ndim == 1:
                    yield left, right


def _divisors(p, dependent):
    """Divisor of differences."""
    for v in ancestors([p]):
        if v.owner and isinstance(v.owner.op, Elemwise) and v in dependent:
            if isinstance(v.owner.op.scalar_op, scalars.TrueDiv):
                divisor = stripped_of_axes(v.owner.inputs[1])
                if divisor not in dependent:
                    yield divisor


def stripped_of_axes(var):
    """An expression without the axes that broadcasting gave it."""
    while var.owner and type(var.owner.op).__name__ == "DimShuffle":
        var = var.owner.inputs[0]
    return var
