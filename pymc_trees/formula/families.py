"""Families and links: names, default links and priors of Bambi 0.21, as PyMC distributions."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt


def _cloglog(eta):
    return -pt.expm1(-pt.exp(eta))


INVERSES: dict[str, Callable] = {
    "identity": lambda eta: eta,
    "log": pt.exp,
    "logit": pt.sigmoid,
    "probit": pm.math.invprobit,
    "cloglog": _cloglog,
    "inverse": lambda eta: 1 / eta,
    "inverse_squared": lambda eta: 1 / pt.sqrt(eta),
    "softmax": lambda eta: pt.special.softmax(eta, axis=-1),
}
"""Parameter of the family as a function of the linear predictor."""
POSITIVE_ONLY = ("inverse", "inverse_squared")
"""Links under which a linear predictor has to be positive at every row."""

_REAL = ("identity", "log", "inverse")


@dataclass(frozen=True)
class Family:
    """A distribution of the response with one linear predictor."""

    parent: str
    """The parameter that is a function of the linear predictor."""
    links: tuple[str, ...]
    """The first is the default."""
    distribution: Any
    """Of PyMC."""
    arguments: Callable[[dict], dict]
    """Its arguments from the parameters."""
    auxiliary: dict[str, tuple] = field(default_factory=dict)
    """Prior of each other parameter: distribution of PyMC, and arguments."""
    response: str = "number"
    """number, binary, trials, ordered or classes."""
    support: tuple[float, float, bool] = (-np.inf, np.inf, False)
    """Bounds, and whether values are whole numbers; an open bound is shifted inwards."""


_HALF_NORMAL, _HALF_CAUCHY = (pm.HalfNormal, {"sigma": 1.0}), (pm.HalfCauchy, {"beta": 1.0})
_BETA = (pm.Beta, {"alpha": 2.0, "beta": 2.0})
SCALED = (pm.HalfStudentT, {"nu": 4.0})
"""Prior of a scale whose sigma is the standard deviation of the response."""

_TINY = np.nextafter(0, 1)
_COUNTS, _POSITIVE, _SHARES = (0, np.inf, True), (_TINY, np.inf, False), (_TINY, 1 - 2**-53, False)
_FROM_ZERO = (0, np.inf, False)


def _plain(p):
    return p


def _gamma(p):
    alpha = p.pop("alpha")
    return {**p, "alpha": alpha, "beta": alpha / p.pop("mu")}


def _hurdle_gamma(p):
    return {"psi": p["psi"], "alpha": p["alpha"], "beta": p["alpha"] / p["mu"]}


def _beta(p):
    mu, kappa = p.pop("mu"), p.pop("kappa")
    return {**p, "alpha": mu * kappa, "beta": (1 - mu) * kappa}


def _weibull(p):
    return {"alpha": p["alpha"], "beta": p["mu"] / pt.gamma(1 + 1 / p["alpha"])}


FAMILIES: dict[str, Family] = {
    "gaussian": Family("mu", _REAL, pm.Normal, _plain, {"sigma": SCALED}),
    "t": Family(
        "mu",
        _REAL,
        pm.StudentT,
        _plain,
        {"sigma": SCALED, "nu": (pm.Gamma, {"alpha": 2.0, "beta": 0.1})},
    ),
    "laplace": Family("mu", _REAL, pm.Laplace, _plain, {"b": _HALF_NORMAL}),
    "asymmetriclaplace": Family(
        "mu", _REAL, pm.AsymmetricLaplace, _plain, {"b": _HALF_NORMAL, "kappa": _HALF_NORMAL}
    ),
    "exgaussian": Family(
        "mu", _REAL, pm.ExGaussian, _plain, {"sigma": _HALF_NORMAL, "nu": _HALF_NORMAL}
    ),
    "vonmises": Family(
        "mu", ("identity",), pm.VonMises, _plain, {"kappa": SCALED}, support=(-np.pi, np.pi, False)
    ),
    "lognormal": Family(
        "mu", _REAL, pm.LogNormal, _plain, {"sigma": _HALF_NORMAL}, support=_POSITIVE
    ),
    "gamma": Family(
        "mu",
        ("inverse", "log", "identity"),
        pm.Gamma,
        _gamma,
        {"alpha": _HALF_CAUCHY},
        support=_POSITIVE,
    ),
    "exponential": Family(
        "mu",
        ("log", "identity", "inverse"),
        pm.Exponential,
        lambda p: {"lam": 1 / p["mu"]},
        support=_FROM_ZERO,
    ),
    "weibull": Family(
        "mu",
        ("log", "identity", "inverse"),
        pm.Weibull,
        _weibull,
        {"alpha": _HALF_CAUCHY},
        support=_POSITIVE,
    ),
    "wald": Family(
        "mu",
        ("inverse_squared", "inverse", "identity", "log"),
        pm.Wald,
        _plain,
        {"lam": _HALF_CAUCHY},
        support=_POSITIVE,
    ),
    "beta": Family(
        "mu",
        ("logit", "probit", "cloglog", "identity"),
        pm.Beta,
        _beta,
        {"kappa": _HALF_CAUCHY},
        support=_SHARES,
    ),
    "bernoulli": Family(
        "p", ("logit", "identity", "probit", "cloglog"), pm.Bernoulli, _plain, response="binary"
    ),
    "binomial": Family(
        "p", ("logit", "identity", "probit", "cloglog"), pm.Binomial, _plain, response="trials"
    ),
    "beta_binomial": Family(
        "mu",
        ("logit", "probit", "cloglog", "identity"),
        pm.BetaBinomial,
        _beta,
        {"kappa": _HALF_CAUCHY},
        response="trials",
    ),
    "zero_inflated_binomial": Family(
        "p",
        ("logit", "identity", "probit", "cloglog"),
        pm.ZeroInflatedBinomial,
        _plain,
        {"psi": _BETA},
        response="trials",
    ),
    "poisson": Family("mu", ("log", "identity"), pm.Poisson, _plain, support=_COUNTS),
    "negativebinomial": Family(
        "mu",
        ("log", "identity", "cloglog"),
        pm.NegativeBinomial,
        _plain,
        {"alpha": _HALF_CAUCHY},
        support=_COUNTS,
    ),
    "zero_inflated_poisson": Family(
        "mu", ("log", "identity"), pm.ZeroInflatedPoisson, _plain, {"psi": _BETA}, support=_COUNTS
    ),
    "zero_inflated_negativebinomial": Family(
        "mu",
        ("log", "identity", "cloglog"),
        pm.ZeroInflatedNegativeBinomial,
        _plain,
        {"alpha": _HALF_CAUCHY, "psi": _BETA},
        support=_COUNTS,
    ),
    "hurdle_poisson": Family(
        "mu", ("log", "identity"), pm.HurdlePoisson, _plain, {"psi": _BETA}, support=_COUNTS
    ),
    "hurdle_negativebinomial": Family(
        "mu",
        ("log", "identity", "cloglog"),
        pm.HurdleNegativeBinomial,
        _plain,
        {"alpha": _HALF_CAUCHY, "psi": _BETA},
        support=_COUNTS,
    ),
    "hurdle_gamma": Family(
        "mu",
        ("log", "identity", "inverse"),
        pm.HurdleGamma,
        _hurdle_gamma,
        {"alpha": _HALF_CAUCHY, "psi": _BETA},
        support=_FROM_ZERO,
    ),
    "hurdle_lognormal": Family(
        "mu",
        _REAL,
        pm.HurdleLogNormal,
        _plain,
        {"sigma": _HALF_NORMAL, "psi": _BETA},
        support=_FROM_ZERO,
    ),
    "cumulative": Family("p", ("logit", "probit"), None, _plain, response="ordered"),
    "categorical": Family("p", ("softmax",), pm.Categorical, _plain, response="classes"),
}
"""By the name that Bambi gives it."""

OF_LOGS = ("lognormal", "hurdle_lognormal")
"""Families whose linear predictor is one of the logarithm of the response."""


def limits_of_mean(family: str) -> tuple[float, float]:
    """Ends of the interval in which the parameter lies that is a function of the predictor."""
    kind = FAMILIES[family]
    if kind.response in ("binary", "trials") or kind.support == _SHARES:
        return 0.0, 1.0
    return (0.0 if kind.support[0] >= 0 and family not in OF_LOGS else -np.inf), np.inf


def find_family(family: str, link: str | None) -> tuple[Family, str]:
    """A family and the name of its link."""
    if family not in FAMILIES:
        raise ValueError(
            f"family={family!r} is not supported: choose from {sorted(FAMILIES)}, or write a "
            "model with pymc_trees.BART."
        )
    found = FAMILIES[family]
    if link is None:
        return found, found.links[0]
    if link not in found.links:
        raise ValueError(f"link={link!r}: choose from {list(found.links)} for family={family!r}.")
    return found, link
