"""Losses with shuffled columns against predictions at shuffled rows by PyMC itself."""

from functools import cache

import numpy as np
import pytest
import xarray as xr
from support.fitted import N, frame, on_a_frame, predicted, predicted_of, two_functions

from pymc_trees.posterior.importance.permutation import permutation_importance

pytestmark = pytest.mark.usefixtures("quick_compile")
_on_a_frame, _two_functions = cache(on_a_frame), cache(two_functions)
QUIET = {"progressbar": False, "random_state": 3}


def orders(n, n_repeats):
    """The orders of rows that a seed stands for."""
    rng = np.random.default_rng(3)
    return [rng.permutation(n) for _ in range(n_repeats)]


def held_out():
    """Other rows, with a missing cell, and responses."""
    X = frame().iloc[[3, 1, 4, 7, 9]].reset_index(drop=True)
    return X, np.array([0.5, -1.0, 2.0, 0.0, 3.0])


@pytest.mark.parametrize("metric", ["squared_error", "absolute_error"])
def test_losses_are_those_of_predictions_at_shuffled_rows(metric):
    model, idata = _on_a_frame()
    X, y = held_out()
    power = 2 if metric == "squared_error" else 1
    found = permutation_importance(idata, model, X, y, metric=metric, n_repeats=2, **QUIET)
    assert found["importance"].dims == ("chain", "draw", "repeat", "feature")
    base = np.mean(np.abs(predicted(model, idata, X) - y) ** power, axis=-1)
    np.testing.assert_allclose(found["loss"], base, rtol=0, atol=1e-12)
    for name in X.columns:
        for repeat, order in enumerate(orders(5, 2)):
            shuffled = X.assign(**{name: X[name].to_numpy()[order]})
            loss = np.mean(np.abs(predicted(model, idata, shuffled) - y) ** power, axis=-1)
            here = found["importance"].sel(feature=name, repeat=repeat)
            np.testing.assert_allclose(here, loss - base, rtol=0, atol=1e-12)
    assert np.abs(found["importance"]).max() > 0.1


def test_without_responses_it_is_the_change_of_f():
    model, idata = _on_a_frame()
    X, _ = held_out()
    found = permutation_importance(idata, model, X, func=np.exp, n_repeats=1, **QUIET)
    [order] = orders(5, 1)
    f = np.exp(predicted(model, idata, X))
    for name in X.columns:
        shuffled = X.assign(**{name: X[name].to_numpy()[order]})
        change = ((f - np.exp(predicted(model, idata, shuffled))) ** 2).mean(axis=-1)
        here = found["importance"].sel(feature=name, repeat=0)
        np.testing.assert_allclose(here, change, rtol=1e-12)
    assert found["importance"].max() > 0 and (found["loss"] == 0).all()


def test_several_outputs_in_the_shape_of_the_function():
    model, idata = _two_functions()
    X = model["f_X"].get_value()
    y = np.stack([np.zeros(N), np.ones(N)])
    found = permutation_importance(idata, model, None, y, var_name="f", n_repeats=1, **QUIET)
    assert found["importance"].dims == ("chain", "draw", "kind", "repeat", "feature")
    [order] = orders(N, 1)
    shuffled = X.copy()
    shuffled[:, 1] = X[order, 1]
    for k in (0, 1):
        before, after = (predicted_of(model, idata, f"f_{k}_forest", at) for at in (X, shuffled))
        change = ((after - k) ** 2 - (before - k) ** 2).mean(axis=-1)
        here = found["importance"].isel(kind=k, repeat=0).sel(feature="x1")
        np.testing.assert_allclose(here, change, rtol=0, atol=1e-12)


def test_a_metric_of_ones_own_a_file_and_fewer_draws(tmp_path):
    model, idata = _on_a_frame()
    X, y = held_out()

    def squares(y, f):
        assert y.shape == f.shape
        return (y - f) ** 2

    found = permutation_importance(idata, model, X, y, n_repeats=2, **QUIET)
    own = permutation_importance(idata, model, X, y, metric=squares, n_repeats=2, **QUIET)
    xr.testing.assert_identical(found, own)
    idata.to_netcdf(tmp_path / "fit.nc", engine="h5netcdf")
    thin = slice(None, None, 2)
    with xr.open_datatree(tmp_path / "fit.nc", engine="h5netcdf") as read:
        some = permutation_importance(read.isel(draw=thin), model, X, y, n_repeats=2, **QUIET)
    xr.testing.assert_identical(found.isel(draw=thin), some)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"metric": "log"}, "metric='log': choose from"),
        ({"metric": lambda y, f: f.mean()}, r"metric returned the shape \(\) for values.*\(12,\)"),
        ({"n_repeats": 0}, "n_repeats=0: must be a whole number"),
        ({"y": np.zeros(3)}, r"y has the shape \(3,\): it must be \(12,\), the shape of mu at the"),
        ({"y": ["yes"] * N}, "y must hold numbers only"),
        ({"y": [np.nan] * N}, "y holds missing or infinite values: leave those rows out"),
        ({"X": frame().drop(columns="site")}, "site"),
        ({"var_name": "nu"}, r"var_name='nu'.*\['mu'\]"),
    ],
)
def test_what_is_wrong_is_said(options, message):
    model, idata = _on_a_frame()
    with pytest.raises(ValueError, match=message):
        permutation_importance(idata, model, **QUIET | options)
