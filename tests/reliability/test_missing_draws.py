"""Draws that lack a forest: an error that says so, and whose remedies come through."""

import re
from operator import attrgetter

import numpy as np
import pymc as pm
import pytest
import xarray as xr
from support.small_models import FAST

import pymc_trees as pmt

pytestmark = [
    pytest.mark.usefixtures("quick_compile"),
    pytest.mark.filterwarnings("ignore:The following trace variables were implicitly frozen"),
]
QUIET = {"progressbar": FAST["progressbar"], "random_seed": 2}
N = 12
X = np.random.default_rng(0).random((N, 2))


def of_latent_rows():
    """A random scale of the leaves, a variable between f and y, and two that see no forest."""
    sd, sigma = pm.HalfNormal("sd"), pm.HalfNormal("sigma")
    mu = pmt.BART("mu", pm.Data("X", X), m=2, leaf=pmt.NormalLeaf(0.0, sd))
    z = pm.Normal("z", mu, 1.0, shape=mu.shape)
    pm.Deterministic("twice", 2 * sigma)
    pm.Normal("y", z, sigma, observed=np.zeros(N), shape=mu.shape)
    pm.Poisson("k", sigma, observed=[1, 2])


def of_split_weights():
    weights = pm.Dirichlet("weights", np.ones(2))
    mu = pmt.BART("mu", pm.Data("X", X), m=2, leaf=pmt.NormalLeaf(0, 1), split_prior=weights)
    pm.Normal("y", mu, 1.0, observed=np.zeros(N), shape=mu.shape)


def of_a_random_covariance():
    """The coefficients are the factor of the covariance times what the trees hold."""
    scale = pm.HalfNormal("scale")
    leaf = pmt.BasisLeaf(np.column_stack([np.ones(N), X[:, 0]]), sd=scale * np.eye(2))
    mu = pmt.BART("mu", pm.Data("X", X), m=2, leaf=leaf)
    pm.Normal("y", mu, 1.0, observed=np.zeros(N), shape=mu.shape)


def of_soft_trees():
    mu = pmt.SoftBART("mu", pm.Data("X", X), X[:, 0], m=2)
    pm.Normal("y", mu, 1.0, observed=np.zeros(N), shape=mu.shape)


def of_a_soft_tree():
    mu = pmt.SoftDecisionTree("mu", pm.Data("X", X))
    pm.Normal("y", mu, 1.0, observed=np.zeros(N), shape=mu.shape)


DECLARED = {
    declared.__name__: declared
    for declared in (
        of_latent_rows,
        of_split_weights,
        of_a_random_covariance,
        of_soft_trees,
        of_a_soft_tree,
    )
}


@pytest.fixture(scope="module")
def drawn(quick_compile):
    """Models, and draws: of the prior, which are as good as any."""
    found = {}
    for name, declared in DECLARED.items():
        with pm.Model() as model:
            declared()
            prior = pm.sample_prior_predictive(3, random_seed=1)
        groups = {"posterior": prior["prior"], "constant_data": prior["constant_data"]}
        found[name] = model, xr.DataTree.from_dict({k: v.to_dataset() for k, v in groups.items()})
    return found


def without(idata, *names):
    left = idata.copy()
    left["posterior"] = xr.DataTree(idata["posterior"].to_dataset().drop_vars(names))
    return left


def predict(model, idata, **given):
    with model:
        return pm.sample_posterior_predictive(idata, **QUIET, **given)


LOST = [
    # what is dropped, what is asked for, what the error names
    ("of_latent_rows", ["mu_forest"], ["mu"], ["mu_forest"]),
    ("of_latent_rows", ["mu_forest", "mu"], ["mu"], ["mu_forest"]),
    ("of_latent_rows", ["mu_forest", "z"], ["y"], ["mu_forest"]),
    ("of_latent_rows", ["mu_forest", "mu", "z"], None, ["mu_forest"]),
    ("of_latent_rows", ["mu_forest"], ["mu_forest"], ["mu_forest"]),
    ("of_latent_rows", ["mu_forest", "sd"], ["mu"], ["sd", "mu_forest"]),
    ("of_latent_rows", ["mu_forest", "mu", "z", "sd", "sigma"], None, ["sd", "mu_forest"]),
    ("of_latent_rows", ["sd"], ["sd"], ["sd"]),
    ("of_split_weights", ["mu_forest"], ["mu", "y"], ["mu_forest"]),
    ("of_split_weights", ["mu_forest", "weights"], ["y"], ["weights", "mu_forest"]),
    ("of_a_random_covariance", ["mu_forest"], ["y"], ["mu_forest"]),
    ("of_a_random_covariance", ["scale"], ["mu"], ["scale"]),
    ("of_soft_trees", ["mu_forest"], ["y"], ["mu_forest"]),
    ("of_a_soft_tree", ["mu_forest"], ["mu"], ["mu_forest"]),
]


@pytest.mark.parametrize(("name", "dropped", "asked", "named"), LOST)
def test_what_pymc_would_draw_from_the_prior_is_an_error(drawn, name, dropped, asked, named):
    model, idata = drawn[name]
    left, kept = without(idata, *dropped), without(idata, *set(dropped) - set(named))
    given = {} if asked is None else {"var_names": asked}
    words = re.escape(f"The draws lack {named}, which ")
    for of in (left, left["posterior"].to_dataset(), left["posterior"].dataset):
        with pytest.raises(ValueError, match=f"^{words}.*pm.sample, and keep (it|them) in"):
            predict(model, of, **given)
    with pytest.raises(ValueError, match=words):
        predict(model, left, **given, predictions=True, extend_inferencedata=True)
    assert set(left.children) == {"posterior", "constant_data"}
    # with what is named, the values are those of the draws
    found = predict(model, kept, **given)["posterior_predictive"]
    for shared in set(asked or ()) & set(idata["posterior"]):
        np.testing.assert_array_equal(found[shared], idata["posterior"][shared])
    predict(model, left, var_names=asked or ["y"], sample_vars=named)


def test_values_in_the_draws_for_the_training_rows(drawn):
    model, idata = drawn["of_latent_rows"]
    left = without(idata, "mu_forest", "z")
    with pytest.raises(ValueError, match=re.escape("fit, freeze_vars=['mu'] takes their values")):
        predict(model, left, var_names=["y"])
    found = predict(model, left, var_names=["mu", "z", "y"], freeze_vars=["mu"])
    mu = idata["posterior"]["mu"]
    np.testing.assert_array_equal(found["posterior_predictive"]["mu"], mu)
    apart = found["posterior_predictive"]["z"] - mu
    assert 0.5 < float(apart.std()) < 1.5  # sd 1, of 36
    with pytest.raises(ValueError, match="The draws lack") as raised:
        predict(model, without(left, "mu"), var_names=["y"])
    assert "freeze_vars" not in str(raised.value)


def test_what_needs_no_forest_is_predicted(drawn):
    """Also y below a latent variable, whose number of rows alone is that of the forest."""
    model, idata = drawn["of_latent_rows"]
    left = without(idata, "mu_forest", "sd")
    found = predict(model, left, var_names=["twice", "k", "y"])["posterior_predictive"]
    np.testing.assert_array_equal(found["twice"], idata["posterior"]["twice"])
    apart = (found["y"] - idata["posterior"]["z"].to_numpy()) / idata["posterior"]["sigma"]
    assert 0.5 < float(apart.std()) < 1.5
    only_sd = without(idata, "sd")  # the forest is there, whatever its prior
    np.testing.assert_array_equal(
        predict(model, only_sd, var_names=["mu"])["posterior_predictive"]["mu"],
        idata["posterior"]["mu"],
    )


def test_new_rows_and_points(drawn):
    model, idata = drawn["of_latent_rows"]
    points = [{"sigma": np.array(1.0), "sd": np.array(1.0)}]
    with pytest.raises(ValueError, match="The draws lack"):
        predict(model, points, var_names=["mu"])
    left = without(idata, "mu_forest", "z")
    with model:
        pm.set_data({"X": X[:5]})
        try:
            with pytest.raises(ValueError, match="The draws lack"):
                predict(model, left, var_names=["mu", "y"], predictions=True)
        finally:
            pm.set_data({"X": X})


def test_prior_draws_need_no_draws(drawn):
    model, idata = drawn["of_latent_rows"]
    with pytest.raises(ValueError, match="The draws lack"):
        predict(model, without(idata, "mu_forest"), var_names=["mu"])
    with model:
        prior = pm.sample_prior_predictive(3, random_seed=1)
    np.testing.assert_array_equal(prior["prior"]["mu"], idata["posterior"]["mu"])
    np.testing.assert_array_equal(pm.draw(model["mu"], 2).shape, (2, N))


@pytest.mark.parametrize(
    "name", ["compute_log_likelihood", "stats.compute_log_prior", "compute_deterministics"]
)
def test_densities_and_deterministics(drawn, name):
    """PyMC's own error is left alone where another variable is missing."""
    model, idata = drawn["of_latent_rows"]
    function = attrgetter(name)(pm)
    for lost, error, said in (
        ("mu_forest", ValueError, r"^The draws lack \['mu_forest'\], which compute_\w+ needs"),
        ("sigma", KeyError, "sigma"),
    ):
        left = without(idata, lost)
        given = left["posterior"].to_dataset() if name == "compute_deterministics" else left
        with model, pytest.raises(error, match=said):
            function(given, progressbar=False)
