"""Predictions of many rows: summaries over draws in blocks, rows that are left out, and memory."""

import tracemalloc
from functools import cache

import numpy as np
import pandas as pd
import pymc as pm
import pytest
import xarray as xr

import pymc_trees as pmt
from pymc_trees.posterior import maps

pytestmark = pytest.mark.usefixtures("quick_compile")
QUIET = {"progressbar": False}
SUMMARY = ("mean", 0.95, "sd", 0.05)


@cache
def asked():
    """A model of two outputs, and one of a single tree with an exposure; draws of the prior."""
    X = np.random.default_rng(0).random((20, 3))
    X[4, 1] = np.nan
    with pm.Model(coords={"kind": ["low", "high"]}) as model:
        data = pmt.Data("X", X, dims=("X_row", "X_column"))
        exposure = pm.Data("exposure", np.ones(20))
        f = pmt.BART("f", data, m=3, leaf=pmt.NormalLeaf(0, 1))
        pmt.BART("g", data, m=2, leaf=pmt.NormalLeaf(0, 1), dims=("kind", "X_row"))
        pm.Deterministic("rate", exposure * pm.math.exp(f))
        prior = pm.sample_prior_predictive(50, random_seed=1)
    return model, xr.DataTree.from_dict({"posterior": prior["prior"].to_dataset()})


def summarised(values):
    sample = ("chain", "draw")
    parts = [values.mean(sample), values.quantile(0.95, sample), values.std(sample)]
    return np.stack([*parts, values.quantile(0.05, sample)])


@pytest.mark.parametrize("name", ["f", "g", "rate"])
def test_summaries_are_those_of_all_draws(monkeypatch, name):
    model, idata = asked()
    monkeypatch.setattr(maps, "READ", 7)
    monkeypatch.setattr(maps, "ROOM", 150)
    new = np.random.default_rng(1).random((23, 3))
    data = {"X": new, "exposure": np.arange(23.0)} if name == "rate" else new
    options = {"var_name": name, "func": np.tanh, **QUIET}
    values = pmt.predictions(idata, model, data, **options)["prediction"]
    found = pmt.predictions(idata, model, data, summary=SUMMARY, **options)["prediction"]
    assert found["summary"].to_numpy().tolist() == ["mean", "0.95", "sd", "0.05"]
    assert found.dims == ("summary", *values.dims[2:])
    np.testing.assert_allclose(found, summarised(values), rtol=1e-12)
    by = {"by": True, "summary": "mean"}
    mean = pmt.predictions(idata, model, data, **by, **options)["prediction"]
    np.testing.assert_allclose(mean[0], values.mean(("chain", "draw", "row")), rtol=1e-12)


def test_rows_are_left_out_by_a_mask_or_where_nothing_is_known(monkeypatch):
    model, idata = asked()
    monkeypatch.setattr(maps, "READ", 4)
    new = np.random.default_rng(1).random((11, 3))
    new[[2, 3, 9]] = np.nan
    new[5, :2] = np.nan
    known = ~np.isnan(new).all(axis=1)
    everywhere = pmt.predictions(idata, model, new, var_name="f", **QUIET)["prediction"].to_numpy()
    frame = pd.DataFrame(new, columns=["a", "b", "c"])
    for data in (new, frame):
        for where in ("present", known, known.tolist()):
            options = {"var_name": "f", "where": where, **QUIET}
            found = pmt.predictions(idata, model, data, **options)["prediction"].to_numpy()
            assert np.isnan(found[..., ~known]).all()
            np.testing.assert_array_equal(found[..., known], everywhere[..., known])
            few = pmt.predictions(idata, model, data, summary=[0.5], **options)["prediction"]
            np.testing.assert_allclose(few[0], np.median(found, axis=(0, 1)), rtol=1e-12)
            mean = pmt.predictions(idata, model, data, by=True, **options)["prediction"]
            np.testing.assert_allclose(mean, everywhere[..., known].mean(-1), rtol=1e-12)
    rate = {"X": new, "exposure": 2.0}
    found = pmt.predictions(idata, model, rate, var_name="rate", where=known, **QUIET)["prediction"]
    np.testing.assert_allclose(found[..., known], 2 * np.exp(everywhere[..., known]), rtol=1e-12)


@pytest.mark.parametrize("of", ["array", "file"])
def test_a_map_takes_the_memory_of_its_answer(tmp_path, monkeypatch, of):
    model, idata = asked()
    monkeypatch.setattr(maps, "READ", 2**12)
    monkeypatch.setattr(maps, "ROOM", 2**14)
    cells = np.random.default_rng(2).random((100_000, 3))
    if of == "file":
        np.save(tmp_path / "map.npy", cells)
        cells = np.load(tmp_path / "map.npy", mmap_mode="r")
    options = {"var_name": "f", "summary": ("mean", "sd", 0.05, 0.95), "draws": 10, **QUIET}
    pmt.predictions(idata, model, cells[:50], **options)  # compiled
    tracemalloc.start()
    found = pmt.predictions(idata, model, cells, where="present", **options)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    blocks = 8 * (6 * 3 * 2**12 + 6 * 2**14)  # rows as they are read, and values that are held
    assert peak < 1.1 * found.nbytes + blocks + 2e6
    assert peak < 8 * 10 * len(cells)  # what the draws would take
    some = pmt.predictions(idata, model, cells[77_000:77_010], var_name="f", draws=10, **QUIET)
    part = found["prediction"].sel(summary="mean")[77_000:77_010]
    np.testing.assert_allclose(part, some["prediction"].mean(("chain", "draw")), rtol=1e-12)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"summary": "median"}, "'median' is no summary; give some of"),
        ({"summary": (0.5, 1.5)}, "1.5 is no summary"),
        ({"summary": ()}, "give at least one, and each once"),
        ({"summary": ("sd", "sd")}, "give at least one, and each once"),
        ({"where": "here"}, "where='here': give 'present', or a mask"),
        ({"where": np.ones(3, bool)}, "where has the shape .3,. and the type bool.*of the 20 rows"),
        ({"where": np.ones(20)}, "and the type float64: give a mask"),
        ({"where": np.zeros(20, bool), "by": True}, "where: no row is left"),
        ({"draws": 0}, "draws=0: must be a whole number of at least 1"),
    ],
)
def test_what_is_wrong_is_said(options, message):
    model, idata = asked()
    with pytest.raises(ValueError, match=message):
        pmt.predictions(idata, model, var_name="f", **options, **QUIET)


def test_draws_that_are_too_many_to_return_are_refused(monkeypatch):
    model, idata = asked()
    monkeypatch.setattr("pymc_trees.posterior.draws.LARGEST", 5_000)
    with pytest.raises(
        ValueError, match="predictions: the result would have 1,000 numbers.*summary="
    ):
        pmt.predictions(idata, model, var_name="f", **QUIET)
    assert pmt.predictions(idata, model, var_name="f", summary="mean", **QUIET)
