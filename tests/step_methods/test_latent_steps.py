"""Steps under likelihoods with latent variables, as users meet them."""

import pickle

import numpy as np
import pymc as pm
import pytest

import pymc_trees as pmt

pytestmark = pytest.mark.usefixtures("quick_compile")
N = 30
X = np.linspace(0, 1, N)[:, None]
RNG = np.random.default_rng(3)
CLASSES = (RNG.random(N) < X[:, 0]).astype(int)
Y = np.sin(6 * X[:, 0]) + 0.3 * RNG.standard_t(3, N)


def logit_model():
    with pm.Model() as model:
        mu = pmt.BART("mu", X, CLASSES, m=5)
        pm.Bernoulli("y", logit_p=mu + pm.Normal("shift"), observed=CLASSES)
    return model


def quantile_model():
    with pm.Model() as model:
        mu = pmt.BART("mu", X, Y, m=5)
        pm.AsymmetricLaplace("y", mu=mu, b=pm.HalfNormal("b", 2), q=0.8, observed=Y)
    return model


def run(step, point, n, tune=0, seed=0):
    step.setup_chain(np.random.default_rng(seed), tune, n)
    found = []
    for k in range(n):
        if k == tune:
            step.stop_tuning()
        point, [stats] = step.step(point)
        found.append((point, stats))
    return found


@pytest.mark.parametrize("make", [pmt.Hybrid, pmt.CGM, pmt.ParticleGibbs])
def test_the_likelihood_reported_is_that_of_the_model(make):
    model = quantile_model()
    with model:
        step = make()
    logp = model.compile_logp(vars=[model["y"]])
    for point, stats in run(step, model.initial_point(), 5):
        np.testing.assert_allclose(stats["log_likelihood"], logp(point), rtol=1e-9)
        assert stats["latent_precision"] > 0


def test_forests_are_exchanged_with_flatter_ones():
    model = logit_model()
    with model:
        step = pmt.Hybrid(temperatures=3)
    stats = [one for _, one in run(step, model.initial_point(), 60, tune=50)]
    assert 0 < np.mean([one["accept_exchange"] for one in stats[50:]]) < 1
    assert len({one["min_inverse_temperature"] for one in stats[50:]}) == 1


def test_a_saved_step_goes_on_as_it_would_have():
    model = logit_model()
    with model:
        step, other = pmt.Hybrid(), pmt.Hybrid()
    [*_, (point, _)] = run(step, model.initial_point(), 5)
    other.sampling_state = pickle.loads(pickle.dumps(step.sampling_state))
    for _ in range(3):
        ours, theirs = step.step(point)[0], other.step(point)[0]
        np.testing.assert_array_equal(ours["mu_forest"], theirs["mu_forest"])
        point = ours


def test_names_of_several_outputs():
    codes = np.arange(N) % 3
    with pm.Model():
        f = pmt.BART("f", X, m=3, leaf=pmt.NormalLeaf(0.0, 0.5), shape=(3, N))
        pm.Categorical("y", logit_p=f.T, observed=codes)
        idata = pm.sample(draws=3, tune=2, chains=1, cores=1, random_seed=1, progressbar=False)
    assert {f"latent_precision_f_{k}_forest" for k in range(3)} <= set(idata.sample_stats)


def test_responses_far_from_zero_keep_their_digits():
    """Outputs are added up from the trees, not read off a residual of a million."""
    with pm.Model() as model:
        mu = pmt.BART("mu", X, m=5, leaf=pmt.NormalLeaf(0.0, 0.5))
        pm.StudentT("y", nu=3, mu=mu + 1e8, sigma=0.5, observed=Y + 1e8)
        step = pmt.CGM()
    (point, _) = run(step, model.initial_point(), 20)[-1]
    fit = model.compile_fn(model["mu"], inputs=[model["mu_forest"]])(
        {"mu_forest": point["mu_forest"]}
    )
    np.testing.assert_allclose(step.states[0].forest.fit[:, 0], fit, rtol=0, atol=1e-12)
