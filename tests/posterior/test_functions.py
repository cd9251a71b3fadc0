"""Which functions a model has, and what expressions of other variables are at other rows."""

from functools import cache

import numpy as np
import pymc as pm
import pytest
import xarray as xr
from support.fitted import draws_of, predicted_of

import pymc_trees as pmt
from pymc_trees.posterior.reading.expressions import Expression

pytestmark = pytest.mark.usefixtures("quick_compile")
QUIET = {"progressbar": False}
RNG = np.random.default_rng(3)
X, NEW = RNG.random((14, 2)), RNG.random((5, 2))
LEAF = pmt.NormalLeaf(0.0, 0.5)


@cache
def without_a_name():
    """A forest that is evaluated and not registered, and a scale of a law made of other Ops."""
    with pm.Model() as model:
        data = pm.Data("X", X)
        forest = pmt.Forest("trees", data, m=4, leaf=LEAF)
        scale = pm.HalfCauchy("scale", 1.0)
        offset = pm.Data("offset", np.arange(14.0))
        pm.Deterministic("scaled", scale * pmt.evaluate(forest, data))
        mean = scale * pmt.evaluate(forest, data)
        pm.Normal("y", mean, 1.0, observed=np.sin(6 * X[:, 0]), shape=mean.shape)
        pm.Normal("z", mean + offset, 1.0, observed=np.zeros(14))
        return model, draws_of()


def test_a_forest_without_a_function_goes_by_its_own_name():
    model, idata = without_a_name()
    assert "trees" in idata.posterior and "f" not in idata.posterior
    wanted = predicted_of(model, idata, "trees", NEW)
    for name in (None, "trees"):
        found = pmt.predictions(idata, model, NEW, var_name=name, **QUIET)["prediction"]
        np.testing.assert_allclose(found, wanted, rtol=1e-12)
    shares = pmt.shap_values(idata, model, cores=1, **QUIET)
    f = pmt.predictions(idata, model, **QUIET)["prediction"]
    total = shares["values"].sum("feature") + shares["base_values"]
    np.testing.assert_allclose(total.transpose(*f.dims), f, rtol=0, atol=1e-12)


def test_a_product_with_a_random_scale_is_no_function_of_trees():
    """A half-Cauchy is made of several Ops, and no random Op of PyTensor."""
    model, idata = without_a_name()
    with pytest.raises(ValueError, match=r"'scaled' is no function of trees.*\['trees'\]"):
        pmt.predictions(idata, model, var_name="scaled", **QUIET)


def test_expressions_take_the_variables_of_the_same_draw():
    model, idata = without_a_name()
    expression = Expression(idata, model, model["scaled"], "scaled")
    found = expression.reduced(NEW, lambda values: values, {"row": np.arange(5)})
    trees = predicted_of(model, idata, "trees", NEW)
    wanted = idata.posterior["scale"].to_numpy()[..., None] * trees
    np.testing.assert_allclose(found, wanted, rtol=1e-12)
    assert np.ptp(idata.posterior["scale"].to_numpy()) > 0


def test_what_is_unknown_at_other_rows_is_refused():
    model, idata = without_a_name()
    mean, _ = model["z"].owner.op.dist_params(model["z"].owner)
    with pytest.raises(ValueError, match="z depends on more than the columns of X row by row"):
        Expression(idata, model, mean, "z")
    draws = idata.posterior.to_dataset().drop_vars("scale")
    with pytest.raises(ValueError, match=r"idata lacks \['scale'\], which scaled depends on"):
        Expression(draws, model, model["scaled"], "scaled")


def test_of_leaves_with_a_precision_the_mean_is_meant():
    X = np.linspace(0, 1, 12).reshape(-1, 1)
    with pm.Model() as model:
        pmt.DecisionTree("f", X, leaf=pmt.NormalGammaLeaf())
        prior = pm.sample_prior_predictive(3, random_seed=1)
    idata = xr.DataTree.from_dict({"posterior": prior["prior"].to_dataset()})
    found = pmt.predictions(idata, model, progressbar=False)["prediction"]
    np.testing.assert_allclose(found, idata["posterior"]["f"], rtol=1e-12)
    found = pmt.predictions(idata, model, var_name="f_tau", progressbar=False)["prediction"]
    np.testing.assert_allclose(found, idata["posterior"]["f_tau"], rtol=1e-12)
