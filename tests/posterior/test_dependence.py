"""Partial dependence against predictions made one grid value at a time by PyMC itself."""

import arviz as az
import numpy as np
import pandas as pd
import pymc as pm
import pytest
import xarray as xr
from support.fitted import N, draws_of, frame, on_a_frame, predicted, predicted_of, two_functions

import pymc_trees as pmt
from pymc_trees.posterior.reading.features import feature_of
from pymc_trees.predictors.columns import Schema


@pytest.fixture(scope="module")
def fitted():
    return on_a_frame()


@pytest.fixture(scope="module")
def several():
    return two_functions()


@pytest.mark.usefixtures("quick_compile")
def test_one_column_is_the_mean_of_predictions(fitted):
    model, idata = fitted
    found = pmt.partial_dependence(idata, model, "dose", kind="both")
    assert found["individual"].dims == ("chain", "draw", "row", "dose")
    np.testing.assert_array_equal(found["dose"], [0.0, 1.0, 2.0])
    for k, value in enumerate(found["dose"].to_numpy()):
        rows = predicted(model, idata, frame().assign(dose=value))
        np.testing.assert_array_equal(found["individual"][..., k], rows)
        np.testing.assert_allclose(found["average"][..., k], rows.mean(-1), rtol=1e-12)


@pytest.mark.usefixtures("quick_compile")
def test_a_pair_of_levels_and_numbers_with_a_missing_cell(fitted):
    model, idata = fitted
    grid = {"age": [40, None], "site": "quantile"}
    found = pmt.partial_dependence(idata, model, ("site", "age"), func=np.exp, grid=grid)
    assert found["average"].dims == ("chain", "draw", "site", "age")
    assert list(found["site"].to_numpy()) == ["a", "b", "c"]
    np.testing.assert_array_equal(found["age"], [40, np.nan])
    for site in "abc":
        for k, age in enumerate([40.0, np.nan]):
            rows = np.exp(predicted(model, idata, frame().assign(site=site, age=age)))
            here = found["average"].sel(site=site).isel(age=k)
            np.testing.assert_allclose(here, rows.mean(-1), rtol=1e-12)


@pytest.mark.usefixtures("quick_compile")
def test_other_rows_a_subsample_and_blocks(fitted, monkeypatch):
    model, idata = fitted
    X = pd.concat([frame()] * 3, ignore_index=True)
    whole = pmt.partial_dependence(idata, model, "age", X, kind="individual", grid=5)
    assert np.isnan(whole["age"][-1]) and whole.sizes["row"] == 3 * N
    monkeypatch.setattr("pymc_trees.posterior.reading.functions.BLOCK", 7)
    part = pmt.partial_dependence(
        idata, model, "age", X, kind="individual", grid=5, subsample=8, random_state=2
    )
    assert part.sizes["row"] == 8
    np.testing.assert_array_equal(part["individual"], whole["individual"].sel(row=part["row"]))


@pytest.mark.usefixtures("quick_compile")
def test_outputs_keep_their_dimension(several):
    model, idata = several
    found = pmt.partial_dependence(idata, model, 1, var_name="f", grid="linear")
    assert found["average"].dims == ("chain", "draw", "kind", "x1")
    assert list(found["kind"].to_numpy()) == ["low", "high"] and found.sizes["x1"] == N
    X = model["f_X"].get_value().copy()
    for k, value in enumerate(found["x1"].to_numpy()):
        X[:, 1] = value
        forests = [predicted_of(model, idata, f"f_{j}_forest", X) for j in (0, 1)]
        want = np.stack(forests, axis=2).mean(-1)
        np.testing.assert_allclose(found["average"][..., k], want, rtol=1e-12)


@pytest.mark.usefixtures("quick_compile")
def test_functions_are_asked_for_by_name(several):
    model, idata = several
    rate = pmt.partial_dependence(idata, model, 0, var_name="rate")
    g = pmt.partial_dependence(idata, model, 0, var_name="g", func=np.exp)
    np.testing.assert_allclose(rate["average"], g["average"], rtol=1e-12)
    with pytest.raises(ValueError, match=r"functions \['f', 'g'\]: choose one by var_name"):
        pmt.partial_dependence(idata, model, 0)
    with pytest.raises(ValueError, match="var_name='h' is not a function"):
        pmt.partial_dependence(idata, model, 0, var_name="h")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"features": "dosis"}, r"'dosis' is not a column of X: choose from \['age'"),
        ({"features": 3}, "3 is not a column of X, which has 3"),
        ({"features": ("age", 0)}, "different columns"),
        ({"features": ("age", "site", "dose")}, "a tuple of two"),
        ({"features": "site", "grid": ["z"]}, "'z' is not a level of the column 'site'"),
        ({"features": "age", "grid": ["old"]}, "'old' is not a value of the column 'age'"),
        ({"features": "age", "grid": "even"}, "grid='even': choose from"),
        ({"features": "age", "grid": 5.0}, "grid=5.0: give an int, a number of values, or a list"),
        ({"features": "age", "grid": []}, "grid has no values"),
        ({"features": "age", "kind": "ice"}, "kind='ice': choose from"),
        ({"features": "age", "subsample": 0}, "subsample=0: must be a whole number"),
    ],
)
@pytest.mark.usefixtures("quick_compile")
def test_what_is_wrong_is_said(fitted, options, message):
    model, idata = fitted
    with pytest.raises(ValueError, match=message):
        pmt.partial_dependence(idata, model, **options)


@pytest.mark.usefixtures("quick_compile")
def test_draws_of_another_model_are_refused(fitted, several):
    with pytest.raises(ValueError, match="lacks mu_forest"):
        pmt.partial_dependence(several[1], fitted[0], "age")


@pytest.mark.usefixtures("quick_compile")
def test_another_group_and_stacked_draws(fitted):
    model, idata = fitted
    whole = pmt.partial_dependence(idata, model, "dose")["average"]
    both = idata.copy()
    both["prior"] = both["posterior"].isel(draw=[2, 3]).copy()
    prior = pmt.partial_dependence(both, model, "dose", group="prior")["average"]
    np.testing.assert_array_equal(prior, whole.isel(draw=[2, 3]))
    stacked = pmt.partial_dependence(az.extract(idata), model, "dose")["average"]
    np.testing.assert_array_equal(stacked.transpose(*whole.dims), whole)
    some = az.extract(idata, num_samples=3, random_seed=1, combined=True)
    found = pmt.partial_dependence(some, model, "dose")["average"]
    assert dict(found.sizes) == {"chain": 1, "draw": 3, "dose": 3}
    for k in range(3):
        one = whole.sel(chain=some["chain"][k], draw=some["draw"][k])
        np.testing.assert_array_equal(found[0, k], one)
    counts = pmt.get_variable_inclusion(az.extract(idata), model)["share"]
    np.testing.assert_array_equal(counts.sizes["draw"], idata.posterior.sizes["draw"])


@pytest.mark.usefixtures("quick_compile")
def test_whole_numbers_as_names_are_given_as_text():
    X = pd.DataFrame(np.random.default_rng(1).random((N, 3)), columns=[1, 2, 3])
    with pm.Model() as model:
        mu = pmt.BART("mu", X, m=2, leaf=pmt.NormalLeaf(0.0, 1.0))
        pm.Normal("y", mu, 1.0, observed=X[1].to_numpy(), shape=mu.shape)
        idata = draws_of()
    for number, said in (
        (1, "'1' or '2'"),
        (2, "'2' or '3'"),
        (3, "not the number of a column.*'3'"),
    ):
        with pytest.raises(ValueError, match=f"{number} is the name of a column.*{said}"):
            pmt.partial_dependence(idata, model, number)
    held = X.rename(columns=str).assign(**{"1": 0.5})
    want = predicted(model, idata, held).mean(-1)
    for name in ("1", 0):  # the first column, by its name and by its number
        found = pmt.partial_dependence(idata, model, name, grid=[0.5])["average"]
        np.testing.assert_allclose(found.sel({"1": 0.5}), want, rtol=1e-12)
    assert len(pmt.plot_pdp(idata, model, backend="none").viz["plot"].to_dataset()) == 3
    agreed = [feature_of(k, Schema(("0", "1"), (), (None, None)), 2).name for k in (0, 1)]
    assert agreed == ["0", "1"]


@pytest.mark.usefixtures("quick_compile")
def test_columns_of_an_array_go_by_the_names_that_results_have(several):
    model, idata = several
    given = {"var_name": "g", "progressbar": False}
    by_name = pmt.partial_dependence(idata, model, "x1", **given)
    xr.testing.assert_equal(by_name, pmt.partial_dependence(idata, model, 1, **given))
    found = pmt.interaction_strength(idata, model, ["x1", "x0"], **given)
    assert found["feature"].to_numpy().tolist() == ["x1", "x0"]
    with pytest.raises(ValueError, match="'x2' is not a column.*numbers from 0 to 1"):
        pmt.plot_ale(idata, model, "x2", var_name="g", backend="none")


@pytest.mark.parametrize(
    ("kind", "words"), [("both", "by subsample="), ("average", "by a smaller grid=")]
)
@pytest.mark.usefixtures("quick_compile")
def test_a_grid_that_is_too_fine_is_refused_before_it_is_made(fitted, kind, words):
    """Its points would take 25 GB."""
    model, idata = fitted
    fine = np.linspace(0, 1, 40_000)
    with pytest.raises(ValueError, match=rf"kind='{kind}': .*GB; reduce it {words}"):
        pmt.partial_dependence(idata, model, ("age", "dose"), grid=fine, kind=kind)


@pytest.mark.usefixtures("quick_compile")
def test_fewer_draws_beside_groups_with_other_numbers_of_draws(fitted):
    model, idata = fitted
    both = idata.copy()
    both["prior"] = xr.DataTree(idata.posterior.to_dataset().isel(draw=[0], chain=[0]))
    given = {"draws": 4, "progressbar": False}
    want = pmt.predictions(idata.isel(draw=[0, 3]), model)["prediction"]
    np.testing.assert_array_equal(pmt.predictions(both, model, **given)["prediction"], want)
    assert both.posterior.sizes["draw"] == 4
    for plot in (pmt.plot_pdp, pmt.plot_ice, pmt.plot_ale):
        plot(both, model, "dose", backend="none", **given)
    one = pmt.partial_dependence(both, model, "dose", group="prior", **given)["average"]
    assert one.sizes["draw"] == 1
