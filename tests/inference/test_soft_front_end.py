"""`SoftDecisionTree` as a variable of a model: settings, prior, prediction, saving, refusals."""

import subprocess
import sys

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
import xarray as xr
from support.soft_models import classification, leaf_shares, regression, scaled

import pymc_trees as pmt
from pymc_trees.dcc.kernels.encode import encode, evaluate, label_of, log_prior, n_splits
from pymc_trees.dcc.soft_tree_rv import fingerprint_of, soft_tree_inputs
from pymc_trees.distributions.leaves.dirichlet import DirichletLeaf

pytestmark = pytest.mark.usefixtures("quick_compile")


@pytest.fixture(scope="module")
def model(quick_compile):
    return regression(p=2)[0]


def draws_of(model, values, sigma=0.3):
    """Posterior group with given trees."""
    data = {
        "mu_forest": (("chain", "draw", "mu_forest_dim_0", "mu_forest_dim_1"), values[None]),
        "sigma": (("chain", "draw"), np.full((1, len(values)), sigma)),
    }
    return xr.DataTree.from_dict({"posterior": xr.Dataset(data)})


def trees(model, count=6, seed=3):
    rv = model["mu_forest"]
    return pm.draw(rv, count, random_seed=seed)


def test_prior_draws_are_trees_with_their_prior_probability(model):
    draws = trees(model, 400)
    logp = model.compile_logp(vars=model["mu_forest"])
    labels = [label_of(v) for v in draws]
    for label in ("L", "SLL"):
        p = np.exp(log_prior(label, 0.95, 1.0))
        assert abs(labels.count(label) / 400 - p) < 4 * np.sqrt(p / 400)
    point = model.initial_point()
    assert label_of(point["mu_forest"]) == "L"
    for value in draws[:20]:
        label = label_of(value)
        leaves = value[value[:, 0] == -1, 1]
        expected = log_prior(label, 0.95, 1.0) - 0.5 * (leaves**2 + np.log(2 * np.pi)).sum()
        # two inputs: the density of a uniform Delta is 1
        assert logp({**point, "mu_forest": value}) == pytest.approx(expected)


def test_a_value_that_is_no_tree_is_impossible(model):
    point = model.initial_point()
    point["mu_forest"] = point["mu_forest"] + 0.1
    assert model.compile_logp(vars=model["mu_forest"])(point) == -np.inf


def test_prediction_at_new_rows_uses_the_training_range(model, rng):
    _, X, _ = regression(p=2)
    delta, tau, values = rng.dirichlet([1, 1], 1), np.array([0.4]), np.array([[1.0], [-2.0]])
    value = encode("SLL", delta, tau, values, 63, fingerprint_of(model["mu_forest"]))
    new = X[:7] * 1.5
    with model:
        pm.set_data({"mu_X": new})
        try:
            out = pm.sample_posterior_predictive(
                draws_of(model, value[None]),
                predictions=True,
                var_names=["mu", "y"],
                progressbar=False,
                random_seed=1,
            )
        finally:
            pm.set_data({"mu_X": X})
    low, span = X.min(axis=0), np.ptp(X, axis=0)
    expected = leaf_shares("SLL", (new - low) / span, delta, tau, 0.05) @ values[:, 0]
    np.testing.assert_allclose(out.predictions["mu"].values[0, 0], expected, rtol=1e-10)
    assert out.predictions["y"].shape == (1, 1, 7)


@pytest.mark.parametrize("direction", ["dirichlet", "index"])
def test_rows_that_are_no_numbers_are_refused_wherever_they_come_from(direction):
    """What an expression makes of data is seen by nobody else, as the log of 0 or of -1."""
    D = np.linspace(0.1, 1.0, 20).reshape(10, 2)
    with pm.Model() as model:
        leaf = pmt.NormalLeaf(0, 1)
        mu = pmt.SoftDecisionTree("mu", pt.log(pm.Data("D", D)), leaf=leaf, direction=direction)
    forest = model["mu_forest"]
    parts = np.array([[1.0, 0.0]]), np.array([0.4]), np.array([[1.0], [-2.0]])
    value = encode("SLL", *parts, forest.owner.op.max_nodes, fingerprint_of(forest))
    function = pytensor.function([forest], mu)
    known = function(value)
    for cell in (0.0, -1.0):
        D[3, 1] = cell  # in a column that the split gives no weight
        model["D"].set_value(D)
        with pytest.raises(ValueError, match="X holds NaN or infinite values: soft trees take"):
            function(value)
    D[3, 1] = 0.5
    model["D"].set_value(D)
    np.testing.assert_array_equal(function(value), known)


def test_a_row_so_far_away_that_its_scale_overflows_counts_no_more_than_its_weight():
    X = np.array([[0.0, 0.0], [1e-5, 1.0]])
    delta, tau, values = np.array([[0.0, 1.0]]), np.array([0.5]), np.array([[1.0], [-2.0]])
    value, low, span = encode("SLL", delta, tau, values, 3, 1.0), X[0], X[1]
    new = np.array([[1e305, 1.0], [-1e305, 1.0], [1e-5, 1.0]])
    far, farther, near = evaluate(value, new, low, span, 0.1, 1, 1.0)[:, 0]
    assert far == farther == near


def test_the_density_of_depths_that_hardly_split_is_a_number():
    """(1 + d)**-700 underflows below the children of the root."""
    X = np.linspace(0, 1, 5)[:, None]
    with pm.Model() as model:
        pmt.SoftDecisionTree("mu", X, leaf=pmt.NormalLeaf(0, 1), alpha=0.9, beta=700.0)
    forest = model["mu_forest"]
    logp = model.compile_logp()
    for label in ("L", "SLL", "SSLLL"):
        n = n_splits(label)
        parts = np.ones((n, 1)), np.full(n, 0.5), np.zeros((n + 1, 1))
        value = encode(label, *parts, forest.owner.op.max_nodes, fingerprint_of(forest))
        expected = log_prior(label, 0.9, 700.0) - 0.5 * (n + 1) * np.log(2 * np.pi)
        assert logp({"mu_forest": value}) == pytest.approx(expected, rel=1e-12)


REOPEN = """
import sys
import numpy as np, pymc as pm, pytensor, xarray as xr
pytensor.config.mode = "FAST_COMPILE"
sys.path.insert(0, "tests")
from support.soft_models import regression
import pymc_trees as pmt
model, X, y = regression(p=2)
idata = xr.open_datatree(sys.argv[1])
pmt.check_draws(idata, model)
with model:
    pm.set_data({"mu_X": X[:3]})
    out = pm.sample_posterior_predictive(
        idata, predictions=True, var_names=["mu"], progressbar=False, random_seed=1)
print(repr(out.predictions["mu"].values.tolist()))
"""


@pytest.mark.full
def test_saved_draws_predict_in_a_new_process(model, tmp_path):
    idata = draws_of(model, trees(model, 3))
    _, X, _ = regression(p=2)
    with model:
        here = pm.sample_posterior_predictive(
            idata, predictions=True, var_names=["mu"], progressbar=False, random_seed=1
        )
    path = tmp_path / "draws.nc"
    idata.to_netcdf(path, engine="h5netcdf")
    out = subprocess.run(
        [sys.executable, "-c", REOPEN, str(path)], capture_output=True, text=True, check=True
    )
    there = np.array(eval(out.stdout.strip().splitlines()[-1]))
    # of fewer rows: a product of matrices rounds by its size and where it lies
    np.testing.assert_allclose(there, here.predictions["mu"].values[..., :3], rtol=1e-13)


def test_draws_of_another_scaling_are_told_apart(model):
    idata = draws_of(model, trees(model, 3))
    pmt.check_draws(idata, model)
    other, *_ = regression(n=20, p=2)
    with pytest.raises(ValueError, match="other training inputs"):
        pmt.check_draws(idata, other)
    altered = idata.copy()
    altered["posterior"] = xr.DataTree(idata["posterior"].to_dataset().drop_vars("mu_forest"))
    with pytest.raises(ValueError, match="lacks mu_forest"):
        pmt.check_draws(altered, model)


@pytest.mark.parametrize("outsider", ["find_MAP", "sample_smc"])
def test_methods_that_cannot_move_a_tree_say_so(model, outsider):
    with model, pytest.raises(NotImplementedError, match="DCCTree"):
        getattr(pm, outsider)()


def test_gradients_are_refused_with_the_remedy(model):
    with pytest.raises(NotImplementedError, match="sample_dcc"):
        pytensor.grad(model.logp(), model.rvs_to_values[model["mu_forest"]])


def test_an_input_that_does_not_vary_and_one_row_are_no_trouble():
    with pm.Model() as model:
        pmt.SoftDecisionTree("mu", [[1.0, 2.0]], leaf=pmt.NormalLeaf(0, 1))
    assert np.isfinite(pm.draw(model["mu"], 3, random_seed=1)).all()


def test_kind_of_the_default_leaf_follows_y():
    with pm.Model() as model:
        p = pmt.SoftDecisionTree("p", np.eye(3), np.array([0, 1, 2]))
        mu = pmt.SoftDecisionTree("mu", np.eye(3), np.array([0.0, 1.0, 2.0]))
    assert (p.ndim, mu.ndim) == (2, 1)
    tree = model["p_forest"]
    alpha, _ = soft_tree_inputs(tree).leaf
    assert (tree.owner.op.leaf_type, float(alpha.data)) == (DirichletLeaf, 3.0)


WRONG = {
    "alpha number": ({"alpha": 1.5}, ValueError, "alpha"),
    "beta number": ({"beta": -1}, ValueError, "beta"),
    "h order": ({"h": (0.01, 0.1)}, ValueError, "h="),
    "h zero": ({"h": (0.1, 0.0)}, ValueError, "h="),
    "h single": ({"h": 0.1}, TypeError, "h="),
    "leaf": ({"leaf": pmt.NormalGammaLeaf()}, ValueError, "NormalLeaf or a DirichletLeaf"),
    "no leaf": ({"leaf": 3}, TypeError, "leaf="),
    "max_nodes": ({"max_nodes": 0}, ValueError, "max_nodes"),
    "Y shape": ({"Y": np.zeros(2)}, ValueError, "Y has shape"),
    "Y classes": ({"Y": np.array([0, 0, 0])}, ValueError, "at least two classes"),
    "X": ({"X": np.zeros(3)}, ValueError, "two-dimensional"),
    "X nan": ({"X": [[np.nan], [1.0]]}, ValueError, "NaN"),
    "X rows": ({"X": np.zeros((0, 2))}, ValueError, "no rows"),
}


@pytest.mark.parametrize("what", WRONG)
def test_wrong_settings_are_named(what):
    settings, error, match = WRONG[what]
    with pm.Model(), pytest.raises(error, match=match):
        pmt.SoftDecisionTree("mu", **{"X": np.eye(3), **settings})


def test_prior_of_topologies_must_be_numbers():
    with pm.Model(), pytest.raises(TypeError, match="must not depend"):
        pmt.SoftDecisionTree("mu", np.eye(3), alpha=pm.Beta("a", 1, 1))


def refused(build, error, match):
    with pm.Model() as model, pytest.raises(error, match=match):
        build()
        pmt.DCCTree(model=model)


def test_models_that_dcc_tree_cannot_treat_are_refused_by_name():
    X = np.eye(3)

    def two():
        pmt.SoftDecisionTree("a", X)
        pmt.SoftDecisionTree("b", X)

    def discrete():
        pmt.SoftDecisionTree("a", X)
        pm.Poisson("count", 1.0)

    def latent():
        pm.Normal("z", pmt.SoftDecisionTree("a", X), 1.0)

    def scaled_probabilities():
        p = pmt.SoftDecisionTree("p", X, np.array([0, 1, 1]))
        pm.Categorical("y", p=0.5 * p + 0.25, observed=[0, 1, 1])

    def hard():
        pmt.SoftDecisionTree("a", X)
        pmt.BART("b", X, leaf=pmt.NormalLeaf(0, 1), m=2)

    refused(lambda: pm.Normal("z"), ValueError, "one SoftDecisionTree")
    refused(two, ValueError, r"has \['a_forest', 'b_forest'\]: several")
    refused(discrete, NotImplementedError, r"\['count'\]")
    refused(hard, NotImplementedError, r"\['b_forest'\]")
    refused(latent, NotImplementedError, r"\['z'\]")
    refused(scaled_probabilities, NotImplementedError, "pm.Categorical")


def test_classes_out_of_range_are_refused():
    model, _, _ = classification()
    with model:
        pm.Deterministic("extra", model["p"][:, 0])
    with pm.Model() as wrong:
        p = pmt.SoftDecisionTree("p", np.eye(3), leaf=pmt.DirichletLeaf(2, 2))
        pm.Categorical("y", p=p, observed=[0, 1, 2])
    with pytest.raises(ValueError, match="whole numbers from 0 to 1"):
        from pymc_trees.dcc.topology_model import TopologyModel

        TopologyModel(wrong)


def test_scaling_of_the_helpers_is_that_of_the_model():
    _, X, _ = regression(p=2)
    assert scaled(X).min() == 0 and scaled(X).max() == 1
