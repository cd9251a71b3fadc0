"""Draws that cannot predict are found before they do."""

import numpy as np
import pymc as pm
import pytest
import xarray as xr
from small_models import bart_model, sample

import pymc_trees as pmt

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
            pm.set_data({"X": model["mu_forest"].owner.inputs[2].data})


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


@pytest.mark.parametrize("settings", [{"m": 4}, {"n": 29}, {"cache_fit": False}])
def test_draws_of_another_shape(fitted, settings):
    with pytest.raises(ValueError, match="(?s)mu_forest has shape.*another model"):
        pmt.check_draws(fitted[1], bart_model(sigma=None, **settings))


@pytest.mark.parametrize("settings", [{"n_cuts": 5}, {"split_prior": [0.2, 0.8]}])
def test_draws_of_another_model_of_the_same_shape(fitted, settings):
    with pytest.raises(ValueError, match="(?s)mu_forest, chain 0, draw 0, is not a forest of this"):
        pmt.check_draws(fitted[1], bart_model(sigma=None, **settings))


def test_draws_of_other_training_rows(fitted):
    X = fitted[0]["X"].get_value()[::-1]
    with pm.Model() as other:
        pmt.BART("mu", X, m=5, leaf=pmt.NormalLeaf(0, 1), max_nodes=295)
    with pytest.raises(ValueError, match="(?s)other training inputs.*set_data"):
        pmt.check_draws(fitted[1], other)


def one_number(values):
    values[1, 4, 2, 1] = np.nextafter(values[1, 4, 2, 1], np.inf)
    return values


@pytest.mark.parametrize(
    ("change", "where"),
    [
        (one_number, "chain 1, draw 4"),
        (lambda v: v.astype(np.float32), "chain 0, draw 0"),
        (lambda v: np.round(v, 3), "chain 0, draw 0"),
        (np.zeros_like, "chain 0, draw 0"),
        (lambda v: np.full_like(v, np.nan), "chain 0, draw 0"),
    ],
)
def test_altered_draws(fitted, change, where):
    model, idata = fitted
    with pytest.raises(ValueError, match=f"(?s)mu_forest, {where}.*altered"):
        pmt.check_draws(with_forest(idata, change), model)
