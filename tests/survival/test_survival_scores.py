"""Scores of curves, against sums written out where nobody is censored."""

import sys

import numpy as np
import pytest
import xarray as xr

from pymc_trees.survival import brier_score, concordance

TIME = np.array([3.0, 1.0, 5.0, 4.5, 2.0])
CURVES = xr.DataArray(
    np.random.default_rng(0).uniform(0.1, 0.9, (2, 3, 5, 2)),
    {"time": [2.0, 4.0]},
    ["chain", "draw", "row", "time"],
)


def test_scores_without_censoring():
    pytest.importorskip("sksurv")
    mean = CURVES.mean(("chain", "draw")).to_numpy()
    want = [np.mean(((t < TIME) - mean[:, k]) ** 2) for k, t in enumerate((2.0, 4.0))]
    found = brier_score(CURVES, TIME, np.ones(5))
    np.testing.assert_allclose(found["brier"], want, rtol=1e-12)
    np.testing.assert_allclose(found["integrated"], np.mean(want), rtol=1e-12)
    pairs = [(i, j) for i in range(5) for j in range(5) if TIME[i] < TIME[j]]
    order = [mean[i].mean() < mean[j].mean() for i, j in pairs]
    assert concordance(CURVES, TIME, np.ones(5)) == pytest.approx(np.mean(order))
    train = (TIME + 1, np.ones(5))
    assert 0 <= concordance(CURVES, TIME, np.ones(5), train=train) <= 1
    one = CURVES.isel(chain=0, draw=0, drop=True)
    assert brier_score(one, TIME, np.ones(5), train=train)["brier"].size == 2


@pytest.mark.parametrize(
    ("curves", "message"),
    [
        (CURVES.isel(row=[0, 1]), "give survival_function.. of the 5 rows of time"),
        (CURVES.isel(time=[0]), "give curves at two or more times that increase"),
        (CURVES.isel(time=[1, 0]), "give curves at two or more times that increase"),
        (CURVES.assign_coords(time=[2.0, 5.0]), "give curves at times from 1 to below 5"),
        (CURVES.assign_coords(time=[0.5, 2.0]), "give curves at times from 1 to below 5"),
    ],
)
def test_curves_that_have_no_score_are_refused(curves, message):
    pytest.importorskip("sksurv")
    with pytest.raises(ValueError, match=message):
        brier_score(curves, TIME, np.ones(5))


@pytest.mark.parametrize("score", [brier_score, concordance])
def test_without_scikit_survival_the_error_says_what_to_install(score, monkeypatch):
    monkeypatch.setitem(sys.modules, "sksurv", None)
    with pytest.raises(ImportError, match="pip install scikit-survival"):
        score(CURVES, TIME, np.ones(5))
