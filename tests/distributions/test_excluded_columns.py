"""A split weight of 0 excludes a column, whether it is a number, a tensor or model data."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from support.small_models import forest_of, step_data

import pymc_trees as pmt
from pymc_trees.distributions.forest_inputs import forest_inputs

pytestmark = pytest.mark.usefixtures("quick_compile")
X, Y = step_data(30, 3)
X[:, ::2] = np.floor(3 * X[:, ::2])  # so that in many a node the column of weight 0 alone varies
WEIGHTS = [2.0, 0.0, 1.0]
FORMS = {
    "constant": lambda: pt.constant(WEIGHTS),
    "of constants": lambda: pt.as_tensor(np.sqrt(WEIGHTS)) ** 2,
    "data": lambda: pm.Data("weights", WEIGHTS),
    "of data": lambda: 3.0 * pm.Data("weights", np.array([2, 0, 1])) / 7,
}


def model_of(weights):
    """A forest with these split weights, given as a function."""
    with pm.Model() as model:
        mu = pmt.BART("mu", X, Y, m=4, alpha=0.9, beta=0.5, split_prior=weights(), max_nodes=236)
        pm.Normal("y", mu, 0.5, observed=Y)
    return model


def nodes_of(model, values):
    """Column, and cut or value, of every node."""
    _, layout, _ = forest_of(model)
    return np.asarray(values)[..., : layout.max_nodes, :2]


def columns_used(model, values):
    column = nodes_of(model, values)[..., 0]
    return set(np.unique(column[column >= 0]))


@pytest.mark.parametrize("form", FORMS)
def test_prior_draws_and_log_probability_are_those_of_numbers(form):
    found = []
    for weights in (FORMS[form], lambda: WEIGHTS):
        model = model_of(weights)
        rv, _, _ = forest_of(model)
        draws = pm.draw(rv, 20, random_seed=2)
        logp = model.compile_logp(vars=[rv])
        point = model.initial_point()
        found.append(
            (nodes_of(model, draws), [float(logp({**point, "mu_forest": v})) for v in draws])
        )
        assert columns_used(model, draws) == {0, 2}
    np.testing.assert_array_equal(found[0][0], found[1][0])
    np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-12)


@pytest.mark.parametrize("form", ["constant", "data"])
def test_steps(form):
    model = model_of(FORMS[form])
    logp = model.compile_logp()
    step = pmt.CGM(model=model, rng=1)
    point, used = model.initial_point(), set()
    for _ in range(40):
        point, _ = step.step(point)
        used |= columns_used(model, point["mu_forest"])
    assert used == {0, 2}
    assert np.isfinite(logp(point))


def test_new_weights_for_the_same_columns():
    model = model_of(FORMS["data"])
    rv, _, _ = forest_of(model)
    point = model.initial_point()
    step = pmt.CGM(model=model, rng=1)
    for weights in ([1e-9, 0.0, 1.0], [1.0, 0.0, 1e-9]):
        with model:
            pm.set_data({"weights": weights})
        often = 2 if weights[2] == 1.0 else 0
        roots = nodes_of(model, pm.draw(rv, 20, random_seed=2))[:, 0, 0]
        assert set(roots[roots >= 0]) == {often}
        step.step(point)


def test_other_columns_cannot_be_excluded_afterwards():
    model = model_of(FORMS["data"])
    rv, _, _ = forest_of(model)
    point, logp, step = model.initial_point(), model.compile_logp(), pmt.CGM(model=model, rng=1)
    for weights in ([2.0, 1.0, 1.0], [2.0, 0.0, 0.0], [2.0, 0.0, np.nan], [2.0, -1.0, 1.0]):
        with model:
            pm.set_data({"weights": weights})
        for use in (lambda: pm.draw(rv), lambda: logp(point), lambda: step.step(point)):
            with pytest.raises(AssertionError, match="split_prior.*declare the model again"):
                use()


@pytest.mark.parametrize(
    ("weights", "said"),
    [
        ([1.0, -1.0, 1.0], "at least 0"),
        ([0.0, 0.0, 0.0], "not all 0"),
        ([1.0, np.inf, 0.0], "finite"),
        ([1.0, 1.0], "2"),
    ],
)
@pytest.mark.parametrize("as_data", [True, False])
def test_tensors_are_checked_as_numbers_are(weights, said, as_data):
    with pm.Model():
        given = pm.Data("weights", weights) if as_data else pt.constant(weights)
        with pytest.raises(ValueError, match=f"split_prior.*{said}"):
            pmt.BART("mu", X, Y, split_prior=given)


@pytest.mark.parametrize(
    ("weights", "shares"),
    [([1e308] * 3, [1 / 3] * 3), ([1e308, 0.0, 1e-20], [1.0, 0.0, 1e-300])],
)
@pytest.mark.parametrize("as_data", [True, False])
def test_weights_at_the_edge_of_floating_point(weights, shares, as_data):
    """Their sum overflows; and a weight that is not 0 excludes nothing."""
    model = model_of(lambda: pm.Data("weights", weights) if as_data else weights)
    rv, _, _ = forest_of(model)
    found = forest_inputs(rv).weights.eval()
    np.testing.assert_allclose(found / found.sum(), shares, rtol=1e-12)


def test_an_array_has_no_names_of_columns():
    with pytest.raises(
        ValueError, match=r"split_prior names the columns \['a'\], which X does not"
    ):
        pmt.Forest.dist(X, leaf=pmt.NormalLeaf(0, 1), split_prior={"a": 1.0})
