"""Local log-densities against hand-written PyMC models, eq. 8 as it stands, and exact priors."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from scipy import special, stats
from support.soft_models import (
    TOPOLOGIES,
    classification,
    leaf_shares,
    paths,
    posterior_of,
    regression,
    scaled,
)

import pymc_trees as pmt
from pymc_trees.dcc.kernels.encode import log_prior

H = 0.05
pytestmark = pytest.mark.usefixtures("quick_compile")


@pytest.fixture(scope="module")
def three_inputs(quick_compile):
    """With two, the density of a uniform Delta is 1 and its stick-breaking has no offset."""
    model, X, y = regression(p=3)
    return posterior_of(model), scaled(X), y


@pytest.fixture(scope="module")
def classes(quick_compile):
    model, X, y = classification()
    return posterior_of(model), scaled(X), y


def hand_written(label, x, y):
    """The model of one topology in plain PyMC, on constrained values."""
    splits, p = len(label) // 2, x.shape[1]
    plain = {"default_transform": None}
    with pm.Model() as model:
        if splits:
            delta = pm.Dirichlet("delta", np.ones(p), shape=(splits, p), **plain)
            tau = pm.Beta("tau", 1, 1, shape=splits, **plain)
            left = pm.math.sigmoid((x @ delta.T - tau) / H)
        value = pm.Normal("value", 0, 1, shape=splits + 1)
        sigma = pm.InverseGamma("sigma", 1.5, 1.5, **plain)
        mean = 0.0
        for k, path in enumerate(paths(label)):
            share = 1.0
            for s, goes_left in path:
                share = share * (left[:, s] if goes_left else 1 - left[:, s])
            mean = mean + share * value[k]
        pm.Normal("y", mean * pt.ones(len(y)), sigma, observed=y)
    return model


def split_up(posterior, q):
    """sigma, leaf values, tau, delta of q, and the log Jacobian, without PyTensor."""
    splits, p = len(posterior.label) // 2, posterior.op.p
    log_sigma, q = q[0], q[1:]
    values, q = q[: splits + 1], q[splits + 1 :]
    logit, stick = q[:splits], q[splits:].reshape(splits, p - 1)
    tau = special.expit(logit)
    delta, log_jacobian = np.empty((splits, p)), log_sigma + np.log(tau * (1 - tau)).sum()
    for s in range(splits):
        rest = 1.0
        for k in range(p - 1):
            taken = special.expit(stick[s, k] - np.log(p - 1 - k))
            log_jacobian += np.log(rest * taken * (1 - taken))
            delta[s, k] = rest * taken
            rest *= 1 - taken
        delta[s, -1] = rest
    return np.exp(log_sigma), values, tau, delta, log_jacobian


@pytest.mark.parametrize("label", TOPOLOGIES)
def test_density_is_that_of_the_hand_written_model(label, three_inputs, rng):
    posterior, x, y = three_inputs
    posterior.set_topology(label)
    model = hand_written(label, x, y)
    logp = model.compile_logp(jacobian=False)
    for _ in range(3):
        q = rng.normal(size=posterior.dimension)
        sigma, values, tau, delta, log_jacobian = split_up(posterior, q)
        point = {"sigma": sigma, "value": values}
        if len(tau):
            point |= {"tau": tau, "delta": delta}
        expected = logp(point) + log_jacobian
        joint, _ = posterior.log_densities(q[None])[0]
        assert joint == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("label", TOPOLOGIES)
def test_gradient_of_every_topology_comes_from_one_function(label, three_inputs, rng):
    posterior, *_ = three_inputs
    function = posterior.density._pytensor_function
    posterior.set_topology(label)
    q = rng.normal(size=posterior.dimension)
    _, gradient = function(q)
    e = 1e-5
    for k in range(len(q)):
        step = np.eye(len(q))[k] * e
        slope = (function(q + step)[0] - function(q - step)[0]) / (2 * e)
        assert gradient[k] == pytest.approx(slope, rel=1e-4, abs=1e-4)
    assert posterior.density._pytensor_function is function


@pytest.mark.parametrize("label", TOPOLOGIES)
def test_density_of_the_model_is_the_local_one_and_the_topology(label, three_inputs, rng):
    posterior, *_ = three_inputs
    model = posterior.soft.model
    posterior.set_topology(label)
    q = rng.normal(size=posterior.dimension)
    point = posterior.point(q, rng)
    log_jacobian = split_up(posterior, q)[-1]
    expected = posterior.log_densities(q[None])[0, 0] + log_prior(label, 0.95, 1.0)
    assert model.compile_logp(jacobian=False)(point) == pytest.approx(expected - log_jacobian)


def eq_8(shares, y, classes, alpha):
    """Log of the soft Dirichlet-multinomial with ``alpha`` per class."""
    total = 0.0
    for k in range(shares.shape[1]):
        counts = np.array([shares[y == c, k].sum() for c in range(classes)])
        total += special.gammaln(classes * alpha) - special.gammaln(counts.sum() + classes * alpha)
        total += (special.gammaln(counts + alpha) - special.gammaln(alpha)).sum()
    return total


@pytest.mark.parametrize("label", TOPOLOGIES)
def test_classes_have_eq_8_with_its_constant(label, classes, rng):
    posterior, x, y = classes
    posterior.set_topology(label)
    q = rng.normal(size=posterior.dimension)
    splits = len(label) // 2
    _, _, tau, delta, log_jacobian = split_up(posterior, np.r_[0, np.zeros(splits + 1), q])
    expected = eq_8(leaf_shares(label, x, delta, tau, H), y, 3, 1.0)
    joint, prior = posterior.log_densities(q[None])[0]
    assert joint - prior == pytest.approx(expected, rel=1e-9)
    assert prior == pytest.approx(log_jacobian)  # Delta of two inputs and tau are uniform


def test_eq_8_of_hard_gates_is_the_evidence_of_the_leaves():
    shares = np.array([[1.0, 0.0]] * 4 + [[0.0, 1.0]] * 3)
    y = np.array([0, 0, 2, 1, 1, 1, 1])
    expected = sum(
        stats.dirichlet_multinomial(np.ones(3), len(rows)).logpmf(np.bincount(rows, minlength=3))
        - np.log(special.factorial(len(rows)) / special.factorial(np.bincount(rows)).prod())
        for rows in (y[:4], y[4:])
    )
    assert eq_8(shares, y, 3, 1.0) == pytest.approx(expected)


def test_probabilities_are_drawn_from_their_conditional(classes, rng):
    posterior, x, y = classes
    posterior.set_topology("SLL")
    q = np.array([0.3, -0.2])
    _, _, tau, delta, _ = split_up(posterior, np.r_[0, 0, 0, q])
    shares = leaf_shares("SLL", x, delta, tau, H)
    counts = np.array([[shares[y == c, k].sum() + 1 for c in range(3)] for k in range(2)])
    values = [posterior.point(q, rng)["p_forest"] for _ in range(4000)]
    drawn = np.array([value[1:3, 1:4] for value in values])
    mean = counts / counts.sum(axis=1, keepdims=True)
    sd = np.sqrt(mean * (1 - mean) / (counts.sum(axis=1, keepdims=True) + 1))
    assert (np.abs(drawn.mean(axis=0) - mean) < 4.5 * sd / np.sqrt(4000)).all()
    np.testing.assert_allclose(drawn.std(axis=0), sd, rtol=0.1)


def test_prior_draws_follow_the_prior(rng, quick_compile):
    with pm.Model() as model:
        sd = pm.HalfNormal("sd", 1.0)
        mu = pmt.SoftDecisionTree(
            "mu", rng.random((5, 3)), leaf=pmt.NormalLeaf(2.0, sd), h=(0.1, 0.1)
        )
        pm.Normal("y", mu, 1.0, observed=np.zeros(5))
    posterior = posterior_of(model)
    posterior.set_topology("SSLLL")
    n = 4000
    q = posterior.draw_prior(rng, n)
    points = [posterior.point(row, rng)["mu_forest"] for row in q]
    tau = np.array([v[:2, 1] for v in points])
    delta = np.array([v[:2, 2:5] for v in points]).reshape(-1, 3)
    # Each statistic is a mean of n independent draws: 4 standard errors.
    assert np.abs(tau.mean() - 0.5) < 4 / np.sqrt(24 * n)
    assert stats.kstest(tau[:, 0], "uniform").pvalue > 1e-4
    for j in range(3):
        assert stats.kstest(delta[:n, j], stats.beta(1, 2).cdf).pvalue > 1e-4
    sds = np.exp(q[:, 0])
    assert stats.kstest(sds, stats.halfnorm.cdf).pvalue > 1e-4
    z = (q[:, 1] - 2.0) / sds
    assert stats.kstest(z, "norm").pvalue > 1e-4
    posterior.log_densities(q[:2])


def test_prior_density_integrates_to_one(rng, quick_compile):
    """With two inputs and one split q is (tau, Delta): importance weights from a wide normal."""
    model, *_ = classification(p=2, classes=2)
    posterior = posterior_of(model)
    posterior.set_topology("SLL")
    wide = stats.norm(0, 3)
    q = wide.rvs((4000, 2), random_state=rng)
    prior = posterior.log_densities(q)[:, 1]
    weights = np.exp(prior - wide.logpdf(q).sum(axis=1))
    assert weights.mean() == pytest.approx(1.0, abs=4 * weights.std() / np.sqrt(4000))
