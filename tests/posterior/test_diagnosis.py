"""What `diagnose` says, on chains that were made to differ in known ways."""

from dataclasses import replace
from functools import cache

import numpy as np
import pymc as pm
import pytest
import xarray as xr
from support.fitted import on_a_frame, two_functions
from support.small_models import bart_model, sample, soft_model

import pymc_trees as pmt
from pymc_trees.posterior.diagnosis import (
    _by_parts,
    cells_of,
    columns_of_trees,
    directions,
    explained,
)
from pymc_trees.posterior.reading.forests import ForestDraws

pytestmark = pytest.mark.usefixtures("quick_compile")
NAMES = ["a", "b", "c"]


def test_chance_explains_nothing_on_average():
    """The mean over all orders of the rows is exactly 0."""
    from itertools import permutations

    d = np.array([[1.0, -2.0, 0.5, 3.0, -2.5]])
    cells = np.array([0, 0, 1, 1, 2])
    shares = [explained(d[:, list(order)], cells) for order in permutations(range(5))]
    assert np.mean(shares) == pytest.approx(0.0, abs=1e-12)
    assert explained(d, np.arange(5)) == 0.0


def test_means_of_cells_are_explained():
    rng = np.random.default_rng(1)
    cells = np.repeat([0, 1], 500)
    signal, noise = np.where(cells, 1.0, -1.0), rng.normal(size=(3, 1000))
    noise -= noise.mean(axis=1, keepdims=True)
    found = explained(signal + noise, cells)
    total = ((signal + noise) ** 2).sum()
    by_hand = sum(
        500 * (signal + noise)[c, cells == k].mean() ** 2 for c in range(3) for k in (0, 1)
    )
    assert found == pytest.approx(1 - (1 - by_hand / total) * 999 / 998)
    assert cells_of(np.arange(100.0), 4).tolist() == np.repeat(range(4), 25).tolist()
    assert len(set(cells_of(np.array([1.0, 1, 1, 2]), 4).tolist())) == 2


def test_columns_pairs_and_the_level_are_found():
    rng = np.random.default_rng(1)
    X = rng.random((2000, 3))
    signs = np.array([1.0, -1.0, 1.0, -1.0])[:, None]
    splits = np.array([5, 4, 3])
    one = directions(signs * (X[:, 0] - 0.5), X, NAMES, splits)
    assert one[("a",)] > 0.99 and abs(one[("b",)]) < 0.05 and abs(one[()]) < 0.01
    both = directions(signs * np.sign((X[:, 0] - 0.5) * (X[:, 1] - 0.5)), X, NAMES, splits)
    assert next(iter(list(both)[1:])) == ("a", "b") and both[("a", "b")] > 0.9
    assert all(abs(both[(name,)]) < 0.05 for name in NAMES)
    level = directions(signs * np.ones(2000), X, NAMES, splits)
    assert level[()] == pytest.approx(1.0)
    assert directions(np.zeros((4, 2000)), X, NAMES, splits) == {(): 0.0}
    assert ("c",) not in directions(signs * X[:, 0], X, NAMES, np.array([1, 1, 0]))


def test_splits_by_tree_and_column():
    """Two trees: a split on column 1 above one on column 0; and a stump."""
    value = np.full((8, 3), np.nan)
    value[:6, 0] = [1, -1, 0, -1, -1, -1]
    value[6:, 0] = -2
    assert columns_of_trees(value, 2, 3).tolist() == [[1, 1, 0], [0, 0, 0]]
    model, idata = _frame()
    forest = ForestDraws(idata, model)
    counts = pmt.get_variable_inclusion(idata, model, progressbar=False)["count"].to_numpy()
    p = counts.shape[-1]
    found = columns_of_trees(forest.value(1, 2), forest.layout.m, p).sum(axis=0)
    np.testing.assert_array_equal(found, counts[1, 2])


_frame = cache(on_a_frame)
_two = cache(two_functions)


@pytest.fixture(scope="module")
def independent(quick_compile):
    """Independent draws of the prior, as four chains of a posterior, and their model."""
    with bart_model(n=200, m=5, sigma=None, data=False) as model:
        prior = pm.sample_prior_predictive(1600, random_seed=1)["prior"].to_dataset()
    kept = {
        name: (("chain", "draw", *one.dims[2:]), one.to_numpy().reshape(4, 400, *one.shape[2:]))
        for name, one in prior.data_vars.items()
    }
    coords = {"chain": range(4), "draw": range(400)}
    return model, xr.DataTree.from_dict({"posterior": xr.Dataset(kept, coords)})


def with_forests(idata, order, sigma=None):
    """Other forests in the draws, by numbers of all draws, and another sigma."""
    new = idata.copy()
    values = idata.posterior["mu_forest"].to_numpy()
    kept = values.reshape(-1, *values.shape[2:])[order]
    data = idata.posterior.to_dataset().drop_vars("mu")
    data = data.assign(mu_forest=(data["mu_forest"].dims, kept))
    if sigma is not None:
        data = data.assign(sigma=(("chain", "draw"), sigma))
    new["posterior"] = xr.DataTree(data)
    return new


def test_chains_that_agree(independent):
    model, idata = independent
    found = pmt.diagnose(idata, model, progressbar=False)
    assert found.pool.verdict == "agree" and found.has_mixed
    assert found.lines[0] == "mu: the chains agree." and found.lines[-1] == "What to do: nothing."
    # of independent forests nearly every split is another
    assert found.loose > 0.5 * found.splits > 0
    assert found.rows["width"].mean() > 0.95
    chosen = np.linspace(0, 399, 50).round().astype(int)
    wanted = idata.posterior["mu"].isel(draw=chosen).mean(("chain", "draw"))
    np.testing.assert_allclose(found.rows["mean"], wanted, atol=1e-9)
    assert "<strong>mu: the chains agree.</strong>" in found._repr_html_()


def test_chains_in_different_trees_of_one_fit(independent):
    """Chains sorted by f at high x0, a fifth of the draws mixed."""
    model, idata = independent
    mu, x = idata.posterior["mu"].to_numpy(), model["X"].get_value()[:, 0]
    steps = mu[..., x > 0.5].mean(axis=-1)
    order = np.argsort(steps.ravel()).reshape(4, 400)
    rng = np.random.default_rng(1)
    mixed = rng.permuted(order[:, 320:].ravel()).reshape(4, 80)
    order = rng.permuted(np.concatenate([order[:, :320], mixed], axis=1), axis=1)
    found = pmt.diagnose(with_forests(idata, order), model, progressbar=False)
    assert found.pool.verdict == "pool" and found.pool.width < 0.95
    names = [one for one in found.shares if len(one) == 1]
    assert names[0] == ("x0",) and found.shares[("x0",)] > 0.02 and found.shares[()] > 0.2
    text = str(found)
    assert "different trees of one fit: means by chain are sigma" in text
    assert "explain: the level" in text and "expect" in text and "Use all chains together" in text
    sigma = idata.posterior["sigma"].to_numpy() + 9.0 * np.arange(4)[:, None]
    apart = pmt.diagnose(with_forests(idata, order, sigma), model, progressbar=False)
    assert apart.pool.verdict == "apart" and "different fits" in str(apart)


def test_scalars_that_differ_are_said_where_f_has_mixed(independent):
    """And the remedy is one that these draws allow."""
    model, idata = independent
    sigma = idata.posterior["sigma"].to_numpy() + 9.0 * np.arange(4)[:, None]
    order = np.arange(1600).reshape(4, 400)
    found = pmt.diagnose(with_forests(idata, order, sigma), model, progressbar=False)
    assert found.r_hat < 1.01 and not found.has_mixed and found.pool.verdict == "apart"
    assert found.lines[0].startswith("mu: chains do not agree on sigma")
    assert not found.goes_on and "Sample again with more tune= and draws=" in found.lines[-1]
    held = replace(found, goes_on=True)
    assert "Go on with pymc_trees.resume" in held.lines[-1]


def test_held_out_rows_and_few_draws():
    model, idata = _frame()
    X = model["X"].get_value()[:5] if "X" in model.named_vars else None
    found = pmt.diagnose(idata, model, X, progressbar=False)
    assert found.rows.sizes["row"] == (5 if X is not None else found.rows.sizes["row"])
    one = pmt.diagnose(idata.isel(chain=[0]), model, progressbar=False)
    assert one.pool.verdict == "short" and one.shares == {} and "one chain of" in str(one)
    assert "R-hat takes two chains" in str(one) and "nan" not in str(one)
    few = pmt.diagnose(idata.isel(draw=slice(3)), model, progressbar=False)
    assert few.pool.verdict == "short" and "nan" not in str(few)
    assert "of 40 draws or more each" in str(few)
    with pytest.raises(ValueError, match="two chains or more"):
        pmt.plot_diagnosis(one, backend="none")


def test_several_outputs_soft_trees_and_log_likelihoods():
    model, idata = _two()
    found = pmt.diagnose(idata, model, var_name="f", progressbar=False)
    assert found.name == "f" and sum(len(names) == 1 for names in found.shares) >= 1
    with soft_model() as soft:
        draws = sample(8, 8)
    pm.compute_log_likelihood(draws, model=soft, progressbar=False)
    found = pmt.diagnose(draws, soft, progressbar=False)
    total = draws["log_likelihood"]["y"].sum("y_dim_0").mean("draw")
    np.testing.assert_allclose(found.fits["log_likelihood"], total)
    assert found.splits > 0


@pytest.mark.parametrize("backend", ["none", "matplotlib"])
def test_the_picture(independent, backend):
    model, idata = independent
    drawn = pmt.plot_diagnosis(pmt.diagnose(idata, model, progressbar=False), backend=backend)
    assert set(drawn.viz["plot"].data_vars) == {"rows", "columns", "run"}


def test_scalars_called_as_the_numbers_of_a_run_do_not_replace_them():
    f = np.random.default_rng(1).normal(size=(2, 40, 1, 5))
    scalars = {"spread": f[..., 0, 0], "part": f[..., 0, 1]}
    run, alone = _by_parts(f, scalars), _by_parts(f, {})
    np.testing.assert_array_equal(run["spread"], alone["spread"])
    np.testing.assert_array_equal(run["part"], alone["part"])
    assert set(run.data_vars) == {"spread", "spread_", "part_"}
