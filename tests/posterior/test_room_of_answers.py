"""How much memory questions take beside their answers, by tracemalloc, and what is refused."""

import tracemalloc
from functools import cache

import numpy as np
import pymc as pm
import pytest
import xarray as xr

import pymc_trees as pmt
from pymc_trees.posterior import draws
from pymc_trees.posterior.explain import interactions
from pymc_trees.posterior.reading.functions import BLOCK

pytestmark = pytest.mark.usefixtures("quick_compile")
QUIET = {"progressbar": False}
ROWS, COLUMNS, DRAWS = 4_000, 20, 60


@cache
def asked():
    """A model of one tree, and few prior draws again and again."""
    X = np.random.default_rng(0).random((ROWS, COLUMNS))
    with pm.Model() as model:
        pmt.DecisionTree("f", X, leaf=pmt.NormalLeaf(0, 1))
        prior = pm.sample_prior_predictive(4, random_seed=1, var_names=["f_forest"])
    again = prior["prior"].to_dataset().isel(draw=np.resize(np.arange(4), DRAWS))
    again = again.assign_coords(draw=np.arange(DRAWS))
    return model, xr.DataTree.from_dict({"posterior": again})


def growth(ask, **given):
    """Bytes at the peak of a question, and those of its answer; the question was asked before."""
    model, idata = asked()
    ask(idata.isel(draw=[0, 1]), model, **given, **QUIET)  # compiled
    tracemalloc.start()
    found = ask(idata, model, **given, **QUIET)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak, found.nbytes


def test_curves_of_rows_take_their_own_size():
    peak, answer = growth(pmt.partial_dependence, kind="both")
    assert answer > 8 * DRAWS * ROWS * 20
    blocks = 8 * BLOCK * COLUMNS  # of rows at which f is evaluated
    assert peak < 1.1 * answer + 1.5 * blocks < 2.0 * answer  # it was 2.3 times as much


def test_submodels_take_their_own_size():
    peak, answer = growth(pmt.compute_variable_importance, samples=DRAWS, cores=1)
    assert answer > 8 * DRAWS * ROWS * COLUMNS
    assert peak < 1.3 * answer  # it was 3 times as much


@pytest.mark.parametrize("cores", [1, 4])
def test_pairs_of_columns_take_one_array_at_a_time(monkeypatch, cores):
    one = 8 * ROWS * COLUMNS**2
    monkeypatch.setattr(interactions, "LARGEST", 2 * one)  # room for one draw, and not for two
    peak, answer = growth(pmt.interaction_strength, cores=cores)
    assert peak < 1.6 * one + answer  # it was four times as much, for each thread


def test_threads_are_as_many_as_have_room(monkeypatch):
    seen = []
    monkeypatch.setattr(
        draws.joblib, "Parallel", lambda jobs, **_: seen.append(jobs) or (lambda tasks: [])
    )
    for cores, most in ((4, 2), (1, 2), (4, 0), (4, None)):
        draws.for_each_draw(lambda chain, draw: None, (1, 2), "", cores, False, most)
    assert seen == [2, 1, 1, 4]


def test_answers_that_are_too_large_are_refused(monkeypatch):
    model, idata = asked()
    monkeypatch.setattr(draws, "LARGEST", 1_000_000)
    numbers = f"{DRAWS * ROWS * 20:,} numbers"
    with pytest.raises(ValueError, match=rf"individual.*{numbers}.*subsample=.*isel\(draw="):
        pmt.partial_dependence(idata, model, kind="individual", **QUIET)
    assert pmt.partial_dependence(idata, model, subsample=9, grid=3, **QUIET)
    with pytest.raises(ValueError, match=f"20 submodels at {ROWS} rows.*samples="):
        pmt.compute_variable_importance(idata, model, samples=DRAWS, **QUIET)
    monkeypatch.setattr(draws, "LARGEST", 1_000)
    with pytest.raises(ValueError, match="H statistics.*draws="):
        pmt.interaction_strength(idata, model, **QUIET)
