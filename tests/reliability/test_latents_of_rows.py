"""Prediction at new rows where an unobserved variable has an entry for each row too."""

import numpy as np
import pymc as pm
import pytest

import pymc_trees as pmt

N, NEW = 20, 7
DRAWN = {"predictions": True, "var_names": ["mu", "y"], "progressbar": False, "random_seed": 1}

pytestmark = [
    pytest.mark.usefixtures("quick_compile"),
    # PyMC says, too, that draws of eps were made at other rows.
    pytest.mark.filterwarnings("ignore::pymc.exceptions.ImplicitFreezeWarning"),
]


def fitted(eps_follows, y_follows, groups=False):
    """A model of rows and a variable beside them, its draws of the prior, and new rows set."""
    X = np.random.default_rng(0).random((N, 2))
    with pm.Model() as model:
        mu = pmt.BART("mu", pm.Data("X", X), X[:, 0], m=3)
        eps = pm.Normal("eps", 0.0, 0.1, shape=mu.shape if eps_follows else N)
        if groups:
            eps = eps[pm.Data("group", np.arange(N))]
        y = pm.Normal(
            "y", mu + eps, 0.1, observed=X[:, 0], **({"shape": mu.shape} if y_follows else {})
        )
        assert y is not None
        prior = pm.sample_prior_predictive(4, random_seed=1, var_names=["mu_forest", "eps", "mu"])
        pm.set_data({"X": X[:NEW]} | ({"group": np.arange(NEW)} if groups else {}))
    prior["posterior"] = prior["prior"]
    return model, prior


@pytest.mark.parametrize(
    ("eps_follows", "y_follows", "declare"),
    [
        (False, False, "Declare ['eps', 'y'] with shape=mu.shape"),
        (False, True, "Declare ['eps'] with shape=mu.shape"),
        (True, False, "Declare ['y'] with shape=mu.shape"),
        (True, True, "['eps'] have an entry for each row"),
    ],
)
def test_the_message_says_all_that_is_missing(eps_follows, y_follows, declare):
    model, idata = fitted(eps_follows, y_follows)
    with model, pytest.raises(ValueError, match="sample_vars") as refused:
        pm.sample_posterior_predictive(idata, **DRAWN)
    assert declare in str(refused.value)
    assert "give sample_vars=['eps', 'y']" in str(refused.value)


def test_what_it_says_gives_the_function_and_new_entries():
    model, idata = fitted(True, True)
    with model:
        found = pm.sample_posterior_predictive(idata, sample_vars=["eps", "y"], **DRAWN)
    expected = pmt.predictions(idata, model, progressbar=False)["prediction"].to_numpy()
    np.testing.assert_allclose(found.predictions["mu"], expected)
    assert found.predictions["y"].shape == (1, 4, NEW)


def test_effects_of_groups_are_not_taken_for_rows():
    """As many groups as rows: they are read by an index, and are to be kept."""
    model, idata = fitted(False, False, groups=True)
    with model, pytest.raises(ValueError, match=r"Declare \['y'\]") as refused:
        pm.sample_posterior_predictive(idata, **DRAWN)
    assert "sample_vars" not in str(refused.value)


def test_a_model_without_trees_keeps_the_error_of_pymc():
    with pm.Model():
        x = pm.Data("x", np.arange(4.0))
        eps = pm.Normal("eps", 0, 1, shape=x.shape)
        pm.Normal("y", x + eps, 1, observed=np.zeros(4), shape=x.shape)
        prior = pm.sample_prior_predictive(3, random_seed=1)
        prior["posterior"] = prior["prior"]
        pm.set_data({"x": np.arange(3.0)})
        with pytest.raises(ValueError, match=r"(?i)shape|broadcast") as refused:
            pm.sample_posterior_predictive(prior, predictions=True, progressbar=False)
    assert "training" not in str(refused.value)
