"""PyMC's other tools on a model with forests: densities, do, observe, dims, graphs."""

import numpy as np
import pymc as pm
import pytest
from pymc.stats import compute_log_likelihood, compute_log_prior
from scipy import stats
from support import twin
from support.small_models import bart_model, forest_of, sample, step_data

import pymc_trees as pmt
from pymc_trees.distributions.forest_inputs import forest_inputs

pytestmark = pytest.mark.usefixtures("quick_compile")


@pytest.fixture(scope="module")
def fitted(quick_compile):
    model = bart_model(sigma=None)
    with model:
        return model, sample(6, 20)


def test_compute_log_likelihood(fitted):
    model, idata = fitted
    with model:
        found = compute_log_likelihood(idata, extend_inferencedata=False, progressbar=False)
    post = idata.posterior
    expected = stats.norm.logpdf(step_data()[1], post["mu"].values, post["sigma"].values[..., None])
    np.testing.assert_allclose(found["y"].values, expected, rtol=1e-9)


def test_compute_log_prior(fitted):
    model, idata = fitted
    with model:
        found = compute_log_prior(idata, extend_inferencedata=False, progressbar=False)
    forest, layout, X = forest_of(model)
    mean, sd = (float(v.data) for v in forest_inputs(forest).leaf)
    for at in np.ndindex(2, 6):
        trees = twin.read_trees(idata.posterior["mu_forest"].values[at], layout)
        expected = twin.log_tree_prior(trees, X, 0.95, 2.0, [0.5, 0.5])
        values = [v[0] for t in trees for v in twin.leaf_values(t)]
        expected += stats.norm.logpdf(values, mean, sd).sum()
        np.testing.assert_allclose(found["mu_forest"].values[at], expected, rtol=1e-9)
    sigma = idata.posterior["sigma"].values
    np.testing.assert_allclose(found["sigma"].values, stats.halfnorm.logpdf(sigma), rtol=1e-9)


def test_do_a_forest(fitted):
    model, idata = fitted
    value = idata.posterior["mu_forest"].values[1, 3]
    fixed = pm.do(model, {"mu_forest": value})
    assert "mu_forest" not in [v.name for v in fixed.free_RVs]
    with fixed:
        prior = pm.sample_prior_predictive(4, random_seed=1)
    assert (prior.prior["mu"].values == idata.posterior["mu"].values[1, 3]).all()


def test_do_the_function_and_the_noise(fitted):
    model, _ = fitted
    fixed = pm.do(model, {"mu": np.arange(30.0)})
    draws = pm.draw(fixed["y"], 50, random_seed=1)
    assert draws.shape == (50, 30) and np.corrcoef(draws.mean(0), np.arange(30.0))[0, 1] > 0.9
    with pm.do(model, {"sigma": 0.25}):
        idata = sample(4, 4)
    assert "sigma" not in idata.posterior


def test_observe():
    X, y = step_data()
    with pm.Model() as generative:
        mu = pmt.BART("mu", X, leaf=pmt.NormalLeaf(0, 1), m=5, max_nodes=295)
        sigma = pm.HalfNormal("sigma", 1)
        pm.Normal("y", mu, sigma, shape=mu.shape)
    with pm.observe(generative, {"y": y}):
        idata = sample(20, 60)
        pred = pm.sample_posterior_predictive(
            idata, predictions=True, var_names=["mu"], progressbar=False
        )
    fitted = idata.posterior["mu"].mean(("chain", "draw"))
    assert np.corrcoef(fitted, y)[0, 1] > 0.9
    assert (pred.predictions["mu"].values == idata.posterior["mu"].values).all()


def test_a_forest_can_be_observed():
    model = bart_model(data=False)
    value = pm.draw(model["mu_forest"], random_seed=1)
    observed = pm.observe(model, {"mu_forest": value})
    assert observed.free_RVs == []
    logp = observed.compile_logp()({})
    np.testing.assert_allclose(logp, model.compile_logp()({"mu_forest": value}))


def test_dims_and_coords():
    X, y = step_data()
    coords = {"row": [f"r{i}" for i in range(30)], "feature": ["a", "b"]}
    with pm.Model(coords=coords) as model:
        data = pm.Data("X", X, dims=("row", "feature"))
        mu = pmt.BART("mu", data, y, m=5, dims="row", max_nodes=295)
        pm.Normal("y", mu, 0.5, observed=y, dims="row")
        idata = sample(5, 5)
    assert idata.posterior["mu"].dims == ("chain", "draw", "row")
    assert list(idata.posterior["row"].values) == coords["row"]
    with model:
        pm.set_data({"X": X[:4]}, coords={"row": list("wxyz")})
        pred = pm.sample_posterior_predictive(
            idata, predictions=True, var_names=["mu", "y"], progressbar=False
        )
    assert list(pred.predictions["row"].values) == list("wxyz")
    assert pred.predictions["y"].shape == (2, 5, 4)
    np.testing.assert_allclose(
        pred.predictions["mu"].values, idata.posterior["mu"].values[..., :4], atol=1e-10
    )


def test_graphviz(fitted):
    model, _ = fitted
    source = pm.model_to_graphviz(model).source
    for name in ("mu_forest", "Forest", "Deterministic", "sigma", "X"):
        assert name in source
    assert "mu_forest -> mu" in source and "X -> mu" in source
    assert "X -> mu_forest" not in source  # the training rows are constants


def test_names_in_latex_and_text(fitted):
    model, _ = fitted
    assert "mu_forest" in model.str_repr()
    assert "Forest" in model.str_repr(formatting="latex")


def test_two_forests_summed_and_apart():
    X, y = step_data()
    with pm.Model() as model:
        one = pmt.BART("one", X[:, :1], y, m=5, max_nodes=295)
        two = pmt.BART("two", X[:, 1:], y, m=3, max_nodes=177)
        other = pmt.BART("other", X, m=2, leaf=pmt.NormalLeaf(0, 1), max_nodes=118)
        pm.Normal("y", one + two, 0.5, observed=y, shape=one.shape)
        pm.Normal("z", other, 1.0, observed=-y, shape=other.shape)
        idata = sample(10, 40)
        found = compute_log_prior(idata, extend_inferencedata=False, progressbar=False)
    assert {v.name for v in model.free_RVs} == {"one_forest", "two_forest", "other_forest"}
    post = idata.posterior
    total = (post["one"] + post["two"]).mean(("chain", "draw"))
    assert np.corrcoef(total, y)[0, 1] > 0.9
    assert np.corrcoef(post["other"].mean(("chain", "draw")), -y)[0, 1] > 0.8
    assert np.isfinite(found["two_forest"].values).all()
    assert idata.sample_stats["n_leaves_two_forest"].values.min() >= 3
    assert idata.sample_stats["variable_inclusion_other_forest"].shape == (2, 10, 2)
    assert idata.sample_stats["variable_inclusion_one_forest"].shape == (2, 10, 1)
