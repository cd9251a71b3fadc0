"""Default priors: of coefficients, intercepts and groups as in Bambi, of forests as in BART."""

import numpy as np
import pandas as pd
import pymc as pm
import pytensor.tensor as pt
from pymc.distributions.shape_utils import change_dist_size
from pytensor.graph.basic import Variable
from pytensor.tensor.random.basic import NormalRV
from pytensor.tensor.random.op import RandomVariable

from pymc_trees.distributions.data.numbers import is_random
from pymc_trees.distributions.leaves.normal import NormalLeaf
from pymc_trees.formula.families import FAMILIES, OF_LOGS
from pymc_trees.formula.frame import Terms

WIDTH = 2.5
"""Prior sd of a coefficient of a standardised column, in standard deviations of the response."""


class Scales:
    """Scales of default priors, from the training rows.

    Parameters
    ----------
    terms : Terms
    data : pandas.DataFrame
        Training rows.
    family, link : str
    y : (n,) array
        The response.
    given : collection of str
        Terms whose priors are given: they do not widen the prior of the intercept, as in Bambi.
    """

    def __init__(self, terms: Terms, data: pd.DataFrame, family: str, link: str, y, given=()):
        self.family, self.link, self.y = family, link, y
        self.binary = family in ("bernoulli", "binomial") and link in ("logit", "probit")
        normal = family in ("gaussian", "t")
        self.mean = float(np.mean(y)) if normal else 0.0
        self.sd = float(np.std(y)) if normal else 1.0
        sds, means = [0.0], [0.0]
        self.common = {}
        for term in terms.common:
            if term.name in given:
                continue
            X = terms.columns(term, data)
            self.common[term.name] = self._coefficients(term, X)
            sds, means = [*sds, *self.common[term.name]], [*means, *X.mean(axis=0)]
        wide = np.sqrt((WIDTH * self.sd) ** 2 + np.dot(np.square(sds), np.square(means)))
        self.level_sd = float(wide)
        self.intercept = (0.0, 1.5) if self.binary else (self.mean, self.level_sd)

    def _coefficients(self, term, X: np.ndarray) -> np.ndarray:
        sds = _sds(term, X)
        if not self.binary:
            return WIDTH * self.sd / sds
        if all(c.kind == "categoric" for c in term.components):
            return np.ones(X.shape[1])
        if term.kind == "interaction" and X.shape[1] > 1:
            return np.full(X.shape[1], 1 / X.sum(axis=1).std())
        return 1 / sds

    def group(self, term, X: np.ndarray) -> np.ndarray:
        """(e,) scale of the half-normal prior of the sd of each effect of a group."""
        if term.expr.kind == "intercept":
            return np.array([self.level_sd])
        sds = _sds(term, X)
        return WIDTH * self.sd / sds

    def range(self, offset: np.ndarray | None) -> tuple[float, float]:
        """Middle and half-width of what the linear predictor may be."""
        if self.link in ("logit", "probit", "cloglog", "softmax"):
            return 0.0, 3.0
        if self.link == "identity" and FAMILIES[self.family].response == "trials":
            return 0.5, 0.5  # of the probability
        y = np.asarray(self.y, dtype=np.float64)
        if self.family in OF_LOGS or self.link == "log":
            if (y == np.round(y)).all() and self.family not in OF_LOGS:
                y = np.maximum(y, 0.5)  # counts of 0
            keep = y > 0
            y = np.where(keep, y, 1.0)
            y = np.log(y)
        else:
            keep = np.ones(len(y), dtype=bool)
        y = (y - (0.0 if offset is None else offset))[keep]
        half = float(np.ptp(y) / 2) if y.size else 0.0
        return float(y.min() + half) if y.size else 0.0, half or 1.0

    def leaf(self, m: int, k: float, offset, level: bool, divisor: float = 1.0) -> NormalLeaf:
        """Leaf prior under which k prior sds of the forest reach the ends of that range.

        Parameters
        ----------
        level : bool
            Whether the forest has the level of the response: where the formula has no intercept.
        divisor : float
            Standard deviation of what the forest is multiplied by.
        """
        middle, half = self.range(offset)
        return NormalLeaf(middle / m if level else 0.0, half / (k * float(np.sqrt(m)) * divisor))


def _sds(term, X: np.ndarray) -> np.ndarray:
    """Standard deviations of the columns of a term, all of them above 0."""
    sds = X.std(axis=0)
    if not (sds > 0).all():
        raise ValueError(
            f"{term.name} has a column with one value at all rows, which sets no scale for its "
            "prior; leave the term out of the formula."
        )
    return sds


class Given:
    """The argument `priors`, by name; `done` makes sure that all were used."""

    def __init__(self, priors):
        self.priors = dict(priors or {})
        self.names: list[str] = []

    def get(self, name: str):
        """The prior given for a name, or None."""
        self.names.append(name)
        return self.priors.get(name)

    def done(self) -> None:
        """Raise an error if a name is not one of the model."""
        wrong = sorted(set(self.priors) - set(self.names))
        if wrong:
            raise ValueError(f"priors names {wrong}: choose from {sorted(set(self.names))}.")


def declare(name: str, given, default, dims=(), size=(), **more):
    """A variable of the model: with the prior that was given, or by default.

    Parameters
    ----------
    given : distribution, number or None
        ``pm.Normal.dist(0, 1)``, or a number, at which the parameter is held.
    default : tuple
        Distribution of PyMC, and arguments.
    **more
        Transform and initial value.
    """
    dims, size = tuple(dims), tuple(size)
    if given is None:
        kind, arguments = default
        return kind(name, **arguments, **more, **({"dims": dims} if dims else {}))
    if _is_distribution(given):
        _check_parameters(name, given)
        model = pm.modelcontext(None)
        rv = change_dist_size(given, size)
        return model.register_rv(rv, name, dims=dims or None, **more)
    try:
        if isinstance(given, Variable) and not is_random(given):
            given = given.eval()
        value = np.broadcast_to(np.asarray(given, dtype=np.float64), size)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"priors[{name!r}]={given!r}: give a distribution such as pymc.Normal.dist(0, 1), or "
            "numbers, at which the parameter is held."
        ) from error
    return pm.Deterministic(name, pt.constant(value), dims=dims or None)


def read_group_prior(name: str, given):
    """Prior of the sd of a group's effects: a distribution, or a number."""
    if given is None:
        return None
    node = getattr(given, "owner", None)
    if node is not None and isinstance(node.op, NormalRV):
        mean, sd = node.op.dist_params(node)
        fixed = not is_random(sd)
        # an expression of distributions has no density that PyMC could be given
        if not is_random(mean) and (np.asarray(mean.eval()) == 0).all():
            if fixed or _is_distribution(sd):
                return np.asarray(sd.eval()) if fixed else sd
    raise TypeError(
        f"priors[{name!r}]: effects of groups are Normal about 0; give pymc.Normal.dist(0, sd), "
        "where sd is a number, or a distribution itself such as pymc.HalfNormal.dist(1), not an "
        "expression of distributions."
    )


def _is_distribution(given) -> bool:
    """Whether a prior is a variable with a distribution, not an expression of some."""
    node = getattr(given, "owner", None)
    return node is not None and hasattr(node.op, "dist_params")


def _check_parameters(name: str, given: Variable) -> None:
    """Raise an error if parameters are random: they would not be variables of the model."""
    node = given.owner
    if not isinstance(node.op, RandomVariable):
        return  # a mixture, say, whose components are its inputs
    if any(is_random(parameter) for parameter in node.op.dist_params(node)):
        raise TypeError(
            f"priors[{name!r}] is a distribution with random parameters, which would not be "
            "variables of the model: give numbers as its parameters."
        )
