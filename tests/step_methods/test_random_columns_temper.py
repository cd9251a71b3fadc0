"""Forests with random columns have no flatter posteriors, however much their rows say."""

import numpy as np
import pymc as pm
import pytest

import pymc_trees as pmt


@pytest.mark.usefixtures("quick_compile")
def test_hybrid_does_not_temper_rows_that_move():
    """Replicas would hold the rows where z was before."""
    rng = np.random.default_rng(1)
    X, n = rng.random((60, 1)), 60
    with pm.Model():
        z = pm.Normal("z", 0, 1, shape=n)
        inputs = pmt.with_columns(X, z=z)
        f = pmt.BART("f", inputs, leaf=pmt.NormalLeaf(0, 1), m=5)
        pm.Normal("y", f, 0.02, observed=rng.normal(size=n), shape=f.shape)
        given = {"chains": 1, "cores": 1, "random_seed": 1, "progressbar": False}
        idata = pm.sample(10, tune=10, compute_convergence_checks=False, **given)
    assert np.isnan(idata.sample_stats["min_inverse_temperature"]).all()
