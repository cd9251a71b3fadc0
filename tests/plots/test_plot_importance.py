"""Pictures of submodels: what is drawn is what `compute_variable_importance` returned."""

from functools import cache

import arviz as az
import numpy as np
import pytest
import xarray as xr
from support.fitted import on_a_frame, two_functions

from pymc_trees.plots import importance as pictures
from pymc_trees.plots.importance import plot_scatter_submodels, plot_variable_importance
from pymc_trees.posterior.importance.submodels import compute_variable_importance

pytestmark = pytest.mark.usefixtures("quick_compile")
QUIET = {"progressbar": False, "cores": 1}
PLOTS = [plot_variable_importance, plot_scatter_submodels]
DRAWS = ("chain", "draw")


@cache
def found_of():
    model, idata = on_a_frame()
    return compute_variable_importance(idata, model, **QUIET)


@cache
def found_of_two_outputs():
    model, idata = two_functions()
    return compute_variable_importance(idata, model, var_name="f", **QUIET)


def panels(drawn):
    return np.ravel(drawn.viz["plot"].to_dataset()["r2"].to_numpy())


def points_of(ax):
    [points] = [one for one in ax.collections if len(one.get_offsets()) > 1]
    return points.get_offsets()


def bars_of(ax):
    """Ends of the upright lines, and the other lines."""
    upright = [np.ptp(line.get_xdata()) == 0.0 for line in ax.lines]
    bars = [line.get_ydata() for line, one in zip(ax.lines, upright, strict=True) if one]
    return bars, [line for line, one in zip(ax.lines, upright, strict=True) if not one]


@pytest.mark.parametrize("backend", ["none", "matplotlib", "plotly", "bokeh"])
@pytest.mark.parametrize("found", [found_of, found_of_two_outputs])
@pytest.mark.parametrize("plot", PLOTS)
def test_every_backend(plot, found, backend):
    if backend in ("plotly", "bokeh"):
        pytest.importorskip(backend)
    found = found()
    drawn = plot(found, backend=backend)
    assert drawn.backend == backend
    outputs = 2 if "kind" in found.dims else 1
    submodels = found.sizes["submodel"] if plot is plot_scatter_submodels else 1
    assert panels(drawn).size == outputs * submodels


def test_points_bars_and_the_band_are_means_and_intervals():
    found = found_of()
    [ax] = panels(plot_variable_importance(found, ci_prob=0.5, backend="matplotlib"))
    mean = found["r2"].mean(DRAWS)
    np.testing.assert_allclose(points_of(ax), np.stack([[0, 1, 2], mean], axis=1), atol=1e-12)
    drawn, [reference] = bars_of(ax)
    ends = found["r2"].quantile([0.25, 0.75], DRAWS).T
    np.testing.assert_allclose(drawn, ends, atol=1e-12)
    np.testing.assert_allclose(reference.get_ydata(), found["reference"].mean(), atol=1e-12)
    corners = ax.collections[0].get_paths()[0].vertices[:, 1]
    low, high = found["reference"].quantile([0.25, 0.75])
    np.testing.assert_allclose([corners.min(), corners.max()], [low, high], atol=1e-12)
    first, *others = found["feature"].to_numpy()
    words = [text.get_text() for text in ax.get_xticklabels()]
    assert words == [first, *(f"+ {name}" for name in others)]


def test_the_interval_is_arviz_own_and_some_submodels_are_chosen():
    found, prob = found_of(), az.rcParams["stats.ci_prob"]
    [ax] = panels(plot_variable_importance(found, [3, 1], backend="matplotlib"))
    drawn, _ = bars_of(ax)
    ends = found["r2"].sel(submodel=[1, 3]).quantile([0.5 - prob / 2, 0.5 + prob / 2], DRAWS).T
    np.testing.assert_allclose(drawn, ends, atol=1e-12)
    names = found["feature"].to_numpy()
    assert [t.get_text() for t in ax.get_xticklabels()] == [names[0], f"+ {names[2]}"]


def test_without_a_reference_there_is_no_band():
    found = found_of().isel(chain=[0], draw=[0])
    found["reference"] = found["reference"] * np.nan
    [ax] = panels(plot_variable_importance(found, backend="matplotlib"))
    assert len(bars_of(ax)[0]) == 3 and not bars_of(ax)[1]


def test_points_are_rows_in_draws():
    found = found_of()
    drawn = plot_scatter_submodels(found, np.exp, [1, 3], backend="matplotlib", col_wrap=1)
    first, last = panels(drawn)
    full = np.exp(found["full"].to_numpy().ravel())
    own = np.exp(found["prediction"].sel(submodel=1).to_numpy().ravel())
    np.testing.assert_allclose(points_of(first), np.stack([own, full], axis=1), rtol=1e-12)
    np.testing.assert_allclose(points_of(last), np.stack([full, full], axis=1), rtol=1e-12)
    assert (np.ptp(first.lines[0].get_xdata()), first.get_xlim()) == (
        np.ptp(first.lines[0].get_ydata()),
        first.get_ylim(),
    )
    names = found["feature"].to_numpy()
    assert [ax.get_title() for ax in (first, last)] == [names[0], f"+ {names[2]}"]
    assert [ax.get_xlabel() for ax in (first, last)] == ["", "prediction of the submodel"]


def test_outputs_are_named_and_points_are_not_too_many(monkeypatch):
    found = found_of_two_outputs()
    monkeypatch.setattr(pictures, "MOST", 10)
    drawn = plot_scatter_submodels(found, backend="matplotlib")
    names = found["feature"].to_numpy()
    titles = [ax.get_title() for ax in panels(drawn)]
    assert titles == [
        f"kind = {kind}, {name}" for kind in ("low", "high") for name in (names[0], f"+ {names[1]}")
    ]
    high = found.isel(kind=1)
    points, every = points_of(panels(drawn)[3]), high["full"].to_numpy().ravel()
    np.testing.assert_allclose(points[:, 1], every[np.linspace(0, 95, 10).round().astype(int)])
    r2 = plot_variable_importance(found, backend="matplotlib")
    assert [ax.get_title() for ax in panels(r2)] == ["kind = low", "kind = high"]
    for k, ax in enumerate(panels(r2)):
        mean = found["r2"].isel(kind=k).mean(DRAWS)
        np.testing.assert_allclose(points_of(ax)[:, 1], mean, atol=1e-12)


@pytest.mark.parametrize("plot", PLOTS)
@pytest.mark.parametrize(
    ("found", "options", "message"),
    [
        (lambda: None, {}, "importance must be a result of compute_variable_importance"),
        (lambda: xr.Dataset(), {}, "importance must be a result of compute_variable_importance"),
        (found_of, {"submodels": [0]}, r"submodels=\[0\]: choose from \[1, 2, 3\]"),
        (found_of, {"submodels": []}, r"submodels=\[\]: choose from \[1, 2, 3\]"),
    ],
)
def test_what_is_wrong_is_said(plot, found, options, message):
    with pytest.raises(ValueError, match=message):
        plot(found(), backend="none", **options)


def test_the_probability_is_checked():
    with pytest.raises(ValueError, match="ci_prob=2: must be between 0 and 1"):
        plot_variable_importance(found_of(), ci_prob=2, backend="none")
