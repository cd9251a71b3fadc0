"""Draws of latent variables against their laws; averages within 5 standard errors."""

import math

import numpy as np
import pytest
from numba import njit
from scipy import stats

from pymc_trees.core.leaves.latent.augmentations import (
    draw_inverse_gaussian,
    draw_polya_gamma,
    draw_truncated,
    log_between,
)

DRAWS = 200_000


@njit
def polya_gammas(rng, tilt, out):
    for i in range(out.size):
        out[i] = draw_polya_gamma(rng, tilt)


@njit
def truncated(rng, low, high, out):
    for i in range(out.size):
        out[i] = draw_truncated(rng, low, high)


@njit
def inverse_gaussians(rng, mean, shape, out):
    for i in range(out.size):
        out[i] = draw_inverse_gaussian(rng, mean, shape)


def draws(kernel, *given):
    out = np.empty(DRAWS)
    kernel(np.random.default_rng(7), *given, out)
    return out


# the proposal below changes at a tilt of 2 / 0.64
@pytest.mark.parametrize("tilt", [0.0, 0.1, -1.0, 3.1, 3.2, 10.0, 60.0, 2000.0])
def test_polya_gamma(tilt):
    """Mean, and Laplace transform cosh(c / 2) / cosh(sqrt((c^2 / 2 + s) / 2)) (PSW 2013, eq. 4)."""
    found, c = draws(polya_gammas, tilt), abs(tilt)
    mean = math.tanh(c / 2) / (2 * c) if c else 0.25
    s = np.array([0.3, 3.0]) / mean
    u = np.sqrt((c * c / 2 + s) / 2)
    exact = np.exp(np.logaddexp(c / 2, -c / 2) - np.logaddexp(u, -u))
    terms = np.column_stack([found - mean, np.exp(-found[:, None] * s) - exact])
    z = terms.mean(axis=0) / terms.std(axis=0) * math.sqrt(DRAWS)
    assert np.abs(z).max() < 5, z


@pytest.mark.parametrize(
    ("low", "high"),
    [
        (-math.inf, 0.0),
        (-math.inf, math.inf),
        (-1.0, 1.0),
        (-0.2, 9.0),
        (0.1, 5.0),
        (2.0, math.inf),
        (2.0, 2.1),
        (-3.0, -2.0),
        (-math.inf, -8.0),
        (35.0, 36.0),
    ],
)
def test_truncated_normal(low, high):
    """Kolmogorov and Smirnov at a level of 1e-4, and the probability of the interval."""
    law = stats.truncnorm(low, high)
    found = draws(truncated, low, high)
    assert found.min() >= low and found.max() <= high
    assert stats.kstest(found[:50_000], law.cdf).pvalue > 1e-4
    if math.isfinite(low) or math.isfinite(high):
        at = low if math.isfinite(low) else high
        np.testing.assert_allclose(
            log_between(low, high), stats.norm.logpdf(at) - law.logpdf(at), rtol=1e-8
        )


@pytest.mark.parametrize(("mean", "shape"), [(1.0, 1.0), (0.1, 2.0), (10.0, 0.5), (1e4, 2.0)])
def test_inverse_gaussian(mean, shape):
    found = draws(inverse_gaussians, mean, shape)[:50_000]
    assert stats.kstest(found, stats.invgauss(mean / shape, scale=shape).cdf).pvalue > 1e-4


def test_the_largest_mean_leaves_finite_numbers():
    found = draws(inverse_gaussians, 1e100, 2.0)
    assert np.isfinite(found).all() and (found > 0).all()
