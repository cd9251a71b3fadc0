"""Shapley values against sums over all subsets, with f by PyMC."""

import math
from functools import cache

import numpy as np
import pandas as pd
import pymc as pm
import pytest
import xarray as xr
from support.fitted import draws_of, frame, on_a_frame, predicted_of, two_functions
from support.subsets import interventional, shapley_of

import pymc_trees as pmt
from benchmarks.shapley import by_shap
from pymc_trees.core.value.text import sent_left
from pymc_trees.posterior.explain import shapley as shapley_values
from pymc_trees.posterior.reading.forests import ForestDraws

pytestmark = pytest.mark.usefixtures("quick_compile")
_on_a_frame, _two_functions = cache(on_a_frame), cache(two_functions)
QUIET = {"progressbar": False, "cores": 1}


@cache
def deep():
    """One deep tree over 14 columns, numbers, levels and missing cells; draws of its prior."""
    rng = np.random.default_rng(8)
    X = pd.DataFrame(rng.integers(0, 3, (60, 14)).astype(float)).rename(columns=str)
    X["0"] = rng.choice(list("abc"), 60)
    X.loc[::5, "1"] = np.nan
    with pm.Model() as model:
        pmt.DecisionTree("mu", X, alpha=0.995, beta=0.01, leaf=pmt.NormalLeaf(0.0, 1.0))
        prior = pm.sample_prior_predictive(2, random_seed=3)
    return model, xr.DataTree.from_dict({"posterior": prior["prior"].to_dataset()})


def by_path(value, layout, X_train, x):
    """The same game where other columns follow both branches: a recursion over the nodes."""
    p = x.size
    known = np.array([[subset >> j & 1 for j in range(p)] for subset in range(2**p)], dtype=bool)
    row = 0

    def below(rows):
        nonlocal row
        here, row = row, row + 1
        if value[here, 0] < 0:
            return np.full(2**p, value[here, 1])
        way, column = divmod(int(value[here, 0]), p)
        goes = sent_left(X_train[rows, column], way, value[here, 1])
        left, right = below(rows[goes]), below(rows[~goes])
        own = left if sent_left(x[[column]], way, value[here, 1])[0] else right
        share = goes.mean()
        return np.where(known[:, column], own, share * left + (1 - share) * right)

    return sum(below(np.arange(len(X_train))) for _ in range(layout.m))


def f_of(model, idata, name="mu"):
    """f(draw, rows) by PyMC's own evaluation."""

    def f(chain, draw):
        one = idata.isel(chain=[chain], draw=[draw])
        return lambda X: predicted_of(model, one, f"{name}_forest", X)[0]

    return f


def test_interventional_values_are_the_sums_over_subsets():
    model, idata = _on_a_frame()
    X = ForestDraws(idata, model).X_train
    found = pmt.shap_values(idata, model, background=frame(), **QUIET)
    pairs = pmt.shap_interactions(idata, model, background=frame(), **QUIET)
    assert list(found.feature.to_numpy()) == ["age", "site", "dose"]
    for draw in (0, 3):
        f = f_of(model, idata)(1, draw)
        for row in range(len(X)):
            game = interventional(f, X[row], X)
            values, both = shapley_of(game, 3)
            one = found["values"].isel(chain=1, draw=draw, row=row)
            np.testing.assert_allclose(one, values[0], rtol=0, atol=1e-12)
            one = pairs["values"].isel(chain=1, draw=draw, row=row)
            np.testing.assert_allclose(one, both[0], rtol=0, atol=1e-12)
            base = found["base_values"].isel(chain=1, draw=draw)
            np.testing.assert_allclose(base, game[0, 0], rtol=0, atol=1e-12)


def test_path_dependent_values_are_the_sums_over_subsets():
    model, idata = _on_a_frame()
    forest = ForestDraws(idata, model)
    found = pmt.shap_values(idata, model, **QUIET)
    pairs = pmt.shap_interactions(idata, model, **QUIET)
    for chain, draw, value in forest.each_draw():
        for row in (0, 3, 7):
            game = by_path(value, forest.layout, forest.X_train, forest.X_train[row])
            values, both = shapley_of(game, 3)
            at = {"chain": chain, "draw": draw, "row": row}
            np.testing.assert_allclose(found["values"].isel(at), values, rtol=0, atol=1e-12)
            np.testing.assert_allclose(pairs["values"].isel(at), both, rtol=0, atol=1e-12)


@pytest.mark.parametrize("background", [None, 7])
def test_deep_paths(background):
    """Ten and more columns on a path; the sums over subsets for two rows."""
    model, idata = deep()
    forest = ForestDraws(idata, model)
    rows = forest.X_train[[0, 5]]
    given = None if background is None else forest.X_train[:7]
    found = pmt.shap_values(idata, model, rows, background=given, **QUIET)
    [(chain, draw, value), *_] = forest.each_draw()
    mattering = 0
    f = f_of(model, idata)(0, 0)
    for k, x in enumerate(rows):
        if background is None:
            game = by_path(value, forest.layout, forest.X_train, x)
        else:
            game = interventional(f, x, given)[0]
        subsets = np.arange(2**14)
        sizes = np.array([int(s).bit_count() for s in subsets])
        fact = [math.factorial(i) for i in range(15)]
        for j in range(14):
            without = subsets[(subsets >> j & 1) == 0]
            weight = np.array([fact[s] * fact[13 - s] / fact[14] for s in sizes[without]])
            exact = weight @ (game[without | 1 << j] - game[without])
            one = float(found["values"].isel(chain=0, draw=0, row=k, feature=j))
            mattering += abs(exact) > 1e-12
            np.testing.assert_allclose(one, exact, rtol=0, atol=1e-12)
    assert mattering > 10  # columns that matter


def test_values_add_up_for_several_outputs_and_forests():
    model, idata = _two_functions()
    X = np.random.default_rng(6).random((5, 2))
    for name, dims in (("f", ("chain", "draw", "kind")), ("g", ("chain", "draw"))):
        found = pmt.shap_values(idata, model, X, var_name=name, background=6, **QUIET)
        total = found["values"].sum("feature") + found["base_values"]
        wanted = pmt.predictions(idata, model, X, var_name=name)["prediction"]
        assert found["base_values"].dims == dims
        np.testing.assert_allclose(total.transpose(*wanted.dims), wanted, rtol=0, atol=1e-12)
    seeded = {"var_name": "f", "background": 6, "random_state": 3} | QUIET
    pairs = pmt.shap_interactions(idata, model, X, **seeded)
    singles = pmt.shap_values(idata, model, X, **seeded)
    np.testing.assert_allclose(pairs["values"].sum("other"), singles["values"], atol=1e-12)


def test_a_linear_function_of_two_forests():
    X = np.random.default_rng(1).random((12, 2))
    with pm.Model() as model:
        f = pmt.BART("f", X, m=2, leaf=pmt.NormalLeaf(0.0, 1.0))
        g = pmt.BART("g", X, m=2, leaf=pmt.NormalLeaf(0.0, 1.0))
        pm.Deterministic("both", 3.0 + 2.0 * f - g)
        pm.Normal("y", f - g, 1.0, observed=np.zeros(12))
        idata = draws_of()
    found, of_f, of_g = (
        pmt.shap_values(idata, model, var_name=name, **QUIET) for name in ("both", "f", "g")
    )
    wanted = 2.0 * of_f["values"] - of_g["values"]
    np.testing.assert_allclose(found["values"], wanted, rtol=0, atol=1e-12)
    wanted = 3.0 + 2.0 * of_f["base_values"] - of_g["base_values"]
    np.testing.assert_allclose(found["base_values"], wanted, rtol=0, atol=1e-12)


def test_a_curved_function_of_one_tree():
    X = np.random.default_rng(1).random((12, 2))
    with pm.Model() as model:
        f = pmt.DecisionTree("f", X, leaf=pmt.NormalLeaf(0.0, 2.0), alpha=0.99)
        pm.Poisson("y", pm.math.exp(f), observed=np.resize([0, 3, 9, 1], 12))
        idata = draws_of()
    found = pmt.shap_values(idata, model, func=np.exp, background=X, **QUIET)
    f = f_of(model, idata, "f")(0, 2)
    values, _ = shapley_of(interventional(lambda A: np.exp(f(A)), X[4], X), 2)
    np.testing.assert_allclose(found["values"][0, 2, 4], values[0], rtol=0, atol=1e-12)
    threads = pmt.shap_values(idata, model, func=np.exp, background=X, cores=4, progressbar=False)
    xr.testing.assert_identical(threads, found)


@pytest.mark.full
def test_probabilities_of_classes():
    X = np.random.default_rng(1).random((12, 2))
    with pm.Model() as model:
        p = pmt.DecisionTree("p", X, leaf=pmt.DirichletLeaf(1.0, 3), alpha=0.99)
        pm.Categorical("y", p=p, observed=np.arange(12) % 3)
        idata = draws_of()
    found = pmt.shap_values(idata, model, background=X, **QUIET)
    np.testing.assert_allclose(found["values"].sum("p_dim_1"), 0.0, atol=1e-12)
    total = found["values"].sum("feature") + found["base_values"]
    wanted = pmt.predictions(idata, model)["prediction"]
    np.testing.assert_allclose(total.transpose(*wanted.dims), wanted, rtol=0, atol=1e-12)


def test_draws_are_thinned_evenly_and_threads_change_nothing():
    model, idata = _on_a_frame()
    every = pmt.shap_values(idata, model, **QUIET)
    some = pmt.shap_values(idata, model, draws=4, cores=2, progressbar=False)
    assert some.draw.to_numpy().tolist() == [0, 3]
    xr.testing.assert_identical(some, every.isel(draw=[0, 3]))


def test_memory_is_bounded(monkeypatch):
    model, idata = _on_a_frame()
    monkeypatch.setattr(shapley_values, "LARGEST", 8 * 12 * 3 * 2 * 3)
    with pytest.warns(UserWarning, match="6 of 8 draws.*set draws"):
        found = pmt.shap_values(idata, model, **QUIET)
    assert found.sizes["draw"] == 3


def test_curved_functions_of_sums_need_a_background():
    model, idata = _two_functions()
    with pytest.raises(ValueError, match=r"rate is not a sum of trees.*var_name"):
        pmt.shap_values(idata, model, var_name="rate", **QUIET)
    with pytest.raises(ValueError, match=r"func\(g\) is not a sum of trees.*without func"):
        pmt.shap_values(idata, model, var_name="g", func=np.exp, **QUIET)


def test_soft_trees_need_a_background():
    X = np.random.default_rng(1).random((12, 2))
    with pm.Model() as model:
        pmt.SoftDecisionTree("mu", X, X[:, 0])
        prior = pm.sample_prior_predictive(2, random_seed=3)
    idata = xr.DataTree.from_dict({"posterior": prior["prior"].to_dataset()})
    with pytest.raises(ValueError, match=r"no path-dependent values: give background="):
        pmt.shap_values(idata, model, **QUIET)
    with pytest.raises(ValueError, match=r"soft trees.*partial_dependence"):
        pmt.shap_interactions(idata, model, background=X, **QUIET)
    found = pmt.shap_values(idata, model, background=X, **QUIET)
    wanted = pmt.predictions(idata, model, progressbar=False)["prediction"]
    total = found["values"].sum("feature") + found["base_values"]
    np.testing.assert_allclose(total.transpose(*wanted.dims), wanted, rtol=0, atol=1e-12)


# The package sums over a background in single precision.
@pytest.mark.parametrize(("background", "tolerance"), [(None, 1e-12), (5, 1e-6)])
def test_the_package_shap_agrees(background, tolerance):
    X = np.random.default_rng(1).random((20, 3))
    with pm.Model() as model:
        mu = pmt.BART("mu", X, m=6, leaf=pmt.NormalLeaf(0.0, 1.0))
        pm.Normal("y", mu, 0.1, observed=np.sin(9 * X[:, 0]) + X[:, 1], shape=mu.shape)
        idata = draws_of()
    given = None if background is None else X[:background]
    found = pmt.shap_values(idata, model, background=given, **QUIET)["values"]
    forest = ForestDraws(idata, model)
    split = 0
    for chain, draw, value in forest.each_draw():
        theirs, _ = by_shap(value, forest.layout, X, given)
        split += np.abs(theirs).max() > 0
        ours = found.isel(chain=chain, draw=draw)
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=tolerance)
    assert split > 4  # draws in which anything is split


def test_an_explanation_for_the_package_shap():
    import shap

    model, idata = _on_a_frame()
    found = pmt.shap_values(idata, model, **QUIET)
    mean = pmt.to_shap(found)
    assert isinstance(mean, shap.Explanation)
    wanted = pmt.predictions(idata, model)["prediction"].mean(("chain", "draw"))
    np.testing.assert_allclose(mean.values.sum(1) + mean.base_values, wanted, atol=1e-12)
    assert mean.feature_names == ["age", "site", "dose"]
    low = pmt.to_shap(found, 0.1).values
    assert (low <= pmt.to_shap(found, 0.9).values).all()
