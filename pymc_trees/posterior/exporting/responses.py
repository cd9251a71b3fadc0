"""The law of an observed variable: its family by the name of `predictors.laws`, and parameters."""

from typing import NamedTuple

import pymc as pm
from pytensor.graph.basic import Variable
from pytensor.tensor.random import basic as random

FAMILIES: dict[type, str] = {
    random.NormalRV: "normal",
    random.LogNormalRV: "lognormal",
    random.StudentTRV: "studentt",
    random.BernoulliRV: "bernoulli",
    random.PoissonRV: "poisson",
    random.NegBinomialRV: "negative_binomial",
    random.GammaRV: "gamma",
    random.ExponentialRV: "exponential",
    random.CategoricalRV: "categorical",
    pm.Weibull.rv_type: "weibull",
}


class Response(NamedTuple):
    """An observation given the parameters of its distribution."""

    name: str
    law: str
    parameters: list[Variable]
    """As PyTensor's random variables have them."""
    ndim: int
    """Axes of the observations."""


class NoLawError(Exception):
    """Why the law of the response is not known."""


def response_of(model: pm.Model, name: str | None) -> Response:
    """The response of a model, by its name or the only one.

    Raises
    ------
    ValueError
        There is none of this name.
    NoLawError
        Its distribution is another one.
    """
    observed = {str(rv.name): rv for rv in model.observed_RVs}
    if name is not None and name not in observed:
        raise ValueError(f"response={name!r} is not observed: choose from {list(observed)}.")
    if not observed:
        raise NoLawError("the model has no observed variable")
    if name is None and len(observed) > 1:
        raise NoLawError(f"the model observes {list(observed)}; response= chooses one")
    name = next(iter(observed)) if name is None else name
    rv = observed[name]
    if rv.owner and isinstance(rv.owner.op, pm.Censored.rv_type):  # the law of the whole time
        rv = rv.owner.op.dist_params(rv.owner)[0]
    op = rv.owner.op if rv.owner else None
    if op is None or type(op) not in FAMILIES:
        raise NoLawError(f"{name} has a distribution that a predictor does not know")
    return Response(name, FAMILIES[type(op)], list(op.dist_params(rv.owner)), rv.ndim)
