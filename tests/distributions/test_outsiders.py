"""Methods that know no forests end in an error with a remedy, or only in valid forests."""

import warnings

import numpy as np
import pymc as pm
import pytest
from small_models import FAST, bart_model, forest_of, sample

pytestmark = pytest.mark.usefixtures("quick_compile")


@pytest.fixture(scope="module")
def model(quick_compile):
    return bart_model(n=20, m=2, sigma=None, max_nodes=20)


def assert_only_forests(model, draws):
    logp = model.compile_logp(vars=[model["mu_forest"]])
    for value in draws.reshape(-1, *draws.shape[-2:]):
        assert np.isfinite(logp({**model.initial_point(), "mu_forest": value}))


@pytest.mark.parametrize("step", [pm.Metropolis, pm.DEMetropolis, pm.DEMetropolisZ])
def test_random_walks_never_leave_the_forests(model, step):
    with model, warnings.catch_warnings():
        warnings.filterwarnings("ignore", "DEMetropolis should be used with more chains")
        idata = sample(8, 5, step=step(), chains=3)
    assert_only_forests(model, idata.posterior["mu_forest"].values)


@pytest.mark.parametrize("step", [pm.Metropolis, pm.Slice])
def test_a_step_that_cannot_move_forests_is_reported(step, caplog):
    with bart_model(n=20, m=2, max_nodes=20):
        sample(5, 5, step=step(), compute_convergence_checks=True)
    said = [r.getMessage() for r in caplog.records if r.levelname == "ERROR"]
    assert any("mu_forest" in text and "pymc_trees.CGM" in text for text in said)


@pytest.mark.parametrize(
    "attempt",
    [
        pm.find_MAP,
        lambda: pm.find_MAP(method="powell"),
        lambda: pm.find_MAP(vars=[pm.modelcontext(None)["mu_forest"]]),
        lambda: pm.sample_smc(20, chains=1, cores=1, progressbar=False),
        lambda: pm.sample_smc(20, kernel=pm.smc.MH, chains=1, cores=1, progressbar=False),
        lambda: pm.fit(5, progressbar=False),
        lambda: pm.fit(5, method="fullrank_advi", progressbar=False),
        lambda: pm.fit(2, method="svgd", progressbar=False),
        pm.NUTS,
        pm.HamiltonianMC,
    ],
)
def test_vector_methods_refuse_and_name_the_remedy(model, attempt):
    with model, pytest.raises(NotImplementedError, match=r"pymc_trees\.CGM"):
        attempt()


def test_refusals_leave_the_rest_alone(model):
    with model:
        best = pm.find_MAP(
            vars=[model["sigma"]], progressbar=False, jitter=False, return_inferencedata=True
        )
    assert "sigma" in best.posterior
    with pm.Model():
        x = pm.Normal("x")
        pm.Normal("y", x, observed=2.0)
        best = pm.find_MAP(progressbar=False, jitter=False, return_inferencedata=True)
        idata = pm.sample_smc(50, chains=1, cores=1, random_seed=1, **FAST)
    np.testing.assert_allclose(best.posterior["x"].item(), 1.0, atol=1e-4)
    assert idata.posterior["x"].shape == (1, 50)


def test_initvals(model):
    forest, layout, _ = forest_of(model)
    noise = np.random.default_rng(1).normal(size=layout.shape)
    with model:
        for start in ("prior", "support_point", pm.draw(forest, random_seed=3)):
            idata = sample(4, 2, initvals={"mu_forest": start})
            assert_only_forests(model, idata.posterior["mu_forest"].values)
        with pytest.raises(ValueError, match="mu_forest is not a forest of this model.*initvals"):
            sample(4, 2, initvals={"mu_forest": noise})
        with pytest.raises((ValueError, TypeError)):
            sample(4, 2, initvals={"mu_forest": noise[:3]})
        idata = sample(4, 2, init="jitter+adapt_diag")
    assert_only_forests(model, idata.posterior["mu_forest"].values)


def test_a_start_is_where_the_chain_starts(model):
    forest, layout, _ = forest_of(model)
    start = pm.draw(forest, random_seed=3)
    with model:
        idata = sample(2, 0, initvals={"mu_forest": start}, step=[pm.Metropolis([forest])])
    assert (idata.posterior["mu_forest"].values == start).all()
