"""Utility (eq. 10, 66-71) against plain formulas, and the active set."""

import numpy as np
import pytest
from scipy import stats

from pymc_trees.dcc.dcc import LOOK_AHEAD, Search, exploitation, exploration, utility


def test_exploitation_is_eq_66_where_that_can_be_computed(rng):
    z, variance = rng.random(5), rng.random(5)
    tau = np.sqrt(z**2 + 1.5 * variance)
    np.testing.assert_allclose(
        exploitation(np.log(z), np.log(variance), 0.5), tau / tau.max(), rtol=1e-12
    )


def test_exploitation_in_logs_is_safe_far_from_one():
    shift = -5000.0
    near = exploitation(np.array([0.0, -1.0]), np.array([-2.0, 1.0]))
    far = exploitation(np.array([0.0, -1.0]) + shift, np.array([-2.0, 1.0]) + 2 * shift)
    np.testing.assert_allclose(far, near, rtol=1e-9)


def test_the_largest_tau_is_searched_on_the_log_scale():
    # A shift per topology, A_m of eq. 68-70, must not decide which is the largest.
    out = exploitation(np.array([-700.0, -710.0]), np.array([-1500.0, -1500.0]))
    np.testing.assert_allclose(out, [1.0, np.exp(-10.0)], rtol=1e-12)


def test_exploration_is_eq_71():
    mean, sd, threshold = np.array([-3.0, -8.0]), np.array([1.0, 2.0]), 0.5
    rho = 1 - stats.norm.cdf(threshold, mean, sd) ** LOOK_AHEAD
    np.testing.assert_allclose(exploration(threshold, mean, sd), rho / rho.max(), rtol=1e-9)


def test_exploration_with_weights_all_alike_or_no_chance_at_all():
    np.testing.assert_array_equal(exploration(0.0, np.array([-1.0]), np.array([0.0])), [0.0])
    assert np.isfinite(exploration(1e4, np.array([-1.0, -2.0]), np.array([1.0, 1.0]))).all()


def test_utility_is_eq_10():
    s, tau, rho = np.array([3, 1]), np.array([1.0, 0.4]), np.array([0.2, 1.0])
    out = utility(s, tau, rho, 0.3, 2.0)
    for k in range(2):
        expected = (0.7 * tau[k] + 0.3 * rho[k] + 2.0 * np.log(4) / np.sqrt(s[k])) / s[k]
        assert out[k] == pytest.approx(expected, rel=1e-12)


def test_what_was_never_visited_comes_first():
    out = utility(np.array([2, 0]), np.array([1.0, 0.0]), np.array([1.0, 0.0]))
    assert np.argmax(out) == 1


def search(threshold=2, max_active=3):
    return Search(0.95, 1.0, threshold, max_active, 63)


def test_a_topology_is_active_once_proposed_more_often_than_the_threshold():
    one = search()
    for label in ["SLL"] * 2 + ["L"]:
        one.count(label)
    one.active = ["SSLLL"]
    assert one.activate() == []
    one.count("SLL")
    assert one.activate() == ["SLL"]
    assert one.activate() == []


def test_a_full_active_set_takes_no_more_and_the_search_goes_on(rng):
    one = search(max_active=2)
    for label, times in {"L": 9, "SLL": 8, "SSLLL": 7}.items():
        for _ in range(times):
            one.count(label)
    assert one.activate() == ["L", "SLL"]
    one.step(rng, "SLL")
    assert one.activate() == [] and one.active == ["L", "SLL"]
    one.max_active = 1  # of a run that goes on with another setting
    assert one.activate() == [] and one.active == ["L", "SLL"]


def test_something_is_active_however_few_trees_the_prior_gave(rng):
    one = search(threshold=50)
    one.start(rng, 1)
    assert len(one.activate()) == 1


def test_what_outgrows_the_room_is_left_out_with_a_warning_that_says_what_to_do(rng):
    one = Search(0.95, 1.0, 1, 5, 3)
    with pytest.warns(UserWarning, match="5 nodes was.*left out.*for example max_nodes=7"):
        for _ in range(50):
            one.step(rng, "SLL")
    assert set(one.proposed) == {"L", "SLL"}


@pytest.mark.parametrize("seed", range(3))
def test_what_the_prior_draws_too_large_is_left_out_at_the_start(seed):
    """What fits is as often proposed as without the others; what says so says it once."""
    one, rng = Search(0.95, 1.0, 5, 100, 15), np.random.default_rng(seed)
    with pytest.warns(UserWarning, match="drawn from .* left out.*example max_nodes=31") as told:
        one.start(rng, 100)
    kept = sum(one.proposed.values())
    assert len(told) == 1 and str(told[0].message).startswith(f"{100 - kept} of 100")
    assert 80 < kept < 100  # a tree has more than 8 leaves with a probability of 0.03
    assert max(map(len, one.proposed)) <= 15


def test_a_prior_of_trees_that_are_all_too_large_is_refused(rng):
    with pytest.raises(ValueError, match="more nodes than max_nodes: declare it with a larger"):
        Search(1 - 1e-9, 0.0, 5, 100, 15).start(rng, 3)


def test_selection_prefers_mass_and_falls_with_visits():
    one = search()
    one.active = ["L", "SLL"]
    arrays = [
        np.array(v) for v in ([-2.0, 0.0], [-9.0, -9.0], [0.0, 0.0], [-1.0, -1.0], [1.0, 1.0])
    ]
    assert one.select(np.array([1, 1]), *arrays) == "SLL"
    assert one.select(np.array([1, 9]), *arrays) == "L"
    assert one.select(np.array([0, 9]), *arrays) == "L"


@pytest.mark.parametrize(("optimism", "visited"), [(1.0, [5, 7]), (0.1, [2, 10])])
def test_the_less_optimism_the_more_visits_by_mass(optimism, visited):
    """Twelve visits of two topologies, one of which has hardly any mass; eq. 10 by hand."""
    one = search()
    one.active, one.optimism = ["L", "SLL"], optimism
    arrays = [np.array(v) for v in ([-9.0, 0.0], [-99.0] * 2, [0.0] * 2, [-1.0] * 2, [1.0] * 2)]
    visits = np.zeros(2, dtype=int)
    for _ in range(12):
        visits[one.active.index(one.select(visits, *arrays))] += 1
    assert visits.tolist() == visited
