"""A model of some size for the tests of `sample_sharded`, in this process and in others."""

import numpy as np
import pymc as pm

import pymc_trees as pmt


def friedman_like(n=400):
    """Rows, a function that two of three columns explain, and a response."""
    rng = np.random.default_rng(0)
    X = rng.random((n, 3))
    f = 3 * np.sin(3 * X[:, 0]) + 4 * (X[:, 1] > 0.6)
    return X, f, f + rng.normal(0, 0.5, n)


def large_model(y, X):
    """BART of a table that can be set anew."""
    with pm.Model() as model:
        X = pm.Data("X", X)
        mu = pmt.BART("mu", X, y, m=20)
        pm.Normal("y", mu, pm.HalfNormal("sigma", 1), observed=y, shape=mu.shape)
    return model
