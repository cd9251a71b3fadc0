"""Predictions, comparisons and slopes against predictions made one table at a time by PyMC."""

import numpy as np
import pandas as pd
import pymc as pm
import pytest
from support.fitted import N, draws_of, frame, on_a_frame, predicted, predicted_of, two_functions

import pymc_trees as pmt

pytestmark = pytest.mark.usefixtures("quick_compile")


@pytest.fixture(scope="module")
def fitted():
    return on_a_frame()


@pytest.fixture(scope="module")
def several():
    return two_functions()


def test_predictions_at_rows_and_their_means(fitted):
    model, idata = fitted
    own = pmt.predictions(idata, model)["prediction"]
    np.testing.assert_array_equal(own, idata.posterior["mu"])
    X = frame().sample(7, random_state=1)
    rows = predicted(model, idata, X)
    found = pmt.predictions(idata, model, X)["prediction"]
    np.testing.assert_array_equal(found, rows)
    mean = pmt.predictions(idata, model, X, by=True, func=np.exp)["prediction"]
    np.testing.assert_allclose(mean, np.exp(rows).mean(-1), rtol=1e-12)
    by_site = pmt.predictions(idata, model, X, by="site")["prediction"]
    for site in np.unique(X.site):
        here = rows[..., (X.site == site).to_numpy()].mean(-1)
        np.testing.assert_allclose(by_site.sel(site=site), here, rtol=1e-12)


def test_levels_and_numbers_are_compared(fitted):
    model, idata = fitted
    found = pmt.comparisons(idata, model, {"site": ["b", "a", None], "dose": (0, 2), "age": 5})
    assert list(found["site_contrast"].to_numpy()) == ["a - b", "(missing) - b"]
    assert list(found["dose_contrast"].to_numpy()) == ["2 - 0"]
    assert list(found["age_contrast"].to_numpy()) == ["(x + 5) - x"]
    assert found["site"].dims == ("chain", "draw", "site_contrast", "row")

    def at(**cells):
        return predicted(model, idata, frame().assign(**cells))

    np.testing.assert_allclose(found["site"][:, :, 0], at(site="a") - at(site="b"), atol=1e-12)
    np.testing.assert_allclose(found["site"][:, :, 1], at(site=None) - at(site="b"), atol=1e-12)
    np.testing.assert_allclose(found["dose"][:, :, 0], at(dose=2.0) - at(dose=0.0), atol=1e-12)
    older = at(age=frame().age + 5) - at()
    older[..., 3] = np.nan  # a missing cell goes nowhere
    np.testing.assert_allclose(found["age"][:, :, 0], older, atol=1e-12)


def test_ratios_averages_and_functions_of_both(fitted):
    model, idata = fitted
    low, high = (np.exp(predicted(model, idata, frame().assign(dose=d))) for d in (0.0, 1.0))
    asked = {"variables": {"dose": (0, 1)}, "func": np.exp}
    ratio = pmt.comparisons(idata, model, comparison="ratio", by=True, **asked)["dose"]
    np.testing.assert_allclose(ratio[..., 0], (high / low).mean(-1), rtol=1e-12)

    def lift(new, old):
        return (new - old) / old

    own = pmt.comparisons(idata, model, comparison=lift, by="site", **asked)["dose"]
    members = (frame().site == "a").to_numpy()
    want = ((high - low) / low)[..., members].mean(-1)
    np.testing.assert_allclose(own.sel(site="a")[..., 0], want, rtol=1e-12)


def test_slopes_are_differences_over_an_interval(fitted):
    model, idata = fitted
    X = frame()
    found = pmt.slopes(idata, model, ["age", "dose"], step=4.0)
    ends = [predicted(model, idata, X.assign(age=X.age + side * 2.0)) for side in (-1, 1)]
    want = (ends[1] - ends[0]) / 4.0
    want[..., 3] = np.nan  # a missing cell has no slope
    np.testing.assert_allclose(found["age"], want, atol=1e-12)
    mean = pmt.slopes(idata, model, "age", step=4.0, by=True)["age"]
    np.testing.assert_allclose(mean, np.nanmean(want, axis=-1), atol=1e-12)
    usual = pmt.slopes(idata, model, "dose")["dose"]
    given = pmt.slopes(idata, model, "dose", step=float(np.std(X.dose)))["dose"]
    np.testing.assert_array_equal(usual, given)


def test_outputs_keep_their_dimension(several):
    model, idata = several
    found = pmt.comparisons(idata, model, {1: (0.2, 0.8)}, var_name="f")["x1"]
    assert found.dims == ("chain", "draw", "kind", "x1_contrast", "row")
    X = model["f_X"].get_value().copy()
    parts = []
    for value in (0.2, 0.8):
        X[:, 1] = value
        parts.append(np.stack([predicted_of(model, idata, f"f_{k}_forest", X) for k in (0, 1)], 2))
    np.testing.assert_allclose(found[:, :, :, 0], parts[1] - parts[0], atol=1e-12)
    assert pmt.predictions(idata, model, var_name="f")["prediction"].sizes["row"] == N


def test_columns_of_zero_and_one_are_compared_at_both():
    rng = np.random.default_rng(5)
    X = pd.DataFrame({"flag": rng.random(N) < 0.5, "treated": np.resize([0, 1], N), "k": range(N)})
    X["treated"] = X.treated.astype(float)
    X.loc[2, "treated"] = np.nan
    with pm.Model() as model:
        mu = pmt.BART("mu", X, m=4, leaf=pmt.NormalLeaf(0.0, 1.0))
        pm.Normal("y", mu, 0.5, observed=X.flag.to_numpy() * 1.0, shape=mu.shape)
        idata = draws_of()
    found = pmt.comparisons(idata, model, ["flag", "treated", "k"])
    given = pmt.comparisons(idata, model, {"flag": (False, True), "treated": (0, 1), "k": 1})
    for name in ("flag", "treated", "k"):
        np.testing.assert_array_equal(found[name], given[name])
    assert found["treated_contrast"].item() == "1 - 0"
    assert found["k_contrast"].item() == "(x + 1) - x"
    other = X.assign(flag=np.arange(N))  # no longer 0 and 1
    assert pmt.comparisons(idata, model, "flag", other)["flag_contrast"].item() == "(x + 1) - x"


def test_rows_without_a_number_have_no_step(fitted):
    model, idata = fitted
    rows = pmt.comparisons(idata, model, {"age": 5})["age"]
    np.testing.assert_array_equal(np.isnan(rows).sum("row"), 1)
    mean = pmt.comparisons(idata, model, {"age": 5}, by=True)["age"]
    np.testing.assert_allclose(mean, rows.mean("row", skipna=True), rtol=0, atol=1e-12)
    missing = frame().iloc[[3]]
    assert np.isnan(pmt.comparisons(idata, model, {"age": 5}, missing, by=True)["age"]).all()
    assert np.isnan(pmt.slopes(idata, model, "age", missing, step=1.0, by="site")["age"]).all()


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA, "(missing)"])
def test_words_for_a_missing_cell(fitted, missing):
    model, idata = fitted
    found = pmt.comparisons(idata, model, {"site": ["a", missing], "age": (50, missing)})
    assert found["site_contrast"].item() == "(missing) - a"
    assert found["age_contrast"].item() == "(missing) - 50"
    want = [predicted(model, idata, frame().assign(age=age)) for age in (np.nan, 50.0)]
    np.testing.assert_allclose(found["age"][:, :, 0], want[0] - want[1], atol=1e-12)


def test_what_func_does_not_know_is_not_left_out(fitted):
    model, idata = fitted
    f = pmt.predictions(idata, model)["prediction"]
    with np.errstate(invalid="ignore"):
        mean = pmt.predictions(idata, model, func=np.log, by=True)["prediction"]
    np.testing.assert_array_equal(np.isnan(mean), (f < 0).any("row"))
    assert np.isnan(mean).any()


def test_functions_keep_the_shape(fitted):
    model, idata = fitted
    with pytest.raises(ValueError, match=r"func returned the shape \(\) for values.*elementwise"):
        pmt.predictions(idata, model, func=lambda v: v.mean())
    for wrong in (lambda new, old: new.mean() / old.mean(), lambda new, old: None):
        with pytest.raises(ValueError, match=r"comparison returned the shape \(\).*elementwise"):
            pmt.comparisons(idata, model, comparison=wrong)
    with pytest.raises(ValueError, match="func='exp': must be a function"):
        pmt.predictions(idata, model, func="exp")
    asked = {"variables": {"dose": (0, 1, 2)}}
    before = pmt.comparisons(idata, model, comparison=lambda new, old: old, **asked)["dose"]
    want = predicted(model, idata, frame().assign(dose=0.0))
    np.testing.assert_allclose(before, np.stack([want, want], axis=2), atol=1e-12)


@pytest.mark.parametrize(
    ("call", "options", "message"),
    [
        ("comparisons", {"variables": {"dose": (1,)}}, "at least two values"),
        ("comparisons", {"variables": {"site": 1}}, "a sequence of at least two values"),
        ("comparisons", {"variables": {"site": "ab"}}, "a sequence of at least two values"),
        ("comparisons", {"variables": {"site": ["a", "q"]}}, "'q' is not a level"),
        ("comparisons", {"comparison": "odds"}, "comparison='odds': choose from"),
        ("comparisons", {"by": "place"}, "'place' is not a column of X"),
        ("slopes", {"variables": "site"}, "has levels and therefore no slope"),
        ("slopes", {"variables": "age", "step": 0}, "give a positive step"),
        ("predictions", {"var_name": "y"}, "var_name='y' is not a function of trees"),
    ],
)
def test_what_is_wrong_is_said(fitted, call, options, message):
    model, idata = fitted
    with pytest.raises(ValueError, match=message):
        getattr(pmt, call)(idata, model, **options)


def test_means_by_the_column_that_is_compared_keep_the_comparison(fitted):
    model, idata = fitted
    given = {"progressbar": False}
    found = pmt.comparisons(idata, model, ["dose", "age"], by="dose", **given)
    each = pmt.comparisons(idata, model, "dose", **given)["dose"]
    assert found["dose"].dims == ("chain", "draw", "dose_contrast", "dose_")
    assert found["age"].dims == ("chain", "draw", "age_contrast", "dose_")
    slopes = pmt.slopes(idata, model, "dose", by="dose", **given)["dose"]
    steep = pmt.slopes(idata, model, "dose", **given)["dose"]
    for dose in (0.0, 1.0, 2.0):
        here = {"row": np.flatnonzero(frame().dose == dose)}
        np.testing.assert_allclose(found["dose"].sel(dose_=dose), each.isel(here).mean("row"))
        np.testing.assert_allclose(slopes.sel(dose_=dose), steep.isel(here).mean("row"))


def test_columns_with_the_name_of_an_output_or_of_each_other_keep_their_results():
    X = frame().rename(columns={"age": "kind", "dose": "kind_"})
    with pm.Model(coords={"kind": ["low", "high"], "obs": range(N)}) as model:
        pmt.BART("f", X, m=2, leaf=pmt.NormalLeaf(0.0, 1.0), dims=("kind", "obs"))
        idata = pm.sample_prior_predictive(3, random_seed=1)
    idata["posterior"] = idata["prior"].copy()
    given = {"progressbar": False}
    assert pmt.predictions(idata, model, by="kind", **given)["prediction"].dims[2:] == (
        "kind",
        "kind_",
    )
    found = pmt.comparisons(idata, model, ["kind", "kind_"], by="kind", **given)
    assert found["kind_"].dims[2:] == ("kind", "kind__contrast", "kind___")
    assert found["kind__"].dims[2:] == ("kind", "kind___contrast", "kind___")
    assert set(pmt.slopes(idata, model, ["kind", "kind_"], **given)) == {"kind_", "kind__"}
    pair = pmt.partial_dependence(idata, model, ("kind", "kind_"), grid=3, **given)["average"]
    assert pair.dims[2:] == ("kind", "kind_", "kind__")
    effect = pmt.accumulated_effects(idata, model, "kind", **given)["effect"]
    assert effect.dims[2:] == ("kind", "kind_")


def test_means_by_a_column_called_summary_have_summaries():
    X = frame().rename(columns={"dose": "summary"})
    with pm.Model() as model:
        pmt.BART("f", X, m=2, leaf=pmt.NormalLeaf(0.0, 1.0))
        idata = pm.sample_prior_predictive(3, random_seed=1)["prior"].to_dataset()
    given = {"by": "summary", "progressbar": False}
    means = pmt.predictions(idata, model, **given)["prediction"]
    found = pmt.predictions(idata, model, summary="mean", **given)["prediction"]
    np.testing.assert_allclose(found.sel(summary="mean"), means.mean(["chain", "draw"]))
