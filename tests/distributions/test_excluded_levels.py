"""A column that no tree splits on may have any number of levels."""

import numpy as np
import pandas as pd
import pymc as pm
import pytest

import pymc_trees as pmt

pytestmark = pytest.mark.usefixtures("quick_compile")
N = 70
RNG = np.random.default_rng(5)
FRAME = pd.DataFrame(
    {
        "id": [f"customer {k}" for k in range(N)],
        "age": RNG.random(N),
        "site": RNG.choice(["a", "b", "c"], N),
    }
)
Y = 2 * FRAME.age.to_numpy() + (FRAME.site == "a") + RNG.normal(0, 0.2, N)
WEIGHTS = {"name": {"id": 0.0}, "array": [0.0, 1.0, 1.0]}


def model_of(X, **given):
    with pm.Model() as model:
        mu = pmt.BART("mu", X, Y, m=4, max_nodes=300, **given)
        pm.Normal("y", mu, 0.3, observed=Y, shape=mu.shape)
    return model


def counts(model, draws=30):
    """Splits on each column in draws of the prior, and f at the rows."""
    with model:
        prior = pm.sample_prior_predictive(draws, random_seed=1)
    prior["posterior"] = prior["prior"]
    counted = pmt.get_variable_inclusion(prior, model)["count"]
    return dict(zip(counted.feature.values, counted.sum(("chain", "draw")).values, strict=True))


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("made", ["frame", "data"])
def test_trees_split_on_the_others(made, weights):
    with pm.Model():
        X = pmt.Data("X", FRAME) if made == "data" else FRAME
    with pytest.raises(ValueError, match="70 levels, but at most 50 .*weight 0 in split_prior"):
        model_of(X)
    found = counts(model_of(FRAME, split_prior=WEIGHTS[weights]))
    assert found["id"] == 0
    assert found["age"] > 20 and found["site"] > 20


def test_the_model_is_that_of_a_column_of_numbers_left_out():
    """Draws of the prior by the same generator, and densities of the same forest."""
    codes = FRAME.id.astype("category").cat.codes.astype(float)
    models = [model_of(X, split_prior=WEIGHTS["name"]) for X in (FRAME, FRAME.assign(id=codes))]
    f, g = (pm.draw(model["mu"], draws=20, random_seed=3) for model in models)
    np.testing.assert_array_equal(f, g)
    point = models[0].initial_point() | {"mu_forest": pm.draw(models[0]["mu_forest"])}
    first, second = (model.compile_logp()(point) for model in models)
    assert np.isfinite(first) and first == second


def test_new_rows_may_have_ids_that_nobody_had():
    model = model_of(FRAME, split_prior=WEIGHTS["name"])
    with model:
        prior = pm.sample_prior_predictive(5, random_seed=1)
    prior["posterior"] = prior["prior"]
    new = FRAME[:10].assign(id=["customer 3", *["nobody"] * 9])
    found = pmt.predictions(prior, model, new, progressbar=False)["prediction"]
    expected = prior["prior"]["mu"].to_numpy()[..., :10]
    np.testing.assert_allclose(found.to_numpy(), expected)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"monotone": {"id": 1}}, "'id' has levels, which have no order"),
        ({"leaf": pmt.LinearLeaf(columns=["id"])}, "'id' is a column of levels"),
        ({"tree_prior": pmt.MondrianPrior(1.0)}, "split_prior: a Mondrian|70 levels"),
    ],
)
def test_its_codes_are_no_numbers_to_anything_else(given, words):
    with pytest.raises((ValueError, NotImplementedError), match=words):
        model_of(FRAME, split_prior=WEIGHTS["name"], **given)


def test_random_weights_exclude_nothing():
    with pytest.raises(ValueError, match="70 levels"), pm.Model():
        pmt.BART("mu", FRAME, Y, split_prior=pm.Dirichlet("w", np.ones(3)))


@pytest.mark.full
def test_the_estimators_leave_it_out_of_both_forests():
    few = {"draws": 5, "tune": 5, "chains": 1, "cores": 1, "m": 3, "random_state": 1}
    fitted = pmt.BARTRegressor(scale_trees=3, split_prior={"id": 0.0}, **few).fit(FRAME, Y)
    for forest in ("f_forest", "log_sigma_forest"):
        counted = pmt.get_variable_inclusion(fitted.idata_, fitted.model_, forest=forest)["count"]
        assert int(counted.sel(feature="id").sum()) == 0
        assert int(counted.sum()) > 0
    assert np.isfinite(fitted.predict(FRAME[:5])).all()
