"""Screened sweeps as users meet them: statistics, tuning, several forests, other samplers."""

import numpy as np
import pymc as pm
import pytest

import pymc_trees as pmt
from pymc_trees.step_methods.kernels import delayed_acceptance

pytestmark = pytest.mark.usefixtures("quick_compile")
N = 30
X = np.linspace(0, 1, N)[:, None]
COUNTS = np.random.default_rng(3).poisson(np.exp(1 + np.sin(6 * X[:, 0])))


def poisson_model():
    with pm.Model() as model:
        mu = pmt.BART("mu", X, m=5, leaf=pmt.NormalLeaf(0.2, 0.3))
        pm.Poisson("y", pm.math.exp(mu), observed=COUNTS)
    return model


def steps_of(step, model, n, tune):
    """Statistics of some steps."""
    rng = np.random.default_rng(0)
    step.setup_chain(rng, tune, n)
    point, found = model.initial_point(), []
    for k in range(n):
        if k == tune:
            step.stop_tuning()
        point, [stats] = step.step(point)
        found.append(stats)
    return found


def delayed_of(step):
    """What the sweeps of the only forest have adapted."""
    return step.states[0].kernels[step.kernels[0]].delayed


def test_the_share_of_visits_taken_is_reported_and_anchors_stay_after_tuning():
    model = poisson_model()
    with model:
        step = pmt.CGM()
    stats = steps_of(step, model, 40, 20)
    shares = [one["accept_delayed"] for one in stats]
    assert 0.2 < np.mean(shares) <= 1
    before = delayed_of(step)
    mean, variance = before.mean.copy(), before.variance.copy()
    step.step(model.initial_point())
    after = delayed_of(step)
    np.testing.assert_array_equal(after.mean, mean)
    np.testing.assert_array_equal(after.variance, variance)
    assert after.n_tuned == 20


def test_a_screen_that_fails_is_given_up(monkeypatch):
    """What hardly any visit is taken under: here any."""
    monkeypatch.setattr(delayed_acceptance, "LEAST", 2.0)
    model = poisson_model()
    with model:
        step = pmt.CGM()
    stats = steps_of(step, model, 10, 5)
    assert all(0 <= one["accept_delayed"] <= 1 for one in stats[:5])  # tuning goes on looking
    assert all(np.isnan(one["accept_delayed"]) for one in stats[5:])
    assert any(one["accept_grow"] > 0 for one in stats[5:])


def test_a_normal_forest_beside_one_of_counts_has_no_screen():
    model = poisson_model()
    with model:
        f = pmt.BART("f", X, m=3, leaf=pmt.NormalLeaf(0.0, 0.5))
        pm.Normal("z", f, 0.5, observed=np.sin(6 * X[:, 0]))
        step = pmt.CGM()
    [stats] = steps_of(step, model, 1, 0)
    assert "accept_delayed_f_forest" not in stats
    assert 0 <= stats["accept_delayed_mu_forest"] <= 1


def test_models_without_such_a_forest_have_no_such_statistic():
    with pm.Model():
        f = pmt.BART("f", X, m=3, leaf=pmt.NormalLeaf(0.0, 0.5))
        pm.Normal("z", f, 0.5, observed=np.sin(6 * X[:, 0]))
        step = pmt.Hybrid()
    assert "accept_delayed" not in step.stats_dtypes_shapes


def test_what_tuning_learnt_is_kept_with_the_state():
    model = poisson_model()
    with model:
        step, other = pmt.CGM(), pmt.CGM()
    steps_of(step, model, 12, 10)
    other.sampling_state = step.sampling_state
    assert delayed_of(step).n_tuned == 10
    np.testing.assert_array_equal(delayed_of(other).mean, delayed_of(step).mean)
