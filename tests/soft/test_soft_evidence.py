"""Layered adaptive importance sampling on densities whose mass is known."""

import numpy as np
import pytest
from scipy import stats

from pymc_trees.dcc.evidence import (
    chain_covariance,
    estimate_evidence,
    log_block_densities,
    log_mean,
    make_mixture,
)

D = 3
PRIOR = stats.norm(0.0, 10.0)
MODES = ((-6.0, 0.7, 1.0), (6.0, 0.3, 0.3))
"""Centre of all coordinates, mass, sd."""


def target(points):
    """Two Gaussians of total mass one, and a wide normal prior."""
    modes = [
        np.log(mass) + stats.norm(centre, sd).logpdf(points).sum(axis=1)
        for centre, mass, sd in MODES
    ]
    return np.column_stack([np.logaddexp(*modes), PRIOR.logpdf(points).sum(axis=1)])


def draw_prior(rng, count):
    return PRIOR.rvs((count, D), random_state=rng)


def chains(rng, modes, n):
    """One chain in each named mode."""
    return np.stack([rng.normal(MODES[m][0], MODES[m][2], (n, D)) for m in modes])


def test_mass_of_two_modes_is_their_sum_with_chains_in_both(rng):
    e = estimate_evidence(rng, chains(rng, [0, 0, 1, 0], 500), target, draw_prior, 10)
    # 20,000 points of an effective size above 3,000: sd below 0.02
    assert e.effective_draws > 3000
    assert e.log_evidence == pytest.approx(0.0, abs=0.08)


def test_one_denominator_a_chain_would_give_the_mean_of_the_masses(rng):
    """The mistake that the spatial denominator over all chains avoids."""
    masses = [
        np.exp(
            estimate_evidence(
                rng, chains(rng, [m], 500), lambda x, m=m: only(x, m), draw_prior, 10
            ).log_evidence
        )
        for m in (0, 1)
    ]
    assert sum(masses) == pytest.approx(1.0, abs=0.05)
    assert np.mean(masses) == pytest.approx(0.5, abs=0.03)


def only(points, m):
    centre, mass, sd = MODES[m]
    return np.column_stack(
        [
            np.log(mass) + stats.norm(centre, sd).logpdf(points).sum(axis=1),
            PRIOR.logpdf(points).sum(axis=1),
        ]
    )


def test_posterior_of_the_modes_follows_from_the_weights(rng):
    e = estimate_evidence(rng, chains(rng, [0, 1], 500), target, draw_prior, 10)
    left = e.probabilities[e.points[:, 0] < 0].sum()
    assert left == pytest.approx(0.7, abs=0.04)


def test_error_is_the_spread_of_repetitions(rng):
    found = [
        estimate_evidence(rng, chains(rng, [0, 1, 0, 1], 60), target, draw_prior, 4)
        for _ in range(40)
    ]
    spread = np.std([e.log_evidence for e in found])
    errors = np.array([e.error for e in found])
    # A jackknife over four chains has itself a spread of some 40%, and is the larger of two.
    assert 0.7 < np.sqrt(np.mean(errors**2)) / spread < 2.5


def test_error_says_when_one_chain_alone_holds_the_mass(rng):
    alone = estimate_evidence(rng, chains(rng, [0, 1, 1, 1], 300), target, draw_prior, 5)
    shared = estimate_evidence(rng, chains(rng, [0, 1, 0, 1], 300), target, draw_prior, 5)
    assert alone.error > 5 * shared.error


def test_weights_are_bounded_by_the_likelihood_over_the_share_of_the_prior(rng):
    """A chain that sits in the lesser mode: the prior draws keep every weight bounded."""
    e = estimate_evidence(rng, chains(rng, [1], 300), target, draw_prior, 10)
    likelihood = np.subtract(*target(e.points).T)
    assert (e.log_weights <= likelihood - np.log(0.099)).all()


def test_points_far_outside_of_floating_point_are_no_trouble(rng):
    def shifted(points):
        out = target(points)
        out[:, 0] -= 5000.0
        return out

    e = estimate_evidence(rng, chains(rng, [0, 1], 300), shifted, draw_prior, 5)
    assert e.log_evidence == pytest.approx(-5000.0, abs=0.15)
    assert np.isfinite(e.log_variance)


def test_log_variance_is_the_population_variance_of_the_weights(rng):
    e = estimate_evidence(rng, chains(rng, [0, 1], 100), target, draw_prior, 3)
    assert e.log_variance == pytest.approx(np.log(np.var(np.exp(e.log_weights))), rel=1e-9)


def test_impossible_points_weigh_nothing(rng):
    def half(points):
        out = target(points)
        out[points[:, 0] > 0, 0] = np.nan
        return out

    e = estimate_evidence(rng, chains(rng, [0, 1], 300), half, draw_prior, 10)
    assert e.log_evidence == pytest.approx(np.log(0.7), abs=0.08)


def test_draws_of_the_prior_may_have_no_coordinates(rng):
    """As those of an ordered vector that are not in order, or of a scale that underflows."""

    def thinned(rng, count):
        points = draw_prior(rng, count)
        points[::4] = np.nan
        points[1::4, 0] = -np.inf
        return points

    def half(points):
        with np.errstate(invalid="ignore"):
            out = target(points)
        out[:, 1] += np.log(0.5)  # of the draws that have coordinates
        out[np.isinf(points).any(axis=1), 0] = -np.inf
        return out

    e = estimate_evidence(rng, chains(rng, [0, 0, 1, 0], 500), half, thinned, 10)
    assert e.log_evidence == pytest.approx(0.0, abs=0.08) and np.isfinite(e.error)
    assert np.isfinite(e.points[rng.choice(len(e.points), 100, p=e.probabilities)]).all()


def test_error_is_infinite_where_one_chain_alone_has_any_mass(rng):
    def one_mode(points):
        out = target(points)
        out[np.abs(points[:, 0] - 6.0) > 3.0, 0] = -np.inf
        return out

    def far(rng, count):
        return np.full((count, D), -50.0)

    e = estimate_evidence(rng, chains(rng, [0, 0, 1], 100), one_mode, far, 5)
    assert np.isfinite(e.log_evidence) and e.error == np.inf


def test_block_densities_are_means_of_gaussians(rng):
    draws = chains(rng, [0, 1], 12)
    mixture = make_mixture(draws, 3, 1000)
    assert len(mixture.centres) == 6
    points = rng.normal(size=(5, D)) * 6
    out = log_block_densities(mixture, points)
    for b, centres in enumerate(mixture.centres):
        covariance = chain_covariance(draws[mixture.chain[b]])
        densities = [stats.multivariate_normal(c, covariance).logpdf(points) for c in centres]
        np.testing.assert_allclose(out[:, b], log_mean(np.array(densities), axis=0), rtol=1e-8)


def test_covariance_of_few_draws_is_positive_definite_and_of_many_empirical(rng):
    few = rng.normal(size=(5, 20))
    assert np.linalg.eigvalsh(chain_covariance(few)).min() > 0
    assert np.linalg.eigvalsh(chain_covariance(np.ones((50, 4)))).min() > 0
    many = rng.multivariate_normal([0, 0], [[2.0, 1.0], [1.0, 1.0]], 50_000)
    np.testing.assert_allclose(chain_covariance(many), np.cov(many.T), rtol=1e-3)


def test_covariance_is_the_same_in_other_units(rng):
    draws = rng.normal(size=(20, 3)) @ rng.normal(size=(3, 3)) + [3.0, -2.0, 0.0]
    units = np.array([1e-7, 1.0, 1e9])
    expected = chain_covariance(draws) * units * units[:, None]
    np.testing.assert_allclose(chain_covariance(draws * units), expected, rtol=1e-9)
    draws[:, 0] = 0.1  # did not move, but for rounding of the mean
    assert 1e-10 < chain_covariance(draws)[0, 0] < 1e-6


@pytest.mark.parametrize("unit", [1.0, 1e-6])
def test_evidence_is_the_same_in_other_units(rng, unit):
    """The density of one mode in smaller units: with few points in it the error would be 0.7."""

    def narrow(points):
        [centre, _, sd] = MODES[1]
        inside = stats.norm(centre * unit, sd * unit).logpdf(points).sum(axis=1)
        return np.column_stack([inside, PRIOR.logpdf(points).sum(axis=1)])

    draws = unit * rng.normal(MODES[1][0], MODES[1][2], (4, 200, D))
    e = estimate_evidence(rng, draws, narrow, draw_prior, 10)
    # a spread of some .006 between seeds
    assert e.log_evidence == pytest.approx(0.0, abs=0.03) and e.error < 0.03


def test_many_draws_are_thinned_evenly_over_all_visits(rng):
    draws = rng.normal(size=(4, 1000, 2))
    mixture = make_mixture(draws, 4, 400)
    assert sum(len(c) for c in mixture.centres) == 400
    np.testing.assert_array_equal(mixture.centres[0][0], draws[0, 0])
    np.testing.assert_array_equal(mixture.centres[3][-1], draws[0, -1])
