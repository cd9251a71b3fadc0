"""Likelihoods that are written out: which are known, their numbers and slopes."""

import re

import numpy as np
import pymc as pm
import pytest
from pytensor.graph.traversal import explicit_graph_inputs
from scipy import special, stats

import pymc_trees as pmt
from pymc_trees.core.compile.polygamma import digamma
from pymc_trees.core.leaves.nonconjugate.native import call_native
from pymc_trees.targets.choose import read_target
from pymc_trees.targets.graph import open_forest, read_graph
from pymc_trees.targets.likelihoods.counts import LogisticLikelihood, PoissonLikelihood
from pymc_trees.targets.likelihoods.limits import TruncatedNormalLikelihood, log_between
from pymc_trees.targets.likelihoods.normal import AddedVarianceLikelihood, LogSdLikelihood
from pymc_trees.targets.likelihoods.times import GammaLikelihood, WeibullLikelihood
from pymc_trees.targets.rowwise import KernelTarget

pytestmark = pytest.mark.usefixtures("quick_compile")
N = 6
RNG = np.random.default_rng(0)
X = RNG.random((N, 2))
COUNTS = np.array([0, 3, 1, 7, 0, 2])
TIMES = np.abs(RNG.normal(size=N)) + 0.1
ROWS = np.arange(N)
exp = pm.math.exp


def censored(law, upper=0.9):
    pm.Censored("y", law, lower=None, upper=upper, observed=np.minimum(TIMES, upper))


KNOWN = {
    "poisson": (PoissonLikelihood, lambda f: pm.Poisson("y", exp(f), observed=COUNTS)),
    "exposures": (
        PoissonLikelihood,
        lambda f: pm.Poisson(
            "y",
            np.arange(1.0, 7.0) * exp(2 * f + pm.Normal("b")) / pm.HalfNormal("s"),
            observed=COUNTS,
        ),
    ),
    "no exposure": (
        PoissonLikelihood,
        lambda f: pm.Poisson("y", np.minimum(COUNTS, 1.0) * exp(f), observed=COUNTS),
    ),
    "no exposure of a negative binomial": (
        LogisticLikelihood,
        lambda f: pm.NegativeBinomial(
            "y", mu=np.minimum(COUNTS, 1.0) * exp(f), alpha=2.0, observed=COUNTS
        ),
    ),
    "negative binomial": (
        LogisticLikelihood,
        lambda f: pm.NegativeBinomial(
            "y", mu=exp(f), alpha=pm.Exponential("a", 1), observed=COUNTS
        ),
    ),
    "logit of p": (
        LogisticLikelihood,
        lambda f: pm.NegativeBinomial("y", n=3.0, p=pm.math.invlogit(f), observed=COUNTS),
    ),
    "many trials": (
        LogisticLikelihood,
        lambda f: pm.Binomial("y", n=20, logit_p=f, observed=COUNTS),
    ),
    "gamma": (
        GammaLikelihood,
        lambda f: pm.Gamma("y", mu=exp(f), sigma=pm.HalfNormal("s"), observed=TIMES),
    ),
    "one coefficient of variation": (
        GammaLikelihood,
        lambda f: pm.Gamma("y", mu=exp(f), sigma=exp(f) * pm.HalfNormal("s"), observed=TIMES),
    ),
    "spread of a gamma": (
        GammaLikelihood,
        lambda f: pm.Gamma("y", mu=2.0, sigma=2.0 * exp(f), observed=TIMES),
    ),
    "rate": (
        GammaLikelihood,
        lambda f: pm.Gamma("y", alpha=2.0, beta=2.0 / exp(f), observed=TIMES),
    ),
    "shape": (GammaLikelihood, lambda f: pm.Gamma("y", alpha=exp(f), beta=2.0, observed=TIMES)),
    "exponential": (GammaLikelihood, lambda f: pm.Exponential("y", exp(-f), observed=TIMES)),
    "exponential and zeros": (
        GammaLikelihood,
        lambda f: pm.Exponential("y", scale=exp(f), observed=np.maximum(TIMES - 0.5, 0)),
    ),
    "weibull": (
        WeibullLikelihood,
        lambda f: pm.Weibull("y", alpha=pm.HalfNormal("a", 2), beta=exp(f), observed=TIMES),
    ),
    "censored weibull": (
        WeibullLikelihood,
        lambda f: censored(pm.Weibull.dist(alpha=pm.HalfNormal("a", 2), beta=exp(f))),
    ),
    "censored exponential": (WeibullLikelihood, lambda f: censored(pm.Exponential.dist(exp(f)))),
    "censored and zeros": (
        WeibullLikelihood,
        lambda f: pm.Censored(
            "y",
            pm.Exponential.dist(exp(f)),
            lower=None,
            upper=1.0,
            observed=np.clip(TIMES - 0.5, 0, 1),
        ),
    ),
    "truncated normal": (
        TruncatedNormalLikelihood,
        lambda f: pm.TruncatedNormal(
            "y",
            mu=2 * f + pm.Normal("b"),
            sigma=pm.HalfNormal("s", 2) * np.arange(1.0, 7.0),
            lower=0.0,
            upper=np.linspace(3.0, 4.0, N),
            observed=TIMES,
        ),
    ),
    "truncated from below": (
        TruncatedNormalLikelihood,
        lambda f: pm.Truncated("y", pm.Normal.dist(f, 1.0), lower=0.1, observed=TIMES),
    ),
    "log sd": (
        LogSdLikelihood,
        lambda f: pm.Normal("y", pm.Normal("m"), 0.5 * exp(f), observed=TIMES),
    ),
    "least variance": (
        AddedVarianceLikelihood,
        lambda f: pm.Normal(
            "y",
            pm.Normal("m"),
            pm.math.sqrt(pm.HalfNormal("c") + exp(2 * f) * np.arange(1.0, 7.0)),
            observed=TIMES,
        ),
    ),
    "log precision": (LogSdLikelihood, lambda f: pm.Normal("y", 1.0, tau=exp(f), observed=TIMES)),
}
OTHERS = {
    "mean and sd": lambda f: pm.Normal("y", f, exp(f), observed=TIMES),
    "two variances": lambda f: pm.Normal("y", 0, pm.math.sqrt(exp(f) + exp(2 * f)), observed=TIMES),
    "softplus": lambda f: pm.Poisson("y", pm.math.log1pexp(f), observed=COUNTS),
    "a sum of rates": lambda f: pm.Poisson("y", exp(f) + 1.0, observed=COUNTS),
    "zeros that see it twice": lambda f: pm.ZeroInflatedPoisson(
        "y", pm.math.invlogit(f), exp(f), observed=COUNTS
    ),
    "shape that sees it": lambda f: pm.Weibull("y", alpha=exp(f), beta=1.0, observed=TIMES),
    "censored from below": lambda f: pm.Censored(
        "y", pm.Weibull.dist(1.0, exp(f)), lower=0.2, upper=None, observed=np.maximum(TIMES, 0.2)
    ),
    "a limit that sees it": lambda f: pm.TruncatedNormal("y", 1.0, 1.0, lower=f, observed=TIMES),
    "trials that see it": lambda f: pm.NegativeBinomial("y", mu=2.0, alpha=exp(f), observed=COUNTS),
}


def model_of(likelihood):
    with pm.Model() as model:
        likelihood(pmt.BART("f", X, m=3, leaf=pmt.NormalLeaf(0.0, 0.5)))
    return model


def native(function, seen, fit, width):
    out = np.zeros((N, width))
    call_native(function.address, N, ROWS, fit, seen.table, seen.data, out)
    return out


# PyMC keeps some constants in single precision
@pytest.mark.parametrize("case", KNOWN)
def test_known(case):
    law, likelihood = KNOWN[case]
    model = model_of(likelihood)
    target = read_target(model, model["f_forest"])
    assert isinstance(target, KernelTarget) and isinstance(target.likelihood, law)
    point = model.initial_point()
    _, seen = target.at(point)
    graph = read_graph(model, model["f_forest"])
    (total,), outputs = open_forest(graph, [model.logp(vars=graph.terms)])
    needed = set(explicit_graph_inputs([total]))
    others = {v: point[v.name] for v in model.value_vars if v in needed}
    fit = np.random.default_rng(1).normal(size=(N, 1))
    here = native(target.value, seen, fit, 1)
    np.testing.assert_allclose(here.sum(), total.eval({outputs: fit, **others}), rtol=1e-7)

    h = 1e-4
    up, down = (native(target.value, seen, fit + step, 1) for step in (h, -h))
    slopes = native(target.slopes, seen, fit, 2)
    np.testing.assert_allclose(slopes[:, :1], (up - down) / (2 * h), atol=1e-5, rtol=1e-6)
    np.testing.assert_allclose(slopes[:, 1:], (up - 2 * here + down) / h**2, atol=1e-5, rtol=1e-4)


def test_some_rows_can_be_asked_for():
    model = model_of(KNOWN["exposures"][1])
    target = read_target(model, model["f_forest"])
    _, seen = target.at(model.initial_point())
    fit = np.linspace(-1, 1, N)[:, None].copy()
    some, out = np.array([4, 1]), np.zeros((2, 1))
    call_native(target.value.address, 2, some, fit[some], seen.table, seen.data, out)
    np.testing.assert_array_equal(out, native(target.value, seen, fit, 1)[some])


@pytest.mark.parametrize("case", OTHERS)
def test_others_are_read_from_their_graph(case):
    model = model_of(OTHERS[case])
    assert not isinstance(read_target(model, model["f_forest"]), KernelTarget)


@pytest.mark.parametrize(
    ("likelihood", "words"),
    [
        (lambda f: pm.Poisson("y", exp(f), observed=COUNTS - 1), "whole numbers of at least 0"),
        (lambda f: pm.Binomial("y", n=5, logit_p=f, observed=COUNTS), "from 0 to the number"),
        (
            lambda f: pm.Truncated("y", pm.Poisson.dist(exp(f)), lower=1, observed=COUNTS),
            "whole numbers of at least 1",
        ),
        (lambda f: pm.Binomial("y", n=np.full(N, 12), logit_p=f, observed=COUNTS * 2), "whole"),
        (lambda f: pm.Gamma("y", mu=exp(f), sigma=1.0, observed=COUNTS), "must be positive"),
        (lambda f: pm.Weibull("y", 1.0, exp(f), observed=COUNTS), "must be positive"),
        (
            lambda f: pm.Normal("y", 0.0, -1.0 * exp(f), observed=TIMES),
            "are not finite at this point",
        ),
        (
            lambda f: pm.Normal("y", 0.0, pm.math.sqrt(exp(f) + np.full(N, -0.5)), observed=TIMES),
            "must not be negative",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore:invalid value encountered")
def test_observed_values_that_cannot_be(likelihood, words):
    model = model_of(likelihood)
    target = read_target(model, model["f_forest"])
    with pytest.raises(ValueError, match=re.escape(words)):
        target.at(model.initial_point())


def test_numbers_follow_the_other_variables_and_the_data():
    with pm.Model() as model:
        y = pm.Data("counts", np.zeros(N, dtype=int))
        f = pmt.BART("f", X, m=3, leaf=pmt.NormalLeaf(0.0, 0.5))
        pm.Poisson("y", exp(f + pm.Normal("b")), observed=y)
    target, point = read_target(model, model["f_forest"]), model.initial_point()
    first = target.at(point)
    assert target.at(dict(point)) is first
    shifted = target.at({**point, "b": np.array(2.0)})
    np.testing.assert_allclose(shifted[1].data.reshape(N, 4)[:, 2], 2.0)
    with model:
        pm.set_data({"counts": COUNTS})
    np.testing.assert_array_equal(target.at(point)[1].data.reshape(N, 4)[:, 0], COUNTS)


def test_digamma():
    x = np.concatenate([np.logspace(-8, 6, 300), np.linspace(0.1, 30, 300)])
    found = np.array([digamma(v) for v in x])
    np.testing.assert_allclose(found, special.digamma(x), rtol=2e-14, atol=2e-15)
    assert np.isnan(digamma(0.0)) and np.isnan(digamma(np.nan))


def test_constants_are_those_of_scipy():
    numbers = np.array([3.0, 1.0, 0.2, -special.gammaln(4.0)])
    np.testing.assert_allclose(
        PoissonLikelihood.value(numbers, 0.5), stats.poisson.logpmf(3, np.exp(0.7)), rtol=1e-13
    )


def test_the_chance_of_an_interval_in_either_tail():
    """Against scipy's log-cdf where that does not cancel, and an exact sum beyond."""
    rng = np.random.default_rng(2)
    low = np.concatenate(
        [rng.normal(0, 3, 200), rng.uniform(5, 200, 100), -rng.uniform(5, 200, 99)]
    )
    high = low + rng.exponential(1.0, low.size) + 1e-3
    found = np.array([log_between(a, b) for a, b in zip(low, high, strict=True)])
    a, b = np.where(low > 0, -high, low), np.where(low > 0, -low, high)
    wanted = special.log_ndtr(b) + np.log1p(-np.exp(special.log_ndtr(a) - special.log_ndtr(b)))
    np.testing.assert_allclose(found, wanted, rtol=1e-11, atol=1e-12)
    assert log_between(-np.inf, np.inf) == 0.0
    np.testing.assert_allclose(log_between(40.0, np.inf), special.log_ndtr(-40.0), 1e-13)
