"""Forms in which a distribution of a forest is declared.

A form is a function of the distribution's name, the parameter that f enters, f and a second
function of rows; it declares the likelihood in the model that is open.
"""

import warnings
from importlib import import_module

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from benchmarks.likelihoods.forms.distributions import DISTRIBUTIONS, LIMITS, N, kind_of

NUMBERS = {"censored", "censored_above", "truncated", "hurdle", "custom_logp", "custom_dist"}
NUMBERS |= {"zero_inflated", "broadcast", "pymc_dims"}
"""Forms of distributions of one number a row, which enters no other row."""
ROWS = np.array([0, 2, 2, 5, 1, 4, 3, 3, 0])
"""Of each of nine units."""


def _given(name, parameter, f):
    kind, law = kind_of(name)
    return (*kind(**law.at(**{parameter: f})), law)


def _dist(name, parameter, f):
    kind, given, law = _given(name, parameter, f)
    return kind.dist(**given), law


def _number(name, parameter, f):
    """Such a distribution of one number a row, what is observed, and limits for it."""
    kind, law = kind_of(name)
    chosen, given = kind(**law.at(**{parameter: f}))
    return chosen.dist(**given), law.observed, *LIMITS[id(law.observed)]


def plain(name, parameter, f, g):
    """As it is."""
    kind, given, law = _given(name, parameter, f)
    kind("y", **given, observed=law.observed)


def missing(name, parameter, f, g):
    """One observation is missing."""
    kind, given, law = _given(name, parameter, f)
    y = np.ma.masked_array(law.observed, np.zeros(np.shape(law.observed), dtype=bool))
    y[1] = np.ma.masked
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pm.exceptions.ImputationWarning)
        kind("y", **given, observed=y)


def nan(name, parameter, f, g):
    """One observation is NaN."""
    kind, given, law = _given(name, parameter, f)
    y = law.observed.copy()
    y[1] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pm.exceptions.ImputationWarning)
        kind("y", **given, observed=y)


def censored(name, parameter, f, g):
    """Censored on both sides."""
    dist, y, lower, upper = _number(name, parameter, f)
    pm.Censored("y", dist, lower=lower, upper=upper, observed=np.clip(y, lower, upper))


def censored_above(name, parameter, f, g):
    """Censored from above alone."""
    dist, y, _, upper = _number(name, parameter, f)
    pm.Censored("y", dist, lower=None, upper=upper, observed=np.minimum(y, upper))


def truncated(name, parameter, f, g):
    """Truncated on both sides."""
    dist, y, lower, upper = _number(name, parameter, f)
    pm.Truncated("y", dist, lower=lower, upper=upper, observed=np.clip(y, lower, upper))


def mixture(name, parameter, f, g):
    """A mixture of two of its kind, one of which is free of the forest."""
    dist, law = _dist(name, parameter, f)
    other, _ = _dist(name, parameter, pt.as_tensor(np.linspace(0.3, -0.1, N)))
    pm.Mixture("y", w=[0.3, 0.7], comp_dists=[dist, other], observed=law.observed)


def shares_of_a_mixture(name, parameter, f, g):
    """A mixture whose weights see the forest."""
    dist, law = _dist(name, parameter, pt.as_tensor(np.linspace(-0.3, 0.1, N)))
    other, _ = _dist(name, parameter, pt.as_tensor(np.linspace(0.3, -0.1, N)))
    w = pt.stack([pt.sigmoid(f), 1 - pt.sigmoid(f)], axis=-1)
    pm.Mixture("y", w=w, comp_dists=[dist, other], observed=law.observed)


def zero_inflated(name, parameter, f, g):
    """More zeros than it has."""
    dist, y, *_ = _number(name, parameter, f)
    pm.Mixture("y", w=[0.3, 0.7], comp_dists=[pm.DiracDelta.dist(0), dist], observed=y)


def hurdle(name, parameter, f, g):
    """Zeros apart from the others."""
    dist, y, *_ = _number(name, parameter, f)
    zero, lower = (0, 1) if dist.dtype == "int64" else (0.0, 1e-3)
    rest = pm.Truncated.dist(dist, lower=lower)
    pm.Mixture("y", w=[0.3, 0.7], comp_dists=[pm.DiracDelta.dist(zero), rest], observed=np.abs(y))


def total_size(name, parameter, f, g):
    """The rows stand for more."""
    kind, given, law = _given(name, parameter, f)
    kind("y", **given, observed=law.observed, total_size=10 * N)


def dims(name, parameter, f, g):
    """With names of its axes."""
    kind, given, law = _given(name, parameter, f)
    given.pop("shape", None)
    names = [f"axis_{k}" for k in range(np.ndim(law.observed))]
    for axis, size in zip(names, np.shape(law.observed), strict=True):
        pm.modelcontext(None).add_coord(axis, np.arange(size))
    kind("y", **given, observed=law.observed, dims=names)


def potential(name, parameter, f, g):
    """Its log density as a Potential."""
    kind, given, law = _given(name, parameter, f)
    dist = kind.dist(**{"shape": law.observed.shape, **given})
    pm.Potential("y", pm.logp(dist, law.observed))


def custom_logp(name, parameter, f, g):
    """A CustomDist by its log density."""
    kind, law = kind_of(name)

    def logp(value, eta):
        chosen, given = kind(**law.at(**{parameter: eta}))
        return pm.logp(chosen.dist(**given), value)

    pm.CustomDist("y", f, logp=logp, observed=law.observed, dtype=str(law.observed.dtype))


def custom_dist(name, parameter, f, g):
    """A CustomDist by its draws."""
    kind, law = kind_of(name)

    def dist(eta, size):
        chosen, given = kind(**law.at(**{parameter: eta}))
        return chosen.dist(**given, size=size)

    pm.CustomDist("y", f, dist=dist, observed=law.observed, dtype=str(law.observed.dtype))


def two_forests(name, parameter, f, g):
    """Another forest in another parameter, or beside it in the same."""
    kind, law = kind_of(name)
    others = [one for one in law.seeing if one != parameter]
    seen = {parameter: f, others[0]: g} if others else {parameter: f + g}
    chosen, given = kind(**law.at(**seen))
    chosen("y", **given, observed=law.observed)


def subset(name, parameter, f, g):
    """Rows taken by an index, some of them twice."""
    kind, law = kind_of(name)
    chosen, given = kind(**_taken(law.at(**{parameter: f}), lambda one: one[ROWS]))
    chosen("y", **given, observed=law.observed[ROWS])


def broadcast(name, parameter, f, g):
    """Two observations of each row."""
    kind, law = kind_of(name)
    chosen, given = kind(**_taken(law.at(**{parameter: f}), lambda one: one[:, None]))
    chosen("y", **given, observed=np.stack([law.observed, law.observed[::-1]], axis=1))


def _taken(given, take):
    """Parameters at other rows: those that have a number, or several, for each row."""
    return {
        name: [take(one) for one in value]
        if isinstance(value, list)
        else take(value)
        if isinstance(value, pt.TensorVariable) and value.ndim
        else value
        for name, value in given.items()
    }


def pymc_dims(name, parameter, f, g):
    """A distribution of `pymc.dims`."""
    import pymc.dims as pmd
    from pytensor.xtensor import as_xtensor

    kind, law = kind_of(name)
    pm.modelcontext(None).add_coord("row", np.arange(N))
    _, given = kind(**law.at(**{parameter: f}))
    given = {
        one: as_xtensor(value, dims=("row",)) if getattr(value, "ndim", 0) == 1 else value
        for one, value in given.items()
    }
    getattr(pmd, name)("y", **given, observed=as_xtensor(law.observed, dims=("row",)))


FORMS = {
    form.__name__: form
    for form in (
        plain,
        missing,
        nan,
        censored,
        censored_above,
        truncated,
        mixture,
        shares_of_a_mixture,
        zero_inflated,
        hurdle,
        total_size,
        dims,
        potential,
        custom_logp,
        custom_dist,
        two_forests,
        subset,
        broadcast,
    )
}


def is_form_of(form: str, name: str) -> bool:
    """Whether a distribution is declared in such a form at all."""
    law = DISTRIBUTIONS[name]
    if form in NUMBERS and not (law.by_row and np.ndim(law.observed) == 1):
        return False
    if form == "pymc_dims":
        return name != "Categorical" and hasattr(import_module("pymc.dims"), name)
    if form == "potential" and name.endswith("RandomWalk"):
        return False  # PyMC warns that their log density sees a copy of the forest
    of = {"nan": "float64", "zero_inflated": "int64"}.get(form, law.observed.dtype)
    return law.observed.dtype == of and (law.by_row or form != "subset")
