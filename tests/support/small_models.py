"""Small data and models that the tests of the PyMC layer share."""

import numpy as np
import pymc as pm

import pymc_trees as pmt
from pymc_trees.core.value.evaluate import evaluate
from pymc_trees.core.value.fields import sizes
from pymc_trees.distributions.forest_inputs import declared
from pymc_trees.distributions.ops.forest_rv import leaf_at

FAST = {"progressbar": False, "compute_convergence_checks": False}


def step_data(n=30, p=2, seed=3):
    """Inputs, and a response that jumps at the middle of the first column."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, p))
    return X, 4.0 * (X[:, 0] > 0.5) + rng.normal(0, 0.5, n)


def bart_model(n=30, p=2, m=5, sigma=0.5, data=True, **settings):
    """BART on `step_data`; ``sigma=None`` gives it a prior."""
    X, y = step_data(n, p)
    with pm.Model() as model:
        X = pm.Data("X", X)
        # The same room whatever alpha and beta: what numba compiled for one model serves others.
        settings.setdefault("max_nodes", m * (2 * n - 1))
        mu = pmt.BART("mu", X, y, m=m, **settings)
        if sigma is None:
            sigma = pm.HalfNormal("sigma", 1)
        if data:
            pm.Normal("y", mu, sigma, observed=y, shape=mu.shape)
    return model


def soft_model():
    """SoftBART on few rows."""
    X = np.random.default_rng(0).random((20, 2))
    with pm.Model() as model:
        mu = pmt.SoftBART("mu", X, X[:, 0], m=3)
        pm.Normal("y", mu, pm.HalfNormal("sigma"), observed=X[:, 0], shape=mu.shape)
    return model


def counts_model():
    """Counts, whose leaf values do not integrate out, with a parameter of the likelihood."""
    X = np.random.default_rng(0).random((20, 2))
    with pm.Model() as model:
        mu = pmt.BART("mu", X, m=3, leaf=pmt.NormalLeaf(0.0, 0.5))
        pm.NegativeBinomial(
            "y", mu=pm.math.exp(mu), alpha=pm.HalfNormal("alpha"), observed=[1, 3] * 10
        )
    return model


def forest_of(model, name="mu_forest"):
    """Forest, its layout and its training inputs."""
    rv = model[name]
    return rv, rv.owner.op.layout, declared(rv).X


def walked(rv, value):
    """(n, K) outputs of a value of a forest at its training rows, by its trees."""
    known, layout = declared(rv), rv.owner.op.layout
    value, X = np.ascontiguousarray(value), known.X
    return evaluate(value, X, X, leaf_at(rv), sizes(layout), known.fingerprint)


def sample(draws=20, tune=20, **arguments):
    """Sample two short chains in this process."""
    return pm.sample(
        draws, **{"tune": tune, "chains": 2, "cores": 1, "random_seed": 1, **FAST, **arguments}
    )


def assert_same_draws(found, expected):
    """Two results of a run have the same draws and statistics, to the bit, but for times."""
    assert set(found.children) == set(expected.children)
    for group in ("posterior", "sample_stats"):
        assert set(found[group].data_vars) == set(expected[group].data_vars)
        for name in expected[group].data_vars:
            if "time" in name or name.startswith("perf_counter") or name.startswith("process"):
                continue
            np.testing.assert_array_equal(found[group][name], expected[group][name], err_msg=name)
    np.testing.assert_array_equal(found.posterior["draw"], expected.posterior["draw"])
