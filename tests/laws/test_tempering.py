"""Exchanges with flatter posteriors: the model's forest keeps its law, whatever theirs are.

Tolerances as in `test_exact_posterior`. The fixed likelihood is one that tuning would not find,
with another target and other precisions, so that no term of the ratio is 1.
"""

import zlib

import numpy as np
import pymc as pm
import pytest
from support.chains import make_setup, partition_of, sweep_on
from support.chains.local_moves import ALL_MOVES, GROW_PRUNE, called, run_sweeps
from support.chains.record import Chain
from support.laws.exact import BATCHES, Z, compare
from support.naive.batches import frequencies, law_gap
from support.naive.laws import EVERY, law
from support.tiers import tiers

import pymc_trees as pmt
from pymc_trees.core.leaves.contract import ConstantLeaf
from pymc_trees.core.moves.problem import Problem
from pymc_trees.core.value.encode import fit_of
from pymc_trees.step_methods.hybrid import allowed_temperatures
from pymc_trees.step_methods.kernels.contract import SweepData
from pymc_trees.step_methods.kernels.replica_exchange import ACCEPTED, Ladder, exchange_outputs

DRAWS = 60_000


def outputs(trees):
    """Sum of the trees at the rows."""
    fit = np.empty((trees.leaf_of.shape[1], 1))
    fit_of(ConstantLeaf(1), trees, fit)
    return fit[:, 0]


def places_of(name, m=1, n_flatter=2, gap=0.7):
    """A forest and replicas of it under flatter posteriors that are far from its own."""
    setups = [make_setup(EVERY[name], "normal", m) for _ in range(n_flatter + 1)]
    first, rng = setups[0], np.random.default_rng(3)
    target = first.leaf.r + outputs(first.trees)
    n = target.size
    w = first.leaf.w * (rng.uniform(0.3, 1.2, n) if first.leaf.w.size > 1 else 0.6)
    fixed = target + 0.3 * rng.normal(size=n)
    places = [SweepData(None, first.problem, first.work, target, False, {})]
    for k, one in enumerate(setups[1:], 1):
        leaf = first.leaf._replace(r=fixed - outputs(one.trees), w=np.exp(-k * gap) * w)
        problem = Problem(one.trees, first.design, first.prior, leaf)
        places.append(SweepData(None, problem, one.work, fixed, False, {}))
    return places


def test_a_ratio_of_infinities_moves_no_gap():
    ladder = Ladder.start(2, np.zeros(3), np.ones(3))._replace(n_tuned=1)
    for shared in (True, False):
        after = ladder.adapted(np.array([np.nan, np.nan]), shared, 3.0)
        np.testing.assert_array_equal(after.log_gaps, ladder.log_gaps)
        after = ladder.adapted(np.array([1.0, np.nan]), shared, 3.0)
        np.testing.assert_array_equal(after.log_gaps > ladder.log_gaps, [True, shared])


def sweep_flatter(rng, places, weights):
    """A sweep of every replica."""
    for place in places[1:]:
        sweep_on(rng, place.problem, weights, place.work)


def run(name, draws, weights, m=1, exchange=exchange_outputs, seed=0, level=0.0):
    """Chain of the forest of the model: exchanges, then a sweep of each."""
    places = places_of(name, m)
    places[0] = places[0]._replace(level=level)
    first = places[0]
    codes, depths, roots = np.empty((3, draws, m), dtype=np.int64)
    fits = np.empty((draws, first.target.size, 1))
    rng, shares = np.random.default_rng(seed), []
    for s in range(draws):
        sweep_flatter(rng, places, weights)
        for k in range(s % 2, len(places) - 1, 2):
            shares.append(exchange(rng, places[k], places[k + 1])[0])
        at = slice(s, s + 1)
        given = called(first.problem, first.work, weights)
        run_sweeps(rng, *given, 1, codes[at], depths[at], roots[at], fits[at])
    return Chain(codes, depths, roots, fits, None, None), np.mean(shares)


CASES = ["deep", "noisy", "levels"]  # an exchange sees no columns


@pytest.mark.parametrize("name", tiers(CASES, ["deep", "noisy"]))
def test_chain_agrees_with_the_enumeration(name):
    chain, share = run(name, DRAWS, ALL_MOVES, seed=zlib.crc32(name.encode()))
    assert 0.05 < share < 0.95  # it is exchanges that are looked at
    compare(chain, name, "normal")


@pytest.mark.full
def test_forests_that_are_shifted_on_their_way():
    chain, share = run("noisy", DRAWS, ALL_MOVES, seed=4, level=0.4)
    assert 0.05 < share < 0.95
    compare(chain, "noisy", "normal")


def one_sided(rng, a, b):
    """An exchange that forgets the law of the less flat place."""
    leaf = a.problem.leaf._replace(w=0.0 * a.problem.leaf.w)
    return exchange_outputs(rng, a._replace(problem=a.problem._replace(leaf=leaf)), b)


def test_the_comparison_rejects_a_ratio_of_one_law():
    name = "deep"
    chain, _ = run(name, DRAWS // 2, ALL_MOVES, exchange=one_sided)
    codes, shares = frequencies(chain.codes[:, 0], BATCHES)
    states = [partition_of(code, EVERY[name].n) for code in codes]
    found = law_gap(states, shares, law(name, "normal").partitions, len(chain.codes))
    assert found.z > 2 * Z, found


def test_an_exchange_takes_the_forests_with_all_they_have(rng):
    places = places_of("deep", m=3)
    for _ in range(20):
        sweep_flatter(rng, places, GROW_PRUNE)
    exchanged = 0
    for s in range(200):
        before = outputs(places[0].problem.trees)
        for k in range(s % 2, 2, 2):
            exchange_outputs(rng, places[k], places[k + 1])
        exchanged += not np.array_equal(before, outputs(places[0].problem.trees))
        for place in places:
            f = outputs(place.problem.trees)
            np.testing.assert_allclose(place.problem.leaf.r, place.target - f, atol=1e-10)
    assert exchanged > 3


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(1)
    X = rng.random((300, 2))
    return X, 4 * X[:, 0] + 0.3 * rng.normal(size=300)


def model_of(data, **options):
    X, y = data
    with pm.Model() as model:
        mu = pmt.BART("mu", X, y, m=5, **options)
        sigma = pm.HalfNormal("sigma", 0.3)
        pm.Normal("y", mu, sigma, observed=y, shape=mu.shape)
    return model


def ladder_of(step):
    """What the exchanges of the only forest have adapted."""
    return step.states[0].kernels[step.kernels[-1]]


def n_temperatures(step):
    """Posteriors that share the sweeps of the next step."""
    return step.kernels[-1].n_temperatures(step.forests[0], ladder_of(step))


def go(step, model, tune, draws):
    """Steps; the last point and the statistics of all."""
    step.setup_chain(np.random.default_rng(2), tune, draws)
    point, stats = model.initial_point(), []
    for k in range(tune + draws):
        if k == tune:
            step.stop_tuning()
        point, (one,) = step.step(point)
        stats.append(one)
    return point, stats


@pytest.mark.usefixtures("quick_compile")
def test_what_tuning_found_stays_and_exchanges_as_aimed_at(data):
    model = model_of(data)
    step = pmt.Hybrid(model=model, temperatures=3)
    _, stats = go(step, model, 400, 300)
    powers = [one["min_inverse_temperature"] for one in stats]
    assert len(set(powers[:400])) > 300
    assert len(set(powers[400:])) == 1
    # Two pairs take turns. The sd of a mean of 300 such probabilities is below .03, and so is that
    # of the gap, found by 400 of them.
    accepted = np.array([one["accept_exchange"] for one in stats[400:]])
    assert accepted.mean() == pytest.approx(ACCEPTED, abs=0.15)
    target = ladder_of(step).target.copy()
    step.step(model.initial_point())
    np.testing.assert_array_equal(ladder_of(step).target, target)


@pytest.mark.usefixtures("quick_compile")
def test_no_flatter_posterior_where_the_prior_is_drawn(data):
    with pm.Model() as model:
        X, y = data
        spread = pm.HalfNormal("spread", 1.0)
        mu = pmt.BART("mu", X, m=5, leaf=pmt.NormalLeaf(0.0, spread))
        pm.Normal("y", mu, 1.0, observed=y, shape=mu.shape)
        step = pmt.Hybrid([mu], temperatures=3)
    _, stats = go(step, model, 2, 3)
    assert all(np.isnan(one["accept_exchange"]) for one in stats)
    assert ladder_of(step) is None


@pytest.mark.usefixtures("quick_compile")
def test_nor_without_data(data):
    with pm.Model():
        step = pmt.Hybrid([pmt.BART("mu", data[0], m=5, leaf=pmt.NormalLeaf(0.0, 1.0))])
    assert allowed_temperatures(step.forests[0], 3) == 1


@pytest.mark.usefixtures("quick_compile")
def test_an_error_in_a_sweep_leaves_no_replica_behind(data, monkeypatch):
    """A sweep that was cut off leaves residual and trees that do not fit each other."""
    model = model_of(data)
    step = pmt.Hybrid(model=model, temperatures=3)
    go(step, model, 2, 2)
    before = ladder_of(step)
    assert len(before.replicas) == 2
    local = step.kernels[0]
    whole = local.update

    def cut_off(rng, state, data):
        if not any(data.work is one.work for one in before.replicas):
            return whole(rng, state, data)
        data.problem.leaf.r[:] = np.nan
        raise KeyboardInterrupt

    monkeypatch.setattr(local, "update", cut_off)
    with pytest.raises(KeyboardInterrupt):
        step.step(model.initial_point())
    monkeypatch.undo()
    assert ladder_of(step).replicas == ()
    np.testing.assert_array_equal(ladder_of(step).log_gaps, before.log_gaps)
    point, _ = step.step(model.initial_point())
    step.step(point)
    assert np.isfinite(ladder_of(step).replicas[0].r).all()


@pytest.mark.usefixtures("quick_compile")
def test_factors_of_f_may_become_alike(data):
    """Then one precision stands for those of all rows, and the other way round."""
    X, y = data
    with pm.Model() as model:
        slope = pm.Normal("slope", 1.0, 0.1, shape=2)
        mu = pmt.BART("mu", X, y, m=5)
        pm.Normal("y", slope[(X[:, 1] > 0.5).astype(int)] * mu, 0.5, observed=y)
        step = pmt.Hybrid([mu], temperatures=3)
    step.setup_chain(np.random.default_rng(2), 8, 8)
    point = model.initial_point()
    for k in range(16):
        if k == 8:
            step.stop_tuning()
        point["slope"] = np.array([1.0, 1.0 + 0.1 * (k % 2)])
        point, (stats,) = step.step(point)
        assert np.isfinite(stats["accept_exchange"])


@pytest.mark.usefixtures("quick_compile")
def test_one_temperature_is_none(data):
    model = model_of(data)
    step = pmt.Hybrid(model=model, temperatures=1)
    _, stats = go(step, model, 2, 3)
    assert "accept_exchange" not in stats[-1]
    with pytest.raises(ValueError, match="temperatures=0"):
        pmt.Hybrid(model=model, temperatures=0)


@pytest.mark.usefixtures("quick_compile")
def test_a_new_chain_begins_without_the_ladder_of_the_last(data):
    model = model_of(data)
    step = pmt.Hybrid(model=model, temperatures=3)
    once, _ = go(step, model, 5, 20)
    again, _ = go(step, model, 5, 20)
    assert all(np.array_equal(once[key], again[key]) for key in once)


@pytest.mark.usefixtures("quick_compile")
def test_rows_that_tell_little_have_no_flatter_posteriors_unless_asked_for(data):
    """Precision 1 and a prior variance of f of 5 times 0.16: the sweeps of a step stay together."""
    X, y = data
    with pm.Model() as model:
        mu = pmt.BART("mu", X, m=5, leaf=pmt.NormalLeaf(0.0, 0.4))
        pm.Normal("y", mu, 1.0, observed=y - 2, shape=mu.shape)
        step, asked = pmt.Hybrid([mu]), pmt.Hybrid([mu], temperatures=2)
    _, stats = go(step, model, 3, 3)
    assert all(np.isnan(one["accept_exchange"]) for one in stats)
    [forest] = step.forests
    assert ladder_of(step).information == pytest.approx(0.8 * len(X))
    assert ladder_of(step).replicas == ()
    assert n_temperatures(step) == 1 < allowed_temperatures(forest, 3)
    with model:
        other = pmt.Hybrid([mu])
    other.sampling_state = step.sampling_state
    assert n_temperatures(other) == 1
    _, stats = go(asked, model, 3, 3)
    assert all(np.isfinite(one["accept_exchange"]) for one in stats)


@pytest.mark.usefixtures("quick_compile")
def test_rows_that_tell_much_have_them(data):
    """Precision 10^6 of each row."""
    X, y = data
    with pm.Model() as model:
        mu = pmt.BART("mu", X, y, m=5)
        pm.Normal("y", mu, 1e-3, observed=y, shape=mu.shape)
        step = pmt.Hybrid([mu])
    _, stats = go(step, model, 3, 3)
    assert all(np.isfinite(one["accept_exchange"]) for one in stats)
    assert n_temperatures(step) == 3
