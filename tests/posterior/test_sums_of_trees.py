"""Which functions are sums of trees, and that their leaves add up to f."""

from functools import cache

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from support.fitted import draws_of

import pymc_trees as pmt
from pymc_trees.posterior.explain.additive import is_linear

pytestmark = pytest.mark.usefixtures("quick_compile")
QUIET = {"progressbar": False, "cores": 1}
X = np.random.default_rng(3).random((14, 2))
CLOSED_FORMS = [pmt.shap_values, pmt.shap_interactions, pmt.sobol_indices, pmt.interaction_strength]

STRAIGHT = {
    "itself": lambda f, g: f,
    "twice and 1": lambda f, g: 2.0 * f + 1.0,
    "of both": lambda f, g: (g[:, 0] - f) / 3.0,
    "sum of outputs": lambda f, g: g.sum(axis=1) + pt.stack([f, -f], axis=1).mean(axis=1),
    "weights": lambda f, g: g @ np.array([1.0, 2.0]),
    "cumulated": lambda f, g: g.cumsum(axis=1).T,
    "far away": lambda f, g: 1e-3 * f + 1e9,
    "as large": lambda f, g: pt.zeros_like(f) + g[:, 1],
    "reshaped": lambda f, g: f.reshape((-1, 1)),
}
CURVED = {
    "capped": lambda f, g: pm.math.minimum(f, 3.0),
    "tiny": lambda f, g: 1e-11 * pm.math.exp(f),
    "product": lambda f, g: f * g[:, 0],
    "ratio": lambda f, g: 1.0 / f,
    "largest output": lambda f, g: g.max(axis=1),
    "softmax": lambda f, g: pm.math.softmax(g, axis=1),
    "kinked far away": lambda f, g: pm.math.switch(f > 1e3, 0.0, f),
    "square": lambda f, g: f**2,
}


@pytest.mark.parametrize("name", STRAIGHT | CURVED)
def test_ops_say_whether_it_is_linear(name):
    outputs = [pt.tensor(shape=(None, k), dtype="float64") for k in (1, 2)]
    made = (STRAIGHT | CURVED)[name](outputs[0][:, 0], outputs[1])
    assert is_linear(made, outputs) is (name in STRAIGHT)


@cache
def fitted(m=3):
    """Two forests of so many trees."""
    with pm.Model() as model:
        data = pm.Data("X", X)
        f = pmt.BART("f", data, m=m, leaf=pmt.NormalLeaf(0.0, 3.0))
        g = pmt.BART("g", data, m=m, leaf=pmt.NormalLeaf(0.0, 3.0), shape=(2, 14)).T
        for name, make in (STRAIGHT | CURVED).items():
            pm.Deterministic(name, make(f, g))
        pm.Normal("y", f + g.sum(axis=1), 1.0, observed=np.sin(6 * X[:, 0]))
        return model, draws_of()


@pytest.mark.parametrize("name", STRAIGHT)
def test_values_of_a_sum_add_up_to_it(name):
    model, idata = fitted()
    found = pmt.shap_values(idata, model, background=3, random_state=1, var_name=name, **QUIET)
    total = found["base_values"] + found["values"].sum("feature")
    f = pmt.predictions(idata, model, var_name=name, progressbar=False)["prediction"]
    np.testing.assert_allclose(total.transpose(*f.dims), f, rtol=1e-15, atol=1e-12)
    assert (found["values"] != 0).any()


@pytest.mark.parametrize("name", CURVED)
@pytest.mark.parametrize("ask", CLOSED_FORMS)
def test_a_curved_function_of_a_sum_is_refused(name, ask):
    model, idata = fitted()
    with pytest.raises(ValueError, match=f"{name} is not a sum of trees.*var_name") as error:
        ask(idata, model, var_name=name, **QUIET)
    assert "Shapley" not in str(error.value)
    if ask is pmt.shap_values:
        assert "give background=" in str(error.value)


@pytest.mark.parametrize("ask", CLOSED_FORMS)
def test_func_of_a_sum_is_refused_wherever_it_is_curved(ask):
    model, idata = fitted()
    with pytest.raises(ValueError, match=r"func\(f\) is not a sum of trees.*(leave|without) func"):
        ask(idata, model, var_name="f", func=lambda v: np.minimum(v, 1e9), **QUIET)


def test_of_one_tree_any_function_is_a_sum_of_leaves():
    with pm.Model() as model:
        tree = pmt.DecisionTree("f", X, leaf=pmt.NormalLeaf(0, 1))
        pm.Deterministic("capped", pm.math.minimum(tree, 0.1))
        pm.Normal("y", tree, 0.1, observed=np.sin(6 * X[:, 0]))
        idata = draws_of()
    for given in ({"var_name": "capped"}, {"var_name": "f", "func": lambda v: np.minimum(v, 0.1)}):
        found = pmt.shap_values(idata, model, **given, **QUIET)
        total = found["base_values"] + found["values"].sum("feature")
        wanted = np.minimum(idata.posterior["f"].to_numpy(), 0.1)
        np.testing.assert_allclose(total.transpose("chain", "draw", "row"), wanted, atol=1e-12)
    for ask in CLOSED_FORMS:
        with pytest.raises(ValueError, match=r"f: the leaves do not add up to f.*func"):
            ask(idata, model, var_name="f", func=lambda v: v - v.mean(), **QUIET)
