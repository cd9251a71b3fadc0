"""The summary of f against ArviZ's of the same draws."""

from functools import cache

import arviz as az
import numpy as np
import pytest
from support.fitted import frame, on_a_frame, two_functions

import pymc_trees as pmt

pytestmark = pytest.mark.usefixtures("quick_compile")
_on_a_frame, _two_functions = cache(on_a_frame), cache(two_functions)


def test_rows_of_the_model_are_as_arviz_has_them():
    model, idata = _on_a_frame()
    found = pmt.summarise_function(idata, model, ci_prob=0.8)
    wanted = az.summary(
        idata, var_names=["mu"], ci_prob=0.8, ci_kind="eti", round_to="none", kind="all"
    )
    columns = {
        "mean": "mean",
        "sd": "sd",
        "r_hat": "r_hat",
        "ess_bulk": "ess_bulk",
        "ess_tail": "ess_tail",
        "mcse_mean": "mcse_mean",
    }
    for ours, theirs in columns.items():
        np.testing.assert_allclose(found[ours], wanted[theirs].to_numpy(dtype=float), rtol=1e-9)
    draws = idata.posterior["mu"].stack(sample=("chain", "draw"))
    np.testing.assert_allclose(found["low"], draws.quantile(0.1, "sample"), rtol=1e-12)
    np.testing.assert_allclose(found["high"], draws.quantile(0.9, "sample"), rtol=1e-12)


def test_other_rows_outputs_and_links():
    model, idata = _two_functions()
    X = np.random.default_rng(6).random((5, 2))
    found = pmt.summarise_function(idata, model, X, var_name="f", func=np.exp)
    assert dict(found["mean"].sizes) == {"kind": 2, "row": 5}
    wanted = pmt.predictions(idata, model, X, var_name="f", func=np.exp)["prediction"]
    np.testing.assert_allclose(found["mean"], wanted.mean(("chain", "draw")), rtol=1e-12)


def test_one_chain_has_no_r_hat():
    model, idata = _on_a_frame()
    found = pmt.summarise_function(idata.isel(chain=[0]), model, frame().iloc[:2])
    assert np.isnan(found["r_hat"]).all() and found["mean"].sizes == {"row": 2}
