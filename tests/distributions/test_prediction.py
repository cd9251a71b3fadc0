"""Starting points, prior predictive, posterior predictive in and out of sample."""

import numpy as np
import pymc as pm
import pytest
import xarray as xr
from support import twin
from support.small_models import bart_model, forest_of, sample, step_data

import pymc_trees as pmt

pytestmark = pytest.mark.usefixtures("quick_compile")
QUIET = {"progressbar": False, "random_seed": 2}


@pytest.fixture(scope="module")
def fitted(quick_compile):
    model = bart_model(sigma=None)
    with model:
        return model, sample(15, 30)


def test_initial_point_is_a_forest_of_stumps_at_the_leaf_mean():
    model = bart_model(leaf=pmt.NormalLeaf(0.7, 1.0))
    point = model.initial_point()
    forest, layout, X = forest_of(model)
    trees = twin.read_trees(point["mu_forest"], layout)
    assert [twin.leaf_values(t) for t in trees] == [[(0.7,)]] * 5
    assert np.isfinite(model.compile_logp()(point))
    assert model.point_logps(point)["mu_forest"] < 0
    model.check_start_vals(point)


@pytest.mark.parametrize("n", [1, 30, 47])
def test_prior_predictive_at_any_number_of_rows(n):
    model = bart_model(sigma=None)
    with model:
        pm.set_data({"X": np.random.default_rng(1).random((n, 2))})
        prior = pm.sample_prior_predictive(20, random_seed=1)
    assert prior.prior["mu"].shape == (1, 20, n)
    assert prior.prior_predictive["y"].shape == (1, 20, n)
    forest, layout, _ = forest_of(model)
    X = model["X"].get_value()
    for value, mu in zip(prior.prior["mu_forest"].values[0], prior.prior["mu"].values[0]):
        np.testing.assert_allclose(twin.f(twin.read_trees(value, layout), X)[:, 0], mu, atol=1e-10)


def test_posterior_predictive_at_the_training_rows_is_the_stored_function(fitted):
    model, idata = fitted
    with model:
        pred = pm.sample_posterior_predictive(
            idata, predictions=True, var_names=["mu", "y"], **QUIET
        )
        default = pm.sample_posterior_predictive(idata, **QUIET)
    assert (pred.predictions["mu"].values == idata.posterior["mu"].values).all()
    assert pred.predictions["y"].shape == (2, 15, 30)
    assert default.posterior_predictive["y"].shape == (2, 15, 30)


def test_out_of_sample_uses_the_forest_of_the_same_chain_and_draw(fitted, caplog):
    model, idata = fitted
    _, layout, X = forest_of(model)
    new = np.vstack([X[::-1], np.random.default_rng(9).normal(size=(12, 2))])
    caplog.set_level("INFO")
    with model:
        pm.set_data({"X": new})
        try:
            pred = pm.sample_posterior_predictive(
                idata, predictions=True, var_names=["mu", "y"], **QUIET
            )
        finally:
            pm.set_data({"X": X})
    assert "Sampling: [y]" in caplog.text
    mu = pred.predictions["mu"].values
    assert mu.shape == (2, 15, 42)
    np.testing.assert_allclose(mu[..., :30], idata.posterior["mu"].values[..., ::-1], atol=1e-10)
    for at in np.ndindex(2, 15):
        trees = twin.read_trees(idata.posterior["mu_forest"].values[at], layout)
        np.testing.assert_allclose(mu[at], twin.f(trees, new)[:, 0], atol=1e-10)
    # y of the same draw too: noise of that draw's sigma about that draw's mu
    z = (pred.predictions["y"].values - mu) / idata.posterior["sigma"].values[..., None]
    assert abs(z.mean()) < 4 / np.sqrt(z.size)
    assert abs(z.std() - 1) < 4 / np.sqrt(2 * z.size)


def test_predictions_of_a_stack_of_single_draws(fitted):
    model, idata = fitted
    one = idata.isel(chain=[1], draw=[7])
    with model:
        pred = pm.sample_posterior_predictive(one, predictions=True, var_names=["mu"], **QUIET)
    assert (pred.predictions["mu"].values[0, 0] == idata.posterior["mu"].values[1, 7]).all()


def test_the_function_is_not_kept_in_the_value():
    X, y = step_data(40)
    with pm.Model() as model:
        mu = pmt.BART("mu", X, y, m=3)
        pm.Normal("y", mu, 0.5, observed=y, shape=mu.shape)
        idata = sample(10, 20)
        pred = pm.sample_posterior_predictive(idata, predictions=True, var_names=["mu"], **QUIET)
    forest, layout, _ = forest_of(model)
    assert layout.shape[0] < layout.max_nodes + 40 / 2
    np.testing.assert_allclose(
        pred.predictions["mu"].values, idata.posterior["mu"].values, rtol=0, atol=0
    )
    value = idata.posterior["mu_forest"].values[1, 9]
    np.testing.assert_allclose(
        twin.f(twin.read_trees(value, layout), X)[:, 0],
        idata.posterior["mu"].values[1, 9],
        atol=1e-10,
    )


@pytest.mark.parametrize("soft", [False, True])
def test_an_observed_variable_of_fixed_length_is_named_with_the_remedy(soft):
    X, y = step_data(20)
    with pm.Model():
        X = pm.Data("X", X)
        mu = pmt.SoftDecisionTree("mu", X, y) if soft else pmt.BART("mu", X, y, m=2, max_nodes=78)
        pm.Normal("fixed", mu, 1.0, observed=y)
        pm.Normal("follows", mu, 1.0, observed=y, shape=mu.shape)
        pm.Normal("apart", 0.0, 1.0, observed=y)
        prior = pm.sample_prior_predictive(2, random_seed=1)
        draws = xr.DataTree.from_dict({"posterior": prior.prior.to_dataset()})
        pm.set_data({"X": np.zeros((7, 2))})
        said = r"fixed has 20 rows.* have 7\. Declare \['fixed'\] with shape=mu\.shape"
        with pytest.raises(ValueError, match=said) as caught:
            pm.sample_posterior_predictive(draws, predictions=True, **QUIET)
        assert isinstance(caught.value.__cause__, ValueError)
        with pytest.raises(ValueError, match=said):
            pm.sample_prior_predictive(2, random_seed=1)
        pred = pm.sample_posterior_predictive(
            draws, predictions=True, var_names=["follows"], **QUIET
        )
    assert pred.predictions["follows"].shape == (1, 2, 7)


def test_models_without_forests_keep_their_errors():
    with pm.Model():
        x = pm.Data("x", np.zeros(4))
        pm.Normal("y", x, 1.0, observed=np.zeros(4))
        pm.set_data({"x": np.zeros(3)})
        with pytest.raises(ValueError) as caught:
            pm.sample_prior_predictive(2, random_seed=1)
    assert "shape=mu.shape" not in str(caught.value)
