"""Forests whose split weights or leaf sd are random answer like any others."""

from functools import cache

import numpy as np
import pymc as pm
import pytest
from support.fitted import draws_of, predicted_of

import pymc_trees as pmt

pytestmark = pytest.mark.usefixtures("quick_compile")
QUIET = {"progressbar": False}
X = np.random.default_rng(3).random((14, 2))


@cache
def fitted():
    with pm.Model() as model:
        weights = pm.Dirichlet("weights", np.full(2, 0.5))
        sd = pm.HalfNormal("sd", 1.0)
        mu = pmt.BART("mu", X, m=4, split_prior=weights, leaf=pmt.NormalLeaf(0.0, sd))
        pm.Normal("y", mu, 0.3, observed=np.sin(6 * X[:, 0]), shape=mu.shape)
        return model, draws_of()


def test_predictions_are_those_of_pymc():
    model, idata = fitted()
    new = np.random.default_rng(4).random((5, 2))
    found = pmt.predictions(idata, model, new, **QUIET)["prediction"]
    np.testing.assert_allclose(found, predicted_of(model, idata, "mu_forest", new), rtol=1e-12)


def test_shapley_values_add_up():
    model, idata = fitted()
    f = pmt.predictions(idata, model, **QUIET)["prediction"]
    for background in (None, X[:5]):
        found = pmt.shap_values(idata, model, background=background, cores=1, **QUIET)
        total = found["values"].sum("feature") + found["base_values"]
        np.testing.assert_allclose(total.transpose(*f.dims), f, rtol=0, atol=1e-12)


ASKED = {
    "partial_dependence": lambda idata, model: pmt.partial_dependence(idata, model, 0, **QUIET),
    "accumulated_effects": lambda idata, model: pmt.accumulated_effects(idata, model, 0, **QUIET),
    "slopes": lambda idata, model: pmt.slopes(idata, model, **QUIET),
    "sobol_indices": lambda idata, model: pmt.sobol_indices(idata, model, **QUIET),
    "inclusion": pmt.get_variable_inclusion,
    "summary": lambda idata, model: pmt.summarise_function(idata, model, **QUIET),
    "importance": lambda idata, model: pmt.compute_variable_importance(idata, model, **QUIET),
    "text": pmt.tree_text,
}


@pytest.mark.parametrize("name", ASKED)
def test_every_question_has_an_answer(name):
    model, idata = fitted()
    found = ASKED[name](idata, model)
    if name != "text":
        assert all(np.isfinite(one).all() for one in found.data_vars.values())
