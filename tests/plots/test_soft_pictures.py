"""Pictures of soft trees: what they show is what the draws hold."""

import numpy as np
import pymc as pm
import pytest
import xarray as xr
from support.soft_models import regression

import pymc_trees as pmt
from pymc_trees.dcc.kernels.encode import encode
from pymc_trees.dcc.soft_tree_rv import fingerprint_of

matplotlib = pytest.importorskip("matplotlib")
pytestmark = pytest.mark.usefixtures("quick_compile")


def topologies():
    found = xr.Dataset(
        {"weight": ("topology", [0.7, 0.2, 0.1]), "log_prior": ("topology", [-1.0, -2.0, -3.0])},
        coords={"topology": ["SLL", "SSLLL", "L"]},
    )
    return xr.DataTree.from_dict({"topologies": found})


def test_topologies_are_bars_with_their_prior():
    ax = pmt.plot_topologies(topologies(), 2, highlight="SSLLL")
    assert [t.get_text() for t in ax.get_xticklabels()] == ["SLL", "SSLLL"]
    heights = [bar.get_height() for bar in ax.containers[0]]
    np.testing.assert_allclose(heights, [0.7, 0.2])
    first, second = (bar.get_facecolor() for bar in ax.containers[0])
    assert first != second
    np.testing.assert_allclose(ax.lines[0].get_ydata(), np.exp([-1.0, -2.0]))
    with pytest.raises(ValueError, match="sample_dcc"):
        pmt.plot_topologies(xr.DataTree())


def test_densities_peak_where_the_draws_are(rng):
    centres = np.array([0.0, 5.0, -3.0])
    y = rng.normal(centres, 0.2, (2, 200, 3))
    tree = xr.DataTree.from_dict({"predictions": xr.Dataset({"y": (("chain", "draw", "row"), y)})})
    axes = pmt.plot_predictive_densities(
        {"a": tree, "b": tree}, [1, 2], truth=centres, others={"CART": centres + 0.1}
    )
    for ax, row in zip(axes, [1, 2], strict=True):
        grid, density = ax.lines[0].get_data()
        assert abs(grid[np.argmax(density)] - centres[row]) < 0.2
        assert len(ax.lines) == 4
    words = [text.get_text() for text in axes[-1].get_legend().get_texts()]
    assert words == ["a", "b", "truth", "CART"] and axes[0].get_legend() is None
    axes[-1].figure.canvas.draw()
    legend, panel = axes[-1].get_legend().get_window_extent(), axes[-1].get_window_extent()
    assert panel.x1 <= legend.x0 and legend.x1 <= axes[-1].figure.bbox.x1  # beside, and seen
    with pytest.raises(ValueError, match="posterior_predictive"):
        pmt.plot_predictive_densities(xr.DataTree(), [0])


def test_a_drawn_tree_names_its_inputs_and_values():
    model, *_ = regression(p=2)
    value = encode(
        "SSLLL",
        np.array([[0.97, 0.03], [0.4, 0.6]]),
        np.array([0.25, 0.5]),
        np.array([[1.5], [-2.0], [0.25]]),
        63,
        fingerprint_of(model["mu_forest"]),
    )
    draws = xr.Dataset({"mu_forest": (("chain", "draw", "r", "f"), value[None, None])})
    idata = xr.DataTree.from_dict({"posterior": draws})
    ax = pmt.plot_soft_tree(idata, model, names=["age", "dose"])
    texts = [t.get_text() for t in ax.texts]
    assert texts[0] == "0.97 age\n> 0.25" and texts[1] == "0.60 dose + 0.40 age\n> 0.50"
    assert texts[2:] == ["1.5", "-2", "0.25"]
    x = [t.get_position()[0] for t in ax.texts]
    assert x[2:] == [0, 1, 2] and x[1] == 0.5 and x[0] == 1.25
    with pytest.raises(ValueError, match="names has 1"):
        pmt.plot_soft_tree(idata, model, names=["age"])
    draws["mu_forest"][0, 0, 2, 1] = 1.6
    with pytest.raises(ValueError, match="draw 0, is not a soft tree of this model"):
        pmt.plot_soft_tree(xr.DataTree.from_dict({"posterior": draws}), model)
    with pm.Model() as plain, pytest.raises(ValueError, match="no SoftDecisionTree"):
        pmt.plot_soft_tree(idata, plain)
