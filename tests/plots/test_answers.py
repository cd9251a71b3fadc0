"""Pictures of numbers: what is drawn is what the numbers' functions return."""

from functools import cache

import arviz as az
import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr
from matplotlib.colors import to_rgb
from support.fitted import on_a_frame, two_functions

import pymc_trees as pmt

pytestmark = pytest.mark.usefixtures("quick_compile")
_on_a_frame, _two_functions = cache(on_a_frame), cache(two_functions)
BACKENDS = ["none", "matplotlib", "plotly", "bokeh"]


def backend_or_skip(backend):
    if backend in ("plotly", "bokeh"):
        pytest.importorskip(backend)
    return backend


PAIRS = {"curves": ("age", "site"), "points": ("site", "dose")}


def _pair(features):
    def draw(idata, model, **given):
        return pmt.plot_pdp(idata, model, features, **given)

    return draw


def _map(idata, model, **given):
    model, idata = _two_functions()
    return pmt.plot_pdp(idata, model, (0, 1), var_name="f", **given)


def _shap(idata, model, **given):
    return pmt.plot_shap(pmt.shap_values(idata, model, progressbar=False), **given)


PLOTS = {
    "ice": pmt.plot_ice,
    "shap": _shap,
    "map": _map,
    **{name: _pair(features) for name, features in PAIRS.items()},
    "pdp": pmt.plot_pdp,
    "ale": pmt.plot_ale,
    "convergence": pmt.plot_convergence,
    "inclusion": pmt.plot_variable_inclusion,
}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("plot", PLOTS)
def test_every_backend(plot, backend):
    model, idata = _on_a_frame()
    drawn = PLOTS[plot](idata, model, backend=backend_or_skip(backend))
    assert drawn.backend == backend


def axes_of(drawn, name):
    return drawn.viz["plot"].to_dataset()[name].item()


def test_curves_are_partial_dependence():
    model, idata = _on_a_frame()
    drawn = pmt.plot_pdp(idata, model, ["age", "site"], draws=None, backend="matplotlib")
    prob = az.rcParams["stats.ci_prob"]
    found = pmt.partial_dependence(idata, model, "age")["average"]
    ax = axes_of(drawn, "age")
    x, y = ax.lines[0].get_data()
    wanted = found.mean(("chain", "draw")).to_numpy()
    np.testing.assert_allclose(x, found["age"].to_numpy()[:-1])
    np.testing.assert_allclose(y, wanted[:-1], atol=1e-12)
    corners = ax.collections[0].get_paths()[0].vertices
    low = found.quantile(0.5 - prob / 2, ("chain", "draw")).min()
    np.testing.assert_allclose(corners[:, 1].min(), low, atol=1e-12)
    assert [text.get_text() for text in ax.get_xticklabels()][-1] == "missing"
    ax = axes_of(drawn, "site")
    found = pmt.partial_dependence(idata, model, "site")["average"].mean(("chain", "draw"))
    points = np.concatenate([one.get_offsets() for one in ax.collections if len(one.get_offsets())])
    for k, value in enumerate(found.to_numpy()):
        assert np.isclose(points, [k, value]).all(axis=1).any()
    assert [text.get_text() for text in ax.get_xticklabels()] == ["a", "b", "c"]


def test_centred_curves_start_at_0():
    model, idata = _on_a_frame()
    drawn = pmt.plot_pdp(idata, model, "age", centred=True, rug=False, backend="matplotlib")
    assert axes_of(drawn, "age").lines[0].get_ydata()[0] == 0.0


def test_individual_lines_are_means_of_rows():
    model, idata = _on_a_frame()
    drawn = pmt.plot_ice(idata, model, "dose", subsample=None, backend="matplotlib")
    found = pmt.partial_dependence(idata, model, "dose", kind="individual")["individual"]
    x, y = axes_of(drawn, "dose").lines[0].get_data()
    wanted = found.mean(("chain", "draw")).to_numpy()
    assert np.isnan(y.reshape(-1, 4)[:, 3]).all()
    np.testing.assert_allclose(y.reshape(-1, 4)[:, :3], wanted, rtol=1e-12)
    np.testing.assert_array_equal(x[:3], found["dose"])
    points = np.concatenate([one.get_offsets() for one in axes_of(drawn, "dose").collections])
    for k, value in enumerate(wanted.mean(axis=0)):
        assert np.isclose(points, [k, value]).all(axis=1).any()


def test_a_pair_has_a_curve_for_each_level():
    model, idata = _on_a_frame()
    drawn = pmt.plot_pdp(idata, model, ("site", "age"), backend="matplotlib")
    found = pmt.partial_dependence(idata, model, ("site", "age"))["average"]
    wanted = found.mean(("chain", "draw")).to_numpy()
    lines = axes_of(drawn, "age").lines
    for k in range(3):
        np.testing.assert_allclose(lines[k].get_ydata(), wanted[k, :-1], rtol=1e-12)
    with pytest.raises(ValueError, match="a tuple is a pair"):
        pmt.plot_pdp(idata, model, ("site", "age", "dose"), backend="none")


def test_a_map_holds_the_means():
    model, idata = _two_functions()
    drawn = pmt.plot_pdp(idata, model, (1, 0), var_name="g", backend="none")
    found = pmt.partial_dependence(idata, model, (1, 0), var_name="g")["average"]
    [filled] = [one for one in axes_of(drawn, "partial dependence") if "density" in one]
    np.testing.assert_allclose(filled["density"], found.mean(("chain", "draw")), rtol=1e-12)
    np.testing.assert_array_equal(filled["x"], found["x1"])


def test_swarms_are_posterior_means_of_shapley_values():
    model, idata = _on_a_frame()
    found = pmt.shap_values(idata, model, progressbar=False)
    drawn = pmt.plot_shap(found, top=2, backend="matplotlib")
    ax = axes_of(drawn, "shap")
    mean = found["values"].mean(("chain", "draw"))
    order = np.argsort(-np.abs(mean).mean("row").to_numpy())[:2]
    names = [text.get_text() for text in ax.get_yticklabels()]
    assert names == found["feature"].to_numpy()[order].tolist()
    points = np.concatenate([one.get_offsets() for one in ax.collections])
    for k, j in enumerate(order):
        here = points[np.abs(points[:, 1] + k) < 0.5, 0]
        np.testing.assert_allclose(np.sort(here), np.sort(mean[:, j]), rtol=1e-12)


def test_a_panel_for_each_output():
    model, idata = _two_functions()
    drawn = pmt.plot_pdp(idata, model, var_name="f", backend="matplotlib")
    targets = drawn.viz["plot"].to_dataset()
    assert {name: one.size for name, one in targets.items()} == {"x0": 2, "x1": 2}


def test_convergence_is_that_of_the_summary():
    model, idata = _on_a_frame()
    drawn = pmt.plot_convergence(idata, model, backend="matplotlib")
    found = pmt.summarise_function(idata, model)
    for name in ("r_hat", "ess_bulk", "ess_tail"):
        x, y = axes_of(drawn, name).lines[0].get_data()
        np.testing.assert_allclose(x, np.sort(found[name]))
        np.testing.assert_allclose(y[[0, -1]], [1 / 12, 1.0])
    with pytest.raises(ValueError, match="one chain.*two or more"):
        pmt.plot_convergence(idata.isel(chain=[0]), model, backend="none")


def test_inclusion_is_sorted():
    model, idata = _on_a_frame()
    drawn = pmt.plot_variable_inclusion(idata, model, backend="matplotlib")
    ax = axes_of(drawn, "share")
    share = pmt.get_variable_inclusion(idata, model)["share"].mean(("chain", "draw"))
    order = np.argsort(-share.to_numpy())
    names = [text.get_text() for text in ax.get_yticklabels()]
    assert names == share["feature"].to_numpy()[order].tolist()
    points = np.concatenate([one.get_offsets() for one in ax.collections])
    np.testing.assert_allclose(points[:, 0], share.to_numpy()[order])
    few = pmt.plot_variable_inclusion(idata, model, top=1, backend="matplotlib")
    assert len(axes_of(few, "share").get_yticklabels()) == 1


@pytest.mark.parametrize("plot", PLOTS)
def test_a_callers_size_is_in_inches(plot):
    model, idata = _on_a_frame()
    drawn = PLOTS[plot](idata, model, backend="matplotlib", figure_kwargs={"figsize": (10, 6)})
    np.testing.assert_array_equal(drawn.viz["figure"].item().get_size_inches(), (10, 6))


def test_panels_of_outputs_say_which():
    model, idata = _two_functions()
    drawn = pmt.plot_pdp(idata, model, 0, var_name="f", backend="matplotlib")
    titles = [ax.get_title() for ax in drawn.viz["figure"].item().axes]
    assert titles == ["kind = low", "kind = high"]
    drawn = pmt.plot_pdp(idata, model, (0, 1), var_name="f", backend="matplotlib")
    *maps, _ = drawn.viz["figure"].item().axes
    assert [ax.get_title() for ax in maps] == ["kind = low", "kind = high"]


def test_a_map_has_one_scale_with_what_it_shows():
    model, idata = _two_functions()
    asked = {"var_name": "f", "label": "grams a day"}
    drawn = pmt.plot_pdp(idata, model, (0, 1), backend="matplotlib", **asked)
    found = pmt.partial_dependence(idata, model, (0, 1), var_name="f")["average"]
    mean = found.mean(("chain", "draw"))
    scale = drawn.viz["figure"].item().axes[2]
    assert scale.get_ylabel() == "grams a day"
    np.testing.assert_allclose(scale.get_ylim(), [mean.min(), mean.max()], rtol=1e-6)
    backend_or_skip("plotly")
    drawn = pmt.plot_pdp(idata, model, (0, 1), backend="plotly", **asked)
    first, last = drawn.viz["figure"].item().select_traces({"type": "contour"})
    assert (first.showscale, last.showscale) == (False, True)
    assert last.colorbar.title.text == "grams a day"
    backend_or_skip("bokeh")
    drawn = pmt.plot_pdp(idata, model, (0, 1), backend="bokeh", **asked)
    first, last = drawn.viz["plot"].to_dataset()["grams a day"].to_numpy()
    assert (len(first.right), [bar.title for bar in last.right]) == (0, ["grams a day"])


def test_values_are_named_on_the_first_panel_of_each_row():
    model, idata = _on_a_frame()
    asked = {"label": "grams", "backend": "matplotlib"}
    for plot in (pmt.plot_pdp, pmt.plot_ice, pmt.plot_ale):
        axes = plot(idata, model, ["age", "site", "dose"], **asked).viz["figure"].item().axes
        assert [ax.get_ylabel() for ax in axes[:3]] == ["grams", "", "grams"]
    drawn = pmt.plot_pdp(idata, model, ["age", "site", "dose"], col_wrap=3, **asked)
    axes = drawn.viz["figure"].item().axes
    assert [ax.get_ylabel() for ax in axes] == ["grams", "", ""]
    asked["label"] = "Shapley value, grams"
    drawn = pmt.plot_shap(pmt.shap_values(idata, model, progressbar=False), **asked)
    assert axes_of(drawn, "shap").get_xlabel() == "Shapley value, grams"


def test_a_legend_says_what_colours_of_a_swarm_are():
    model, idata = _on_a_frame()
    drawn = pmt.plot_shap(pmt.shap_values(idata, model, progressbar=False), backend="matplotlib")
    [legend] = drawn.viz["figure"].item().legends
    words = [text.get_text() for text in legend.get_texts()]
    assert (words[0], words[-2:]) == ("low", ["high", "missing"])
    lines = dict(zip(words, legend.get_lines(), strict=True))
    frame = model["mu_X"].get_value()
    oldest = int(np.nanargmax(frame[:, 0]))
    found = pmt.shap_values(idata, model, progressbar=False)["values"].mean(("chain", "draw"))
    wanted = float(found.sel(feature="age").isel(row=oldest))
    for one in axes_of(drawn, "shap").collections:
        at = np.asarray(one.get_offsets())
        if np.isclose(at[:, 0], wanted, rtol=1e-12).any():
            wanted = to_rgb(lines["high"].get_color())
            np.testing.assert_allclose(one.get_facecolor()[0, :3], wanted)
            return
    raise AssertionError("the row is not drawn")


def test_predictive_densities_are_of_one_output_wherever_the_draws_stand():
    rng = np.random.default_rng(1)
    y = np.stack([rng.normal(-10, 1, (1, 100, 4)), rng.normal(10, 1, (1, 100, 4))], axis=2)
    ds = xr.Dataset({"y": (("chain", "draw", "kind", "row"), y)})
    tree = xr.DataTree.from_dict({"predictions": ds})
    with pytest.raises(ValueError, match=r"\['kind', 'row'\]: choose .* idata.isel\(kind=0\)"):
        pmt.plot_predictive_densities(tree, [0])
    last = tree.isel(kind=0)["predictions"].to_dataset().transpose("row", "chain", "draw")
    for one in (tree.isel(kind=0), xr.DataTree.from_dict({"predictions": last})):
        [ax] = pmt.plot_predictive_densities(one, [3])
        x = ax.lines[0].get_xdata()
        assert -15 < x.min() and x.max() < 0
        plt.close(ax.figure)
