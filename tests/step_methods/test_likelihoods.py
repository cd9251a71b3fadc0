"""Likelihoods end to end: a known step of f is found, whatever the rows tell of it.

f is -1 on one half of the first column and 1 on the other. The posterior mean must leave less than
half of the variance of f, and must be right about the height of the step within 0.7: five to ten
times the posterior sd of either with these data.
"""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from scipy import special, stats
from support.tiers import tiers

import pymc_trees as pmt

pytestmark = pytest.mark.usefixtures("quick_compile")
N = 150
RNG = np.random.default_rng(8)
X = RNG.random((N, 2))
F = np.where(X[:, 0] > 0.5, 1.0, -1.0)
U = RNG.random(N)
NOISE = RNG.normal(size=N)
COVARIATE = 1.0 + RNG.random(N)
GROUP = RNG.integers(0, N, 2 * N)
EVENT = -(np.log(U) ** 1.0)  # unit exponential


def bernoulli(p):
    return (p > U).astype(int)


def quantile(dist):
    return dist.ppf(U)


LIKELIHOODS = {
    "logit": lambda f: pm.Bernoulli("y", logit_p=2 * f, observed=bernoulli(special.expit(2 * F))),
    "probit": lambda f: pm.Bernoulli(
        "y", p=pm.math.invprobit(f), observed=bernoulli(stats.norm.cdf(F))
    ),
    "cloglog": lambda f: pm.Bernoulli(
        "y", p=1 - pm.math.exp(-pm.math.exp(f)), observed=bernoulli(1 - np.exp(-np.exp(F)))
    ),
    "Binomial": lambda f: pm.Binomial(
        "y", 10, logit_p=f, observed=quantile(stats.binom(10, special.expit(F))).astype(int)
    ),
    "Poisson": lambda f: pm.Poisson(
        "y", pm.math.exp(f + 1), observed=quantile(stats.poisson(np.exp(F + 1))).astype(int)
    ),
    "NegativeBinomial": lambda f: pm.NegativeBinomial(
        "y",
        mu=pm.math.exp(f + 1),
        alpha=4.0,
        observed=quantile(stats.nbinom(4, 4 / (4 + np.exp(F + 1)))).astype(int),
    ),
    "Gamma": lambda f: pm.Gamma(
        "y",
        alpha=3.0,
        beta=3 * pm.math.exp(-f),
        observed=quantile(stats.gamma(3, 0, np.exp(F) / 3)),
    ),
    "StudentT": lambda f: pm.StudentT(
        "y", nu=2, mu=f, sigma=0.5, observed=F + 0.5 * quantile(stats.t(2))
    ),
    "AsymmetricLaplace": lambda f: pm.AsymmetricLaplace(
        "y", mu=f, b=3, q=0.5, observed=F + 0.5 * NOISE
    ),
    "censored Weibull": lambda f: pm.Censored(
        "y",
        pm.Weibull.dist(1.5, pm.math.exp(f)),
        None,
        np.full(N, 3.0),
        observed=np.minimum(np.exp(F) * EVENT ** (1 / 1.5), 3.0),
    ),
    "sigma": lambda f: pm.Normal("y", 0, pm.math.exp(f), observed=np.exp(F) * NOISE),
    "truncated": lambda f: pm.Truncated(
        "y",
        pm.Normal.dist(f, 0.7),
        lower=-1.5,
        observed=F + 0.7 * quantile(stats.truncnorm((-1.5 - F) / 0.7, np.inf)),
    ),
    "random intercept": lambda f: pm.Normal(
        "y",
        f + pm.Normal("b", 0, 1, shape=5)[np.arange(N) % 5],
        0.5,
        observed=F + np.linspace(-1, 1, 5)[np.arange(N) % 5] + 0.5 * NOISE,
    ),
    "groups": lambda f: pm.Poisson(
        "y", pm.math.exp(f[GROUP]), observed=np.random.default_rng(1).poisson(np.exp(F[GROUP]))
    ),
    "cumulated": lambda f: pm.Normal("y", pt.cumsum(f), 0.5, observed=np.cumsum(F) + 0.5 * NOISE),
    "offset and varying coefficient": lambda f: pm.StudentT(
        "y", nu=5, mu=3.0 + COVARIATE * f, sigma=0.5, observed=3.0 + COVARIATE * F + 0.5 * NOISE
    ),
}


def posterior_mean(model, draws=120, tune=100):
    """Mean of f over a chain of the model's default kind of step."""
    with model:
        free = [rv for rv in model.free_RVs if not rv.name.endswith("_forest")]
        steps = [pmt.CGM(rng=5)]
        steps += [pm.Metropolis([model.rvs_to_values[rv]], rng=6) for rv in free]
        point = model.initial_point()
        total = 0.0
        for k in range(tune + draws):
            for step in steps:
                point, _ = step.step(point)
            if k >= tune:
                total = total + np.array([w.forest.fit[:, 0] for w in steps[0].states])
    return total / draws


@pytest.mark.parametrize(
    "name", tiers(LIKELIHOODS, quick=["censored Weibull", "offset and varying coefficient"])
)
def test_the_step_is_found(name):
    with pm.Model() as model:
        f = pmt.BART("f", X, m=10, leaf=pmt.NormalLeaf(0.0, 0.35), max_nodes=2000)
        LIKELIHOODS[name](f)
    [found] = posterior_mean(model)
    left = np.mean((found - F) ** 2) / np.mean(F**2)
    height = found[F > 0].mean() - found[F < 0].mean()
    assert left < 0.5, left
    assert abs(height - 2.0) < 0.7, height


@pytest.mark.full
def test_mean_and_scale_by_two_forests_and_by_shared_trees():
    y = F + np.exp(0.7 * F) * NOISE
    for shared in (False, True):
        with pm.Model() as model:
            leaf = pmt.NormalLeaf([0.0, 0.0], [0.35, 0.25])
            f = pmt.BART(
                "f", X, m=8, shape=(2, N), separate_trees=not shared, leaf=leaf, max_nodes=1600
            )
            pm.Normal("y", f[0], pm.math.exp(f[1]), observed=y)
        step = pmt.CGM(model=model, rng=4)
        point, total = model.initial_point(), 0.0
        for k in range(200):
            point, _ = step.step(point)
            fit = np.concatenate([w.forest.fit for w in step.states], axis=1)
            total = total + (k >= 80) * fit / 120
        assert np.sqrt(np.mean((total[:, 0] - F) ** 2)) < 0.5
        assert np.sqrt(np.mean((total[:, 1] - 0.7 * F) ** 2)) < 0.4
