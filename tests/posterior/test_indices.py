"""An index that reaches past the end of a vector is refused wherever draws are made or used."""

import numpy as np
import pymc as pm
import pytest

import pymc_trees as pmt
from pymc_trees.hooks import groups

pytestmark = pytest.mark.usefixtures("quick_compile")

N = 12
X = np.random.default_rng(0).random((N, 2))
QUIET = {"progressbar": False, "random_seed": 1}


def declare(vector="named"):
    """Group effects with named dimensions or without, and an index of rows."""
    with pm.Model(coords={"school": ["a", "b", "c"]}) as model:
        rows, g = pmt.Data("X", X), pm.Data("g", np.arange(N) % 3)
        k = pm.Data("k", [0])
        tau = pm.HalfNormal("tau")
        if vector == "named":
            a = pm.Normal("a", 0, tau, dims="school")
        elif vector == "plain":
            a = pm.Normal("a", 0, tau, shape=3)
        else:
            a = 1.0 + tau * pm.Normal("z", dims="school")
        f = pmt.BART("f", rows, X[:, 0], m=2)
        pm.Deterministic("f_of_group", f + a[k[0]])
        pm.Normal("y", f + a[g], 0.1, observed=X[:, 0], shape=f.shape)
    return model


def prior_draws(model):
    with model:
        names = [v.name for v in model.unobserved_RVs]
        found = pm.sample_prior_predictive(4, random_seed=1, var_names=names)
    found["posterior"] = found["prior"]
    return found


WORDS = {
    "named": r"g picks entry 3 of a, which has 3: .*coords=\{'school': \[\.\.\.\]\}",
    "plain": r"g picks entry 3 of a, which has 3: .*declare the vector with dims=",
    "expression": r"g picks entry 3 of an expression of z, tau, which has 3: .*'school'",
}


@pytest.mark.parametrize("vector", WORDS)
def test_sampling_and_predictions(vector):
    model = declare(vector)
    idata = prior_draws(model)
    with model:
        pm.set_data({"g": np.full(N, 3)})
        for call in (
            lambda: pm.sample(**QUIET),
            lambda: pm.sample_prior_predictive(2),
            lambda: pm.sample_posterior_predictive(idata, **QUIET),
            lambda: pm.compute_log_likelihood(idata, progressbar=False),
        ):
            with pytest.raises(IndexError, match=WORDS[vector]):
                call()
        # what the index is no part of can still be asked
        pm.sample_posterior_predictive(idata, var_names=["f"], **QUIET)
        # from the end, as in numpy
        pm.set_data({"g": np.full(N, -3)})
        found = pm.sample_posterior_predictive(idata, **QUIET)
        assert np.isfinite(found.posterior_predictive["y"]).all()
        pm.set_data({"g": np.full(N, -4)})
        with pytest.raises(IndexError, match="entry -4"):
            pm.sample_posterior_predictive(idata, **QUIET)


def test_a_longer_vector_in_the_model_than_in_the_draws():
    """The draws decide, also where PyMC would freeze them: here they lack coordinates."""
    model = declare()
    idata = prior_draws(model)
    idata["posterior"] = idata["posterior"].to_dataset().drop_vars("school")
    with model:
        pmt.set_data({"g": np.full(N, 3)}, coords={"school": list("abcd")})
        pm.sample_prior_predictive(2)
        with pytest.raises(IndexError, match="entry 3 of a, which has 3"):
            pm.sample_posterior_predictive(idata, **QUIET)
        # drawn anew on request: then it has the length of the model
        pm.sample_posterior_predictive(idata, sample_vars=["a", "y"], **QUIET)


def test_functions_of_rows():
    """A single entry that is picked for all rows."""
    model = declare()
    idata = prior_draws(model)
    right = pmt.predictions(idata, model, var_name="f_of_group", progressbar=False)
    assert right["prediction"].shape == (1, 4, N)
    pm.set_data({"k": [3]}, model)
    for question in (pmt.predictions, pmt.comparisons, pmt.partial_dependence):
        with pytest.raises(IndexError, match="k picks entry 3 of a, which has 3"):
            question(idata, model, var_name="f_of_group", progressbar=False)
    with model, pytest.raises(IndexError, match="k picks entry 3 of a"):
        pm.compute_deterministics(idata.posterior.to_dataset(), progressbar=False)


def test_data_that_are_picked():
    """What is known of a group, one for each school, is picked by the rows too."""
    with pm.Model() as model:
        rows, g, u = pmt.Data("X", X), pm.Data("g", np.arange(N) % 3), pm.Data("u", np.arange(3.0))
        f = pmt.BART("f", rows, X[:, 0], m=2)
        pm.Normal("y", f + u[g], 0.1, observed=X[:, 0], shape=f.shape)
        idata = prior_draws(model)
        pm.set_data({"g": np.full(N, 7)})
        with pytest.raises(IndexError, match="g picks entry 7 of u, which has 3"):
            pm.sample_posterior_predictive(idata, **QUIET)


def test_models_without_trees_are_left_alone(monkeypatch):
    """An index past the end is PyMC's affair."""
    checked = []
    monkeypatch.setattr(groups, "check_indices", lambda *given: checked.append(given))
    with pm.Model():
        a, g = pm.Normal("a", shape=3), pm.Data("g", [0, 1, 2])
        pm.Deterministic("b", a[g] + 1.0)
        idata = pm.sample_prior_predictive(2, random_seed=1)
        idata["posterior"] = idata["prior"]
        found = pm.sample_posterior_predictive(idata, var_names=["b"], progressbar=False)
    np.testing.assert_array_equal(found.posterior_predictive["b"], idata.posterior["b"])
    assert checked == []
