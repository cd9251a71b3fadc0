"""Steps under likelihoods with latent variables, as users meet them."""

import pickle

import numpy as np
import pymc as pm
import pytest
from scipy.stats import norm, t
from support.naive.batches import batch_means, gap

import pymc_trees as pmt
from pymc_trees.step_methods.kernels.replica_exchange import Ladder

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
    found = [one for _, one in run(step, model.initial_point(), 60, tune=50)]
    assert 0 < np.mean([one["accept_exchange"] for one in found[50:]]) < 1
    assert len({one["min_inverse_temperature"] for one in found[50:]}) == 1


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


def test_one_row_has_a_precision_of_its_own():
    """A leaf value of prior N(0, 1) and one row of a t law: by quadrature.

    100 batches of 40 draws; two averages at 5 standard errors.
    """
    with pm.Model() as model:
        f = pmt.BART("f", [[0.5]], m=1, leaf=pmt.NormalLeaf(0.0, 1.0))
        pm.StudentT("y", nu=4, mu=f, sigma=0.1, observed=[2.0], shape=f.shape)
        step = pmt.CGM()
    [value] = model.replace_rvs_by_values([f])
    function = model.compile_fn(value, inputs=model.value_vars)
    step.setup_chain(np.random.default_rng(1), 100, 4_000)
    point, draws = model.initial_point(), []
    for _ in range(4_100):
        point, _ = step.step(point)
        draws.append(function(point)[0])
    grid = np.linspace(-1, 4, 20_001)
    weight = norm.pdf(grid) * t.pdf((2.0 - grid) / 0.1, 4)
    mean = np.average(grid, weights=weight)
    second = np.average(grid**2, weights=weight)
    kept = np.array(draws[100:])
    assert gap(batch_means(np.column_stack([kept, kept**2]), 100), [mean, second]).within(5.0, 0.05)


def test_a_row_of_another_component_comes_back_to_the_flatter_likelihood():
    """Its precision is 0 while it belongs there."""
    rng = np.random.default_rng(1)
    ladder = Ladder.start(1, np.zeros(200), np.ones(200))
    for _ in range(200):
        ladder = ladder.averaged(np.zeros(200), (rng.random(200) < 0.5) * rng.uniform(1, 3, 200))
    assert (ladder.w > 0.1).mean() > 0.9
    steady = Ladder.start(1, np.zeros(3), np.full(3, 2.0)).averaged(np.zeros(3), np.full(3, 0.5))
    np.testing.assert_allclose(steady.w, 0.5)
    steady = steady.averaged(np.zeros(3), np.full(3, 2.0))
    np.testing.assert_allclose(steady.w, 1.0)  # the geometric mean
