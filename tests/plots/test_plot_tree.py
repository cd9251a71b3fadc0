"""Diagrams of trees: what stands in the boxes is what trees return, and no box hides another."""

from collections import Counter
from functools import cache

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pymc as pm
import pytest
import xarray as xr
from support.fitted import frame, on_a_frame, two_functions

import pymc_trees as pmt
from pymc_trees.plots.tree import CLASSES, HIGH, LOW, MIDDLE, SPLIT, boxes_of, plot_tree

pytestmark = pytest.mark.usefixtures("quick_compile")
_on_a_frame, _two_functions = cache(on_a_frame), cache(two_functions)
N = 30


def drawn_from_prior(**given):
    """A model of one function, its draws from the prior, and f at the training rows."""
    front_end = given.pop("front_end", pmt.DecisionTree)
    X = given.pop("X", np.random.default_rng(2).random((N, 2)))
    with pm.Model() as model:
        front_end("mu", X, **{"leaf": pmt.NormalLeaf(0.0, 1.0), "alpha": 0.99, "beta": 0.5} | given)
        prior = pm.sample_prior_predictive(6, random_seed=3)["prior"]
    return model, xr.DataTree.from_dict({"posterior": prior.to_dataset()})


def texts_of(drawn):
    """Words of the boxes in order, drawn with no backend."""
    return [one["string"] for one in drawn.viz["text"]["tree"].to_numpy()]


def told(drawn):
    """Lines of each leaf of a tree, and the number of its rows."""
    found = [text.split("\n") for text in texts_of(drawn)]
    assert all(" row" in lines[-1] for lines in found)
    return [(lines[:-1], int(lines[-1].split()[0])) for lines in found if "<=" not in lines[0]]


@pytest.mark.parametrize("tree", range(4))
def test_boxes_read_as_the_text_does(tree):
    model, idata = _on_a_frame()
    for chain, draw in [(0, 0), (1, -2)]:
        at = {"chain": chain, "draw": draw, "tree": tree}
        lines = pmt.tree_text(idata, model, **at).splitlines()
        drawn = plot_tree(idata, model, backend="none", **at)
        assert drawn.viz["text"]["tree"].dims == ("node",)
        for line, text in zip(lines, texts_of(drawn), strict=True):
            words, count = line.strip().removeprefix("leaf ").removesuffix("]").split(" [")
            rows = f"{count} row{'' if count == '1' else 's'}, {int(count) / 12:.0%}"
            assert text.replace("\n", " ") == f"{words} {rows}"
        splits = sum("leaf " not in line for line in lines)
        assert drawn.viz["yes"].sizes["node"] == drawn.viz["no"].sizes["node"] == splits


def test_leaves_hold_what_f_is():
    model, idata = drawn_from_prior()
    for draw in range(6):
        mu = idata["posterior"]["mu"].to_numpy()[0, draw]
        wanted = Counter(f"{value:.4g}" for value in mu)
        shown = Counter({words[0]: n for words, n in told(plot_tree_of(model, idata, draw))})
        assert shown == wanted


def plot_tree_of(model, idata, draw):
    return plot_tree(idata, model, draw=draw, backend="none")


def test_means_and_precisions_have_names():
    model, idata = drawn_from_prior(leaf=pmt.NormalGammaLeaf())
    f = idata["posterior"].dataset
    pairs = zip(f["mu"].to_numpy()[0, 2], f["mu_tau"].to_numpy()[0, 2], strict=True)
    wanted = Counter((f"mu = {mu:.4g}", f"tau = {tau:.4g}") for mu, tau in pairs)
    shown = Counter({tuple(words): n for words, n in told(plot_tree_of(model, idata, 2))})
    assert shown == wanted and len(wanted) > 1


def test_classes_have_probabilities_and_colours():
    model, idata = drawn_from_prior(leaf=pmt.DirichletLeaf(3.0, 3))
    p = np.unique(idata["posterior"]["mu"].to_numpy()[0, 1], axis=0)
    drawn = plot_tree_of(model, idata, 1)
    boxes = drawn.viz["box"]["tree"].to_numpy()
    colours = {text: box["color"] for text, box in zip(texts_of(drawn), boxes, strict=True)}
    assert len(p) > 1
    for row in p:
        words = "\n".join(f"P({k}) = {value:.4g}" for k, value in enumerate(row))
        [colour] = [colour for text, colour in colours.items() if text.startswith(words)]
        ends = np.array([rgb(MIDDLE), rgb(CLASSES[row.argmax()])])
        sure = (row.max() - 1 / 3) / (2 / 3)
        np.testing.assert_allclose(rgb(colour), [1 - sure, sure] @ ends, atol=0.51)


def rgb(code):
    return np.array([int(code[k : k + 2], 16) for k in (1, 3, 5)])


def test_colours_go_from_the_least_to_the_greatest():
    model, idata = drawn_from_prior()
    mu = np.unique(idata["posterior"]["mu"].to_numpy()[0, 4])
    drawn = plot_tree_of(model, idata, 4)
    boxes = [box["color"] for box in drawn.viz["box"]["tree"].to_numpy()]
    colours = dict(zip([text.split("\n")[0] for text in texts_of(drawn)], boxes, strict=True))
    assert mu.size > 2
    assert colours[f"{mu[0]:.4g}"] == LOW and colours[f"{mu[-1]:.4g}"] == HIGH
    assert all(colour == SPLIT for words, colour in colours.items() if "<=" in words)
    for value in mu[1:-1]:
        place = 2 * (value - mu[0]) / (mu[-1] - mu[0]) - 1
        end = rgb(HIGH if place > 0 else LOW)
        wanted = rgb(MIDDLE) + abs(place) * (end - rgb(MIDDLE))
        np.testing.assert_allclose(rgb(colours[f"{value:.4g}"]), wanted, atol=0.51)


def test_several_outputs_are_numbered():
    given = {"leaf": pmt.NormalLeaf([0, 0], [1, 1]), "shape": (2, N), "separate_trees": False}
    model, idata = drawn_from_prior(front_end=pmt.BART, m=1, **given)
    pairs = idata["posterior"]["mu"].to_numpy()[0, 4].T
    wanted = Counter((f"output 0 = {a:.4g}", f"output 1 = {b:.4g}") for a, b in pairs)
    drawn = plot_tree_of(model, idata, 4)
    assert Counter({tuple(words): n for words, n in told(drawn)}) == wanted and len(wanted) > 1
    assert {box["color"] for box in drawn.viz["box"]["tree"].to_numpy()} == {SPLIT, MIDDLE}


def test_a_stump_is_one_box():
    model, idata = drawn_from_prior(alpha=1e-9)
    drawn = plot_tree_of(model, idata, 0)
    mu = idata["posterior"]["mu"].to_numpy()[0, 0, 0]
    assert texts_of(drawn) == [f"{mu:.4g}\n{N} rows, 100%"]
    assert drawn.viz["edges"]["tree"].item() is None and drawn.viz["yes"].sizes["node"] == 0
    assert drawn.viz["box"]["tree"].item()["color"] == MIDDLE
    plot_tree(idata, model, backend="matplotlib")


def random_tree(rng, most):
    """Texts, children and depths of nodes in preorder."""
    texts, children, depths = [], [], []

    def grow(depth):
        place = len(texts)
        texts.append("\n".join("x" * rng.integers(3, 60) for _ in range(rng.integers(1, 5))))
        children.append(())
        depths.append(depth)
        if depth < most and rng.random() < 0.8:
            children[place] = (grow(depth + 1), grow(depth + 1))
        return place

    grow(0)
    return texts, children, depths


@pytest.mark.parametrize("seed", range(20))
def test_no_box_hides_another(seed):
    texts, children, depths = random_tree(np.random.default_rng(seed), seed % 6)
    boxes = boxes_of(texts, children, depths)
    left, right, low, high = boxes.edges.T
    assert left.min() > -1e-9 and right.max() < boxes.size[0] + 1e-9
    assert high.max() < 1e-9 and low.min() > -boxes.size[1] - 1e-9
    for a in range(len(texts)):
        for b in range(a):
            beside = right[a] < left[b] or right[b] < left[a]
            assert beside or high[a] < low[b] or high[b] < low[a]
    for k, pair in enumerate(children):
        if pair:
            yes, no = pair
            assert boxes.x[yes] < boxes.x[no] and max(high[yes], high[no]) < low[k]


def test_edges_join_a_split_to_its_children():
    model, idata = drawn_from_prior()
    drawn = plot_tree_of(model, idata, 4)
    edges = drawn.data["tree"].to_numpy()
    middle = edges[:, :2].mean(axis=1)
    line = drawn.viz["edges"]["tree"].item()
    ends = np.column_stack([line["x"], line["y"]]).reshape(-1, 3, 2)
    assert len(ends) == len(edges) - 1 and np.isnan(ends[:, 2]).all()
    uppers, lowers = ends[:, 0], ends[:, 1]
    assert len(np.unique(lowers, axis=0)) == len(lowers)
    for places, y in ((uppers, edges[:, 2]), (lowers, edges[:, 3])):
        boxes = np.column_stack([middle, y])
        for place in places:
            assert np.isclose(boxes, place, rtol=0, atol=1e-9).all(axis=1).any()


@pytest.mark.parametrize("backend", ["none", "matplotlib", "plotly", "bokeh"])
def test_every_backend(backend):
    if backend in ("plotly", "bokeh"):
        pytest.importorskip(backend)
    model, idata = _on_a_frame()
    drawn = plot_tree(idata, model, tree=1, backend=backend)
    n = len(pmt.tree_text(idata, model, tree=1).splitlines())
    assert drawn.backend == backend and drawn.viz["text"].sizes["node"] == n
    assert all(one is not None for one in drawn.viz["box"]["tree"].to_numpy())


def test_matplotlib_shows_all_words_inside_their_boxes():
    model, idata = _on_a_frame()
    for tree in range(4):
        drawn = plot_tree(idata, model, draw=2, tree=tree, backend="matplotlib")
        figure = drawn.viz["figure"].item()
        figure.canvas.draw()
        ax = drawn.viz["plot"].item()
        assert ax.get_title() == f"mu_forest, tree {tree}\nchain 0, draw 2"
        for text, edges in zip(drawn.viz["text"]["tree"].values, drawn.data["tree"].values):
            words = text.get_window_extent()
            corners = ax.transData.transform(edges.reshape(2, 2).T)
            assert (words.min > corners[0]).all() and (words.max < corners[1]).all()


def test_a_tree_in_axes_of_the_users():
    model, idata = _on_a_frame()
    figure, axes = plt.subplots(1, 2, figsize=(4, 2))
    drawn = plot_tree(idata, model, ax=axes[1])
    assert drawn.viz["plot"].item() is axes[1] and drawn.viz["figure"].item() is figure
    assert len(axes[1].texts) >= 1 and not axes[0].texts
    alone = plot_tree(idata, model, backend="matplotlib").viz["plot"].item()
    sizes = [ax.texts[0].get_fontsize() for ax in (axes[1], alone)]
    assert sizes[0] < sizes[1] == 13 * 72 / 100
    with pytest.raises(TypeError, match="ax=ndarray: must be one matplotlib Axes"):
        plot_tree(idata, model, ax=axes)
    with pytest.raises(ValueError, match="backend='none': ax belongs to matplotlib"):
        plot_tree(idata, model, ax=axes[0], backend="none")


def test_names_are_no_formulas_and_no_tags():
    X = pd.DataFrame({"$a$ < b> <i>": np.random.default_rng(1).random(N)})
    model, idata = drawn_from_prior(X=X)
    assert any("$a$ < b> <i> <=" in text for text in texts_of(plot_tree_of(model, idata, 4)))
    drawn = plot_tree(idata, model, draw=4, backend="matplotlib")
    assert r"\$a\$ < b> <i> <=" in drawn.viz["text"]["tree"].values[0].get_text()
    pytest.importorskip("plotly")
    drawn = plot_tree(idata, model, draw=4, backend="plotly")
    text = drawn.viz["text"]["tree"].values[0].text[0]
    assert text.startswith("$a$ &lt; b&gt; &lt;i&gt; &lt;=")


def test_draws_are_places_of_thinned_draws_and_of_a_file(tmp_path):
    model, idata = _on_a_frame()
    whole = plot_tree(idata, model, chain=1, draw=2, tree=2, backend="none")
    thin = idata.isel(draw=slice(None, None, 2))
    assert texts_of(plot_tree(thin, model, chain=1, draw=1, tree=2, backend="none")) == texts_of(
        whole
    )
    idata.to_netcdf(tmp_path / "draws.nc", engine="h5netcdf")
    with xr.open_datatree(tmp_path / "draws.nc", engine="h5netcdf") as read:
        again = plot_tree(read, model, chain=-1, draw=-2, tree=2, backend="none")
    assert texts_of(again) == texts_of(whole)


def test_one_forest_of_several_is_named():
    model, idata = _two_functions()
    with pytest.raises(ValueError, match=r"forests \['f_0_forest', .*choose one by forest"):
        plot_tree(idata, model, backend="none")
    by_forest = plot_tree(idata, model, forest="g_forest", tree=1, backend="none")
    by_function = plot_tree(idata, model, forest="g", tree=1, backend="none")
    assert texts_of(by_forest) == texts_of(by_function)


def test_soft_trees_have_a_picture_of_their_own():
    X = frame()[["dose"]].to_numpy()
    with pm.Model() as model:
        pmt.SoftDecisionTree("s", X)
        soft = pm.sample_prior_predictive(2, random_seed=1)["prior"].to_dataset()
        with pytest.raises(ValueError, match=r"\['s_forest'\] are soft.*plot_soft_tree"):
            plot_tree(xr.DataTree.from_dict({"posterior": soft}))
        pmt.BART("mu", X, m=2, leaf=pmt.NormalLeaf(0.0, 1.0))
        both = pm.sample_prior_predictive(2, random_seed=1)["prior"].to_dataset()
    draws = xr.DataTree.from_dict({"posterior": both})
    for name in ("s", "s_forest"):
        with pytest.raises(ValueError, match="plot_soft_tree"):
            plot_tree(draws, model, forest=name)
    assert texts_of(plot_tree(draws, model, backend="none"))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"chain": 2}, "chain=2: there are 2"),
        ({"draw": 4}, "draw=4: there are 4"),
        ({"tree": 4}, "tree=4: there are 4"),
        ({"tree": None}, "tree=None: give one number below 4, or use tree_text"),
        ({"backend": "svg"}, "backend='svg': choose from"),
    ],
)
def test_what_is_wrong_is_said(given, message):
    model, idata = _on_a_frame()
    with pytest.raises(ValueError, match=message):
        plot_tree(idata, model, **given)
