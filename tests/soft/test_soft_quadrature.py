"""The quadrature that evidences are judged by, against itself."""

import numpy as np
import pytest
from scipy import stats
from support.soft_models import leaf_shares, scaled, step_data
from support.soft_quadrature import log_evidence, log_marginal


def test_marginal_likelihood_is_that_of_the_normal(rng):
    phi = leaf_shares("SSLLL", rng.random((6, 1)), np.ones((2, 1)), rng.random(2), 0.1)
    y, sigmas = rng.normal(size=6), np.array([0.3, 1.2])
    for value, s in zip(log_marginal(phi, y, sigmas), sigmas, strict=True):
        cov = s**2 * np.eye(6) + phi @ phi.T
        assert value == pytest.approx(stats.multivariate_normal(np.zeros(6), cov).logpdf(y))


@pytest.mark.parametrize("label", ["L", "SLL", "SSLLL"])
def test_grids_are_fine_enough(label):
    X, y = step_data()
    coarse = log_evidence(label, scaled(X), y, 0.05, 50, 200)
    assert log_evidence(label, scaled(X), y, 0.05, 70, 500) == pytest.approx(coarse, abs=0.01)
