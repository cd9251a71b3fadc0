"""Bridges between two normal densities, whose masses are known."""

import numpy as np
import pytest
from scipy import stats

from pymc_trees.dcc.jump_chain import Point, Scales, cross, spaced, transition

SD = np.array([1.0, 0.85])  # wide enough for weights of finite variance both ways
MEAN = np.array([0.3, 0.9])
LOG_MASS = np.log(3.0)
"""Mass of g_1 over that of g_0, a standard normal."""
SCALES = Scales(0.5, np.array([1.0, 0.8]))
WAYS = 2000


def terms(z):
    """From a standard normal to three times another."""
    zero = -0.5 * np.sum(z**2) - np.log(2 * np.pi)
    away = (z - MEAN) / SD
    one = LOG_MASS - 0.5 * np.sum(away**2) - np.log(2 * np.pi * SD.prod())
    return Point(zero, one - zero, -z, -away / SD + z)


def weights(n, up, seed=2, scales=SCALES, terms=terms):
    rng = np.random.default_rng(seed)
    starts = rng.normal(size=(WAYS, 2))
    if not up:
        starts = MEAN + SD * starts
    return np.array([cross(rng, z, terms, scales, n, up).log_weight for z in starts])


@pytest.mark.parametrize("n", [0, 1, 4])
def test_weights_up_and_down_are_masses_and_each_others_inverse(n):
    """Mean of the weights is the ratio of masses (Neal 2001), and Crooks' relation between both.

    The weight's law up is that of its inverse down, tilted by the weight: for any bounded function
    the two averages are the same. It holds only if transitions are reversible.
    """
    up, down = weights(n, True), -weights(n, False, seed=3)
    for shifted in (up - LOG_MASS, LOG_MASS - down):
        w = np.exp(shifted)
        assert abs(w.mean() - 1.0) < 4.5 * w.std() / np.sqrt(WAYS)
    for level in (-1.0, 0.0, 1.0):
        a, b = np.exp(up - LOG_MASS) * (up - LOG_MASS < level), down - LOG_MASS < level
        error = np.sqrt((a.var() + b.var()) / WAYS)
        assert abs(a.mean() - b.mean()) < 4.5 * error


def test_more_densities_make_weights_more_equal():
    assert weights(0, True).std() > 2 * weights(8, True).std()


def test_a_bridge_whose_transitions_do_not_fit_their_density_is_noticed():
    """The mean of the weights is wrong where transitions leave another density invariant."""

    def wrong(z):  # gradients and values of the gain are those of half of it
        point = terms(z)
        return point._replace(d_gain=np.zeros(2), gain=point.gain - 0.5 * z[1])

    w = np.exp(weights(4, True, terms=wrong) - LOG_MASS)
    assert abs(w.mean() - 1.0) > 10 * w.std() / np.sqrt(WAYS)


def test_a_transition_leaves_its_density_invariant():
    rng, b = np.random.default_rng(4), 1.0
    found = []
    for z in MEAN + SD * rng.normal(size=(WAYS, 2)):
        new, _, _ = transition(rng, z, terms(z), terms, b, SCALES)
        found.append(new)
    standard = (np.array(found) - MEAN) / SD
    for k in range(2):
        assert stats.kstest(standard[:, k], "norm").pvalue > 1e-5


def test_where_a_density_is_zero_the_way_ends():
    def walled(z):
        point = terms(z)
        return point if z[0] > 0 else point._replace(gain=-np.inf)

    rng = np.random.default_rng(5)
    assert cross(rng, np.array([-1.0, 0.0]), walled, SCALES, 3, True).log_weight == -np.inf
    inside = cross(rng, np.array([1.0, 0.0]), walled, SCALES, 3, True)
    assert np.isfinite(inside.log_weight) and inside.z[0] > 0


def test_spacing_begins_and_ends_at_the_two_densities():
    powers = spaced(5)
    assert powers[0] == 0.0 and powers[-1] == 1.0 and (np.diff(powers) > 0).all()
    assert len(powers) == 7
