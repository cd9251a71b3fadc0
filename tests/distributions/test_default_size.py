"""The number of trees and their depth by default, which depend on the number of rows."""

import json
import logging

import numpy as np
import pandas as pd
import pymc as pm
import pytest

import pymc_trees as pmt
from pymc_trees import causal
from pymc_trees.distributions.capacity import LARGE_TABLE, TREES, TREES_OF_LARGE
from pymc_trees.distributions.data.table import read
from pymc_trees.distributions.forest_inputs import forest_inputs
from pymc_trees.posterior.declarations import declared_group

X = np.random.default_rng(1).random((LARGE_TABLE, 2))
Y = X[:, 0]


def declared(n: int, **settings) -> tuple[int, float, str]:
    """Number of trees and beta of a forest over n rows; its declaration kept with draws."""
    with pm.Model() as model:
        pmt.BART("f", X[:n], Y[:n], **settings)
    forest = model["f_forest"]
    trees = json.loads(declared_group(model)["f_forest"].item())["trees"]
    assert trees == forest.owner.op.layout.m
    return trees, float(forest_inputs(forest).beta.eval())


@pytest.mark.parametrize(
    ("n", "settings", "expected"),
    [
        (LARGE_TABLE - 1, {}, (50, 2.0)),
        (LARGE_TABLE, {}, (200, 1.0)),
        (LARGE_TABLE, {"m": 50}, (50, 1.0)),
        (LARGE_TABLE, {"beta": 2.0}, (200, 2.0)),
        (LARGE_TABLE, {"m": 50, "beta": 2.0}, (50, 2.0)),
        (10, {"m": 7, "beta": 1.5}, (7, 1.5)),
    ],
)
def test_default_follows_the_rows(n, settings, expected):
    assert declared(n, **settings) == expected


def test_a_line_says_what_was_chosen(caplog):
    caplog.set_level(logging.INFO, logger="pymc.trees")
    declared(LARGE_TABLE)
    declared(LARGE_TABLE, m=50, beta=2.0)
    declared(100)
    lines = [r.getMessage() for r in caplog.records]
    assert lines == ["f: m=200, beta=1, the default from 5,000 rows on (m=50, beta=2 below)."]


def test_the_leaf_is_that_of_the_number_of_trees():
    """Its standard deviation is the range of Y over 4 times the root of m."""
    for n, m in ((LARGE_TABLE - 1, TREES), (LARGE_TABLE, TREES_OF_LARGE)):
        with pm.Model() as model:
            pmt.BART("f", X[:n], Y[:n])
        sd = float(np.asarray(forest_inputs(model["f_forest"]).leaf[1].eval()).item())
        np.testing.assert_allclose(sd, np.ptp(Y[:n]) / (4 * np.sqrt(m)))


def test_other_priors_of_trees_keep_their_settings():
    with pm.Model() as model:
        pmt.BART("f", X, Y, tree_prior=pmt.MondrianPrior(0.5))
    assert model["f_forest"].owner.op.layout.m == TREES_OF_LARGE


def test_formulas_choose_alike():
    data = pd.DataFrame({"x": X[:, 0], "y": Y})
    for rows, m in ((data, TREES_OF_LARGE), (data[:100], TREES)):
        model = pmt.model("y ~ bart(x)", rows)
        [forest] = [v for v in model.free_RVs if v.name.endswith("_forest")]
        leaf = float(np.asarray(forest_inputs(forest).leaf[1].eval()).item())
        assert forest.owner.op.layout.m == m
        np.testing.assert_allclose(leaf * np.sqrt(m), np.ptp(rows.y) / 4, rtol=0.2)


def test_estimators_choose_alike():
    """`BARTRegressor` has 200 trees at any size."""
    small, large = pmt.BARTClassifier(), pmt.BARTRegressor()
    for n, m, beta in ((LARGE_TABLE - 1, 50, 2.0), (LARGE_TABLE, 200, 1.0)):
        assert [small._tree_settings(n)[name] for name in ("m", "beta")] == [m, beta]
        assert [large._tree_settings(n)[name] for name in ("m", "beta")] == [200, beta]
    given = pmt.BARTRegressor(m=20, beta=1.5)._tree_settings(LARGE_TABLE)
    assert (given["m"], given["beta"]) == (20, 1.5)


@pytest.mark.parametrize(
    ("forests", "betas"),
    [
        ("two", {"prognosis": 1.0, "tau": 3.0}),
        ("one", {"f": 1.0}),
        ("arms", {"f_control": 1.0, "f_treated": 2.0}),
    ],
)
def test_causal_forests_choose_alike(forests, betas):
    """By the rows of each forest; the effect has a prior of its own; a beta that is given stays."""
    rows = np.r_[np.arange(LARGE_TABLE), :10]  # 5,000 of one arm, 10 of the other
    z = np.repeat([0.0, 1.0], [LARGE_TABLE, 10])
    known = {"y": Y[rows], "z": z, "propensity": np.full(z.size, 0.5)}
    for given, expected in (({}, betas), ({"beta": 2.0}, {**betas, **_all_two(betas)})):
        forest = causal.BayesianCausalForest(forests=forests, m=5, **given)
        forest._training = read(X[rows]), known
        model = forest._declare(*forest._training)
        found = {f: float(forest_inputs(model[f"{f}_forest"]).beta.eval()) for f in betas}
        assert found == expected


def _all_two(betas: dict[str, float]) -> dict[str, float]:
    return {name: 2.0 for name in betas if name != "tau"}
