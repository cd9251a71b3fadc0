"""Calls that last: apart or in pieces they draw the same, and they end when asked to."""

import signal
from copy import deepcopy
from itertools import count

import numpy as np
import pytest
from support.chains import CGM, make_setup, make_tools
from support.naive.laws import PROBLEMS
from support.small_models import bart_model

import pymc_trees as pmt
from pymc_trees.core.samplers.backfitting import sweep, sweeps
from pymc_trees.core.samplers.particle_gibbs import Batch, particle_sweep
from pymc_trees.mondrian import forest as estimators
from pymc_trees.mondrian import trees as grown
from pymc_trees.mondrian.kernels.extend import extend_tree
from pymc_trees.mondrian.kernels.grow import grow_tree
from pymc_trees.mondrian.kernels.labels import make_moments
from pymc_trees.mondrian.kernels.tree import COUNT_LIMIT, ROWS, USED, Rules, make_tree
from pymc_trees.step_methods.kernels import acceptance, local_moves, tree_redraw


@pytest.fixture(scope="module")
def model(quick_compile):
    return bart_model()


def last_point(model, step, n=5):
    point = model.initial_point()
    for _ in range(n):
        point, _ = step.step(point)
    return point["mu_forest"]


def test_a_step_apart_draws_the_same(model, monkeypatch):
    here = last_point(model, pmt.Hybrid(model=model, temperatures=3, rng=np.random.default_rng(1)))
    apart = []
    monkeypatch.setattr(local_moves, "LONG_CONJUGATE", 0)
    monkeypatch.setattr(local_moves, "LONG", 0)
    monkeypatch.setattr(tree_redraw, "LONG", 0)
    for module in (acceptance, tree_redraw):
        run = module.run_interruptible
        monkeypatch.setattr(
            module, "run_interruptible", lambda *a, run=run: apart.append(1) or run(*a)
        )
    there = last_point(model, pmt.Hybrid(model=model, temperatures=3, rng=np.random.default_rng(1)))
    assert len(apart) == 5 * (3 + 1)  # sweeps at three temperatures, and redrawn trees
    np.testing.assert_array_equal(here, there)


def test_a_step_interrupted_between_its_sweeps_can_be_made_again(model, monkeypatch):
    step = pmt.Hybrid(model=model, rng=np.random.default_rng(1))
    point, _ = step.step(model.initial_point())
    kept = point["mu_forest"].copy()

    def interrupted(*arguments):
        *given, n_sweeps, counts = arguments
        assert n_sweeps > 2 and sweeps(*given, 2, counts)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(local_moves, "sweeps", interrupted)
        step.step(point)
    assert step.states[0].forest is None  # they had moved on, and were not those of the point
    np.testing.assert_array_equal(point["mu_forest"], kept)
    after = last_point(model, step, 1)
    other = pmt.Hybrid(model=model)
    other.rng = step.rng
    assert np.isfinite(other.step({**point, "mu_forest": after})[0]["mu_forest"][0]).all()


def test_a_sweep_that_is_to_end_leaves_the_next_tree_alone(rng):
    setup = make_setup(PROBLEMS["deep"], "normal", m=3)
    counters = np.zeros((2, len(CGM.moves)), dtype=np.int64)
    setup.work.stop_flag[0] = True
    assert not sweep(rng, setup.problem, CGM, setup.work, counters)
    assert not counters.any()
    tools = make_tools(setup, 4, "prior", "multinomial")
    tools.particles.stop_flag[0] = True
    given = (None, tools.growth, tools.scheme, setup.work, Batch(0, 3, False), np.zeros(2))
    assert not particle_sweep(rng, setup.problem, setup.problem, *given)
    assert (setup.trees.column[setup.trees.roots] < 0).all()


def test_a_mondrian_tree_that_is_to_end_is_not_grown(rng):
    X = rng.random((50, 2))
    rules = Rules(2, False, *[COUNT_LIMIT] * 4)
    empty = make_tree(2, np.inf, 1, 1), make_moments(1)
    tree, _ = grow_tree(rng, *empty, rules, X, X[:, 0].copy(), 50, np.ones(1, dtype=bool))
    assert tree.state[USED] == 1


def learn(n):
    rng = np.random.default_rng(1)
    X = rng.random((n, 2))
    y = X[:, 0] + 0.1 * rng.normal(size=n)
    settings = {"n_estimators": 3, "hyperparameters": "heuristic", "random_state": 1}
    return pmt.MondrianForestRegressor(**settings).fit(X[:100], y[:100]), X, y


def test_trees_extended_in_pieces_are_those_extended_at_once(monkeypatch):
    forest, X, y = learn(1000)
    monkeypatch.setattr(grown, "perf_counter", count().__next__)
    at_once = []
    for rng, (tree, labels) in zip(forest._fitted.generators, forest._fitted.trees):
        given = deepcopy((rng, tree, labels))
        at_once.append(extend_tree(*given, forest._fitted.rules, X, y, 100, 1000)[0])
    forest.partial_fit(X[100:], y[100:])
    for one, (tree, _) in zip(at_once, forest._fitted.trees):
        used = one.state[USED]
        np.testing.assert_array_equal(one.state, tree.state)
        np.testing.assert_array_equal(one.cut[:used], tree.cut[:used])


def test_an_interrupted_extension_holds_whole_rows(monkeypatch):
    forest, X, y = learn(1000)
    monkeypatch.setattr(grown, "perf_counter", count().__next__)

    def interrupted(*arguments):
        signal.raise_signal(signal.SIGINT)
        return extend_tree(*arguments)

    forest.predict(X[:5])
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(grown, "extend_tree", interrupted)
        forest.partial_fit(X[100:], y[100:])
    rows = forest.n_samples_seen_
    assert 100 < rows < 1000
    assert (
        {int(tree.state[ROWS]) for tree, _ in forest._fitted.trees}
        == {rows}
        == {forest._fitted.rows.n}
    )
    forest.partial_fit(X[rows:], y[rows:])
    whole = learn(1000)[0].partial_fit(X[100:], y[100:])
    np.testing.assert_array_equal(forest.predict(X[:50]), whole.predict(X[:50]))


def test_predictions_in_small_pieces_are_the_same(monkeypatch):
    forest, X, _ = learn(1000)
    mean, sd = forest.predict(X, return_std=True)
    monkeypatch.setattr(grown, "LONG", 50)  # apart, too
    monkeypatch.setattr(estimators, "LONG", 50)
    small = forest.predict(X, return_std=True)
    np.testing.assert_array_equal(mean, small[0])
    np.testing.assert_array_equal(sd, small[1])
