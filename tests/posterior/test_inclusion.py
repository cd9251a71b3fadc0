"""Counts of columns and pairs against a walk over the nodes."""

from functools import cache

import numpy as np
import pymc as pm
import pytest
import xarray as xr
from support.fitted import on_a_frame, two_functions

import pymc_trees as pmt
from pymc_trees.posterior.reading.forests import ForestDraws

pytestmark = pytest.mark.usefixtures("quick_compile")
_on_a_frame, _two_functions = cache(on_a_frame), cache(two_functions)


def walked(value, m, p):
    """Counts of one draw, by recursion."""
    counts, pairs, row = np.zeros(p), np.zeros((p, p)), 0

    def below(above):
        nonlocal row
        here, row = row, row + 1
        if value[here, 0] < 0:
            return
        column = int(value[here, 0]) % p
        counts[column] += 1
        for one in above:
            pairs[one, column] += 1
            pairs[column, one] += one != column
        below([*above, column])
        below([*above, column])

    for _ in range(m):
        below([])
    return counts, pairs


def test_counts_are_those_of_a_walk():
    model, idata = _on_a_frame()
    single = pmt.get_variable_inclusion(idata, model)
    pairs = pmt.get_interaction_inclusion(idata, model)
    draws, deep = ForestDraws(idata, model), 0
    for chain, draw, value in draws.each_draw():
        at = {"chain": chain, "draw": draw}
        counts, both = walked(value, 4, 3)
        np.testing.assert_array_equal(single["count"].isel(at), counts)
        np.testing.assert_array_equal(pairs["count"].isel(at), both)
        np.testing.assert_allclose(single["share"].isel(at), counts / (counts.sum() or np.nan))
        upper = np.triu(both).sum()
        np.testing.assert_allclose(pairs["share"].isel(at), both / (upper or np.nan))
        deep += upper
    assert deep > 0
    assert single["feature"].to_numpy().tolist() == ["age", "site", "dose"]


def test_they_are_the_statistic_of_the_sampler():
    model, idata = _on_a_frame()
    recorded = idata.sample_stats["variable_inclusion"]
    np.testing.assert_array_equal(pmt.get_variable_inclusion(idata, model)["count"], recorded)


def test_thinned_draws_and_one_forest_of_several():
    model, idata = _two_functions()
    with pytest.raises(ValueError, match=r"forests \['f_0_forest', 'f_1_forest', 'g_forest'\]"):
        pmt.get_variable_inclusion(idata, model)
    found = pmt.get_variable_inclusion(idata, model, forest="g")
    xr.testing.assert_identical(found, pmt.get_variable_inclusion(idata, model, forest="g_forest"))
    thinned = idata.isel(draw=slice(None, None, 2))
    some = pmt.get_variable_inclusion(thinned, model, forest="g")
    xr.testing.assert_identical(some, found.isel(draw=slice(None, None, 2)))


def test_splits_of_separate_outputs_add_up():
    model, idata = _two_functions()
    for count in (pmt.get_variable_inclusion, pmt.get_interaction_inclusion):
        parts = [count(idata, model, forest=f"f_{k}_forest", progressbar=False) for k in (0, 1)]
        both = count(idata, model, forest="f", progressbar=False)
        xr.testing.assert_equal(both["count"], parts[0]["count"] + parts[1]["count"])
    single = pmt.get_variable_inclusion(idata, model, forest="f", progressbar=False)
    np.testing.assert_allclose(single["share"].sum("feature"), 1.0)
    drawn = pmt.plot_variable_inclusion(idata, model, forest="f", backend="none")
    assert "mean" in drawn.viz
    with pytest.raises(ValueError, match=r"forest='f' is not one forest.*'f_1_forest'"):
        pmt.tree_text(idata, model, forest="f")


@pytest.mark.parametrize("wanted", [True, False])
def test_progress_is_shown_unless_it_is_not_wanted(wanted, capsys, monkeypatch):
    monkeypatch.setattr("pymc_trees.progress.can_draw", lambda: True)
    model, idata = _on_a_frame()
    asked = [pmt.get_variable_inclusion, pmt.get_interaction_inclusion, pmt.plot_variable_inclusion]
    for function in asked:
        more = {"backend": "none"} if function is pmt.plot_variable_inclusion else {}
        function(idata, model, progressbar=wanted, **more)
        assert bool(capsys.readouterr().out) is wanted
    pmt.summarise_trees(idata, model, tree=0, progressbar=wanted)
    assert bool(capsys.readouterr().out) is wanted


@pytest.mark.parametrize("is_same", [True, False])
def test_counts_of_forests_add_up_where_their_columns_are_the_same(is_same):
    """Columns of arrays have no names of their own."""
    rng = np.random.default_rng(2)
    X = rng.random((12, 2))
    other = X.copy() if is_same else rng.random((12, 2))
    with pm.Model() as model:
        leaf = pmt.NormalLeaf(0.0, 1.0)
        parts = [pmt.BART(name, x, m=2, leaf=leaf) for name, x in (("f", X), ("h", other))]
        pm.Deterministic("t", parts[0] + parts[1])
        idata = pm.sample_prior_predictive(3, random_seed=1)["prior"].to_dataset()
    given = {"forest": "t", "progressbar": False}
    for count in (pmt.get_variable_inclusion, pmt.get_interaction_inclusion):
        if is_same:
            assert count(idata, model, **given).sizes["feature"] == 2
            continue
        with pytest.raises(ValueError, match=r"forest='t' has forests with different columns"):
            count(idata, model, **given)
