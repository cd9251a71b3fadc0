"""`LatentColumn`: the table of a row, and columns that it cannot draw. Its law: `laws`."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from scipy.stats import norm

import pymc_trees as pmt
from pymc_trees.core.samplers.latent_column import (
    add_normal_masses,
    choose_intervals,
    list_intervals,
    outputs_by_cell,
)
from pymc_trees.core.value.fields import sizes
from pymc_trees.distributions.forest_inputs import declared
from pymc_trees.targets.graph import UnsupportedModelError

N = 40
RNG = np.random.default_rng(5)
X = RNG.random((N, 2))
Y = RNG.normal(size=N)
LEAF = pmt.NormalLeaf(0.0, 0.5)


def test_the_table_is_the_function_at_every_cell(rng):
    with pm.Model() as model:
        z = pm.Normal("z", 0, 1, shape=N)
        pmt.BART("f", pmt.with_columns(X, z=z, cuts={"z": [-1, 0, 0.5, 2]}), leaf=LEAF, m=20)
    forest = model["f_forest"]
    value = pm.draw(forest, random_seed=2)
    known, cells = declared(forest), np.array([-1.5, -0.5, 0.2, 1.0, 3.0])
    rows = np.arange(3, N, 2)
    cuts = np.array([-2.0, -1.0, 0.0, 0.5, 2.0])  # one more, of another forest
    out = np.zeros((len(rows), 6, 3))
    numbers = sizes(forest.owner.op.layout)
    outputs_by_cell(value, known.X, known.X, numbers, 2, cuts, rows, 1, out)
    for c, cell in zip((1, 2, 3, 4, 5), cells, strict=True):
        at = known.X.copy()
        at[:, 2] = cell
        truth = pmt.evaluate(forest, at).eval({forest: value})[rows]
        np.testing.assert_allclose(out[:, c, 1], truth, atol=1e-13)
    np.testing.assert_array_equal(out[:, 0, 1], out[:, 1, 1])
    assert (np.ptp(out[:, :, 1], axis=1) > 0).any() and (out[:, :, [0, 2]] == 0).all()


def test_intervals_join_cells_with_the_same_outputs():
    outputs = np.array([[1.0, 1.0, 2.0, 2.0], [3.0, 4.0, 4.0, 3.0]])[..., None]
    at, owner, low, high = np.empty((8, 1)), *np.empty((3, 8), dtype=np.int64)
    n = list_intervals(outputs, True, 1e-12, at, owner, low, high)
    assert list(at[:n, 0]) == [1, 2, 3, 4, 3] and list(owner[:n]) == [0, 0, 1, 1, 1]
    assert list(low[:n]) == [0, 2, 0, 1, 3] and list(high[:n]) == [1, 3, 0, 2, 3]
    assert list_intervals(outputs, False, 1e-12, at, owner, low, high) == 8
    assert list(low) == list(high) == [0, 1, 2, 3] * 2


def test_masses_of_a_normal(rng):
    """Also of intervals far in a tail, and of the first and last cell, which have no end."""
    edges = np.array([-np.inf, -40.0, -1.0, 0.0, 0.5, 9.0, 45.0, np.inf])
    mean, sd = np.array([0.3, -2.0, 60.0]), np.array([1.0, 0.4, 2.0])
    owner = np.repeat(np.arange(3), 7)
    low = high = np.tile(np.arange(7), 3)
    weights = np.ones(21)
    add_normal_masses(mean, sd, edges, owner, low, high, weights)
    for k, found in enumerate(weights.reshape(3, 7)):
        a, b = (edges[:-1] - mean[k]) / sd[k], (edges[1:] - mean[k]) / sd[k]
        upper = a + b > 0  # on the side with small tails
        a, b = np.where(upper, -b, a), np.where(upper, -a, b)
        logs = norm.logcdf(b) + np.log1p(-np.exp(norm.logcdf(a) - norm.logcdf(b)))
        np.testing.assert_allclose(found - 1.0, logs, rtol=1e-9, atol=1e-12)
    one = np.zeros(1)
    add_normal_masses(mean, sd, edges, np.zeros(1, dtype=np.int64), low[:1], high[6:7], one)
    assert abs(one[0]) < 1e-15


def test_intervals_are_chosen_by_weight(rng):
    """Shares of 40,000 draws within 5 binomial standard errors, 0.0125 at most."""
    owner = np.array([0, 0, 0, 1, 1, 2, 3, 3])
    weights = np.array([0.0, np.log(3.0), -np.inf, -2000.0, -2000.0, -np.inf, 1.0, np.nan])
    chosen, drawn = np.empty(4, dtype=np.int64), []
    for _ in range(40_000):
        choose_intervals(rng, owner, weights.copy(), chosen)
        drawn.append(chosen.copy())
    drawn = np.array(drawn)
    assert set(drawn[:, 0]) == {0, 1} and abs((drawn[:, 0] == 1).mean() - 0.75) < 0.0125
    assert set(drawn[:, 1]) == {3, 4} and abs((drawn[:, 1] == 3).mean() - 0.5) < 0.0125
    assert set(drawn[:, 2]) == {-1} and set(drawn[:, 3]) == {-1}


def test_a_column_of_a_forest_that_nothing_sees_has_its_prior():
    """Quantiles of 200 draws of 40 cells: of the mean 5 standard errors, 0.06."""
    with pm.Model() as model:
        z = pm.Gamma("z", 2.0, 1.0, shape=N)
        pmt.BART("f", pmt.with_columns(X, z=z), leaf=LEAF, m=2)
        step = pmt.LatentColumn(rng=1)
        point, drawn = model.initial_point(), []
        for _ in range(200):
            point, _ = step.step(point)
            drawn.append(np.exp(point["z_log__"]))
    assert abs(np.mean(drawn) - 2.0) < 5 * np.sqrt(2.0 / (200 * N))
    assert abs(np.mean(np.square(drawn)) - 6.0) < 5 * np.sqrt(84.0 / (200 * N))


def refused(declare, words):
    with pm.Model():
        declare()
        with pytest.raises(UnsupportedModelError, match=words):
            pmt.LatentColumn()


def test_a_prior_without_quantiles():
    def declare():
        z = pm.SkewNormal("z", mu=0, sigma=1, alpha=2, shape=N)
        f = pmt.BART("f", pmt.with_columns(X, z=z), leaf=LEAF, m=2)
        pm.Normal("y", f, 1.0, observed=Y)

    refused(declare, "whose prior has no quantiles in PyMC")


def test_rows_that_mix():
    def declare():
        z = pm.Normal("z", 0, 1, shape=N)
        f = pmt.BART("f", pmt.with_columns(X, z=z), leaf=LEAF, m=2)
        pm.MvNormal("y", f, np.eye(N) + 0.1, observed=Y)

    refused(declare, "is not known to act row by row")


def test_a_column_in_another_order():
    def declare():
        z = pm.Normal("z", 0, 1, shape=N)
        f = pmt.BART("f", pmt.with_columns(X, z=z), leaf=LEAF, m=2)
        pm.Normal("y", f + pt.sort(z), 1.0, observed=Y)

    refused(declare, "random column")


def test_rows_that_are_taken_by_an_index(rng):
    """Several observations of a row: the chain finds what they say of the cell."""
    group = np.repeat(np.arange(N), 3)
    truth = np.where(np.arange(N) % 2, 1.0, -1.0)
    with pm.Model() as model:
        z = pm.Normal("z", 0, 1, shape=N)
        w = pm.Normal("w", z[group], 0.2, observed=np.repeat(truth, 3))
        f = pmt.BART("f", pmt.with_columns(X, z=z), leaf=LEAF, m=2)
        pm.Normal("y", f[group], 1.0, observed=np.repeat(Y, 3))
        step, point = pmt.LatentColumn(rng=1), model.initial_point(random_seed=1)
        point["z"] = truth + 0.0  # from cells far in a tail, sharp measurements are seldom accepted
        shares = []
        for _ in range(100):
            point, [stats] = step.step(point)
            shares.append(stats["accept_column"])
    assert w is not None and np.mean(shares) > 0.3
    # given three measurements, each sd .2, and the prior: sd .115
    assert np.abs(point["z"] - truth / (1 + 0.04 / 3)).max() < 6 * 0.115


def test_gradients_are_refused_in_words():
    with pm.Model():
        z = pm.Normal("z", 0, 1, shape=N)
        f = pmt.BART("f", pmt.with_columns(X, z=z), leaf=LEAF, m=2)
        pm.Normal("y", f, 1.0, observed=Y)
        with pytest.raises(NotImplementedError, match="random columns of X"):
            pm.NUTS([z])
