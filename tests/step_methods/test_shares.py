"""What a step spends on each kind of move: learnt in tuning, fixed afterwards or by hand."""

import numpy as np
import pytest
from support.small_models import bart_model

import pymc_trees as pmt
from pymc_trees.step_methods.hybrid import MOVES
from pymc_trees.step_methods.kernels.acceptance import (
    AVERAGED,
    BOUNDS,
    FIRST,
    AcceptanceRates,
    adapted_weights,
)
from pymc_trees.step_methods.kernels.local_moves import MovesState

NAMES = list(MOVES)
USUAL = np.array(list(MOVES.values()))


def taught(accepted, times=FIRST):
    rates = AcceptanceRates.start(len(accepted))
    for _ in range(times):
        rates = rates.updated(accepted)
    return rates


def test_moves_that_buy_more_get_more():
    weights = adapted_weights(taught([0.2, 0.2, 0.01, 0.01, 0.4]), NAMES, USUAL)
    share = weights / USUAL
    assert weights.sum() == pytest.approx(1) and weights[0] == weights[1]
    assert share[4] > share[0] > share[2] == share[3]  # 0.2, 0.14 and less than 0.005 per cost
    assert share[2] / share[4] >= BOUNDS[0] / BOUNDS[1]
    # All alike but for what they cost: the same share of acceptance per cost, the usual weights.
    equal = adapted_weights(taught([0.14, 0.14, 0.3, 0.29, 0.2]), NAMES, USUAL)
    np.testing.assert_allclose(equal, USUAL)


def test_shares_are_usual_until_something_was_seen():
    np.testing.assert_array_equal(
        adapted_weights(taught([0.5] * 5, FIRST - 1), NAMES, USUAL), USUAL
    )
    np.testing.assert_array_equal(adapted_weights(taught([0.0] * 5), NAMES, USUAL), USUAL)
    never = taught([0.2, 0.2, np.nan, np.nan, 0.4])
    np.testing.assert_array_equal(never.n_seen, [FIRST, FIRST, 0, 0, FIRST])


def test_what_was_long_ago_is_forgotten():
    rates = taught([0.0], AVERAGED)
    for _ in range(3 * AVERAGED):
        rates = rates.updated([1.0])
    assert rates.mean[0] == pytest.approx(1 - np.exp(-3), abs=1e-3)


def stepped(step, model, n_steps):
    point, found = model.initial_point(), []
    for k in range(n_steps):
        if k == n_steps // 2:
            step.stop_tuning()
        point, (stats,) = step.step(point)
        found.append(stats)
    return {name: np.array([stats[name] for stats in found]) for name in found[0]}


def test_weights_move_in_tuning_and_stay_afterwards():
    model = bart_model(n=100, m=5)
    with model:
        step = pmt.Hybrid(rng=1, local_sweeps=2)
    stats = stepped(step, model, 160)
    weights = np.stack([stats[f"weight_{name}"] for name in NAMES], axis=1)
    np.testing.assert_allclose(weights[:FIRST], np.broadcast_to(USUAL, (FIRST, 5)))
    assert abs(weights[80] - USUAL).max() > 0.01
    assert np.unique(weights[80:], axis=0).shape[0] == 1
    assert np.unique(stats["redraw_probability"][80:]).size == 1
    np.testing.assert_allclose(weights.sum(axis=1), 1)


def test_shares_given_by_hand_stay_from_the_start():
    model = bart_model()
    with model:
        step = pmt.Hybrid(moves=MOVES, batch=(0.02, 0.02))
    names = set(step.stats_dtypes_shapes)
    assert not any(name.startswith("weight_") or name == "redraw_probability" for name in names)


def test_trees_are_redrawn_less_often_where_none_is_taken():
    model = bart_model(n=100, m=5)
    with model:
        step = pmt.Hybrid(rng=1, local_sweeps=2)
    redraw, (state,) = step.kernels[1], step.states
    assert redraw.probability_of(None) == 1.0
    rates = taught([0.0])
    assert redraw.probability_of(rates) == BOUNDS[0]
    step.states = [state._replace(kernels=state.kernels | {redraw: rates})]
    step.stop_tuning()
    stats = stepped(step, model, 60)
    assert 0.5 < np.isnan(stats["trees_changed"]).mean() < 1.0


def test_each_chain_learns_for_itself_and_goes_on_with_what_it_learnt():
    model = bart_model(n=100, m=5)
    with model:
        step = pmt.Hybrid(rng=1, local_sweeps=2)
    moves, (state,) = step.kernels[0], step.states
    rates = MovesState(taught([0.2, 0.2, 0.01, 0.01, 0.4]))
    step.states = [state._replace(kernels=state.kernels | {moves: rates})]

    def weights():
        return moves.moves_of(step.states[0].kernels[moves]).weights

    adapted, stored = weights(), step.sampling_state
    assert abs(adapted - USUAL).max() > 0.01
    step.setup_chain(np.random.default_rng(0), 10, 10)
    np.testing.assert_array_equal(weights(), USUAL)
    step.sampling_state = stored
    np.testing.assert_array_equal(weights(), adapted)
