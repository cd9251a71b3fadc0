"""Pictures of columns whose numbers are long, are levels or are missing, or have names of ours."""

from functools import cache

import numpy as np
import pandas as pd
import pymc as pm
import pytest
import xarray as xr
from support.fitted import on_a_frame, on_awkward_columns

import pymc_trees as pmt

pytestmark = pytest.mark.usefixtures("quick_compile")
_fitted = cache(on_awkward_columns)
QUIET = {"progressbar": False, "backend": "matplotlib"}


def axes_of(drawn, name):
    return drawn.viz["plot"].to_dataset()[name].item()


def ticks_of(ax):
    return [text.get_text() for text in ax.get_xticklabels()]


def points_of(collections):
    """Of points, in the order in which they were drawn: means, then the rug."""
    return np.concatenate([one.get_offsets() for one in collections if len(one.get_offsets())])


def test_ticks_of_numbers_that_are_alike_in_four_digits():
    model, idata = _fitted()
    drawn = pmt.plot_pdp(idata, model, ["zip", "row"], **QUIET)
    assert ticks_of(axes_of(drawn, "zip")) == ["94103", "94104", "94105"]


def test_ticks_of_numbers_do_not_stand_on_each_other():
    model, idata = _fitted()
    grid = [10001, 94103, 94104, 120000]
    ax = axes_of(pmt.plot_pdp(idata, model, "zip", grid=grid, **QUIET), "zip")
    assert ticks_of(ax) == ["10001", "94103", "120000"]


def test_points_of_few_numbers_have_ticks_beside_the_missing_cell():
    model, idata = _fitted()
    ax = axes_of(pmt.plot_pdp(idata, model, "row", rug=False, **QUIET), "row_")
    assert ticks_of(ax) == ["0", "1", "missing"]
    np.testing.assert_array_equal(ax.get_xticks(), [0, 1, 2])
    np.testing.assert_array_equal(points_of(ax.collections[-3:])[:, 0], [0, 1, 2])
    low, high = ax.get_xlim()
    assert low < 0 and high > 2


@pytest.mark.parametrize(
    ("model_of", "name", "grid", "wanted"),
    [
        (on_awkward_columns, "grade", None, [10, 20, 30, 40]),
        (on_awkward_columns, "row", None, [0, 1]),
        (on_a_frame, "site", ["c", "a"], [0, 1]),
    ],
)
def test_the_rug_stands_where_the_values_do(model_of, name, grid, wanted):
    model, idata = cache(model_of)()
    drawn = pmt.plot_pdp(idata, model, name, grid=grid, **QUIET)
    ax = axes_of(drawn, {"row": "row_"}.get(name, name))
    cells = points_of(ax.collections[-1:])[:, 0]
    np.testing.assert_array_equal(np.unique(cells), wanted)


def test_a_pair_of_long_numbers_and_of_missing_cells():
    model, idata = _fitted()
    drawn = pmt.plot_pdp(idata, model, ("average", "zip"), **QUIET)
    ax = axes_of(drawn, "average_")
    labels = [text.get_text() for text in drawn.viz["figure"].item().legends[0].get_texts()]
    assert labels == ["94103", "94104", "94105"]
    x = np.sort(points_of(ax.collections[3:])[:, 0])  # after the bands
    line = ax.lines[0].get_xdata()
    assert x.size == 3 and x[0] > line[-1]
    assert min(*np.diff(x), x[0] - line[-1]) > 0.02 * np.ptp(line)


def test_numeric_levels_stay_numbers_beside_a_missing_cell():
    model, idata = _fitted()
    found = pmt.partial_dependence(idata, model, "grade", grid=[20, None], progressbar=False)
    np.testing.assert_array_equal(found["grade"], [20.0, np.nan])
    again = pmt.partial_dependence(
        idata, model, "grade", grid=found["grade"].to_numpy(), progressbar=False
    )
    xr.testing.assert_equal(found, again)
    ax = axes_of(pmt.plot_pdp(idata, model, "grade", grid=[20, 40, None], **QUIET), "grade")
    assert ticks_of(ax) == ["20", "40", "missing"]


@pytest.mark.parametrize("name", ["chain", "row", "average", "draw"])
def test_columns_with_names_of_ours_get_an_underscore(name):
    model, idata = _fitted()
    given = {"progressbar": False}
    if name != "draw":
        assert f"{name}_" in pmt.accumulated_effects(idata, model, name, **given).dims
    assert f"{name}_" in pmt.partial_dependence(idata, model, name, **given).dims
    assert f"{name}_" in pmt.predictions(idata, model, by=name, **given).dims
    assert f"{name}_" in pmt.comparisons(idata, model, name, **given)
    assert f"{name}_" in pmt.slopes(idata, model, name, step=1.0, **given)
    for plot in (pmt.plot_pdp, pmt.plot_ice):
        drawn = plot(idata, model, name, backend="none", progressbar=False)
        assert f"{name}_" in drawn.viz["plot"].to_dataset()


def test_a_constant_column_has_no_accumulated_effect_to_draw():
    model, idata = _fitted()
    drawn = pmt.plot_ale(idata, model, backend="none", progressbar=False)
    shown = set(drawn.viz["plot"].to_dataset())
    assert shown == {"zip", "chain_", "row_", "grade", "average_"}
    with pytest.raises(ValueError, match="'draw' has 1 values"):
        pmt.plot_ale(idata, model, "draw", backend="none", progressbar=False)


def test_the_line_of_equal_shares_counts_all_columns():
    model, idata = _fitted()
    drawn = pmt.plot_variable_inclusion(idata, model, top=2, backend="matplotlib")
    line = drawn.viz["alike"]["share"].item()
    np.testing.assert_allclose(np.unique(line.get_xdata()), 1 / 6)


@cache
def _of_pictures():
    """A model of columns with a slash, or with names that pictures have for other things."""
    rng = np.random.default_rng(2)
    names = ["km/h", "km_h", "plot_axis", "point_x", "quantile"]
    X = pd.DataFrame(rng.random((24, 5)), columns=names)
    with pm.Model() as model:
        pmt.BART("f", X, m=4, leaf=pmt.NormalLeaf(0.0, 1.0))
        idata = pm.sample_prior_predictive(3, random_seed=1)["prior"].to_dataset()
    return model, idata


def words_at(drawn, name):
    ax = axes_of(drawn, name)
    return ax.get_xlabel(), ax.get_ylabel()


@pytest.mark.parametrize("plot", [pmt.plot_pdp, pmt.plot_ice, pmt.plot_ale])
def test_curves_of_columns_with_a_slash_or_a_name_of_pictures(plot):
    model, idata = _of_pictures()
    drawn = plot(idata, model, label="m/s", **QUIET)
    keys = {"km_h": "km/h", "km_h_": "km_h", "plot_axis_": "plot_axis", "point_x_": "point_x"}
    for key, name in keys.items():
        assert words_at(drawn, key)[0] == name
    assert words_at(drawn, "km_h")[1] == "m/s"


@pytest.mark.parametrize("name", ["km/h", "plot_axis", "point_x", "quantile"])
def test_pairs_of_columns_with_a_slash_or_a_name_of_pictures(name):
    model, idata = _of_pictures()
    drawn = pmt.plot_pdp(idata, model, ("km_h", name), grid=8, label="m/s", **QUIET)
    assert words_at(drawn, "m_s") == ("km_h", name)
    drawn = pmt.plot_pdp(idata, model, ("km_h", name), grid={name: 2, "km_h": 8}, **QUIET)
    assert words_at(drawn, "km_h") == ("km_h", "partial dependence")
    assert drawn.viz["figure"].item().legends[0].get_title().get_text() == name
    drawn = pmt.plot_pdp(idata, model, ("km_h", name), grid={name: 8, "km_h": 2}, **QUIET)
    assert drawn.viz["figure"].item().legends[0].get_title().get_text() == "km_h"


def test_the_rug_of_a_map_does_not_depend_on_the_order_of_the_grid():
    model, idata = _of_pictures()
    rugs = [
        points_of(axes_of(drawn, "partial dependence").collections[-1:])
        for drawn in (
            pmt.plot_pdp(idata, model, (1, 2), grid=np.linspace(*ends, 8), **QUIET)
            for ends in ((0.0, 1.0), (1.0, 0.0))
        )
    ]
    assert len(rugs[0]) == 24
    np.testing.assert_array_equal(*rugs)
