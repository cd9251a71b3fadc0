"""A target that is no part of the package: its draws are those of the logs under a normal."""

import numpy as np
import pymc as pm
import pytest
from support.small_models import step_data

import pymc_trees as pmt
from extending.log_normal_target import LogNormalTarget
from pymc_trees.targets.choose import TARGETS, read_target
from pymc_trees.targets.contract import Target

pytestmark = pytest.mark.usefixtures("quick_compile")
X, LOG_Y = step_data(30)


@pytest.fixture
def known(monkeypatch):
    monkeypatch.setattr("pymc_trees.targets.choose.TARGETS", [LogNormalTarget, *TARGETS])


def draws(observed, likelihood):
    with pm.Model() as model:
        f = pmt.BART("f", X, m=3, leaf=pmt.NormalLeaf(0.0, 0.5))
        sd = pm.HalfNormal("sd", 1.0)
        likelihood("y", f, sd, observed=observed)
        target = read_target(model, model["f_forest"])
        options = {"progressbar": False, "compute_convergence_checks": False, "random_seed": 4}
        step = [pmt.GrowPrune(), pm.NUTS([sd])]  # of the normal alone pm.sample knows more
        idata = pm.sample(10, tune=10, chains=1, step=step, **options)
    return target, idata


def test_it_is_chosen_before_those_of_the_package(known):
    found, ours = draws(np.exp(LOG_Y), pm.LogNormal)
    assert isinstance(found, LogNormalTarget) and isinstance(found, Target)
    _, normal = draws(LOG_Y, pm.Normal)
    np.testing.assert_allclose(
        ours.posterior["f"].values[0, :3], normal.posterior["f"].values[0, :3], rtol=1e-6
    )
    likelihood = ours.sample_stats["log_likelihood"] + LOG_Y.sum()
    np.testing.assert_allclose(
        likelihood[0, :3], normal.sample_stats["log_likelihood"][0, :3], rtol=1e-6
    )


def test_another_model_keeps_its_target(known):
    assert draws(LOG_Y, pm.Normal)[0].kind == "conjugate"
