"""Predictions, comparisons and slopes against predictions made one table at a time by PyMC."""

import numpy as np
import pytest
from support.fitted import N, frame, on_a_frame, predicted, predicted_of, two_functions

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


@pytest.mark.parametrize(
    ("call", "options", "message"),
    [
        ("comparisons", {"variables": {"dose": (1,)}}, "at least two values"),
        ("comparisons", {"variables": {"site": 1}}, "a sequence of at least two values"),
        ("comparisons", {"variables": {"site": "ab"}}, "a sequence of at least two values"),
        ("comparisons", {"variables": {"site": ["a", "q"]}}, "'q' is no level"),
        ("comparisons", {"comparison": "odds"}, "comparison='odds': choose from"),
        ("comparisons", {"by": "place"}, "'place' is no column of X"),
        ("slopes", {"variables": "site"}, "has levels, and no slope"),
        ("slopes", {"variables": "age", "step": 0}, "give a positive one"),
        ("predictions", {"var_name": "y"}, "var_name='y' is no function of trees"),
    ],
)
def test_what_is_wrong_is_said(fitted, call, options, message):
    model, idata = fitted
    with pytest.raises(ValueError, match=message):
        getattr(pmt, call)(idata, model, **options)
