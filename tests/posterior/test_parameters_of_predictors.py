"""Which parameters a predictor keeps: none with an entry for each row that was fitted."""

import arviz as az
import numpy as np
import pymc as pm
import pytest
import xarray as xr

import pymc_trees as pmt

pytestmark = pytest.mark.usefixtures("quick_compile")
N = 9


@pytest.fixture
def fitted():
    """A model with a number for each row, and as many draws as rows."""
    X = np.random.default_rng(1).random((N, 2))
    with pm.Model() as model:
        f = pmt.BART("f", pm.Data("X", X), m=2, leaf=pmt.NormalLeaf(0.0, 1.0))
        pm.Normal("own", shape=N)
        pm.Normal("level", shape=3)
        pm.Normal("y", f, pm.HalfNormal("sigma"), observed=np.zeros(N), shape=f.shape)
        drawn = pm.sample_prior_predictive(N, random_seed=1)["prior"].to_dataset()
    return model, xr.DataTree.from_dict({"posterior": drawn})


@pytest.mark.parametrize("stacked", [False, True])
def test_chains_and_draws_may_stand_last(fitted, stacked):
    model, idata = fitted
    drawn = az.extract(idata, keep_dataset=True) if stacked else idata
    assert set(pmt.predictor(drawn, model).parameters) == {"level", "sigma"}


def test_rows_are_those_that_were_fitted(fitted):
    model, idata = fitted
    pm.set_data({"X": np.full((2, 2), 0.5)}, model=model)
    assert set(pmt.predictor(idata, model).parameters) == {"level", "sigma"}
