"""The observed variable of a formula's model: its family, and what is known of its rows."""

from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from pymc_trees.formula.families import INVERSES, SCALED, Family
from pymc_trees.formula.frame import Response
from pymc_trees.formula.priors import declare

ROWS = "__obs__"
"""Dimension of the rows, as in Bambi."""


def check_support(response: Response, family: str, kind: Family) -> None:
    """Raise an error for a response that is impossible under the family."""
    y = response.values
    low: Any
    high: Any
    low, high, whole = kind.support
    if kind.response == "binary":
        low, high, whole = 0, 1, True
    if kind.response == "trials":
        low, high, whole = 0, response.known["n"], True
    wrong = (y < low) | (y > high) | ~np.isfinite(y)
    if whole:
        wrong = wrong | (y != np.round(y))
    if wrong.any():
        raise ValueError(
            f"family={family!r}: the response {response.name} holds {y[wrong][0]}, which is "
            "impossible under it; choose another family."
        )


def observe(made, eta, given) -> None:
    """Declare the parameters of the family and the response.

    Parameters
    ----------
    made : Formula
    eta : (n,) or (n, K - 1) variable
        The linear predictor.
    given : Given
        Priors.
    """
    family, response = made.family, made.response
    name, y = response.name, response.values
    y = y.astype(np.int64) if family.support[2] else y
    known = {
        key: pm.Data(f"{name}_{key}", value, dims=ROWS) for key, value in response.known.items()
    }
    auxiliary = {}
    for parameter, (kind, arguments) in family.auxiliary.items():
        if (kind, arguments) == SCALED:
            arguments = {**arguments, "sigma": made.scales.sd}
        auxiliary[parameter] = declare(parameter, given.get(parameter), (kind, arguments))
    if family.response == "ordered":
        _ordered(made, eta, given)
        return
    if family.response == "classes":
        eta = pt.concatenate([pt.zeros((eta.shape[0], 1)), eta], axis=1)
        p = pm.Deterministic("p", INVERSES["softmax"](eta), dims=(ROWS, f"{name}_dim"))
        pm.Categorical(name, p=p, observed=y, shape=(p.shape[0],), dims=ROWS)
        return
    parent = pm.Deterministic(family.parent, INVERSES[made.link](eta), dims=ROWS)
    arguments = family.arguments({family.parent: parent, **auxiliary})
    if "n" in known:
        arguments["n"] = known["n"]
    kind = family.distribution
    callee = made.terms.callee
    if callee in ("censored", "truncated"):
        inner = kind.dist(**arguments, shape=parent.shape)
        outer = pm.Censored if callee == "censored" else pm.Truncated
        low, high = known["lower"], known["upper"]
        outer(name, inner, lower=low, upper=high, observed=y, shape=parent.shape, dims=ROWS)
        return
    if callee == "weighted":
        w = known["weights"]
        if made.family_name == "gaussian":
            sigma = arguments["sigma"]
            constant = (1 - w) * (0.5 * np.log(2 * np.pi) + pt.log(sigma)) - 0.5 * pt.log(w)
            pm.Potential(f"{name}_potential", constant.sum())
            arguments["sigma"] = sigma / pt.sqrt(w)
        else:
            inner = kind.dist(**arguments, shape=parent.shape)
            pm.Potential(f"{name}_potential", ((w - 1) * pm.logp(inner, y)).sum())
    kind(name, **arguments, observed=y, shape=parent.shape, dims=ROWS)


def _ordered(made, eta, given) -> None:
    name, levels = made.response.name, made.response.levels or []
    cuts = np.round(np.linspace(-2, 2, num=len(levels) - 1), 2)
    pm.modelcontext(None).add_coord("threshold_dim", levels[:-1])
    prior = (pm.Normal, {"mu": cuts, "sigma": 1.0})
    ordered = pm.distributions.transforms.ordered
    given_cuts = given.get("threshold")
    threshold = declare(
        "threshold",
        given_cuts,
        prior,
        ("threshold_dim",),
        cuts.shape,
        transform=ordered,
        initval=cuts,
    )
    below = INVERSES[made.link](threshold - eta[:, None])
    first, last = pt.zeros((eta.shape[0], 1)), pt.ones((eta.shape[0], 1))
    p = pt.diff(pt.concatenate([first, below, last], axis=1), axis=1)
    pm.Deterministic("p", p, dims=(ROWS, f"{name}_dim"))
    kind = pm.OrderedLogistic if made.link == "logit" else pm.OrderedProbit
    kind(
        name,
        eta=eta,
        cutpoints=threshold,
        observed=made.response.values,
        compute_p=False,
        shape=eta.shape,
        dims=ROWS,
    )
