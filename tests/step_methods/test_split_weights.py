"""Dirichlet split weights: exact beside trees that see only the columns that vary in a node.

Correlated draws: the error of a mean is its sd over the root of the effective sample size, which
ArviZ estimates; the bounds are 5 such errors, where a right program fails about once in a million.
"""

from contextlib import nullcontext

import arviz_stats as azs
import numpy as np
import pymc as pm
import pytest
from scipy import special
from support import oracle as o
from support.naive.laws import PROBLEMS
from support.small_models import FAST, step_data
from support.tiers import tiers

import pymc_trees as pmt

pytestmark = pytest.mark.usefixtures("quick_compile")


def away(draws, exact):
    draws = np.asarray(draws).reshape(1, -1)
    return (draws.mean() - exact) / (draws.std() / np.sqrt(azs.ess(draws, method="mean")))


def run(model, steps, draws, record):
    point = model.initial_point()
    out = []
    for _ in range(draws):
        for step in steps:
            point, _ = step.step(point)
        out.append(record(point))
    return np.array(out)


def test_weights_and_trees_agree_with_the_enumeration():
    """Two weights: the evidence of the trees given them, integrated by Gauss-Jacobi quadrature."""
    problem = PROBLEMS["binary_constant"]
    X = problem.X[:, [0, -1]]
    a = np.array([0.7, 1.2])
    node, mass = special.roots_jacobi(40, a[1] - 1, a[0] - 1)
    shares = (1 + node) / 2
    leaf, alpha, beta = problem.normal(), problem.prior["alpha"], problem.prior["beta"]
    evidence, leaves = [], []
    for share in shares:
        trees = o.enumerate_trees(X, alpha, beta, np.array([share, 1 - share]))
        weights, log_evidence = o.posterior(trees, leaf)
        evidence.append(log_evidence)
        leaves.append(sum(w * len(t[1]) for w, t in zip(weights, trees, strict=True)))
    mass = mass * np.exp(np.array(evidence) - max(evidence))
    mass /= mass.sum()

    with pm.Model() as model:
        weights = pm.Dirichlet("weights", a)
        mu = pmt.BART(
            "mu",
            X,
            m=1,
            alpha=alpha,
            beta=beta,
            leaf=pmt.NormalLeaf(problem.mean, problem.sd),
            split_prior=weights,
            max_nodes=2 * problem.n - 1,
        )
        pm.Normal("y", mu, problem.sigma, observed=problem.y)
        steps = [pmt.CGM(rng=1), pmt.SplitWeights(rng=2)]

    def record(point):
        first = point["weights_simplex__"][0]
        n_leaves = np.sum(point["mu_forest"][: 2 * problem.n - 1, 0] == -1)
        return special.expit(2 * first), n_leaves

    found = run(model, steps, 20_000, record)
    assert abs(away(found[:, 0], mass @ shares)) < 5
    assert abs(away(found[:, 0] ** 2, mass @ shares**2)) < 5
    assert abs(away(np.log(found[:, 0]), mass @ np.log(shares))) < 5
    assert abs(away(found[:, 1], mass @ np.array(leaves))) < 5
    assert abs(mass @ shares - a[0] / a.sum()) > 0.01  # the data say something


@pytest.mark.parametrize("concentration", tiers([0.2, 0.01], quick=[]))
def test_the_prior_is_recovered(concentration):
    """No data; columns with two values, which vary in few nodes. Weights below 1e-300 as well."""
    X = np.column_stack([np.arange(12) // k % 2 for k in (1, 2, 4, 6)] + [np.arange(12)])
    p = X.shape[1]
    with pm.Model() as model:
        weights = pm.Dirichlet("weights", np.full(p, concentration))
        leaf = pmt.NormalLeaf(0, 1)
        pmt.BART("mu", X, m=2, alpha=0.9, beta=0.5, split_prior=weights, leaf=leaf)
        steps = [pmt.CGM(rng=3), pmt.SplitWeights(rng=4)]

    def record(point):
        value = np.append(point["weights_simplex__"], -point["weights_simplex__"].sum())
        return special.log_softmax(value)

    log_weights = run(model, steps, 12_000, record)
    exact = special.psi(concentration) - special.psi(p * concentration)
    for j in range(p):
        assert abs(away(log_weights[:, j], exact)) < 5
    if concentration < 0.1:  # weights are 0 or 1, and the trees keep them so for long
        assert log_weights.min() < np.log(1e-300)
        return
    for j in range(p):
        assert abs(away(np.exp(log_weights[:, j]), 1 / p)) < 5
    second = (concentration + 1) / (p * (p * concentration + 1))
    assert abs(away((np.exp(log_weights) ** 2).mean(axis=1), second)) < 5


def test_the_concentration_of_weights_that_underflow():
    """Its log-density speaks of log weights, which a sparse Dirichlet has far below -745."""
    with pm.Model() as model:
        theta = pm.Uniform("theta", 0, 1)
        pm.Dirichlet("weights", np.ones(3) * theta / 3)
    logp = model.compile_logp(vars=[model["weights"]], mode="NUMBA")
    value, found, exact = np.array([1500.0, -700.0]), [], []
    full = np.append(value, -value.sum())
    log_weights = special.log_softmax(full)
    assert np.exp(log_weights).min() == 0.0
    for t in (0.1, 0.4):
        point = {"theta_interval__": special.logit(t), "weights_simplex__": value}
        found.append(float(logp(point)))
        # by the logs of gamma functions, the density, and the Jacobian, which theta does not enter
        exact.append(
            special.gammaln(t) - 3 * special.gammaln(t / 3) + (t / 3 - 1) * log_weights.sum()
        )
    np.testing.assert_allclose(found[1] - found[0], exact[1] - exact[0], rtol=1e-9)


@pytest.mark.parametrize("within", [True, False])
def test_assigned_by_itself(caplog, within):
    X, y = step_data(25)
    caplog.set_level("INFO")
    with pm.Model() as model:
        theta = pm.Gamma("theta", 2, 2)
        weights = pm.Dirichlet("weights", np.ones(2) * theta / 2)
        mu = pmt.BART("mu", X, y, m=3, split_prior=weights, max_nodes=147)
        pm.Normal("y", mu, 0.5, observed=y)
    with model if within else nullcontext():
        pm.sample(5, tune=5, chains=1, cores=1, random_seed=1, model=model, **FAST)
    assert "SplitWeights: [weights]" in caplog.text
    assert "NUTS: [theta]" in caplog.text


@pytest.mark.parametrize("other", ["Multinomial", "power", "two uses", "alpha", "nothing"])
def test_left_to_nuts_when_it_is_more_than_split_weights(other):
    X, y = step_data(25)
    with pm.Model() as model:
        weights = pm.Dirichlet("weights", np.ones(2))
        used = weights**2 if other == "power" else weights
        if other == "alpha":
            pmt.BART("mu", X, y, m=3, alpha=weights[0], max_nodes=147)
        elif other != "nothing":
            leaf = pmt.NormalLeaf(0.0, weights[0]) if other == "two uses" else None
            pmt.BART("mu", X, y, m=3, split_prior=used, leaf=leaf, max_nodes=147)
        if other == "Multinomial":
            pm.Multinomial("z", n=3, p=weights, observed=[1, 2])
        assert pmt.SplitWeights.competence(model["weights"], True) == 0
        with pytest.raises(ValueError, match="weights.*split_prior"):
            pmt.SplitWeights([weights])
