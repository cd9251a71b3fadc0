"""Likelihoods that are Gaussian given latent variables: which are known, and their numbers."""

import re

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from pymc.distributions.transforms import ordered
from pytensor.graph.traversal import explicit_graph_inputs
from scipy import stats

import pymc_trees as pmt
from pymc_trees.core.leaves.contract import log_likelihood_of
from pymc_trees.targets.choose import read_target
from pymc_trees.targets.graph import open_forest, read_graph

pytestmark = pytest.mark.usefixtures("quick_compile")
N = 6
RNG = np.random.default_rng(0)
X = RNG.random((N, 2))
B = np.array([0, 1, 1, 0, 1, 0])
CLASSES = np.array([0, 1, 2, 0, 1, 2])
Y = RNG.normal(size=N)
YS = RNG.normal(size=(3, N))
TIMES = np.exp(Y)
LEAF = pmt.NormalLeaf(0.0, 0.5)


def censored(law, lower=None, upper=0.3):
    low, high = -np.inf if lower is None else lower, np.inf if upper is None else upper
    pm.Censored("y", law, lower=lower, upper=upper, observed=np.clip(Y, low, high))


def mixture(weights, *laws):
    pm.Mixture("y", w=weights, comp_dists=laws, observed=Y)


KNOWN = {
    "logit": lambda f: pm.Bernoulli("y", logit_p=2 * f + 1, observed=B),
    "invlogit": lambda f: pm.Bernoulli(
        "y", p=pm.Deterministic("p", pm.math.invlogit(f)), observed=B
    ),
    "by hand": lambda f: pm.Bernoulli("y", p=1 / (1 + pt.exp(-f)), observed=B == 1),
    "binomial": lambda f: pm.Binomial("y", n=np.arange(1, N + 1), logit_p=0.3 * f, observed=B),
    "probit": lambda f: pm.Bernoulli("y", p=pm.math.invprobit(f - 0.3), observed=B),
    "probit by erf": lambda f: pm.Bernoulli(
        "y", p=0.5 * (1 + pm.math.erf(f / pm.math.sqrt(2))), observed=B
    ),
    "probit by logcdf": lambda f: pm.Bernoulli(
        "y", p=pt.exp(pm.logcdf(pm.Normal.dist(0, 1), f)), observed=B
    ),
    "ordered probit": lambda f: pm.OrderedProbit(
        "y",
        eta=2 * f,
        cutpoints=pm.Normal("c", [-1, 1], 1, shape=2, transform=ordered, initval=[-1.0, 1.0]),
        sigma=pm.HalfNormal("s", 1),
        observed=CLASSES,
    ),
    "student": lambda f: pm.StudentT(
        "y", nu=pm.Gamma("nu", 2, 0.1), mu=f, sigma=pm.HalfNormal("s", 1), observed=Y
    ),
    "student of a latent": lambda f: pm.StudentT("z", nu=3.0, mu=f, sigma=1.0, shape=N),
    "laplace": lambda f: pm.Laplace("y", mu=f, b=pm.HalfNormal("s", 1), observed=Y),
    "quantile": lambda f: pm.AsymmetricLaplace("y", mu=f, q=0.9, b=2.0, observed=Y),
    "kappa": lambda f: pm.AsymmetricLaplace(
        "y", mu=-f, kappa=pm.HalfNormal("k", 1), b=2.0, observed=Y
    ),
    "censored": lambda f: censored(pm.Normal.dist(f, pm.HalfNormal("s", 1))),
    "censored twice": lambda f: censored(
        pm.Normal.dist(f, np.linspace(1, 2, N)), -0.5, np.full(N, 0.3)
    ),
    "censored times": lambda f: pm.Censored(
        "y",
        pm.LogNormal.dist(2 * f + 1, pm.HalfNormal("s", 1)),
        lower=None,
        upper=pm.Data("limit", np.where(B, TIMES, np.inf)),
        observed=TIMES,
    ),
    "times censored twice": lambda f: pm.Censored(
        "y", pm.LogNormal.dist(f, 0.7), 0.5, 0.75, observed=np.clip(TIMES, 0.5, 0.75)
    ),
    "normal mixture": lambda f: pm.NormalMixture(
        "y", w=[0.9, 0.1], mu=f[:, None], sigma=pm.HalfNormal("s", 1, shape=2), observed=Y
    ),
    "shifted mixture": lambda f: pm.NormalMixture(
        "y", w=[0.9, 0.1], mu=f[:, None] + np.array([0, 1.0]), sigma=1.0, observed=Y
    ),
    "list of normals": lambda f: mixture(
        pm.Dirichlet("w", np.ones(2)), pm.Normal.dist(f, 1.0), pm.Normal.dist(f, 5.0)
    ),
    "three normals": lambda f: mixture(
        [0.2, 0.3, 0.5], *(pm.Normal.dist(f + d, 2.0) for d in (0.0, -3.0, 1.0))
    ),
}


def shares(eta, axis):
    weights = pm.math.exp(eta)
    return weights / weights.sum(axis=axis, keepdims=True)


OF_SEVERAL = {
    "softmax": (3, lambda f: pm.Categorical("y", p=pm.math.softmax(f, axis=0).T, observed=CLASSES)),
    "logit_p": (3, lambda f: pm.Categorical("y", logit_p=2 * f.T + 1, observed=CLASSES)),
    "softmax in words": (3, lambda f: pm.Categorical("y", p=shares(f, 0).T, observed=CLASSES)),
    "the same by row": (3, lambda f: pm.Categorical("y", p=shares(f.T, 1), observed=CLASSES)),
    "reference class": (
        2,
        lambda f: pm.Categorical(
            "y", logit_p=pt.concatenate([pt.zeros((1, N)), f]).T, observed=CLASSES
        ),
    ),
    "students": (3, lambda f: pm.StudentT("y", nu=3, mu=f, sigma=1.0, observed=YS)),
    "quantiles": (
        3,
        lambda f: pm.AsymmetricLaplace(
            "y",
            mu=f.T,
            b=pm.HalfNormal("b", 1),
            q=np.array([0.1, 0.5, 0.9]),
            observed=np.broadcast_to(Y, (3, N)).T,
        ),
    ),
    "bernoullis": (3, lambda f: pm.Bernoulli("y", logit_p=f, observed=(YS > 0).astype(int))),
}
OTHERS = {
    "many trials": lambda f: pm.Binomial("y", n=30, logit_p=f, observed=B),
    "trials that are drawn": lambda f: pm.Binomial(
        "y", n=pm.Poisson("n", 9.0, initval=9), logit_p=f, observed=B
    ),
    "another link": lambda f: pm.Bernoulli("y", p=1 - pm.math.exp(-pm.math.exp(f)), observed=B),
    "not affine": lambda f: pm.Bernoulli("y", logit_p=f**2, observed=B),
    "ordered logit": lambda f: pm.OrderedLogistic(
        "y", eta=f, cutpoints=np.array([-1.0, 1.0]), observed=CLASSES
    ),
    "scale": lambda f: pm.StudentT("y", nu=3, mu=f, sigma=pm.math.exp(f), observed=Y),
    "censored Weibull": lambda f: pm.Censored(
        "y",
        pm.Weibull.dist(1.0, pm.math.exp(f)),
        lower=None,
        upper=0.3,
        observed=np.minimum(np.abs(Y), 0.3),
    ),
    "two slopes": lambda f: mixture([0.2, 0.8], pm.Normal.dist(f, 1.0), pm.Normal.dist(2 * f, 1.0)),
    "weights and one of them": lambda f: mixture(
        pm.math.stack([pm.math.invlogit(f), 1 - pm.math.invlogit(f)], axis=1),
        pm.Normal.dist(f, 1),
        pm.Normal.dist(0, 9.0),
    ),
    "two terms": lambda f: (
        pm.StudentT("y", nu=3, mu=f, sigma=1.0, observed=Y),
        pm.Poisson("z", pm.math.exp(f), observed=B),
    ),
}


def model_of(likelihood, shape=None):
    with pm.Model() as model:
        likelihood(pmt.BART("f", X, m=3, leaf=LEAF, shape=shape))
    return model


def differences_agree(model, forest, rtol):
    """Log-likelihoods at two functions, by the latent rows and by the model."""
    target = read_target(model, forest)
    assert target.kind == "latent"
    point = model.initial_point()
    settings, seen = target.at(point)
    graph = read_graph(model, forest)
    (total,), outputs = open_forest(graph, [model.logp(vars=graph.terms)])
    needed = set(explicit_graph_inputs([total]))
    others = {v: point[v.name] for v in model.value_vars if v in needed}
    ours, theirs = [], []
    for seed in (1, 2):
        fit = np.random.default_rng(seed).normal(size=(N, 1))
        leaf, _ = target.leaf_data(settings, seen, fit, np.random.default_rng(seed))
        ours.append(log_likelihood_of(leaf, None))
        theirs.append(total.eval({outputs: fit, **others}))
    np.testing.assert_allclose(ours[1] - ours[0], theirs[1] - theirs[0], rtol=rtol)
    return target


# PyMC keeps the root of 2 in its distribution function of a Normal in single precision.
@pytest.mark.parametrize("case", KNOWN)
def test_known(case):
    model = model_of(KNOWN[case])
    differences_agree(model, model["f_forest"], 1e-6)


@pytest.mark.parametrize("case", OF_SEVERAL)
def test_one_of_several_outputs(case):
    k, likelihood = OF_SEVERAL[case]
    model = model_of(likelihood, (k, N))
    for output in range(k):
        differences_agree(model, model[f"f_{output}_forest"], 1e-9)


@pytest.mark.parametrize("case", OTHERS)
def test_others_are_left_to_other_targets(case):
    model = model_of(OTHERS[case])
    assert read_target(model, model["f_forest"]).kind == "rowwise"


def test_several_outputs_of_a_normal_are_conjugate():
    model = model_of(
        lambda f: pm.Normal("y", f, pm.HalfNormal("s", 1, shape=3)[:, None], observed=YS), (3, N)
    )
    target = read_target(model, model["f_1_forest"])
    assert target.kind == "conjugate"
    _, (observed, _, sd, _) = target.at(model.initial_point())
    np.testing.assert_array_equal(observed, YS[1])
    assert np.size(sd) == 1


def test_an_entry_of_a_stack_sees_its_own_forest_alone():
    """Mean and sd from two outputs of one BART."""
    model = model_of(lambda f: pm.Normal("y", f[0], pm.math.exp(f[1]), observed=Y), (2, N))
    assert read_target(model, model["f_0_forest"]).kind == "conjugate"
    assert read_target(model, model["f_1_forest"]).kind == "rowwise"


def test_the_likelihood_of_times_is_that_of_their_logs_per_unit_of_time():
    """Scale and leaf model together, where rows were observed and where they were censored."""
    model = model_of(KNOWN["times censored twice"])
    target = read_target(model, model["f_forest"])
    settings, seen = target.at(model.initial_point())
    fit = np.zeros((N, 1))
    leaf, _ = target.leaf_data(settings, seen, fit, np.random.default_rng(1))
    law, y = stats.norm(0.0, 0.7), np.log(np.clip(TIMES, 0.5, 0.75))
    below, above = y == np.log(0.5), y == np.log(0.75)
    assert 0 < below.sum() < N - above.sum() < N
    wanted = np.select([below, above], [law.logcdf(y), law.logsf(y)], law.logpdf(y) - y)
    found = log_likelihood_of(leaf, None) + target.log_scale(seen)
    np.testing.assert_allclose(found, wanted.sum(), rtol=1e-12)


def test_one_precision_of_all_rows_stays_one():
    model = model_of(KNOWN["probit"])
    target = read_target(model, model["f_forest"])
    leaf, _ = target.leaf_data(
        *target.at(model.initial_point()), np.zeros((N, 1)), np.random.default_rng(1)
    )
    np.testing.assert_allclose(leaf.w, [1.0])


@pytest.mark.parametrize(
    ("likelihood", "words"),
    [
        (lambda f: pm.Bernoulli("y", logit_p=f, observed=B + 1), "whole numbers from 0 to"),
        (lambda f: pm.Bernoulli("y", p=pm.math.invprobit(f), observed=2 * B), "must be 0 and 1"),
        (
            lambda f: pm.OrderedProbit(
                "y", eta=f, cutpoints=np.array([0.0, 1.0]), observed=CLASSES + 1
            ),
            "from 0 to 2, the number of cut points",
        ),
        (
            lambda f: pm.OrderedProbit(
                "y", eta=f, cutpoints=np.array([1.0, 0.0]), observed=CLASSES
            ),
            "must increase",
        ),
        (
            lambda f: pm.Censored("y", pm.Normal.dist(f, 1.0), None, 0.0, observed=np.ones(N)),
            "outside its limits",
        ),
        (
            lambda f: pm.Censored("y", pm.LogNormal.dist(f, 1.0), None, 2.0, observed=np.zeros(N)),
            "pm.LogNormal must be positive",
        ),
        (
            lambda f: pm.Censored(
                "y", pm.LogNormal.dist(f, 1.0), None, 1.0, observed=np.full(N, 2.0)
            ),
            "outside its limits",
        ),
        (
            lambda f: pm.StudentT("y", nu=3, mu=f, sigma=pt.zeros(N), observed=Y),
            "sigma of the observed variable must be positive and finite, and so must nu",
        ),
        (
            lambda f: mixture([0.5, 0.5], pm.Normal.dist(f, 1.0), pm.Normal.dist(f, -1.0)),
            "must be positive and finite",
        ),
        (lambda f: pm.Laplace("y", mu=f, b=np.array(np.inf), observed=Y), "must be positive"),
    ],
)
def test_observed_values_that_cannot_be(likelihood, words):
    model = model_of(likelihood)
    target = read_target(model, model["f_forest"])
    with pytest.raises(ValueError, match=re.escape(words)):
        target.at(model.initial_point())
