"""`LatentColumn`: the table of a row, and columns that it cannot draw. Its law: `laws`."""

import numpy as np
import pandas as pd
import pymc as pm
import pytensor.tensor as pt
import pytest
from scipy.stats import norm
from scipy.stats import t as student

import pymc_trees as pmt
from pymc_trees.core.compile import threads
from pymc_trees.core.forest.trees import preorder
from pymc_trees.core.samplers.latent_column import (
    cell_trees,
    choose_cells,
    choose_normal_cells,
    largest_of_rows,
    outputs_by_cell,
    try_proposals,
)
from pymc_trees.core.value.fields import sizes
from pymc_trees.distributions.forest_inputs import declared
from pymc_trees.targets.graph import UnsupportedModelError
from pymc_trees.targets.referenced_state import forest_data
from pymc_trees.targets.settings import Settings

N = 40
RNG = np.random.default_rng(5)
X = RNG.random((N, 2))
Y = RNG.normal(size=N)
LEAF = pmt.NormalLeaf(0.0, 0.5)


def table_of(forest, value, at, column, points, rows):
    """(C, b, 3) outputs at all cells, between two columns of zeros."""
    known, numbers = declared(forest), sizes(forest.owner.op.layout)
    trees = cell_trees(value, at, known.X, numbers, column, points)
    out = np.zeros((len(points), len(rows), 3))
    outputs_by_cell(trees, at, rows, 1, out)
    return trees, out


@pytest.mark.parametrize("many", [False, True])
def test_the_table_is_the_function_at_every_cell(many):
    """Also of trees with more splits than have a table, which are walked."""
    with pm.Model() as model:
        z = pm.Normal("z", 0, 1, shape=N)
        inputs = pmt.with_columns(X, z=z, cuts={"z": [-1, 0, 0.5, 2]})
        pmt.BART("f", inputs, leaf=LEAF, m=20, beta=0.3 if many else 2.0)
    forest = model["f_forest"]
    value = pm.draw(forest, random_seed=2)
    known, cells = declared(forest), np.array([-2.5, -1.5, -0.5, 0.2, 1.0, 3.0])
    rows = np.arange(3, N, 2)
    points = np.array([-2.0, -1.0, 0.0, 0.5, 2.0, np.inf])  # one cut more, of another forest
    trees, out = table_of(forest, value, known.X, 2, points, rows)
    for c, cell in enumerate(cells):
        at = known.X.copy()
        at[:, 2] = cell
        truth = pmt.evaluate(forest, at).eval({forest: value})[rows]
        np.testing.assert_allclose(out[c, :, 1], truth, atol=1e-13)
    np.testing.assert_array_equal(out[0, :, 1], out[1, :, 1])
    assert (np.ptp(out[:, :, 1], axis=0) > 0).any() and (out[:, :, [0, 2]] == 0).all()
    assert (trees.first_entry < 0).any() == many


@pytest.mark.parametrize("rule", ["subset", "onehot", "continuous"])
def test_the_table_of_categories(rule):
    """Sets of categories, beside columns with levels and missing cells."""
    pd = pytest.importorskip("pandas")
    x = np.where(X[:, 0] > 0.8, np.nan, X[:, 0])
    frame = pd.DataFrame({"x": x, "k": ["a", "b"] * (N // 2)})
    with pm.Model() as model:
        z = pm.Categorical("z", np.full(4, 0.25), shape=N)
        inputs = pmt.with_columns(frame, z=z)
        pmt.BART("f", inputs, leaf=LEAF, m=30, split_rules={"z": rule})
    forest = model["f_forest"]
    value, known = pm.draw(forest, random_seed=2), declared(forest)
    _, out = table_of(forest, value, known.X, 2, np.arange(4.0), np.arange(N))
    for category in range(4):
        at = known.X.copy()
        at[:, 2] = category
        new = pd.DataFrame({"x": frame.x, "k": frame.k, "z": category})
        truth = pmt.evaluate(forest, new).eval({forest: value})
        np.testing.assert_allclose(out[category, :, 1], truth, atol=1e-13)
    assert np.ptp(out[:, :, 1], axis=0).all()


def shares_of(choose, n_cells, rows=1, draws=40_000):
    """Shares of cells at even points of [0, 1]: they are off by 1 / draws at most."""
    points, chosen = (np.arange(draws) + 0.5) / draws, np.empty(draws, dtype=np.int64)
    found = []
    for row in range(rows):
        choose(np.full(draws, row), points, chosen)
        found.append(np.bincount(chosen, minlength=n_cells) / draws)
    return np.array(found)


def test_cells_are_chosen_by_normal_masses():
    """Also far in a tail, and where likelihood and mass are far apart."""
    edges = np.array([-np.inf, -40.0, -1.0, 0.0, 0.5, 9.0, 45.0, np.inf])
    mean, sd = np.array([0.3, -2.0, 60.0, 0.0]), np.array([1.0, 0.4, 2.0, 1.0])
    logs = np.zeros((7, 4))
    logs[:, 0] = [-3.0, 0.0, -60.0, -0.5, 2.0, 1.0, -np.inf]
    logs[:, 3] = [0.0, -90.0, -90.0, -90.0, -90.0, 0.0, -np.inf]
    largest = np.empty(4)
    largest_of_rows(logs, largest)

    def choose(which, points, chosen):
        choose_normal_cells(mean, sd, edges, logs, largest, which, points, chosen)

    found = shares_of(choose, 7, rows=4)
    for row in range(4):
        a, b = (edges[:-1] - mean[row]) / sd[row], (edges[1:] - mean[row]) / sd[row]
        upper = a + b > 0  # on the side with small tails
        a, b = np.where(upper, -b, a), np.where(upper, -a, b)
        weights = norm.logcdf(b) + np.log1p(-np.exp(norm.logcdf(a) - norm.logcdf(b))) + logs[:, row]
        truth = np.exp(weights - weights.max())
        np.testing.assert_allclose(found[row], truth / truth.sum(), atol=5e-5)


def test_cells_are_chosen_by_weight():
    logs = np.array([[0.0, np.log(3.0), -np.inf], [-2000.0, -np.inf, -2000.0]]).T.copy()
    found = shares_of(lambda *given: choose_cells(logs, *given), 3, rows=2)
    np.testing.assert_allclose(found, [[0.25, 0.75, 0], [0.5, 0, 0.5]], atol=1e-4)
    logs, chosen = np.array([[-np.inf, np.nan], [-np.inf, 0.0]]), np.empty(2, dtype=np.int64)
    largest = np.empty(2)
    largest_of_rows(logs, largest)
    choose_cells(logs, np.arange(2), np.full(2, 0.5), chosen)
    assert list(chosen) == [-1, 1] and list(largest) == [-np.inf, 0.0]


def test_a_proposal_passes_as_often_as_its_likelihood(rng):
    """Shares of 40,000 rows within 5 standard errors, 0.0125 at most."""
    n = 40_000
    logs = np.repeat(np.log([[0.2], [1.0], [0.5]]), n, axis=1)
    largest, out, missed = np.empty(n), np.full(n, 9.0), np.empty(n, dtype=np.int64)
    largest_of_rows(logs, largest)
    cells, waits = rng.choice([-1.0, 0.5, 2.0], size=(n, 1)), rng.standard_exponential((n, 1))
    k = try_proposals(cells, waits, np.array([0.0, 1.0]), logs, largest, out, missed)
    passed = np.setdiff1d(np.arange(n), missed[:k])
    assert abs(k / n - (1 - 1.7 / 3)) < 0.0125 and (out[missed[:k]] == 9.0).all()
    for cell, share in ((-1.0, 0.2), (0.5, 1.0), (2.0, 0.5)):
        assert abs((out[passed] == cell).mean() - share / 1.7) < 5 * np.sqrt(0.25 / len(passed))


def test_rows_follow_columns_that_move(rng):
    """Sets, counts and labels of nodes are those of all rows placed anew."""
    groups = pd.DataFrame({"x": X[:, 0], "group": pd.Categorical(rng.integers(0, 3, N))})
    with pm.Model() as model:
        z, a = pm.Normal("z", shape=N), pm.Categorical("a", np.full(3, 1 / 3), shape=N)
        f = pmt.BART("f", pmt.with_columns(groups, z=z, a=a), leaf=LEAF, m=20, beta=0.5)
        pm.Normal("y", f, 1.0, observed=Y)
    forest = model["f_forest"]
    value, other, *cells = pm.draw([forest, forest, z, a], random_seed=2)
    data, settings = forest_data(model, forest), Settings(0.95, 0.5, np.ones(4), [])
    state, moves = None, [(), ("z",), ("a",), ("z", "a"), (), ("z",)]
    for k, names in enumerate(moves):
        value = other if k == len(moves) - 1 else value
        point = dict(zip(("z", "a"), cells, strict=True))
        point |= {name: pm.draw(model[name], random_seed=9 + k) for name in names}
        state = data.load(state, value, settings, point)
        new = forest_data(model, forest).load(None, value, settings, point)
        nodes = np.zeros(forest.owner.op.layout.max_nodes, dtype=np.int32)
        used = np.concatenate(
            [nodes[: preorder(new.trees, root, nodes)].copy() for root in new.trees.roots]
        )
        np.testing.assert_array_equal(state.trees.leaf_of, new.trees.leaf_of)
        np.testing.assert_array_equal(state.trees.count[used], new.trees.count[used])
        np.testing.assert_array_equal(state.work.sets[used], new.work.sets[used])
        np.testing.assert_array_equal(state.fit, new.fit)


def test_draws_do_not_depend_on_threads(monkeypatch):
    """Normal, other and discrete columns, with 1, 2, 4 and 16 threads."""
    monkeypatch.setattr("pymc_trees.step_methods.latent_column.WORTH", 0)
    monkeypatch.setattr("pymc_trees.step_methods.latent_column.CELLS", 64)
    monkeypatch.setattr(threads, "available_threads", lambda: 16)
    monkeypatch.setattr(threads, "_pool", None)
    n = 333
    x, y = RNG.random((n, 1)), RNG.normal(size=n)
    with pm.Model() as model:
        z = pm.Normal("z", 0, 1, shape=n)
        pm.Normal("w", z, 0.5, observed=y)
        u, k = pm.Uniform("u", shape=n), pm.Categorical("k", np.full(3, 1 / 3), shape=n)
        f = pmt.BART("f", pmt.with_columns(x, z=z, u=u, k=k), leaf=LEAF, m=40)
        pm.Normal("y", f, 0.3, observed=y)
    with model:
        point = model.initial_point(random_seed=1) | {"f_forest": pm.draw(model["f_forest"])}
        found = []
        for n_threads in (1, 2, 4, 16):
            threads.give_threads(n_threads)
            step, drawn = pmt.LatentColumn(rng=1), point
            for _ in range(3):
                drawn, _ = step.step(drawn)
            found.append(drawn)
        threads.give_threads(None)
    assert any((found[0][name] != point[name]).any() for name in ("z", "u_interval__", "k"))
    for other in found[1:]:
        for name in ("z", "u_interval__", "k"):
            np.testing.assert_array_equal(other[name], found[0][name])


@pytest.mark.parametrize("prior", ["normal", "other"])
def test_a_step_that_began_with_all_rows_in_one_part(prior, monkeypatch):
    """At stumps a column has one cell. Later draws are those of a step that begins with parts.

    And each cell is near its own measurement, as the second and third proposals of a row are too:
    within 7 standard deviations, in 3 x 333 draws under a likelihood that hardly tells cells apart.
    """
    monkeypatch.setattr("pymc_trees.step_methods.latent_column.CELLS", 400)
    n = 333
    w = np.linspace(-3, 3, n)
    with pm.Model() as model:
        if prior == "normal":
            z = pm.Normal("z", 0, 10, shape=n)
            pm.Normal("w", z, 0.01, observed=w)
        else:
            z = pm.Gamma("z", mu=w + 4, sigma=0.01, shape=n)
        f = pmt.BART("f", pmt.with_columns(RNG.random((n, 1)), z=z), leaf=LEAF, m=20, beta=0.5)
        pm.Normal("y", f, 2.0, observed=RNG.normal(size=n))
        start = model.initial_point(random_seed=1)
        grown = start | {"f_forest": pm.draw(model["f_forest"], random_seed=3)}
        begun, fresh = pmt.LatentColumn(rng=1), pmt.LatentColumn(rng=1)
        begun.step(start)
        for _ in range(3):
            fresh.sampling_state = begun.sampling_state
            (here, _), (there, _) = begun.step(grown), fresh.step(grown)
            name = "z" if prior == "normal" else "z_log__"
            np.testing.assert_array_equal(here[name], there[name])
            cells = here[name] if prior == "normal" else np.exp(here[name]) - 4
            assert np.abs(cells - w).max() < 7 * 0.01


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
        shares = []
        for _ in range(100):
            point, [stats] = step.step(point)
            shares.append(stats["accept_column"])
    assert w is not None and np.mean(shares) > 0.3
    # given three measurements, each sd .2, and the prior: sd .115
    assert np.abs(point["z"] - truth / (1 + 0.04 / 3)).max() < 6 * 0.115


FAR = {
    "normal": (lambda: pm.Normal("z", 0, 1, shape=N), "z", lambda z: z),
    "gamma": (lambda: pm.Gamma("z", 2.0, 1.0, shape=N), "z_log__", np.exp),
}


@pytest.mark.parametrize("name", FAR)
def test_from_a_start_far_from_sharp_measurements(name):
    """No proposal from a cell of the prior is ever accepted; slices find the place at once."""
    declare, value, back = FAR[name]
    with pm.Model() as model:
        z = declare()
        pm.StudentT("w", nu=20, mu=z, sigma=0.001, observed=np.full(N, 3.21))
        f = pmt.BART("f", pmt.with_columns(X, z=z), leaf=LEAF, m=2)
        pm.Normal("y", f, 1.0, observed=Y)
        step, point = pmt.LatentColumn(rng=1), model.initial_point(random_seed=1)
    for _ in range(15):
        point, _ = step.step(point)
    assert np.abs(back(point[value]) - 3.21).max() < 8 * 0.001


def test_slices_alone_against_quadrature(monkeypatch):
    """Means and squares over 40 independent rows, in standard errors of these: 5 at most."""

    def slices_alone(draw, which):
        outputs, _ = draw._table(which)
        return draw._along_slices(which, outputs, draw.now[which]), np.ones(len(which), dtype=bool)

    monkeypatch.setattr("pymc_trees.step_methods.latent_column._Draw._accepted", slices_alone)
    with pm.Model() as model:
        z = pm.Normal("z", 0, 1, shape=N)
        pm.StudentT("w", nu=3, mu=z, sigma=0.5, observed=np.full(N, 1.3))
        pmt.BART("f", pmt.with_columns(X, z=z), leaf=LEAF, m=2)
        step, point = pmt.LatentColumn(rng=1), model.initial_point(random_seed=1)
    drawn = []
    for _ in range(700):
        point, _ = step.step(point)
        drawn.append(point["z"])
    grid = np.linspace(-8, 8, 100_001)
    weights = norm.pdf(grid) * student.pdf((1.3 - grid) / 0.5, 3)
    for power in (1, 2):
        truth = (weights * grid**power).sum() / weights.sum()
        rows = (np.array(drawn[20:]) ** power).mean(axis=0)
        assert abs(rows.mean() - truth) < 5 * rows.std(ddof=1) / np.sqrt(N)


def test_gradients_are_refused_in_words():
    with pm.Model():
        z = pm.Normal("z", 0, 1, shape=N)
        f = pmt.BART("f", pmt.with_columns(X, z=z), leaf=LEAF, m=2)
        pm.Normal("y", f, 1.0, observed=Y)
        with pytest.raises(NotImplementedError, match="random columns of X"):
            pm.NUTS([z])
