"""Submodels against a recursion over encoded trees, and orders against all there are."""

from functools import cache
from itertools import combinations

import numpy as np
import pymc as pm
import pytest
import xarray as xr
from support.fitted import N, draws_of, frame, on_a_frame, predicted, predicted_of, two_functions

import pymc_trees as pmt
from pymc_trees.core.value.text import sent_left
from pymc_trees.posterior.importance.submodels import compute_variable_importance as importance
from pymc_trees.posterior.importance.submodels import squared_correlation, vi_to_kulprit
from pymc_trees.posterior.reading.forests import ForestDraws

pytestmark = pytest.mark.usefixtures("quick_compile")
_on_a_frame, _two_functions = cache(on_a_frame), cache(two_functions)
QUIET = {"progressbar": False, "cores": 1}
ALL = QUIET | {"samples": 1000}


def answers(idata, model, forest, X, known):
    """(chain, draw, row) sums over trees where only some columns are known, by recursion."""
    draws = ForestDraws(idata, model, forest)
    X_train = draws.X_train

    def tree(value, row, rows, x):
        """Answer of the subtree that starts at a row, and the row after it."""
        if value[row, 0] < 0:
            return value[row, 1], row + 1
        way, column = divmod(int(value[row, 0]), x.size)
        goes = sent_left(X_train[rows, column], way, value[row, 1])
        left, row_of_right = tree(value, row + 1, rows[goes], x)
        right, after = tree(value, row_of_right, rows[~goes], x)
        share = goes.mean()
        if column in known:
            share = float(sent_left(x[[column]], way, value[row, 1])[0])
        return share * left + (1 - share) * right, after

    found = np.zeros((*draws.shape, len(X)))
    for chain, draw, value in draws.each_draw():
        for i, x in enumerate(X):
            row = 0
            for _ in range(draws.layout.m):
                one, row = tree(value, row, np.arange(len(X_train)), x)
                found[chain, draw, i] += one
    return found


def test_submodels_by_the_number_of_splits():
    model, idata = _on_a_frame()
    found = importance(idata, model, **ALL)
    splits = pmt.get_variable_inclusion(idata, model)["count"].mean(("chain", "draw"))
    names = [str(splits["feature"][k].item()) for k in np.argsort(-splits.to_numpy())]
    assert len(set(splits.to_numpy())) == 3
    assert found["feature"].to_numpy().tolist() == names
    assert found["submodel"].to_numpy().tolist() == [1, 2, 3]
    assert found["prediction"].dims == ("chain", "draw", "submodel", "row")
    X = model["mu_X"].get_value()
    f, columns = idata.posterior["mu"].to_numpy(), ["age", "site", "dose"]
    np.testing.assert_allclose(found["full"], f, rtol=0, atol=1e-12)
    for size in (1, 2, 3):
        known = [columns.index(name) for name in names[:size]]
        want = answers(idata, model, "mu_forest", X, known)
        here = found.sel(submodel=size)
        np.testing.assert_allclose(here["prediction"], want, rtol=0, atol=1e-12)
        for at in np.ndindex(2, 4):
            if np.ptp(f[at]) < 1e-9:
                assert np.isnan(here["r2"].to_numpy()[at])
                continue
            r2 = np.corrcoef(want[at], f[at])[0, 1] ** 2 if np.ptp(want[at]) > 1e-9 else 0.0
            np.testing.assert_allclose(here["r2"].to_numpy()[at], r2, atol=1e-12)
    assert 0 < float(found["r2"].sel(submodel=1).mean()) < 1


def test_the_reference_is_of_different_draws():
    model, idata = _on_a_frame()
    found = importance(idata, model, **ALL)
    f = idata.posterior["mu"].to_numpy().reshape(8, N)
    want = [squared_correlation(f[k], f[(k + 4) % 8]) for k in range(8)]
    np.testing.assert_allclose(found["reference"].to_numpy().ravel(), want, atol=1e-12)
    one = importance(idata.isel(chain=[0]), model, **QUIET, samples=1)
    assert one["reference"].isnull().all() and not one["r2"].isnull().any()


def test_other_rows_and_fewer_draws():
    model, idata = _on_a_frame()
    X = frame().iloc[[3, 0, 5, 7]].assign(age=[None, 40.0, 60.0, 50.0])
    found = importance(idata, model, X, **QUIET, samples=5)
    assert found.sizes["draw"] == 3 and found["draw"].to_numpy().tolist() == [0, 2, 3]
    thinned = idata.isel(draw=[0, 2, 3])
    np.testing.assert_allclose(found["full"], predicted(model, thinned, X), rtol=0, atol=1e-12)
    # The order is that of all draws.
    order = importance(idata, model, **ALL)["feature"]
    np.testing.assert_array_equal(found["feature"], order)


def test_threads_and_a_file_give_the_same(tmp_path):
    model, idata = _on_a_frame()
    found = importance(idata, model, method="backward", **ALL)
    idata.to_netcdf(tmp_path / "fit.nc", engine="h5netcdf")
    with xr.open_datatree(tmp_path / "fit.nc", engine="h5netcdf") as read:
        again = importance(read, model, method="backward", **ALL | {"cores": 2})
    xr.testing.assert_identical(found, again)


@cache
def five_columns():
    """Five columns of which two matter, and draws."""
    X = np.random.default_rng(2).random((40, 5))
    y = 3.0 * (X[:, 3] > 0.4) + (X[:, 1] > 0.6)
    with pm.Model() as model:
        mu = pmt.BART("mu", X, m=4, leaf=pmt.NormalLeaf(0.0, 1.0))
        pm.Normal("y", mu, 0.1, observed=y, shape=mu.shape)
        return model, draws_of()


def mean_r2(idata, model, known):
    f = idata.posterior["mu"].to_numpy()
    predictions = answers(idata, model, "mu_forest", model["mu_X"].get_value(), known)
    return np.nanmean(squared_correlation(predictions, f))


def test_backward_leaves_out_what_is_missed_least():
    model, idata = five_columns()
    found = importance(idata, model, method="backward", **ALL)
    order = [int(name[1:]) for name in found["feature"].to_numpy()]
    assert sorted(order) == list(range(5))
    means = found["r2"].mean(("chain", "draw")).to_numpy()
    for size in (1, 2, 3, 4):
        kept = order[: size + 1]
        several = {s: mean_r2(idata, model, s) for s in combinations(sorted(kept), size)}
        chosen = tuple(sorted(order[:size]))
        np.testing.assert_allclose(several[chosen], max(several.values()), atol=1e-12)
        np.testing.assert_allclose(means[size - 1], several[chosen], atol=1e-12)
    assert set(order[:2]) == {1, 3}


def test_backward_after_the_columns_with_fewest_splits():
    model, idata = five_columns()
    by_splits = importance(idata, model, **ALL)["feature"].to_numpy()
    found = importance(idata, model, method="backward_VI", fixed=2, **ALL)["feature"].to_numpy()
    np.testing.assert_array_equal(found[3:], by_splits[3:])
    backward = importance(idata, model, method="backward_VI", fixed=4, **ALL)["feature"]
    np.testing.assert_array_equal(backward, by_splits)
    left = [int(name[1:]) for name in by_splits[:3]]
    best = max(combinations(left, 2), key=lambda s: mean_r2(idata, model, s))
    assert {int(name[1:]) for name in found[:2]} == set(best)


def test_several_outputs_and_a_curve_of_the_answer():
    model, idata = _two_functions()
    found = importance(idata, model, var_name="f", **ALL)
    assert found["r2"].dims == ("chain", "draw", "kind", "submodel")
    assert found["reference"].dims == ("chain", "draw", "kind")
    X = model["f_X"].get_value()
    first = int(found["feature"].to_numpy()[0][1:])
    for k in (0, 1):
        want = answers(idata, model, f"f_{k}_forest", X, [first])
        here = found["prediction"].isel(kind=k).sel(submodel=1)
        np.testing.assert_allclose(here, want, rtol=0, atol=1e-12)
        np.testing.assert_allclose(
            found["full"].isel(kind=k), predicted_of(model, idata, f"f_{k}_forest", X), atol=1e-12
        )
    splits = [
        pmt.get_variable_inclusion(idata, model, forest=f"f_{k}_forest")["count"] for k in (0, 1)
    ]
    assert first == sum(splits).mean(("chain", "draw")).to_numpy().argmax()
    rate = importance(idata, model, var_name="rate", **ALL)
    g = importance(idata, model, var_name="g", **ALL)
    np.testing.assert_allclose(rate["prediction"], np.exp(g["prediction"]), rtol=1e-12)


def test_columns_for_kulprit():
    model, idata = _on_a_frame()
    found = importance(idata, model, **ALL)
    names = found["feature"].to_numpy().tolist()
    assert vi_to_kulprit(found) == [[], names[:1], names[:2], names]
    for other in (None, xr.Dataset(), {"labels": names}):
        with pytest.raises(
            ValueError, match="importance must be a result of compute_variable_importance"
        ):
            vi_to_kulprit(other)


def test_constant_functions_have_no_correlation():
    f = np.array([1.0, 2.0, 4.0])
    assert squared_correlation(f, f) == pytest.approx(1.0, abs=1e-15)
    assert squared_correlation(np.full(3, 0.1), f) == 0.0
    assert np.isnan(squared_correlation(f, np.full(3, 0.1)))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "forward"}, "method='forward': choose from"),
        ({"fixed": 1}, "fixed=1: is for method='backward_VI' only"),
        ({"fixed": -1}, "fixed=-1: must be a whole number of at least 0"),
        ({"method": "backward_VI"}, "fixed=0: with method='backward_VI', give 1 to 2 columns"),
        ({"method": "backward_VI", "fixed": 3}, "fixed=3: with method='backward_VI'"),
        ({"samples": 0}, "samples=0: must be a whole number"),
        ({"cores": 0}, "cores=0: must be a whole number"),
        ({"X": frame().drop(columns="site")}, "site"),
        ({"X": frame().iloc[:0]}, "no rows"),
        ({"var_name": "nu"}, r"var_name='nu'.*\['mu'\]"),
    ],
)
def test_what_is_wrong_is_said(options, message):
    model, idata = _on_a_frame()
    with pytest.raises(ValueError, match=message):
        importance(idata, model, **QUIET | options)


def test_more_numbers_than_there_should_be(monkeypatch):
    model, idata = _on_a_frame()
    monkeypatch.setattr("pymc_trees.posterior.draws.LARGEST", 8 * 3 * 8 * N - 1)
    with pytest.raises(ValueError, match=r"of 3 submodels at 12 rows: .*288 numbers.*by samples="):
        importance(idata, model, **ALL)


def test_columns_read_beside_the_splits_are_refused():
    X = np.random.default_rng(1).random((N, 2))
    with pm.Model() as model:
        data = pm.Data("X", X)
        f = pmt.BART("f", data, m=2, leaf=pmt.NormalLeaf(0.0, 1.0))
        pm.Deterministic("eta", f + data[:, 0])
        pm.Normal("y", f, 1.0, observed=np.zeros(N))
        idata = draws_of()
    with pytest.raises(ValueError, match="eta uses columns of X outside the splits"):
        importance(idata, model, var_name="eta", **QUIET)
    with pm.Model() as soft:
        mu = pmt.SoftDecisionTree("mu", X, X[:, 0])
        pm.Normal("y", mu, 1.0, observed=X[:, 0])
        prior = pm.sample_prior_predictive(2, random_seed=1)
    draws = xr.DataTree.from_dict({"posterior": prior["prior"].to_dataset()})
    with pytest.raises(ValueError, match="mu is a function of soft trees.*permutation_importance"):
        importance(draws, soft, **QUIET)
