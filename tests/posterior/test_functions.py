"""Which functions a model has, and what expressions of other variables are at other rows."""

from functools import cache

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
import xarray as xr
from support.fitted import draws_of, predicted_of

import pymc_trees as pmt
from pymc_trees.posterior.reading.functions import Expression

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


def test_a_product_with_a_random_scale_takes_the_scale_of_each_draw():
    """A half-Cauchy is made of several Ops, and no random Op of PyTensor."""
    model, idata = without_a_name()
    trees = predicted_of(model, idata, "trees", NEW)
    wanted = idata.posterior["scale"].to_numpy()[..., None] * trees
    found = pmt.predictions(idata, model, NEW, var_name="scaled", **QUIET)["prediction"]
    np.testing.assert_allclose(found, wanted, rtol=1e-12)
    with pytest.raises(ValueError, match=r"'y' is not a function of trees.*\['trees', 'scaled'\]"):
        pmt.predictions(idata, model, var_name="y", **QUIET)


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


ALIKE = {
    "link": lambda f, g: pm.math.invlogit(f),
    "first of two outputs": lambda f, g: g[:, 0],
    "contrast of outputs": lambda f, g: g[:, 0] - g[:, 1],
    "softmax": lambda f, g: pm.math.softmax(g, axis=1),
    "transposed": lambda f, g: g.T - g.T.mean(axis=0),
    "cumulated outputs": lambda f, g: g.cumsum(axis=1),
    "stack": lambda f, g: pt.stack([f, g[:, 0], pt.zeros_like(f)], axis=0),
    "weights of outputs": lambda f, g: (g * np.array([1.0, 2.0])).sum(axis=1),
    "product of matrices": lambda f, g: g @ np.array([1.0, 2.0]),
    "sorted outputs": lambda f, g: pt.sort(g, axis=1),
    "reshaped": lambda f, g: f.reshape((-1, 1)),
    "with a column of X": lambda f, g: f * pm.modelcontext(None)["X"][:, 1],
    "several": lambda f, g: pm.math.switch(f > 0, f, pm.math.exp(g[:, 1])) + 3.0,
    "whole slice": lambda f, g: f[0:],
}
MIXED = {
    "demeaned": lambda f, g: f - f.mean(),
    "from the first": lambda f, g: f - f[0],
    "cumulated": lambda f, g: f.cumsum(),
    "total": lambda f, g: f.sum(),
    "part": lambda f, g: f[:5],
    "taken": lambda f, g: f[np.arange(14)[::-1]],
    "softmax of rows": lambda f, g: pm.math.softmax(f),
    "products of rows": lambda f, g: f[:, None] * f[None, :],
    "sorted rows": lambda f, g: pt.sort(f),
    "sorted before": lambda f, g: pt.sort(f - f.mean()),
    "kinked": lambda f, g: f - pm.math.minimum(f.max(), 1e9),
    "mean of X": lambda f, g: f * pm.modelcontext(None)["X"].mean(),
}


@cache
def derived():
    """Functions of a forest with one output and of one with two, some of which mix the rows."""
    with pm.Model() as model:
        data = pm.Data("X", X)
        offset = pm.Data("offset", np.arange(14.0))
        f = pmt.BART("f", data, m=3, leaf=LEAF)
        g = pmt.BART("g", data, m=3, leaf=LEAF, shape=(2, 14)).T
        for name, make in (ALIKE | MIXED).items():
            pm.Deterministic(name, make(f, g))
        pm.Deterministic("offset beside", f + offset)
        pm.Normal("y", f + g.sum(axis=1), 1.0, observed=np.sin(6 * X[:, 0]))
        return model, draws_of()


@pytest.mark.parametrize("name", ALIKE)
def test_functions_of_single_rows(name):
    model, idata = derived()
    together = pmt.predictions(idata, model, NEW, var_name=name, **QUIET)["prediction"]
    for row in range(2):
        alone = pmt.predictions(idata, model, NEW[[row]], var_name=name, **QUIET)["prediction"]
        np.testing.assert_allclose(alone[..., 0], together[..., row], rtol=1e-14)
    assert together.var() > 0


@pytest.mark.parametrize("name", MIXED)
@pytest.mark.parametrize("ask", [pmt.predictions, pmt.shap_values, pmt.compute_variable_importance])
def test_functions_that_mix_rows_are_refused(name, ask):
    model, idata = derived()
    with pytest.raises(ValueError, match=f"row i of {name} depends on other rows.*of trees"):
        ask(idata, model, var_name=name, **QUIET)


def test_what_mixes_rows_is_not_offered():
    model, idata = derived()
    with pytest.raises(ValueError, match="choose from") as error:
        pmt.predictions(idata, model, var_name="unknown", **QUIET)
    offered = ["f", "g", *ALIKE, "offset beside"]
    assert str(error.value).endswith(f"choose from {offered}.")
    with pytest.raises(ValueError, match="offset beside is not a sum of trees"):
        pmt.shap_values(idata, model, var_name="offset beside", **QUIET)
    found = pmt.predictions(idata, model, var_name="offset beside", **QUIET)["prediction"]
    np.testing.assert_allclose(found, idata.posterior["offset beside"], rtol=1e-14)


@cache
def answers(kind):
    """Everything that is asked of a function of two outputs, with a name for their dimension."""
    with pm.Model(coords={kind: ["u", "v"], "obs": range(len(X))}) as model:
        pmt.BART("f", X, m=3, leaf=LEAF, dims=(kind, "obs"))
        prior = pm.sample_prior_predictive(3, random_seed=1)["prior"].to_dataset()
    ask = {
        "predictions": {},
        "means": {"summary": "mean"},
        "comparisons": {},
        "slopes": {},
        "partial_dependence": {"kind": "both", "grid": 3},
        "accumulated_effects": {},
        "shap_values": {},
        "shap_of_exp": {"func": np.exp, "background": 3, "random_state": 1},
        "shap_interactions": {},
        "sobol_indices": {},
        "interaction_strength": {},
        "compute_variable_importance": {},
        "permutation_importance": {"random_state": 1},
    }
    same = {"means": "predictions", "shap_of_exp": "shap_values"}
    return {
        name: getattr(pmt, same.get(name, name))(prior, model, **given, **QUIET)
        for name, given in ask.items()
    }


@pytest.mark.parametrize("kind", ["row", "feature"])
def test_outputs_called_as_a_dimension_of_answers(kind):
    neutral = answers("kind")
    for name, found in answers(kind).items():
        assert set(found.data_vars) == set(neutral[name].data_vars)
        for one, wanted in neutral[name].data_vars.items():
            assert found[one].dims == tuple(dim.replace("kind", f"{kind}_") for dim in wanted.dims)
            np.testing.assert_array_equal(found[one].to_numpy(), wanted.to_numpy())
        assert found[f"{kind}_"].to_numpy().tolist() == ["u", "v"]


def test_rows_set_anew_change_nothing_about_it():
    model, idata = derived()
    wanted = pmt.predictions(idata, model, NEW, var_name="softmax", **QUIET)["prediction"]
    for rows in (NEW, NEW[:1]):
        with model:
            pm.set_data({"X": rows})
        try:
            found = pmt.predictions(idata, model, var_name="softmax", **QUIET)["prediction"]
            np.testing.assert_allclose(found, wanted[..., : len(rows)], rtol=1e-14)
            for name, said in (
                ("demeaned", "demeaned depends on other rows"),
                ("offset beside", "The data have different numbers of rows now"),
            ):
                with pytest.raises(ValueError, match=said):
                    pmt.predictions(idata, model, var_name=name, **QUIET)
        finally:
            with model:
                pm.set_data({"X": X})


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
