"""PyMC's other tools on a model with forests: densities, do, observe, dims, graphs."""

import arviz as az
import numpy as np
import pymc as pm
import pymc.dims as pmd
import pytest
from pymc.model.transform.optimization import freeze_dims_and_data
from pymc.stats import compute_log_likelihood, compute_log_prior
from pytensor.xtensor import as_xtensor
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


def declared(of=pmt.Data):
    """A forest and a treatment z that is data; new rows of z are like those of X."""
    X, y = step_data()
    with pm.Model(coords={"row": np.arange(30)}) as model:
        table, z = of("X", X), pm.Data("z", np.arange(30.0) % 2, dims="row")
        f = pmt.BART("f", table, y, m=5, dims="row", max_nodes=295)
        mu = pm.Deterministic("mu", f + pm.Normal("b") * z, dims="row")
        data = pm.Data("y_data", y, dims="row")
        pm.Normal("y", mu, pm.HalfNormal("sigma"), observed=data, shape=mu.shape, dims="row")
    return model


@pytest.mark.parametrize("of", [pmt.Data, pm.Data])
def test_freeze_dims_and_data(of):
    """The same posterior and steps; draws differ, since PyMC lists variables in another order."""
    model = declared(of)
    frozen = freeze_dims_and_data(model)
    point = model.initial_point(random_seed=1) | {"b": np.array(0.4)}
    assert frozen.compile_logp()(point) == model.compile_logp()(point)
    made = []
    for one in (model, frozen):
        with one:
            made.append(sample(5, 5))
    assert set(made[0].sample_stats) == set(made[1].sample_stats)
    assert np.ptp(made[1].posterior["f"].values, (0, 1)).min() > 0


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_an_effect_by_do_is_that_of_a_coefficient():
    """`pm.do` on data at which some entries are 0, of which PyTensor makes 0 / 0."""
    model = declared()
    with model:
        idata = sample(5, 5)
    means = []
    for value in (0.0, 1.0):
        with pm.do(model, {"z": np.full(30, value)}):
            made = pm.sample_posterior_predictive(
                idata, var_names=["mu"], predictions=True, progressbar=False
            )
        means.append(made.predictions["mu"].values)
    effect = np.broadcast_to(idata.posterior["b"].values[..., None], means[0].shape)
    np.testing.assert_allclose(means[1] - means[0], effect, atol=1e-12)


@pytest.mark.filterwarnings("ignore:Estimated shape parameter")
def test_loo_at_held_out_rows():
    """y in `pm.Data`: the log likelihood is that of the rows set now."""
    model = declared()
    X, y = step_data()
    with model:
        idata = sample(20, 5)
        compute_log_likelihood(idata, progressbar=False)
        assert np.isfinite(az.loo(idata).elpd)
        pmt.set_data(
            {"X": X[:4], "z": np.ones(4), "y_data": y[:4] + 1}, coords={"row": list("abcd")}
        )
        new = compute_log_likelihood(idata, extend_inferencedata=False, progressbar=False)
    post = idata.posterior
    mu = post["f"].values[..., :4] + post["b"].values[..., None]
    expected = stats.norm.logpdf(y[:4] + 1, mu, post["sigma"].values[..., None])
    np.testing.assert_allclose(new["y"].values, expected, rtol=1e-9)


def test_debug_has_no_complaint(capsys):
    declared().debug()
    assert "No problems found" in capsys.readouterr().out


def test_named_dimensions_of_the_likelihood():
    """`pymc.dims` after the forest: the same steps and draws as a likelihood without names."""
    X, y = step_data()
    made = []
    for named in (False, True):
        with pm.Model(coords={"row": np.arange(30)}):
            mu = pmt.BART("mu", X, y, m=5, dims="row", max_nodes=295)
            if named:
                f, data = (as_xtensor(v, dims=("row",)) for v in (mu, y))
                pmd.Normal("y", f, pmd.HalfNormal("sigma"), observed=data)
            else:
                pm.Normal("y", mu, pm.HalfNormal("sigma"), observed=y)
            made.append(sample(5, 5))
    for name in ("mu", "sigma"):
        assert (made[0].posterior[name].values == made[1].posterior[name].values).all()


def test_random_settings_are_drawn_beforehand():
    """A prior sample of f has the sd of its own leaf values: correlation .7 of |f| and sd."""
    X, y = step_data()
    with pm.Model():
        sd = pm.HalfNormal("sd")
        mu = pmt.BART("mu", X, m=5, leaf=pmt.NormalLeaf(0, sd), max_nodes=295)
        pm.Normal("y", mu, 1.0, observed=y)
        prior = pm.sample_prior_predictive(200, random_seed=1)["prior"]
    size = np.abs(prior["mu"].values[0]).mean(-1)
    assert np.corrcoef(prior["sd"].values[0], size)[0, 1] > 0.5  # .7, and .07 for 200 draws


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
