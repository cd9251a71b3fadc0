"""PyMC's warnings are judged on what a forest stands for."""

import logging

import numpy as np
import pymc as pm
import pymc.sampling.mcmc as mcmc
import pytest
import xarray as xr
from pymc.stats.convergence import WarningType
from support.small_models import bart_model, forest_of, sample

import pymc_trees as pmt
from pymc_trees.distributions.tree_variable import tree_variable
from pymc_trees.hooks.convergence import ROWS, check_function_values

pytestmark = pytest.mark.usefixtures("quick_compile")


@pytest.fixture(scope="module")
def mixed(quick_compile):
    """Draws that mix as well as can be: independent ones of the prior, as a posterior."""
    model = bart_model(data=False)
    with model:
        prior = pm.sample_prior_predictive(1600, random_seed=1)
    posterior = prior.prior.to_dataset()
    posterior = posterior.isel(chain=0, drop=True).assign_coords(draw=np.arange(1600))
    stacked = {
        name: (
            ("chain", "draw", *array.dims[1:]),
            array.values.reshape(4, 400, *array.shape[1:]),
        )
        for name, array in posterior.data_vars.items()
    }
    return model, as_idata(stacked)


def as_idata(variables):
    """Draws with a posterior only."""
    return xr.DataTree.from_dict({"posterior": xr.Dataset(variables)})


def alarms(idata, model):
    """Convergence warnings."""
    found = mcmc.run_convergence_checks(idata, model)
    return [w.message for w in found if w.kind is WarningType.CONVERGENCE]


def changed(idata, change):
    """Draws whose forests are changed by a function of the array."""
    values = idata.posterior["mu_forest"].values.copy()
    dims = idata.posterior["mu_forest"].dims
    return as_idata({"mu_forest": (dims, change(values))})


def test_well_mixed_forests_do_not_alarm(mixed):
    model, idata = mixed
    assert alarms(idata, model) == []


def test_function_values_are_the_function(mixed):
    model, idata = mixed
    values = tree_variable(model["mu_forest"]).function_values(
        model, idata.posterior["mu_forest"].values[:, :5], ROWS
    )
    np.testing.assert_allclose(values, idata.posterior["mu"].values[:, :5], atol=1e-10)


def test_function_values_of_many_rows():
    model = bart_model(n=333, m=2, data=False, max_nodes=100)
    forest, layout, X = forest_of(model)
    draws = pm.draw(forest, 3, random_seed=1)[None]
    assert tree_variable(forest).function_values(model, draws, ROWS).shape == (1, 3, 50)


def test_chains_at_different_forests_alarm(mixed):
    model, idata = mixed

    def stick(values):
        values[:] = values[:, :1]
        return values

    found = alarms(changed(idata, stick), model)
    assert any("never moved in chains [0, 1, 2, 3]" in text for text in found)


def test_all_chains_at_the_same_forest_alarm(mixed):
    model, idata = mixed
    found = alarms(
        changed(idata, lambda values: np.broadcast_to(values[:1, :1], values.shape)), model
    )
    assert any("never moved" in text and "pymc_trees.Hybrid" in text for text in found)


def test_one_stuck_chain_alarms(mixed):
    model, idata = mixed

    def stick(values):
        values[2] = values[2, 17]
        return values

    found = alarms(changed(idata, stick), model)
    assert any("never moved in chains [2]" in text for text in found)
    assert any("rhat" in text for text in found)


def test_slow_chains_alarm(mixed):
    model, idata = mixed

    def slow(values):
        return values[:, np.arange(400) // 80]  # five forests for eighty draws each

    found = alarms(changed(idata, slow), model)
    assert any("rhat" in text for text in found)
    assert any("effective sample size" in text for text in found)


def test_chains_apart_alarm(mixed):
    """Each chain moves, but about a place of its own."""
    model, idata = mixed
    mu = idata.posterior["mu"].values[..., 0].reshape(-1)
    order = np.argsort(mu).reshape(4, 400)
    rng = np.random.default_rng(1)

    def apart(values):
        flat = values.reshape(-1, *values.shape[2:])
        return flat[rng.permuted(order, axis=1)]

    assert any("rhat" in text for text in alarms(changed(idata, apart), model))


def test_draws_that_are_no_forests_alarm(mixed):
    model, idata = mixed

    def spoil(values):
        values[1, 3, 0, 1] += 0.5
        return values

    found = alarms(changed(idata, spoil), model)
    assert any("draws that are not forests" in text for text in found)


def test_the_draws_are_left_as_they_were(mixed):
    model, idata = mixed
    before = idata.posterior["mu_forest"].values.copy()
    mcmc.run_convergence_checks(idata, model)
    np.testing.assert_array_equal(idata.posterior["mu_forest"].values, before)
    assert set(idata.posterior.data_vars) == {"mu", "mu_forest"}


def test_models_without_a_forest_are_judged_as_before():
    with pm.Model() as model:
        pm.Normal("x")
    rng = np.random.default_rng(1)
    good = as_idata({"x": (("chain", "draw"), rng.normal(size=(4, 400)))})
    bad = as_idata({"x": (("chain", "draw"), rng.normal(size=(4, 400)) + np.arange(4)[:, None])})
    for idata in (good, bad):
        wrapped = mcmc.run_convergence_checks(idata, model)
        original = mcmc.run_convergence_checks.__wrapped__(idata, model)
        assert [w.message for w in wrapped] == [w.message for w in original]
    assert alarms(bad, model)


def test_a_forest_left_out_of_the_draws(mixed):
    model, idata = mixed
    [said] = mcmc.run_convergence_checks(as_idata({"mu": idata.posterior["mu"]}), model)
    assert "not checked" in said.message
    with bart_model() as alone:
        sample(3, 3, var_names=["mu"], compute_convergence_checks=True)
    with bart_model(sigma=None) as beside:
        sample(120, 3, var_names=["mu", "sigma"], compute_convergence_checks=True)
    assert "sigma" not in alone.named_vars and "sigma" in beside.named_vars


def test_wrapping_twice_is_wrapping_once():
    wrapped = mcmc.run_convergence_checks
    check_function_values()
    assert mcmc.run_convergence_checks is wrapped


@pytest.mark.filterwarnings("ignore:invalid value")
def test_plain_sample_of_a_well_mixed_model_is_silent(caplog):
    """Which of two trees has the split hardly ever changes: the R-hat of nodes would alarm."""
    X = np.repeat([[0.0], [1.0]], 15, axis=0)
    y = 4 * X[:, 0] + np.random.default_rng(0).normal(size=30)
    with pm.Model() as model:
        mu = pmt.BART("mu", X, y, m=2, max_nodes=118)
        pm.Normal("y", mu, 1.0, observed=y, shape=mu.shape)
        idata = sample(1500, 300, chains=4, compute_convergence_checks=True, step=pmt.CGM())
    assert [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING] == []
    assert alarms(idata, model) == []
    bare = mcmc.run_convergence_checks
    while hasattr(bare, "__wrapped__"):
        bare = bare.__wrapped__
    assert any(w.kind is WarningType.CONVERGENCE for w in bare(idata, model))


def of_pool(idata, model):
    """What is said of all chains together."""
    found = mcmc.run_convergence_checks(idata, model)
    return [(w.level, w.message) for w in found if "pool of chains" in w.message]


def test_the_pool_is_judged_where_chains_disagree(mixed):
    model, idata = mixed
    assert of_pool(idata, model) == []
    order = np.argsort(idata.posterior["mu"].values.mean(axis=-1).reshape(-1)).reshape(4, 400)
    rng = np.random.default_rng(1)

    def apart(values):  # three tenths of the draws change chains
        kept = rng.permuted(order, axis=1)
        kept[:, 280:] = rng.permuted(kept[:, 280:].reshape(-1)).reshape(4, 120)
        return values.reshape(-1, *values.shape[2:])[rng.permuted(kept, axis=1)]

    [(level, text)] = of_pool(changed(idata, apart), model)
    assert level == "info" and text.startswith("The pool of chains of mu: the pool can be used")

    def narrows(values):  # the second half is drawn from the middle of the first
        middle = rng.choice(order.reshape(-1)[600:1000], size=(4, 200))
        values[:, 200:] = values.reshape(-1, *values.shape[2:])[middle]
        return values

    [(level, text)] = of_pool(changed(idata, narrows), model)
    assert level == "warn" and "have not reached the posterior" in text
