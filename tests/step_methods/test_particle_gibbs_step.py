"""`ParticleGibbs` in PyMC: arguments, statistics, seeds, saved states, and a signal found."""

import pickle

import numpy as np
import pytest
from support.small_models import bart_model, sample, step_data
from support.stepping import assert_same, go
from support.tiers import tiers

import pymc_trees as pmt

pytestmark = pytest.mark.usefixtures("quick_compile")


@pytest.fixture(scope="module")
def model(quick_compile):
    return bart_model(sigma=None)


def test_pgbart_is_the_same_class():
    assert pmt.PGBART is pmt.ParticleGibbs and pmt.ParticleGibbs.name == "pgbart"


@pytest.mark.parametrize(
    "wrong",
    [
        {"num_particles": 1},
        {"num_particles": True},
        {"num_particles": 10.0},
        {"num_particles": "10"},
        {"proposal": "best"},
        {"proposal": 0},
        {"resampling": "residual"},
        {"resampling": None},
        {"batch": 0.5},
        {"batch": (0.0, 1.0)},
        {"batch": (0.1, 1.1)},
        {"batch": (0.1, 0.1, 0.1)},
        {"batch": (np.nan, 1.0)},
        {"batch": ("a", "b")},
    ],
)
def test_wrong_arguments_are_named(model, wrong):
    with pytest.raises(ValueError, match=f"{next(iter(wrong))}="):
        pmt.ParticleGibbs(model=model, **wrong)


@pytest.mark.parametrize("proposal", tiers(["prior", "empirical", "optimal"], quick=["optimal"]))
def test_the_signal_is_recovered_and_statistics_describe_it(model, proposal):
    """Noise sd 0.5 and 30 rows: the posterior mean misses the step by less than 0.5 on average."""
    X, y = step_data()
    with model:
        step = pmt.ParticleGibbs(num_particles=5, proposal=proposal, resampling="systematic")
        idata = sample(60, 60, step=[step, *_sigma_step(model)])
    truth = 4.0 * (X[:, 0] > 0.5)
    found = idata.posterior["mu"].values.mean(axis=(0, 1))
    assert np.abs(found - found.mean() - truth + truth.mean()).mean() < 0.5
    stats = idata.sample_stats
    ess, changed = stats["particle_ess"].values, stats["trees_changed"].values
    assert ess.shape == changed.shape == (2, 60)
    assert (ess >= 1 - 1e-9).all() and (ess <= 5 + 1e-9).all()
    assert (changed >= 0).all() and (changed <= 1).all() and 0 < changed.mean()
    np.testing.assert_allclose(changed * 5, np.round(changed * 5))  # five trees are visited
    for name in ("n_leaves", "max_depth", "variable_inclusion", "log_likelihood"):
        assert name in stats


def _sigma_step(model):
    import pymc as pm

    return [pm.Metropolis([model["sigma"]])]


def test_seeds(model):
    def draws(seed):
        with model:
            step = [pmt.ParticleGibbs(num_particles=3), *_sigma_step(model)]
            return sample(6, 6, step=step, random_seed=seed).posterior["mu"].values

    one, two, other = draws(1), draws(1), draws(2)
    np.testing.assert_array_equal(one, two)
    assert (one != other).any() and (one[0] != one[1]).any()


def test_batch_is_the_share_of_trees_visited_while_tuning_and_after(model):
    step = pmt.ParticleGibbs(model=model, num_particles=2, batch=(0.2, 0.6))
    point = model.initial_point()
    for tune, visited in ((True, 1), (False, 3)):
        step.setup_chain(np.random.default_rng(1), 10 if tune else 0, 30)
        seen = set()
        for _ in range(30):
            point, [stat] = step.step(point)
            seen.add(round(float(stat["trees_changed"]) * visited, 9))
        assert seen <= set(map(float, range(visited + 1))) and len(seen) > 1


@pytest.mark.parametrize("proposal", ["prior", "optimal"])
def test_a_restored_state_goes_on_exactly(model, proposal):
    def make(seed):
        step = pmt.ParticleGibbs(
            model=model, num_particles=4, proposal=proposal, resampling="stratified"
        )
        step.setup_chain(np.random.default_rng(seed), 5, 50)
        return step

    step = make(4)
    points, _ = go(step, model.initial_point(), 10)
    state = pickle.loads(pickle.dumps(step.sampling_state))
    on = go(step, points[-1], 8)
    for again in (step, make(99)):
        again.sampling_state = state
        assert_same(go(again, points[-1], 8), on)
