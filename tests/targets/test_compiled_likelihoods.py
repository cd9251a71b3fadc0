"""No likelihood of PyMC's library calls Python: every univariate distribution by every parameter.

A parameter is a function of the forest with the range it needs; the others are numbers. Value,
gradient and second derivative have code for Numba: PyTensor says so before any of it is compiled.
"""

import warnings

import numpy as np
import pymc as pm
import pytest
from numpy.testing import assert_allclose
from scipy import special
from support.tiers import tiers

import pymc_trees as pmt
from pymc_trees.core.compile.polygamma import polygamma
from pymc_trees.core.leaves.nonconjugate.native import call_native
from pymc_trees.targets.conjugate import ConjugateTarget
from pymc_trees.targets.graph import NotConjugateError, read_graph
from pymc_trees.targets.native import compile_graph
from pymc_trees.targets.rowwise import RowwiseTarget

REAL, POSITIVE, SHARE = (lambda f: f), pm.math.exp, pm.math.sigmoid
ONE, COUNT, PART = 1.3, 2, 0.4  # a positive number, a count, a share
# Distribution: the range of each parameter with a number for it, and what is observed.
DISTRIBUTIONS = {
    pm.AsymmetricLaplace: ({"mu": REAL, "b": POSITIVE, "kappa": POSITIVE}, ONE),
    pm.Bernoulli: ({"p": SHARE}, 1),
    pm.Beta: ({"alpha": POSITIVE, "beta": POSITIVE}, PART),
    pm.BetaBinomial: ({"n": 5, "alpha": POSITIVE, "beta": POSITIVE}, COUNT),
    pm.Binomial: ({"n": 5, "p": SHARE}, COUNT),
    pm.Cauchy: ({"alpha": REAL, "beta": POSITIVE}, ONE),
    pm.ChiSquared: ({"nu": POSITIVE}, ONE),
    pm.DiscreteWeibull: ({"q": SHARE, "beta": POSITIVE}, COUNT),
    pm.ExGaussian: ({"mu": REAL, "sigma": POSITIVE, "nu": POSITIVE}, ONE),
    pm.Exponential: ({"lam": POSITIVE}, ONE),
    pm.Gamma: ({"alpha": POSITIVE, "beta": POSITIVE}, ONE),
    pm.Geometric: ({"p": SHARE}, COUNT),
    pm.Gumbel: ({"mu": REAL, "beta": POSITIVE}, ONE),
    pm.HalfCauchy: ({"beta": POSITIVE}, ONE),
    pm.HalfNormal: ({"sigma": POSITIVE}, ONE),
    pm.HalfStudentT: ({"nu": POSITIVE, "sigma": POSITIVE}, ONE),
    pm.HyperGeometric: None,  # whole numbers only
    pm.InverseGamma: ({"alpha": POSITIVE, "beta": POSITIVE}, ONE),
    pm.Kumaraswamy: ({"a": POSITIVE, "b": POSITIVE}, PART),
    pm.Laplace: ({"mu": REAL, "b": POSITIVE}, ONE),
    pm.LogNormal: ({"mu": REAL, "sigma": POSITIVE}, ONE),
    pm.Logistic: ({"mu": REAL, "s": POSITIVE}, ONE),
    pm.LogitNormal: ({"mu": REAL, "sigma": POSITIVE}, PART),
    pm.Moyal: ({"mu": REAL, "sigma": POSITIVE}, ONE),
    pm.NegativeBinomial: ({"mu": POSITIVE, "alpha": POSITIVE}, COUNT),
    pm.Normal: ({"mu": REAL, "sigma": POSITIVE}, ONE),
    pm.Pareto: ({"alpha": POSITIVE, "m": 0.5}, ONE),
    pm.Poisson: ({"mu": POSITIVE}, COUNT),
    pm.Rice: ({"nu": POSITIVE, "sigma": POSITIVE}, ONE),
    pm.SkewNormal: ({"mu": REAL, "sigma": POSITIVE, "alpha": REAL}, ONE),
    pm.SkewStudentT: ({"a": POSITIVE, "b": POSITIVE, "mu": REAL, "sigma": POSITIVE}, ONE),
    pm.StudentT: ({"nu": POSITIVE, "mu": REAL, "sigma": POSITIVE}, ONE),
    pm.Triangular: ({"lower": -1.0, "c": SHARE, "upper": 2.0}, ONE),
    pm.TruncatedNormal: ({"mu": REAL, "sigma": POSITIVE, "lower": -1.0, "upper": 3.0}, ONE),
    pm.VonMises: ({"mu": REAL, "kappa": POSITIVE}, ONE),
    pm.Wald: ({"mu": POSITIVE, "lam": POSITIVE}, ONE),
    pm.Weibull: ({"alpha": POSITIVE, "beta": POSITIVE}, ONE),
    pm.ZeroInflatedBinomial: ({"psi": SHARE, "n": 5, "p": SHARE}, COUNT),
    pm.ZeroInflatedNegativeBinomial: ({"psi": SHARE, "mu": POSITIVE, "alpha": POSITIVE}, COUNT),
    pm.ZeroInflatedPoisson: ({"psi": SHARE, "mu": POSITIVE}, COUNT),
}
DISTRIBUTIONS = {k: v for k, v in DISTRIBUTIONS.items() if v is not None}
CASES = [
    (kind.__name__, parameter)
    for kind, (parameters, _) in DISTRIBUTIONS.items()
    for parameter, of in parameters.items()
    if callable(of)
]
QUICK = [("Gamma", "alpha"), ("NegativeBinomial", "alpha"), ("ExGaussian", "mu")]
OTHERS = {REAL: 0.2, POSITIVE: 1.4, SHARE: 0.3}


def target_of(name, parameter):
    kind = getattr(pm, name)
    parameters, observed = DISTRIBUTIONS[kind]
    with pm.Model() as model:
        mu = pmt.BART(
            "mu", np.arange(4.0)[:, None], np.zeros(4), m=1, leaf=pmt.NormalLeaf(0.0, 1.0)
        )
        given = {
            one: of(mu) if one == parameter else OTHERS.get(of, of) if callable(of) else of
            for one, of in parameters.items()
        }
        kind("y", **given, observed=np.full(4, observed))
    # of those that are written out or have latent variables, the graphs compile too
    graph = read_graph(model, model["mu_forest"])
    try:
        return ConjugateTarget(graph), model
    except NotConjugateError:
        return RowwiseTarget(graph), model


@pytest.mark.parametrize(("name", "parameter"), tiers(CASES, QUICK))
def test_nothing_runs_in_python(name, parameter):
    target, _ = target_of(name, parameter)
    assert target.kind in ("conjugate", "rowwise")
    if target.kind == "rowwise":
        [group] = target.value.groups
        inputs = [group.outputs, group.rows, group.units, *group.free]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for function in (target.value, target.slopes):
                compile_graph(inputs, function.choices[0][0])


@pytest.mark.parametrize(("name", "parameter"), [("Gamma", "alpha"), ("NegativeBinomial", "alpha")])
def test_slopes_are_those_of_the_value(name, parameter):
    target, model = target_of(name, parameter)
    settings, seen = target.at(model.initial_point())
    leaf, _ = target.leaf_data(settings, seen, np.zeros((4, 1)))
    rows, outputs, found = np.arange(4), np.array([-0.3, 0.1, 0.2, 0.6])[:, None], np.zeros((4, 2))
    value, step, at = np.zeros((4, 1)), 1e-3, []
    for shift in (-step, 0.0, step):
        call_native(leaf.value_at, 4, rows, outputs + shift, leaf.table, leaf.data, value)
        at.append(value[:, 0].copy())
    call_native(leaf.slopes_at, 4, rows, outputs, leaf.table, leaf.data, found)
    # central differences of smooth functions: errors of step^2, and of rounding over step^2
    assert_allclose(found[:, 0], (at[2] - at[0]) / (2 * step), rtol=1e-4, atol=1e-5)
    assert_allclose(found[:, 1], (at[2] - 2 * at[1] + at[0]) / step**2, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("order", [1, 2, 3, 4, 10])
def test_polygamma_is_scipys(order, rng):
    x = np.concatenate([10 ** rng.uniform(-6, 8, 500), rng.uniform(0, 40, 500)])
    found = [polygamma(order, one) for one in x]
    assert_allclose(found, special.polygamma(order, x), rtol=1e-12)


def test_polygamma_at_its_poles():
    assert polygamma(1, -3.0) == np.inf and np.isnan(polygamma(2, 0.0))
    assert np.isnan(polygamma(1, np.nan))


def test_an_op_without_code_is_named():
    import pytensor.tensor as pt
    from pytensor.compile.ops import wrap_py

    @wrap_py(itypes=[pt.dvector], otypes=[pt.dvector])
    def by_python(x):
        return np.exp(x)

    x = pt.dvector("x")
    with pytest.warns(UserWarning, match="by_python.*Python is called"):
        compile_graph([x], by_python(x))
