"""`DCCTree` under `pm.sample`: assignment, refusals, draws, saved states."""

import cloudpickle
import numpy as np
import pymc as pm
import pytest
from pymc.step_methods.state import equal_dataclass_values
from support.soft_models import regression
from support.tiers import tiers

import pymc_trees as pmt
from pymc_trees.dcc.kernels.encode import label_of
from pymc_trees.inference.chains.states import from_dataset, to_dataset

OPTIONS = {"chains": 2, "tune": 60, "local_draws": 20}


@pytest.fixture(scope="module")
def model():
    return regression()[0]


@pytest.fixture(scope="module")
def step(model):
    """One for all tests: its functions are compiled once, and every chain starts afresh."""
    return pmt.DCCTree(model=model, **OPTIONS)


@pytest.mark.full
def test_plain_sample_assigns_it_to_every_variable(model):
    with model:
        idata = pm.sample(
            60,
            tune=5,
            chains=2,
            cores=1,
            random_seed=1,
            progressbar=False,
            quiet=True,
            dcctree=OPTIONS,
        )
    stats = idata.sample_stats
    assert {"n_leaves", "log_evidence", "weight", "n_topologies", "local_divergences"} <= set(stats)
    trees = idata.posterior["mu_forest"].values
    assert len(np.unique(trees[0], axis=0)) > 30  # draws, not a state that stands still
    assert len(np.unique(idata.posterior["sigma"].values[0])) > 30
    # Each draw is a topology, by its weight: 60 independent draws a chain, 4.5 standard errors.
    for chain in range(2):
        labels = np.array([label_of(tree) for tree in trees[chain]])
        weights = stats["weight"].values[chain]
        assert len(set(labels)) > 1 and (labels[1:] != labels[:-1]).any()
        for label in set(labels):
            [weight] = set(weights[labels == label])
            error = np.sqrt(weight * (1 - weight) / 60) + 1 / 60
            assert abs((labels == label).mean() - weight) < 4.5 * error
    pmt.check_draws(idata, model)
    assert not np.array_equal(trees[0], trees[1])


def test_an_interrupt_keeps_the_draws_so_far(model, step):
    def stop(trace, draw):
        if draw.draw_idx == 5 + 20:
            raise KeyboardInterrupt

    with model:
        idata = pm.sample(
            60,
            tune=5,
            chains=1,
            step=step,
            callback=stop,
            random_seed=1,
            progressbar=False,
            quiet=True,
        )
    assert 19 <= idata.posterior.sizes["draw"] <= 21
    pmt.check_draws(idata, model)


def test_assignment(model):
    with model:
        provided, selected = pm.sampling.mcmc.assign_step_methods(model, None)
    assert provided == [] and {k: len(v) for k, v in selected.items()} == {pmt.DCCTree: 2}


def test_models_without_a_soft_tree_are_left_alone():
    with pm.Model() as plain:
        pm.Normal("a")
        _, selected = pm.sampling.mcmc.assign_step_methods(plain, None)
    assert list(selected) == [pm.NUTS]


def test_a_second_step_is_refused(model):
    with model, pytest.raises(ValueError, match="sigma_log__"):
        pm.sample(5, tune=5, step=pm.Slice([model["sigma"]]), progressbar=False, quiet=True)


def test_it_takes_all_variables_whatever_it_is_given(model):
    with model:
        for given in (None, [model["mu"]], [model["mu_forest"]], model["mu_forest"]):
            assert len(pmt.DCCTree(given).vars) == 2


def test_without_a_model_on_the_stack_it_still_infers_them_all(model):
    step = pmt.DCCTree([model.rvs_to_values[model["mu_forest"]]], model=model, **OPTIONS)
    step.setup_chain(np.random.default_rng(1), 3, 5)
    point = model.initial_point()
    new, _ = step.step(point)
    assert new["sigma_log__"] != point["sigma_log__"]
    assert not np.array_equal(new["mu_forest"], point["mu_forest"])


def test_another_step_between_is_noticed(model, step):
    begin(step)
    point, _ = step.step(model.initial_point())
    point["sigma_log__"] = point["sigma_log__"] + 0.1
    with pytest.raises(ValueError, match="Another step changed"):
        step.step(point)


def test_without_tuning_there_is_nothing_to_draw_from(model):
    with pytest.raises(ValueError, match="tune=0"):
        pmt.DCCTree(model=model).setup_chain(np.random.default_rng(1), 0, 10)


def begin(step):
    """Put a step at the start of a chain."""
    step.setup_chain(np.random.default_rng(4), 3, 5)


def go(step, point, times):
    points = []
    for _ in range(times):
        point, _ = step.step(point)
        points.append({name: np.copy(value) for name, value in point.items()})
    return points


@pytest.mark.parametrize("at", tiers([2, 4], quick=[4]))
def test_a_saved_state_goes_on_where_it_was(model, step, at):
    """While tuning, and among the draws."""
    begin(step)
    first = go(step, model.initial_point(), min(at, 3))
    if at > 3:
        step.stop_tuning()
        first += go(step, first[-1], at - 3)
    state = cloudpickle.loads(cloudpickle.dumps(step.sampling_state))
    assert equal_dataclass_values(state, step.sampling_state)
    stored = from_dataset(to_dataset({"state": state}))["state"]  # as in a file
    assert equal_dataclass_values(stored, state)
    other = pmt.DCCTree(model=model, **OPTIONS)
    other.functions = step.functions  # spares a compilation; the pickled one has its own
    other.sampling_state = state
    pickled = cloudpickle.loads(cloudpickle.dumps(step))
    expected = go(step, first[-1], 3)
    for again in (go(other, first[-1], 3), go(pickled, first[-1], 3)):
        for a, b in zip(again, expected, strict=True):
            for name in a:
                np.testing.assert_allclose(a[name], b[name], rtol=1e-8)


def test_settings_are_checked(model):
    with pytest.raises(ValueError, match="chains="):
        pmt.DCCTree(model=model, chains=0)
