"""The density that RJHMC moves by, against that of the whole model."""

import numpy as np
import pymc as pm
import pytest
from support.chains.jumps import weak_step

import pymc_trees as pmt
from pymc_trees.dcc.jump_model import JumpModel
from pymc_trees.dcc.kernels.encode import log_prior

pytestmark = pytest.mark.usefixtures("quick_compile")


def test_density_is_that_of_the_model_whatever_stands_beside():
    """A random leaf sd, a latent variable that depends on the tree, one that others move."""
    X, y = weak_step(p=2)
    rng = np.random.default_rng(3)
    with pm.Model() as rich:
        shift = pm.Bernoulli("shift", 0.3)
        sd = pm.HalfNormal("sd")
        leaf = pmt.NormalLeaf(0.0, sd)
        mu = pmt.SoftDecisionTree("mu", X, y, 0.7, 2.0, leaf=leaf, h=(0.2, 0.1), direction="index")
        latent = pm.Normal("latent", mu, 0.5, shape=mu.shape)
        scale = pm.Uniform("scale", 0.1, sd + 1.0)
        pm.Normal("y", latent + shift, scale, observed=y, shape=mu.shape)
    posterior = JumpModel(pmt.RJHMC(model=rich).soft)
    logp = rich.compile_logp()
    point = rich.initial_point() | {"shift": np.array(1)}
    for label in ("L", "SLL", "SSLLL", "SLSLL"):
        posterior.set_fixed(point)
        splits = len(label) // 2
        posterior.set_state(label, posterior.draw_inputs(rng, splits))
        q = 0.5 * rng.normal(size=posterior.dimension)
        found = posterior.terms(q)
        tau = 1.0 / (1.0 + np.exp(-q[len(q) - splits :]))
        log_jacobian = np.log(tau * (1.0 - tau)).sum()
        whole = logp(point | posterior.point(q, rng)) + log_jacobian
        topology = log_prior(label, 0.7, 2.0)
        assert found.prior + found.likelihood + topology == pytest.approx(whole, rel=1e-9)
        step = 1e-6 * rng.normal(size=len(q))
        ahead = posterior.terms(q + step)
        slope = (found.d_prior + found.d_likelihood) @ step
        change = ahead.prior + ahead.likelihood - found.prior - found.likelihood
        assert change == pytest.approx(slope, rel=1e-3)
        # a new leaf has the prior that the other variables say
        assert posterior.draw_values(rng, q, 2000).std() == pytest.approx(np.exp(q[0]), rel=0.1)
