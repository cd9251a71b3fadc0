"""Shapley values of soft trees against sums over all subsets, with f in plain Python."""

from functools import cache

import numpy as np
import pymc as pm
import pytest
import xarray as xr
from support.fitted import draws_of
from support.naive import soft_forest as naive
from support.subsets import interventional, shapley_of

import pymc_trees as pmt
from pymc_trees.core.explain.shapley import (
    by_subset,
    integrate,
    make_quadrature,
    make_weights,
    mean_product,
    prefers_subsets,
    sum_subsets,
)
from pymc_trees.posterior.reading.forests import ForestDraws

pytestmark = pytest.mark.usefixtures("quick_compile")
QUIET = {"progressbar": False, "cores": 1}
X = np.random.default_rng(5).random((15, 4))
HARD = [1, 3]


@cache
def drawn(bandwidth):
    """Prior draws of three soft trees over four columns, two of them hard."""
    leaf = pmt.NormalLeaf(0.3, 1.0)
    options = {"alpha": 0.95, "beta": 0.4, "split_prior": np.ones(4), "bandwidth": bandwidth}
    with pm.Model() as model:
        pmt.SoftBART("mu", X, m=3, leaf=leaf, hard=HARD, max_nodes=500, **options)
        prior = pm.sample_prior_predictive(3, random_seed=2)
    return model, xr.DataTree.from_dict({"posterior": prior["prior"].to_dataset()})


def columns_of(tree):
    """Numbers of different columns on the paths of a nested tree."""

    def below(node, seen):
        if not isinstance(node, tuple):
            return [len(seen)]
        return [n for child in node[2:] for n in below(child, seen | {node[0]})]

    return below(tree, frozenset())


@cache
def sampled():
    """Draws of `pm.sample`."""
    y = np.sin(6 * X[:, 0]) + X[:, 1]
    with pm.Model() as model:
        mu = pmt.SoftBART("mu", X, y, m=4, hard=[1])
        pm.Normal("y", mu, 0.2, observed=y, shape=mu.shape)
        return model, draws_of()


@pytest.mark.parametrize("size", [1, 2, 15])
@pytest.mark.parametrize("bandwidth", [0.005, 0.1, 2.0])
def test_values_are_the_sums_over_subsets(bandwidth, size):
    """By quadrature (few rows in the background) and by subsets; rows beyond the training rows."""
    model, idata = drawn(bandwidth)
    rows, background = np.random.default_rng(6).random((3, 4)) * 1.2 - 0.1, X[:size]
    found = pmt.shap_values(idata, model, rows, background=background, **QUIET)
    pairs = pmt.shap_interactions(idata, model, rows, background=background, **QUIET)
    assert found.attrs["algorithm"] == "interventional"
    forest, widths = ForestDraws(idata, model, soft_too=True), []
    for chain, draw, value in forest.each_draw():
        trees = naive.read_trees(value, forest.layout.m, forest.layout.max_nodes)
        widths += [n for tree, _ in trees for n in columns_of(tree)]

        def f(A, trees=trees):
            return naive.function(trees, naive.to_unit(X, A), HARD)[None]

        for row, x in enumerate(rows):
            game = interventional(f, x, background)
            values, both = shapley_of(game, 4)
            at = {"chain": chain, "draw": draw, "row": row}
            np.testing.assert_allclose(found["values"].isel(at), values[0], rtol=0, atol=1e-12)
            np.testing.assert_allclose(pairs["values"].isel(at), both[0], rtol=0, atol=1e-12)
            base = found["base_values"].isel(chain=chain, draw=draw)
            np.testing.assert_allclose(base, game[0, 0], rtol=0, atol=1e-12)
    assert {1, 2, 3, 4} <= set(widths)
    ways = {prefers_subsets(n, size) for n in widths}
    assert ways == ({True, False} if size < 4 else {True})


@pytest.mark.parametrize("d", [1, 2, 3, 4, 7, 10])
def test_subsets_and_quadrature_agree(d):
    """With factors of 0 and of 1 among them; for four columns with the definition too."""
    weights, quadrature = make_weights(), make_quadrature()
    rng = np.random.default_rng(d)
    rows, background = rng.random((5, d)), rng.random((6, d))
    rows[0], rows[1, 0], background[0, -1], background[1] = 1.0, 0.0, 0.0, 1.0
    of_single, of_pairs = np.zeros((2**d, d)), np.zeros((2**d, d, d))
    mean = by_subset(background, weights, of_single, of_pairs)
    assert mean == pytest.approx(mean_product(background), abs=1e-14)
    assert mean == pytest.approx(background.prod(axis=1).mean(), abs=1e-14)
    above = np.triu_indices(d, 1)
    for row in rows:
        (single, one), pairs = np.empty((2, d)), np.empty((2, d, d))
        sum_subsets(row, of_single, of_pairs, np.empty(2**d), single, pairs[0])
        room = np.empty(d), np.empty(d + 1)
        integrate(row, background, quadrature, True, *room, one, pairs[1])
        np.testing.assert_allclose(single, one, rtol=0, atol=1e-14)
        np.testing.assert_allclose(pairs[0][above], pairs[1][above], rtol=0, atol=1e-14)
        np.testing.assert_allclose(single.sum(), row.prod() - mean, rtol=0, atol=1e-13)
        if d == 4:
            game = interventional(lambda A: A.prod(axis=1)[None], row, background)
            values, both = shapley_of(game, d)
            np.testing.assert_allclose(one, values[0], rtol=0, atol=1e-14)
            np.testing.assert_allclose(pairs[1][above], 2 * both[0][above], rtol=0, atol=1e-14)


def test_many_columns_on_a_path():
    """The rule of most points: all columns alike share alike, and add up."""
    d, quadrature = 63, make_quadrature()
    single, pairs, room = np.empty(d), np.empty((d, d)), (np.empty(d), np.empty(d + 1))
    row, background = np.full(d, 0.99), np.full((1, d), 0.9)
    integrate(row, background, quadrature, False, *room, single, pairs)
    np.testing.assert_allclose(single, (0.99**d - 0.9**d) / d, rtol=1e-12)


def test_draws_of_pm_sample():
    model, idata = sampled()
    seeded = {"background": 7, "random_state": 3} | QUIET
    found = pmt.shap_values(idata, model, **seeded)
    pairs = pmt.shap_interactions(idata, model, **seeded)
    f = pmt.predictions(idata, model)["prediction"]
    total = found["values"].sum("feature") + found["base_values"]
    np.testing.assert_allclose(total.transpose(*f.dims), f, rtol=0, atol=1e-12)
    both = pairs["values"].transpose(..., "feature", "other").to_numpy()
    np.testing.assert_array_equal(both, np.swapaxes(both, -1, -2))
    np.testing.assert_allclose(pairs["values"].sum("other"), found["values"], rtol=0, atol=1e-12)
    assert (abs(found["values"]).max(("row", "feature")) > 0).any()
    rows = np.random.default_rng(3).choice(len(X), 7, replace=False)
    base = f.isel({f.dims[-1]: rows}).mean(f.dims[-1])
    np.testing.assert_allclose(found["base_values"], base, rtol=0, atol=1e-12)
    threads = pmt.shap_values(idata, model, **seeded | {"cores": 3})
    xr.testing.assert_identical(threads, found)


def test_an_explanation_for_the_package_shap():
    shap = pytest.importorskip("shap")
    model, idata = sampled()
    mean = pmt.to_shap(pmt.shap_values(idata, model, background=X, **QUIET))
    assert isinstance(mean, shap.Explanation)
    wanted = pmt.predictions(idata, model)["prediction"].mean(("chain", "draw"))
    np.testing.assert_allclose(mean.values.sum(1) + mean.base_values, wanted, atol=1e-12)


def test_a_linear_function_of_hard_and_soft_trees():
    with pm.Model() as model:
        f = pmt.BART("f", X, m=2, leaf=pmt.NormalLeaf(0.0, 1.0))
        g = pmt.SoftBART("g", X, m=2, leaf=pmt.NormalLeaf(0.0, 1.0))
        pm.Deterministic("both", 3.0 + 2.0 * f - g)
        pm.Normal("y", f - g, 1.0, observed=np.zeros(15))
        idata = draws_of()
    given = {"background": X[:6]} | QUIET
    found, of_f, of_g = (
        pmt.shap_values(idata, model, var_name=name, **given) for name in ("both", "f", "g")
    )
    wanted = 2.0 * of_f["values"] - of_g["values"]
    np.testing.assert_allclose(found["values"], wanted, rtol=0, atol=1e-12)
    wanted = 3.0 + 2.0 * of_f["base_values"] - of_g["base_values"]
    np.testing.assert_allclose(found["base_values"], wanted, rtol=0, atol=1e-12)
    assert (abs(of_f["values"]).max() > 0) and (abs(of_g["values"]).max() > 0)
    with pytest.raises(ValueError, match="NaN or infinite"):
        pmt.shap_values(idata, model, np.full((1, 4), np.nan), var_name="both", **given)
    with pytest.raises(ValueError, match=r"both is .*soft trees.*give background="):
        pmt.shap_values(idata, model, var_name="both", **QUIET)


@pytest.mark.parametrize("function", [pmt.shap_values, pmt.shap_interactions])
def test_path_dependent_values_are_refused(function):
    model, idata = drawn(0.1)
    with pytest.raises(ValueError, match=r"mu is .*soft trees.*path-dependent.*background="):
        function(idata, model, **QUIET)


def test_a_curved_function_of_one_soft_tree_has_no_closed_form():
    with pm.Model() as model:
        pmt.SoftBART("mu", X, m=1, leaf=pmt.NormalLeaf(0.0, 1.0), split_prior=np.ones(4))
        prior = pm.sample_prior_predictive(2, random_seed=2)
    idata = xr.DataTree.from_dict({"posterior": prior["prior"].to_dataset()})
    with pytest.raises(ValueError, match=r"func\(mu\) is not a sum of trees.*leave func out"):
        pmt.shap_interactions(idata, model, background=X, func=np.exp, **QUIET)
    curved = pmt.shap_values(idata, model, background=X, func=np.exp, **QUIET)
    assert (curved["standard_error"] == 0).all() and (curved["values"] != 0).any()
    found = pmt.shap_values(idata, model, background=X, func=None, **QUIET)
    assert found.sizes["feature"] == 4


def test_missing_cells_are_refused():
    model, idata = drawn(0.1)
    broken = X.copy()
    broken[2, 1] = np.nan
    for given in ({"X": broken, "background": X}, {"background": broken}):
        with pytest.raises(ValueError, match="NaN or infinite"):
            pmt.shap_values(idata, model, **given, **QUIET)


@pytest.mark.parametrize("function", [pmt.sobol_indices, pmt.interaction_strength])
def test_what_is_not_computed_is_refused(function):
    model, idata = drawn(0.1)
    with pytest.raises(ValueError, match=r"soft trees, .*shap_values.*background=.*partial_dep"):
        function(idata, model, **QUIET)
