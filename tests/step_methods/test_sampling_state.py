"""A saved state goes on exactly where it was."""

import pickle

import cloudpickle
import numpy as np
import pymc as pm
import pytest
from pymc.step_methods.compound import CompoundStep
from pymc.step_methods.state import equal_dataclass_values
from support.small_models import bart_model, step_data
from support.stepping import assert_same, go

import pymc_trees as pmt

pytestmark = pytest.mark.usefixtures("quick_compile")


@pytest.fixture(scope="module")
def model(quick_compile):
    return bart_model(sigma=None)


def make(model, seed=4, kind=pmt.CGM):
    """Step ready to run."""
    step = kind(model=model)
    step.setup_chain(np.random.default_rng(seed), 5, 50)
    return step


def sigma_moves(k, point):
    return {**point, "sigma_log__": np.array(-1.0 + 0.2 * k)}


def forest_moves(model):
    draws = pm.draw(model["mu_forest"], 20, random_seed=1)
    return lambda k, point: point if k % 3 else {**point, "mu_forest": draws[k]}


@pytest.mark.parametrize("kind", [pmt.CGM, pmt.GrowPrune])
@pytest.mark.parametrize("pickled", [False, True])
@pytest.mark.parametrize("disturb", [None, "sigma", "forest"])
def test_restored_in_the_same_step_and_in_a_new_one(model, kind, pickled, disturb):
    disturb = {None: None, "sigma": sigma_moves, "forest": forest_moves(model)}[disturb]
    step = make(model, kind=kind)
    points, _ = go(step, model.initial_point(), 15)
    state = step.sampling_state
    if pickled:
        state = pickle.loads(pickle.dumps(state))
    on = go(step, points[-1], 12, disturb)
    for again in (step, kind(model=model), make(model, 99, kind)):
        again.sampling_state = state
        assert_same(go(again, points[-1], 12, disturb), on)


def test_the_state_is_a_copy(model):
    step = make(model)
    points, _ = go(step, model.initial_point(), 5)
    one, two = step.sampling_state, step.sampling_state
    assert equal_dataclass_values(one, two)
    go(step, points[-1], 5)
    assert equal_dataclass_values(one, two)
    assert not equal_dataclass_values(step.sampling_state, two)


def test_a_pickled_step_goes_on(model):
    step = make(model)
    points, _ = go(step, model.initial_point(), 10)
    with model:
        copy = cloudpickle.loads(cloudpickle.dumps(step))
    copy.sampling_state = step.sampling_state
    assert_same(go(copy, points[-1], 10), go(step, points[-1], 10))


def test_a_new_chain_forgets_the_old_one(model):
    fresh = go(make(model, 8), model.initial_point(), 10)
    used = make(model, 3)
    go(used, model.initial_point(), 10)
    used.setup_chain(np.random.default_rng(8), 5, 50)
    assert_same(go(used, model.initial_point(), 10), fresh)
    # Also where the old one ended: what it summed up on the way there is its own.
    end = go(used, model.initial_point(), 40)[0][-1]
    used.setup_chain(np.random.default_rng(8), 5, 50)
    assert_same(go(used, end, 10), go(make(model, 8), end, 10))


def test_a_step_does_not_write_into_its_input(model):
    step = make(model)
    point = model.initial_point()
    kept = {name: np.copy(value) for name, value in point.items()}
    after, _ = step.step(point)
    for _ in range(3):
        before = after["mu_forest"].copy()
        held = after["mu_forest"]
        after, _ = step.step(after)
        np.testing.assert_array_equal(held, before)
    for name in kept:
        np.testing.assert_array_equal(point[name], kept[name])


def test_a_point_changed_in_place_is_noticed(model):
    """PyMC's parallel workers hand over the same memory at every step."""
    shared = model.initial_point()
    one, two = make(model), make(model)
    point = model.initial_point()
    for _ in range(10):
        point, _ = one.step(point)
        result, _ = two.step(shared)
        shared["mu_forest"][...] = result["mu_forest"]
        np.testing.assert_array_equal(point["mu_forest"], shared["mu_forest"])
    shared["mu_forest"][...] = pm.draw(model["mu_forest"], random_seed=2)
    point["mu_forest"] = shared["mu_forest"].copy()
    a, b = one.step(point)[0], two.step(shared)[0]
    np.testing.assert_allclose(a["mu_forest"], b["mu_forest"])


def test_compound_state():
    X, y = step_data()
    with pm.Model() as model:
        mu = pmt.BART("mu", X, y, m=5, max_nodes=295)
        sigma = pm.HalfNormal("sigma")
        pm.Normal("y", mu, sigma, observed=y, shape=mu.shape)
        step = CompoundStep([pmt.CGM(), pm.Metropolis([sigma])])
    step.setup_chain(np.random.default_rng(1), 0, 30)
    point = model.initial_point()
    for _ in range(10):
        point, _ = step.step(point)
    state = pickle.loads(pickle.dumps(step.sampling_state))

    def on(at):
        found = []
        for _ in range(10):
            at, _ = step.step(at)
            found.append((at["mu_forest"].copy(), float(at["sigma_log__"])))
        return found

    first = on(point)
    step.sampling_state = state
    for (a, s), (b, t) in zip(first, on(point)):
        np.testing.assert_array_equal(a, b)
        assert s == t


def test_a_state_of_another_model_is_refused(model):
    with pm.Model() as other:
        pmt.BART("nu", step_data()[0], m=5, leaf=pmt.NormalLeaf(0, 1), max_nodes=295)
    step = make(model)
    with pytest.raises(ValueError, match="var_names"):
        pmt.CGM(model=other).sampling_state = step.sampling_state


def test_a_step_changes_its_states_alone(model):
    """No method leaves a field for another to find."""
    step = make(model, kind=lambda model: pmt.Hybrid(model=model, temperatures=2))
    points, _ = go(step, model.initial_point(), 3)

    def fields():
        owners = (step, *step.forests, *step.kernels)
        return {(type(one).__name__, key): id(v) for one in owners for key, v in vars(one).items()}

    before, states = fields(), list(step.states)
    step.step(points[-1])
    assert fields() == before
    assert step.states[0] is not states[0]
