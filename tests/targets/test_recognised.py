"""Likelihoods that integrate out are recognised, whichever way they are written."""

import numpy as np
import pymc as pm
import pytest
from support.small_models import step_data

import pymc_trees as pmt
from pymc_trees.targets.choose import read_target
from pymc_trees.targets.conjugate import ConjugateTarget
from pymc_trees.targets.graph import read_graph
from pymc_trees.targets.likelihoods.classes import DirichletLikelihood
from pymc_trees.targets.likelihoods.expressions import Slope
from pymc_trees.targets.likelihoods.normal import NormalGammaLikelihood

pytestmark = pytest.mark.usefixtures("quick_compile")
X, Y = step_data(20)
ROWS = np.linspace(0.5, 1.5, 20)


def target_of(likelihood, leaf=None, front=pmt.BART, name="mu"):
    """Target of the forest in a model whose likelihood is ``likelihood(mu)``."""
    settings = {} if leaf is None else {"leaf": leaf}
    if front is pmt.BART:
        settings["m"] = 3
    with pm.Model() as model:
        mu = front(name, X, Y, **settings)
        likelihood(mu)
    return model, ConjugateTarget(read_graph(model, model[f"{name}_forest"]))


def sd_at(likelihood, **changes):
    """Standard deviation of the rows, as the target sees it at a changed initial point."""
    model, target = target_of(likelihood)
    _, (observed, offset, sd, slope) = target.at({**model.initial_point(), **changes})
    np.testing.assert_array_equal(observed, Y)
    assert np.allclose(offset, 0) and slope is None
    return sd


def by_sigma(mu):
    pm.Normal("y", mu, pm.HalfNormal("s"), observed=Y)


def by_tau(mu):
    pm.Normal("y", mu, tau=pm.Gamma("s", 2, 1), observed=Y)


def by_variance(mu):
    pm.Normal("y", mu, pm.math.sqrt(pm.InverseGamma("s", 2, 1)), observed=Y)


def by_log(mu):
    pm.Normal("y", mu, pm.math.exp(pm.Normal("s") * 2 + 1), observed=Y)


def by_row(mu):
    pm.Normal("y", mu, pm.HalfNormal("s") * ROWS, observed=Y)


def by_other_variables(mu):
    s = pm.HalfNormal("s")
    pm.Normal("y", mu, pm.Deterministic("sd", s * ROWS + 1.0), observed=Y)


@pytest.mark.parametrize(
    ("likelihood", "value_name", "expected"),
    [
        (by_sigma, "s_log__", 3.0),
        (by_tau, "s_log__", 3.0**-0.5),
        (by_variance, "s_log__", 3.0**0.5),
        (by_log, "s", np.exp(2 * np.log(3.0) + 1)),
        (by_row, "s_log__", 3.0 * ROWS),
        (by_other_variables, "s_log__", 3.0 * ROWS + 1.0),
    ],
)
def test_noise(likelihood, value_name, expected):
    sd = sd_at(likelihood, **{value_name: np.log(3.0)})
    np.testing.assert_allclose(np.broadcast_to(sd, (20,)), np.broadcast_to(expected, (20,)))


@pytest.mark.parametrize(
    ("mean", "slope", "multiple", "offset"),
    [
        (lambda mu, b: mu, Slope.ONE, 1, 0),
        (lambda mu, b: mu + b, Slope.ONE, 1, 2.0),
        (lambda mu, b: b + mu + ROWS, Slope.ONE, 1, 2.0 + ROWS),
        (lambda mu, b: mu - b, Slope.ONE, 1, -2.0),
        (lambda mu, b: b - mu, Slope.ANY, -1, 2.0),
        (lambda mu, b: -mu, Slope.ANY, -1, 0),
        (lambda mu, b: b * mu, Slope.ANY, 2.0, 0),
        (lambda mu, b: mu * ROWS, Slope.ANY, ROWS, 0),
        (lambda mu, b: ROWS * mu * b + b, Slope.ANY, 2.0 * ROWS, 2.0),
        (lambda mu, b: mu / ROWS, Slope.ANY, 1 / ROWS, 0),
        (lambda mu, b: (mu + b) * ROWS - mu / 4, Slope.ANY, ROWS - 0.25, 2.0 * ROWS),
        (lambda mu, b: mu + mu, Slope.ANY, 2.0, 0),
        (lambda mu, b: mu - mu * 0.5, Slope.ANY, 0.5, 0),
        (lambda mu, b: pm.Deterministic("d", mu) + b, Slope.ONE, 1, 2.0),
    ],
)
def test_mean(mean, slope, multiple, offset):
    model, target = target_of(lambda mu: pm.Normal("y", mean(mu, pm.Normal("b")), 1.0, observed=Y))
    _, (_, found_offset, _, found_slope) = target.at({**model.initial_point(), "b": 2.0})
    np.testing.assert_allclose(np.broadcast_to(found_offset, 20), np.broadcast_to(offset, 20))
    assert (found_slope is None) == (slope is Slope.ONE)
    if slope is Slope.ANY:
        np.testing.assert_allclose(np.broadcast_to(found_slope, 20), np.broadcast_to(multiple, 20))


def test_the_other_forest_is_an_offset():
    with pm.Model() as model:
        one = pmt.BART("one", X, Y, m=2)
        two = pmt.BART("two", X, Y, m=2)
        pm.Normal("y", one + 2 * two, 1.0, observed=Y)
    point = model.initial_point()
    point["two_forest"] = pm.draw(model["two_forest"], random_seed=1)
    two = model.compile_fn(model["two"], inputs=[model["two_forest"]])(
        {"two_forest": point["two_forest"]}
    )
    _, (_, offset, _, slope) = ConjugateTarget(read_graph(model, model["one_forest"])).at(point)
    np.testing.assert_allclose(offset, 2 * two)
    assert slope is None
    _, (_, offset, _, slope) = ConjugateTarget(read_graph(model, model["two_forest"])).at(point)
    np.testing.assert_allclose(slope, 2.0)


def test_a_latent_normal_is_a_likelihood():
    with pm.Model() as model:
        mu = pmt.BART("mu", X, Y, m=3)
        latent = pm.Normal("latent", mu, 0.3)
        pm.Poisson("y", pm.math.exp(latent), observed=np.arange(20) % 4)
    target = ConjugateTarget(read_graph(model, model["mu_forest"]))
    point = {**model.initial_point(), "latent": ROWS}
    _, (observed, offset, sd, slope) = target.at(point)
    np.testing.assert_array_equal(observed, ROWS)
    np.testing.assert_allclose(sd, 0.3)


def test_no_likelihood():
    assert target_of(lambda mu: None)[1].is_prior


@pytest.mark.parametrize(
    "likelihood",
    [
        lambda mu, tau: pm.Normal("y", mu, tau=tau, observed=Y),
        lambda mu, tau: pm.Normal("y", mu, pm.math.sqrt(1 / tau), observed=Y),
        lambda mu, tau: pm.Normal("y", mu, 1 / pm.math.sqrt(tau), observed=Y),
        lambda mu, tau: pm.Normal("y", mu, tau**-0.5, observed=Y),
        lambda mu, tau: pm.Normal("y", mu, tau=tau, observed=Y, shape=mu.shape),
    ],
)
def test_mean_and_precision_of_a_leaf(likelihood):
    _, target = target_of(lambda out: likelihood(*out), pmt.NormalGammaLeaf(), pmt.DecisionTree)
    assert isinstance(target.likelihood, NormalGammaLikelihood)


@pytest.mark.parametrize(
    ("likelihood", "k"),
    [
        (lambda p: pm.Categorical("y", p=p, observed=np.arange(20) % 3), 3),
        (lambda p: pm.Categorical("y", p=p, observed=np.arange(20) % 2), 2),
        (lambda p: pm.Bernoulli("y", p=p[:, 1], observed=np.arange(20) % 2), 2),
        (lambda p: pm.Bernoulli("y", p=p[:, -1], observed=np.arange(20) % 2 == 0), 2),
        (lambda p: pm.Bernoulli("y", p=p[..., 1], observed=np.arange(20) % 2), 2),
    ],
)
def test_classes(likelihood, k):
    model, target = target_of(likelihood, pmt.DirichletLeaf(1.0, k), pmt.DecisionTree)
    assert isinstance(target.likelihood, DirichletLikelihood)
    target.leaf_data(*target.at(model.initial_point()), np.zeros((20, k)))


@pytest.mark.parametrize("mean", [lambda mu: mu, lambda mu: ROWS * mu - 1.0])
def test_a_log_normal_is_the_normal_of_the_logs(mean):
    """Draws of all variables are the same, and likelihoods differ by the density of the logs."""
    found = []
    for law, observed in ((pm.Normal, Y), (pm.LogNormal, np.exp(Y))):
        with pm.Model() as model:
            mu = pmt.BART("mu", X, Y, m=3)
            law("y", mean(mu), pm.HalfNormal("s"), observed=observed)
            assert isinstance(read_target(model, model["mu_forest"]), ConjugateTarget)
            options = {"progressbar": False, "compute_convergence_checks": False, "random_seed": 4}
            found.append(pm.sample(10, tune=10, chains=1, **options))
    normal, ours = found
    for name in ("mu", "s"):
        np.testing.assert_allclose(ours.posterior[name], normal.posterior[name], rtol=1e-7)
    likelihood = ours.sample_stats["log_likelihood"] + Y.sum()
    np.testing.assert_allclose(likelihood, normal.sample_stats["log_likelihood"], rtol=1e-7)


def test_times_of_a_log_normal_are_positive():
    _, target = target_of(lambda mu: pm.LogNormal("y", mu, 1.0, observed=Y - Y.min()))
    with pytest.raises(ValueError, match="LogNormal must be positive, but the least is 0.0"):
        target.at({"mu_forest": None})
