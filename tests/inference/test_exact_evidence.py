"""Evidence and posterior of fixed topologies against quadrature, nested sampling and plain PyMC."""

import numpy as np
import pymc as pm
import pytest
from scipy import special, stats
from support.soft_models import leaf_shares, posterior_of, regression, scaled
from support.soft_quadrature import log_evidence
from support.tiers import tiers

import pymc_trees as pmt
from pymc_trees.dcc.dcc import DCC, Settings

H = 0.05
DRAWS = 150


@pytest.fixture(scope="module")
def one_input():
    model, X, y = regression()
    return posterior_of(model), scaled(X), y


def infer(posterior, label, chains, tune=300, draws=DRAWS, seed=1):
    """A run whose only topology has had one visit."""
    dcc = DCC(posterior, Settings(chains=chains, tune=tune, local_draws=draws), seed)
    dcc.warm_up([label], tune)
    dcc.visit(label)
    return dcc


@pytest.mark.parametrize("label", tiers(["SSLLL", "SLSLL"], quick=["SLSLL"]))
def test_evidence_equals_quadrature(label, one_input):
    posterior, x, y = one_input
    evidence = infer(posterior, label, chains=16).evidence(label)
    # 22,000 pseudo-draws of an effective size above 5,000: a standard error near 0.012, as the
    # jackknife over chains says too. Five of these; the quadrature itself is good to 0.01.
    assert evidence.effective_draws > 5000 and evidence.error < 0.03
    assert evidence.log_evidence == pytest.approx(log_evidence(label, x, y, H), abs=0.06)


@pytest.mark.full
def test_posterior_of_the_function_is_that_of_plain_pymc(one_input):
    posterior, x, y = one_input
    dcc = infer(posterior, "SLL", chains=4)
    rng = np.random.default_rng(3)
    grid = np.array([[0.1], [0.45], [0.55], [0.9]])

    def function(tau, values):
        left = special.expit((grid[:, 0] - tau) / H)
        return left * values[0] + (1 - left) * values[1]

    with pm.Model():
        tau, value = pm.Beta("tau", 1, 1), pm.Normal("value", 0, 1, shape=2)
        sigma = pm.InverseGamma("sigma", 1.5, 1.5)
        left = pm.math.sigmoid((x[:, 0] - tau) / H)
        pm.Normal("y", left * value[0] + (1 - left) * value[1], sigma, observed=y)
        idata = pm.sample(
            1000, tune=500, chains=4, cores=1, random_seed=1, progressbar=False, quiet=True
        )
    taus = idata.posterior["tau"].values.ravel()
    values = idata.posterior["value"].values.reshape(-1, 2)
    plain = np.array([function(t, v) for t, v in zip(taus, values, strict=True)])
    draws = dcc.draw_parameters(rng, "SLL", 4000)
    ours = np.array([function(special.expit(q[3]), q[1:3]) for q in draws])
    # 4,000 draws of an effective size above 800 on both sides: standard errors below sd / 20.
    sd = plain.std(axis=0)
    assert (np.abs(ours.mean(axis=0) - plain.mean(axis=0)) < 0.25 * sd).all()
    np.testing.assert_allclose(ours.std(axis=0), sd, rtol=0.2)
    local = np.concatenate(dcc.topologies["SLL"].draws[0])
    nuts = np.array([function(special.expit(q[3]), q[1:3]) for q in local])
    assert (np.abs(nuts.mean(axis=0) - plain.mean(axis=0)) < 0.25 * sd).all()


@pytest.mark.full
def test_evidence_with_ordered_cut_points_is_a_mean_of_the_likelihood(rng):
    """Half of the draws of their prior are not in order, and have no place in the chain's space."""
    X = np.linspace(0, 1, 12)[:, None]
    y = np.array([0, 0, 1, 0, 1, 1, 1, 2, 1, 2, 2, 2])
    with pm.Model() as model:
        f = pmt.SoftDecisionTree("f", X, leaf=pmt.NormalLeaf(0, 1), h=(0.2, H))
        cuts = pm.Normal("cuts", 0, 2, shape=2, transform=pm.distributions.transforms.ordered)
        pm.OrderedLogistic("y", eta=f, cutpoints=cuts, observed=y, compute_p=False)
    estimate = infer(posterior_of(model), "L", chains=8).evidence("L")
    leaf, cuts = rng.normal(size=400_000), 2 * rng.normal(size=(400_000, 2))
    below = special.expit(cuts - leaf[:, None])
    p = np.column_stack([below[:, 0], below[:, 1] - below[:, 0], 1 - below[:, 1]])
    with np.errstate(divide="ignore", invalid="ignore"):
        likelihood = np.where(p[:, 1] > 0, np.exp(np.log(p) @ np.bincount(y)), 0.0)
    error = likelihood.std() / likelihood.mean() / np.sqrt(likelihood.size)
    assert error < 0.01
    # Five errors of both; half of the mass is out of order.
    expected = np.log(likelihood.mean())
    assert estimate.log_evidence == pytest.approx(expected, abs=5 * (error + estimate.error))
    assert estimate.error < 0.03


@pytest.mark.full
def test_evidence_on_two_inputs_equals_nested_sampling(one_input):
    import dynesty

    model, X, y = regression(p=2)
    x, label = scaled(X), "SLL"
    estimate = infer(posterior_of(model), label, chains=16).evidence(label)

    def prior(u):
        return np.array([stats.invgamma.ppf(u[0], 1.5, scale=1.5), *special.ndtri(u[1:3]), *u[3:]])

    def log_likelihood(v):
        sigma, low, high, tau, first = v
        phi = leaf_shares(label, x, np.array([[first, 1 - first]]), np.array([tau]), H)
        residual = y - phi @ [low, high]
        return -0.5 * residual @ residual / sigma**2 - len(y) * np.log(sigma * np.sqrt(2 * np.pi))

    sampler = dynesty.NestedSampler(
        log_likelihood, prior, 5, nlive=250, sample="rwalk", rstate=np.random.default_rng(1)
    )
    sampler.run_nested(dlogz=0.1, print_progress=False)
    # Errors of both are about 0.1.
    assert estimate.log_evidence == pytest.approx(sampler.results.logz[-1], abs=0.3)
