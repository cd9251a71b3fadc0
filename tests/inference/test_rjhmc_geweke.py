"""Geweke's joint test of RJHMC: parameters given data, data given parameters, for ever.

The chain's law is then the prior, whose moments are known. Averages of (value - mean) / sd over 40
batches are held against 0 at 5 standard errors (t law with 39 degrees of freedom; eight averages a
case: one chance failure in 10,000).
"""

import numpy as np
import pymc as pm
import pytest
from scipy import special
from support.chains.jumps import H, kernels_of
from support.naive.batches import batch_means, gap
from support.soft_models import leaf_shares, scaled

import pymc_trees as pmt
from pymc_trees.dcc.jump_chain import JumpChain, Settings
from pymc_trees.dcc.kernels.encode import LEAF, SPLIT, leaf_count_law, log_prior

ROWS, DRAWS, BATCHES, SHAPE = 4, 3000, 40, 6.0
ALPHA, BETA = 0.5, 2.5


def exact_moments():
    """Mean and variance of what `values_of` returns."""
    law = leaf_count_law(ALPHA, BETA)
    count = np.arange(len(law))
    leaves = law @ count
    shares = np.exp([log_prior(label, ALPHA, BETA) for label in ("L", "SLL", "SSLLL")])
    log_sigma = np.log(SHAPE) - special.digamma(SHAPE)
    means = [leaves, *shares, log_sigma, 0.0, 0.5, 0.5]
    variances = [
        law @ (count - leaves) ** 2,
        *shares * (1 - shares),
        special.polygamma(1, SHAPE),
        1.0,
        (1 - shares[0]) / 12.0,
        (1 - shares[0]) / 12.0,
    ]
    return np.array(means), np.array(variances)


def values_of(label, log_sigma, value):
    """Leaves; three topologies; noise; first leaf; threshold and direction of the root."""
    leaf = value[value[:, 0] == LEAF, 1][0]
    tau, delta = value[0, 1:3] if value[0, 0] == SPLIT else (0.5, 0.5)  # of a stump: the means
    shown = [label == other for other in ("L", "SLL", "SSLLL")]
    return [label.count("L"), *shown, log_sigma, leaf, tau, delta]


@pytest.mark.full
@pytest.mark.parametrize("direction", ["dirichlet", "index"])
def test_prior_is_recovered(direction):
    rng = np.random.default_rng(8)
    X = rng.random((ROWS, 2))
    with pm.Model() as model:
        mu = pmt.SoftDecisionTree(
            "mu", X, None, ALPHA, BETA, leaf=pmt.NormalLeaf(0, 1), h=(2 * H, H), direction=direction
        )
        sigma = pm.InverseGamma("sigma", SHAPE, SHAPE)
        observed = pm.Data("observed", np.zeros(ROWS))
        pm.Normal("y", mu, sigma, observed=observed, shape=mu.shape)
    kernels, state = kernels_of(model)
    posterior = kernels.model
    chain = JumpChain(posterior, kernels, Settings(0.4, 0.4, 1, 1))
    found = []
    for k in range(DRAWS + DRAWS // 10):
        state = chain.iterate(rng, state, tune=k < DRAWS // 10).state
        posterior.set_state(state.label, state.inputs)
        point = posterior.point(state.q, rng)
        value, log_sigma = point["mu_forest"], float(point["sigma_log__"])
        splits, leaves = value[value[:, 0] == SPLIT], value[value[:, 0] == LEAF, 1]
        phi = leaf_shares(state.label, scaled(X), splits[:, 2:4], splits[:, 1], H)
        observed.set_value(phi @ leaves + np.exp(log_sigma) * rng.standard_normal(ROWS))
        found.append(values_of(state.label, log_sigma, value))
    means, variances = exact_moments()
    standard = (np.array(found[DRAWS // 10 :], dtype=float) - means) / np.sqrt(variances)
    batches = batch_means(standard, BATCHES)
    assert gap(batches, np.zeros(len(means))).within(5.0, 0.25)
    # an input that is drawn is 0 or 1, and varies three times as much as a uniform weight
    spread = 3.0 if direction == "index" else 1.0
    assert abs(batch_means(standard[:, -1] ** 2, BATCHES).mean() - spread) < 0.2 * spread
