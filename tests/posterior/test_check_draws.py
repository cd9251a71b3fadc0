"""Draws that cannot predict are found before they do."""

import numpy as np
import pandas as pd
import pymc as pm
import pytest
import xarray as xr
from support.small_models import bart_model, sample, step_data

import pymc_trees as pmt
from pymc_trees.distributions.forest_inputs import declared

pytestmark = pytest.mark.usefixtures("quick_compile")


@pytest.fixture(scope="module")
def fitted(quick_compile):
    model = bart_model(sigma=None)
    with model:
        return model, sample(6, 6)


def with_forest(idata, change):
    """Draws whose forests were changed."""
    posterior = idata.posterior.to_dataset().copy(deep=True)
    posterior["mu_forest"] = posterior["mu_forest"].copy(data=change(posterior["mu_forest"].values))
    return xr.DataTree.from_dict({"posterior": posterior})


def test_good_draws_pass(fitted):
    model, idata = fitted
    assert pmt.check_draws(idata, model) is None
    with model:
        pmt.check_draws(idata)
        pmt.check_draws(idata.isel(draw=slice(1, 3), chain=[1]))
        pm.set_data({"X": np.zeros((3, 2))})
        try:
            pmt.check_draws(idata)
        finally:
            pm.set_data({"X": declared(model["mu_forest"]).X})


def test_a_model_without_forests_passes():
    with pm.Model() as model:
        pm.Normal("x")
    pmt.check_draws(
        xr.DataTree.from_dict({"posterior": xr.Dataset({"x": (("chain", "draw"), [[1.0]])})}), model
    )


def test_no_draws_at_all(fitted):
    model, idata = fitted
    with pytest.raises(ValueError, match=r"no posterior group.*pm\.sample"):
        pmt.check_draws(xr.DataTree.from_dict({"prior": idata.posterior.to_dataset()}), model)


def test_a_missing_forest(fitted):
    model, _ = fitted
    with model:
        idata = sample(3, 3, var_names=["mu", "sigma"])
    with pytest.raises(ValueError, match="(?s)lacks mu_forest.*prior.*var_names"):
        pmt.check_draws(idata, model)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"m": 60, "max_nodes": 295}, r"with other m \(5 instead of 60\)\. "),
        ({"alpha": 0.5, "max_nodes": None}, r"with other max_nodes \(295 instead of \d+.*alpha"),
        (
            {"leaf": pmt.NormalLeaf(0, 1), "tree_prior": pmt.MondrianPrior(1.0)},
            r"with other leaf or tree_prior \(2 instead of 3 numbers a node\)",
        ),
    ],
)
def test_draws_of_another_shape(fitted, settings, said):
    with pytest.raises(ValueError, match=f"mu_forest has shape.*another model, {said}"):
        pmt.check_draws(fitted[1], bart_model(sigma=None, **settings))


@pytest.mark.parametrize("alpha", [0.5, 0.99])
def test_alpha_alone_is_no_matter_of_the_draws(fitted, alpha):
    pmt.check_draws(fitted[1], bart_model(sigma=None, alpha=alpha))


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"m": 6}, r"other m \(5 instead of 6\)\."),
        ({"n_cuts": 5}, "altered .*or belong to another model, with other .*n_cuts"),
        ({"split_prior": [0.2, 0.8]}, "with other .*split_prior"),
        ({"split_rules": {"a": "subset"}}, "with other .*split_rules"),
        ({"split_prior": "random"}, "with other .*split_prior"),
    ],
)
def test_draws_of_another_model_of_the_same_shape(fitted, settings, said):
    X, y = step_data()
    X[:, 0] = np.floor(4 * X[:, 0]) if "split_rules" in settings else X[:, 0]
    with pm.Model() as other:
        if settings.get("split_prior") == "random":
            settings = {"split_prior": pm.Dirichlet("weights", np.ones(2))}
        frame = pd.DataFrame(X, columns=["a", "b"])
        mu = pmt.BART("mu", frame, y, **{"m": 5, "max_nodes": 295, **settings})
        pm.Normal("y", mu, 1.0, observed=y, shape=mu.shape)
    start = "mu_forest, chain 0, draw 0, is not a forest of this model, nor is any other: "
    with pytest.raises(ValueError, match=f"{start}.*{said}"):
        pmt.check_draws(fitted[1], other)


@pytest.mark.parametrize("change", [lambda X: 0.5 * X, lambda X: X[:20], lambda X: X[::-1]])
def test_draws_of_other_training_rows(fitted, change):
    X = change(fitted[0]["X"].get_value())
    with pm.Model() as other:
        pmt.BART("mu", X, m=5, leaf=pmt.NormalLeaf(0, 1), max_nodes=295)
    with pytest.raises(ValueError, match=r"with other .*training inputs X \(.*set_data"):
        pmt.check_draws(fitted[1], other)


def test_draws_of_another_kind_of_leaf():
    X, y = step_data()
    with pm.Model() as two:
        pmt.DecisionTree("mu", X, leaf=pmt.NormalGammaLeaf(), max_nodes=59)
        prior = pm.sample_prior_predictive(6, random_seed=1)
    with pm.Model() as other:
        pmt.DecisionTree("mu", X, leaf=pmt.DirichletLeaf(2.0, 2), max_nodes=59)
    draws = xr.DataTree.from_dict({"posterior": prior["prior"].to_dataset()})
    pmt.check_draws(draws, two)
    with pytest.raises(ValueError, match="with other leaf, "):
        pmt.check_draws(draws, other)


def one_number(values):
    values[1, 4, 2, 1] = np.nextafter(values[1, 4, 2, 1], np.inf)
    return values


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (one_number, "chain 1, draw 4, is not .*1 of 12 draws: they were altered"),
        (lambda v: v.astype(np.float32), "was altered: it is float32"),
        (lambda v: v.astype(object), "was altered: it is object"),
        (lambda v: v.astype(np.float32).astype(float), "chain 0, draw 0, .*rounded to float32"),
        (lambda v: np.round(v, 3), "chain 0, draw 0, .*altered"),
        (np.zeros_like, "chain 0, draw 0, .*altered"),
        (lambda v: np.full_like(v, np.nan), "chain 0, draw 0, .*NaN or infinite"),
    ],
)
def test_altered_draws(fitted, change, said):
    model, idata = fitted
    with pytest.raises(ValueError, match=f"mu_forest.* {said}"):
        pmt.check_draws(with_forest(idata, change), model)


@pytest.mark.parametrize(
    ("select", "said"),
    [
        (lambda i: i.sel(chain=1), r"no dimension \['chain'\].*isel\(chain=\[0\]\)"),
        (lambda i: i.isel(draw=2), r"no dimension \['draw'\].*isel\(draw=\[0\]\)"),
        (
            lambda i: i.isel(draw=2, chain=0),
            r"\['chain', 'draw'\].*isel\(chain=\[0\]\) and idata",
        ),
        (lambda i: i.isel(draw=slice(0, 0)), r"no draws in idata: its shape is \(2, 0, 298, 2\)"),
        (lambda i: i.map_over_datasets(stacked), r"stacked into \['sample'\].*unstack"),
        (
            lambda i: i.map_over_datasets(transposed),
            r"is transposed.*\(chain, draw, rows, fields\)",
        ),
        (lambda i: i.map_over_datasets(expanded), r"has the dimensions \('fold', 'chain', 'draw'"),
    ],
)
def test_draws_of_other_dimensions(fitted, select, said):
    model, idata = fitted
    idata = xr.DataTree.from_dict({"posterior": idata.posterior.to_dataset()})
    with pytest.raises(ValueError, match=f"mu_forest.*{said}"):
        pmt.check_draws(select(idata), model)


def stacked(data):
    return data.stack(sample=("chain", "draw")) if "chain" in data.dims else data


def transposed(data):
    return data.transpose("chain", "draw", "mu_forest_dim_1", ...) if data.dims else data


def expanded(data):
    return data.expand_dims("fold")


def test_the_order_of_chains_and_draws_is_no_matter(fitted):
    model, idata = fitted
    swapped = idata.posterior.to_dataset().transpose("draw", ..., "chain")
    pmt.check_draws(xr.DataTree.from_dict({"posterior": swapped}), model)
