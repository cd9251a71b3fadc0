"""No likelihood: the posterior is the prior, also of settings that are sampled beside the trees.

Correlated draws: the error of a mean is its sd over the root of the effective sample size, which
ArviZ estimates; the bounds are 5 such errors, where a right program fails about once in a million.
"""

import arviz_stats as azs
import numpy as np
import pymc as pm
import pytest
from support.small_models import sample, step_data
from support.tiers import tiers

import pymc_trees as pmt

pytestmark = pytest.mark.usefixtures("quick_compile")
X = step_data(25)[0]
LEAF = pmt.NormalLeaf(0.3, 1.2)


def error_of_mean(draws, exact):
    """Mean of (chain, draw) draws less the exact one, in its standard errors."""
    return (draws.mean() - exact) / (draws.std() / np.sqrt(azs.ess(draws, method="mean")))


def leaves_of(values, layout):
    return (values[..., : layout.max_nodes, 0] == -1).sum(-1)


@pytest.mark.parametrize("step", tiers([pmt.CGM, pmt.GrowPrune], quick=[pmt.CGM]))
def test_the_prior_is_recovered(step):
    with pm.Model() as model:
        pmt.BART("mu", X, m=5, alpha=0.9, beta=1.0, leaf=LEAF, max_nodes=245)
        idata = sample(1500, 100, step=[step()], var_names=["mu"])
        exact = pm.draw(model["mu_forest"], 4000, random_seed=3)
    layout = model["mu_forest"].owner.op.layout
    exact = leaves_of(exact, layout)
    n_leaves = idata.sample_stats["n_leaves"].values
    spread = exact.std() / np.sqrt(4000)
    error = error_of_mean(n_leaves, exact.mean())
    scale = n_leaves.std() / np.sqrt(azs.ess(n_leaves, method="mean"))
    assert abs(error) * scale / np.hypot(scale, spread) < 5
    mu = idata.posterior["mu"].values[..., 0]
    assert abs(error_of_mean(mu, 5 * 0.3)) < 5
    assert abs(mu.std() / (np.sqrt(5) * 1.2) - 1) < 0.15


@pytest.mark.full
def test_settings_are_sampled_by_nuts_beside_the_trees(caplog):
    """Their marginal is their prior; they and the trees depend on one another all the while."""
    caplog.set_level("INFO")
    with pm.Model():
        alpha = pm.Beta("alpha", 3, 2)
        beta = pm.Gamma("beta", 4, 3)
        weights = pm.Dirichlet("weights", np.array([2.0, 3.0]))
        sd = pm.Gamma("sd", 4, 4)
        pmt.BART(
            "mu",
            X,
            m=3,
            alpha=alpha,
            beta=beta,
            split_prior=weights,
            leaf=pmt.NormalLeaf(0.0, sd),
            max_nodes=147,
        )
        idata = sample(400, 200, var_names=["alpha", "beta", "weights", "sd"])
    assert "NUTS: [alpha, beta, sd]" in caplog.text and "SplitWeights: [weights]" in caplog.text
    post = idata.posterior
    for draws, exact in [
        (post["alpha"].values, 0.6),
        (post["beta"].values, 4 / 3),
        (post["weights"].values[..., 0], 0.4),
        (post["sd"].values, 1.0),
        (post["alpha"].values ** 2, 3 / 5 * 4 / 6),
        (post["sd"].values ** 2, 1.25),
    ]:
        assert abs(error_of_mean(draws, exact)) < 5
