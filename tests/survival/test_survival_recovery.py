"""Curves of simulated subjects come back, and counts say what rows say."""

import arviz as az
import numpy as np
import pymc as pm
import pytest

from pymc_trees import survival

HAZARD = np.array([[0.05, 0.05, 0.1, 0.4, 0.5], [0.35, 0.3, 0.1, 0.05, 0.05]])
"""Of two groups at five times: the curves cross."""
N = 800


def simulated():
    rng = np.random.default_rng(11)
    group = np.arange(N) % 2
    draws = rng.random((N, 5)) < HAZARD[group]
    happened = draws.any(1)
    time = np.where(happened, draws.argmax(1) + 1, 5)
    censored = rng.integers(1, 15, N)
    event = happened & (time <= censored)
    return np.minimum(time, censored), event, np.column_stack([group, rng.random(N) < 0.5])


@pytest.fixture(scope="module")
def found():
    """Curves of the two groups, from rows and from counts."""
    time, event, X = simulated()
    curves = {}
    for group in (False, True):
        long = survival.long_form(time, event, X, group=group)
        with survival.discrete_time_model(long, m=20):
            idata = pm.sample(
                tune=300,
                draws=1000,
                chains=2,
                cores=1,
                random_seed=3,
                progressbar=False,
                compute_convergence_checks=False,
            )
            curves[group] = survival.survival_function(idata, X=[[0, 0], [1, 0]], progressbar=False)
    return curves


def test_curves_that_cross_are_recovered(found):
    """Within four standard errors of a Kaplan-Meier curve of 300 subjects, 0.029 at the most.

    The standard error of the posterior mean in the simulation of its draws is below 0.004.
    """
    truth = np.cumprod(1 - HAZARD, axis=1)
    mean = found[False].mean(("chain", "draw"))
    assert float(az.mcse(found[False].rename("s"), method="mean").max()) < 0.004
    np.testing.assert_allclose(mean, truth, rtol=0, atol=0.12)
    assert np.abs(truth - truth.mean(0)).max() > 0.2  # what one curve for both would miss


def test_counts_have_the_posterior_of_rows(found):
    """Means differ by less than five Monte Carlo standard errors at each of ten points."""
    means = [found[group].mean(("chain", "draw")) for group in (False, True)]
    errors = [az.mcse(found[group].rename("s"), method="mean") for group in (False, True)]
    z = (means[0] - means[1]) / np.hypot(*(np.asarray(error) for error in errors))
    assert float(np.abs(z).max()) < 5
