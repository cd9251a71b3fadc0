"""Where chains start: stumps, and where the sd of their leaves is random, values it suits."""

import numpy as np
import pymc as pm
import pytest

import pymc_trees as pmt

pytestmark = pytest.mark.usefixtures("quick_compile")
X = np.random.default_rng(1).random((12, 2))
MEAN, SD, M = 0.3, 0.7, 4


def bart(sd, **options):
    return pmt.BART("mu", X, m=M, leaf=pmt.NormalLeaf(MEAN, sd), **options)


FORESTS = {
    "constant": bart,
    "monotone": lambda sd: bart(sd, monotone={0: 1}),
    "shared": lambda sd: bart(sd, shape=(2, 12), separate_trees=False),
    "linear": lambda sd: pmt.BART("mu", X, m=M, leaf=pmt.LinearLeaf(MEAN, sd, 1.0)),
    "basis": lambda sd: pmt.BART("mu", X, m=M, leaf=pmt.BasisLeaf(np.ones((12, 1)), MEAN, sd)),
    "soft": lambda sd: pmt.SoftBART("mu", X, m=M, leaf=pmt.NormalLeaf(MEAN, sd)),
}


@pytest.mark.parametrize("name", FORESTS)
def test_a_random_sd_of_leaves_is_most_likely_where_it_starts(name):
    """Of values that equal their mean its density is unbounded at 0, where a chain would stay."""
    with pm.Model() as model:
        sd = pm.HalfCauchy("sd", SD)
        FORESTS[name](sd)
    logp = model.compile_logp(vars=[model["mu_forest"]])
    point = model.initial_point()
    assert point["sd_log__"] == pytest.approx(np.log(SD))
    at = [logp({**point, "sd_log__": point["sd_log__"] + step}) for step in (-0.3, -1e-4, 0, 0.3)]
    assert at[1] == pytest.approx(at[2], abs=1e-5)
    assert at[0] < at[2] > at[3]
    f = model.replace_rvs_by_values([model["mu"]])
    start = model.compile_fn(f, inputs=model.value_vars, on_unused_input="ignore")
    np.testing.assert_allclose(start(point)[0], M * MEAN)


@pytest.mark.parametrize("name", FORESTS)
def test_leaves_of_a_known_sd_start_at_their_mean(name):
    values = {}
    for sd in (0.5, 2.0):
        with pm.Model() as model:
            FORESTS[name](sd)
        logp = model.compile_logp(vars=[model["mu_forest"]])
        values[sd] = logp(model.initial_point())
    outputs = 2 if name == "shared" else 1
    assert values[0.5] - values[2.0] == pytest.approx(outputs * M * np.log(4.0))


def test_the_scale_of_soft_leaves_leaves_no_chain_at_zero():
    rng = np.random.default_rng(1)
    inputs = rng.random((100, 3))
    y = 10 * np.sin(3 * inputs[:, 0]) + rng.normal(size=100)
    with pm.Model():
        mu = pmt.SoftBART("mu", inputs, y, m=20)
        pm.Normal("y", mu, pm.HalfNormal("sigma", 5), observed=y, shape=mu.shape)
        options = {"chains": 4, "cores": 1, "progressbar": False, "random_seed": 1}
        idata = pm.sample(5, tune=40, compute_convergence_checks=False, **options)
    assert (idata.posterior["mu_leaf_sd"] > 0.05).all()
