"""`Hybrid` in PyMC: arguments, statistics, saved states, and what it does beyond conjugacy."""

import pickle

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from support.small_models import bart_model, step_data
from support.stepping import assert_same, go
from support.tiers import tiers

import pymc_trees as pmt
from pymc_trees.core.leaves.contract import ConstantLeaf
from pymc_trees.core.value.encode import fit_of
from pymc_trees.step_methods.hybrid import allowed_temperatures
from pymc_trees.step_methods.kernels.local_moves import enough_sweeps

pytestmark = pytest.mark.usefixtures("quick_compile")


@pytest.fixture(scope="module")
def model(quick_compile):
    return bart_model(sigma=None)


@pytest.mark.parametrize(
    "wrong",
    [
        {"local_sweeps": 0},
        {"local_sweeps": True},
        {"local_sweeps": 2.0},
        {"moves": {"grow": 1.0}},
        {"moves_per_visit": 0},
        {"moves_per_visit": 1.5},
        {"num_particles": 1},
        {"batch": (0.0, 1.0)},
    ],
)
def test_wrong_arguments_are_named(model, wrong):
    with pytest.raises(ValueError, match=f"{next(iter(wrong))}="):
        pmt.Hybrid(model=model, **wrong)


def test_a_step_makes_both_kinds_of_updates(model):
    step = pmt.Hybrid(model=model, local_sweeps=3)
    step.setup_chain(np.random.default_rng(1), 0, 40)
    _, stats = go(step, model.initial_point(), 40)
    changed = np.array([one["trees_changed"] for one in stats])
    np.testing.assert_allclose(changed * 5, np.round(changed * 5))
    assert 0 < changed.mean() < 1
    assert all(1 - 1e-9 <= one["particle_ess"] <= 2 + 1e-9 for one in stats)
    grown = np.array([one["accept_grow"] for one in stats])
    assert np.nanmax(grown) > 0  # a share of the proposals of three sweeps


@pytest.mark.parametrize(
    ("n", "m", "likelihood", "sweeps"),
    [
        (40, 5, "normal", 20),
        (100, 50, "normal", 10),
        (100, 200, "normal", 5),
        (300, 50, "normal", 20),
        (1000, 50, "normal", 10),
        (1000, 200, "normal", 5),
        (40, 5, "poisson", 5),
        (20_000, 150, "normal", 5),
        (60_000, 150, "normal", 5),
    ],
)
def test_sweeps_of_a_step(n, m, likelihood, sweeps):
    """As many as PyMC's own work in a step is worth, and five where each takes long."""
    X = np.random.default_rng(0).random((n, 2))
    with pm.Model():
        mu = pmt.BART("mu", X, X[:, 0], m=m)
        if likelihood == "normal":
            pm.Normal("y", mu, 1.0, observed=X[:, 0], shape=mu.shape)
        else:
            pm.Poisson("y", pm.math.exp(mu), observed=np.ones(n), shape=mu.shape)
        step = pmt.Hybrid([mu])
    assert enough_sweeps(step.forests[0], 1) == sweeps
    temperatures = 3 if likelihood == "normal" and n * m <= 2_000_000 else 1
    assert allowed_temperatures(step.forests[0], 3) == temperatures
    assert enough_sweeps(step.forests[0], temperatures) == np.ceil(sweeps / temperatures)


def test_a_restored_state_goes_on_exactly(model):
    def make(seed):
        step = pmt.Hybrid(model=model, local_sweeps=2, num_particles=3, batch=(0.5, 0.5))
        step.setup_chain(np.random.default_rng(seed), 5, 50)
        return step

    step = make(4)
    points, _ = go(step, model.initial_point(), 10)
    state = pickle.loads(pickle.dumps(step.sampling_state))
    on = go(step, points[-1], 8)
    for again in (step, make(99)):
        again.sampling_state = state
        assert_same(go(again, points[-1], 8), on)


LIKELIHOODS = {
    "rows": lambda f, y: pm.Poisson("y", pm.math.exp(f), observed=np.abs(np.round(y))),
    "joint": lambda f, y: pm.Normal("y", pt.cumsum(f), 1.0, observed=np.cumsum(y)),
}


@pytest.mark.parametrize("name", tiers(LIKELIHOODS, quick=[]))
def test_where_leaf_values_do_not_integrate_out(name):
    """Both kinds of updates, and a fit that is the sum of the trees."""
    X, y = step_data()
    with pm.Model() as model:
        f = pmt.BART("f", X, m=3, leaf=pmt.NormalLeaf(0, 0.5))
        LIKELIHOODS[name](f, y)
        step = pmt.Hybrid(local_sweeps=2, batch=(1.0, 1.0))  # of "joint" one tree in 30 is taken
    step.setup_chain(np.random.default_rng(1), 0, 60)
    points, stats = go(step, model.initial_point(), 60)
    changed = [one["trees_changed"] for one in stats]
    assert 0 < np.mean(changed) <= 1
    assert all(1 - 1e-9 <= one["particle_ess"] <= 2 + 1e-9 for one in stats)
    state = step.states[0].forest
    fit = np.empty_like(state.fit)
    fit_of(ConstantLeaf(fit.shape[1]), state.trees, fit)
    np.testing.assert_allclose(state.fit, fit, atol=1e-9)
    density = model.compile_logp(vars=[model["y"]])(points[-1])
    assert stats[-1]["log_likelihood"] == pytest.approx(density)
