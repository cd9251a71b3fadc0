"""A step method that is no part of the package: its draws are those of so many steps of `CGM`."""

import numpy as np
import pymc as pm
import pytest
from support.small_models import step_data

import pymc_trees as pmt
from extending.more_sweeps import MoreSweeps

pytestmark = pytest.mark.usefixtures("quick_compile")
X, Y = step_data(30)


def test_a_step_is_as_many_sweeps_as_there_are_trees():
    with pm.Model() as model:
        f = pmt.BART("f", X, Y, m=3)
        pm.Normal("y", f, 0.1, observed=Y, shape=f.shape)
        ours = MoreSweeps(rng=np.random.default_rng(1))
        theirs = pmt.CGM(rng=np.random.default_rng(1))
    here = there = model.initial_point()
    for _ in range(5):
        here, [stats] = ours.step(here)
        for _ in range(3):
            there, _ = theirs.step(there)
        # node rows; residuals that were added up anew differ in their last bits
        np.testing.assert_allclose(here["f_forest"][:40], there["f_forest"][:40], rtol=1e-9)
    assert stats["sweeps"] == 3.0 and "accept_grow" in stats


def test_pymc_samples_with_it_and_nuts():
    with pm.Model():
        f = pmt.BART("f", X, Y, m=2)
        pm.Normal("y", f, pm.HalfNormal("sd", 1.0), observed=Y, shape=f.shape)
        idata = pm.sample(
            5,
            tune=5,
            chains=1,
            step=[MoreSweeps()],
            progressbar=False,
            compute_convergence_checks=False,
        )
    assert (idata.sample_stats["sweeps"] == 2.0).all()
