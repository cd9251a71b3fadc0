"""`SoftBART` as a part of a model: density, draws, predictions, steps, refusals."""

import pickle

import cloudpickle
import numpy as np
import pandas as pd
import pymc as pm
import pytest
from scipy import stats
from support.naive import soft_forest as naive

import pymc_trees as pmt
from pymc_trees.distributions.forest_inputs import forest_inputs

pytestmark = pytest.mark.usefixtures("quick_compile")
RNG = np.random.default_rng(1)
X = RNG.random((30, 3))
Y = np.sin(6 * X[:, 0]) + X[:, 1] + 0.1 * RNG.normal(size=30)
NEW = RNG.random((7, 3)) * 1.4 - 0.2


def make_model(m=4, likelihood=None, **options):
    with pm.Model() as model:
        mu = pmt.SoftBART("mu", X, Y, m=m, **options)
        if likelihood is None:
            sigma = pm.HalfNormal("sigma", 1)
            pm.Normal("y", mu, sigma, observed=Y, shape=mu.shape)
        else:
            likelihood(mu)
    return model


def sample(model, draws=20, tune=20, **options):
    given = {"chains": 1, "random_seed": 1, "progressbar": False, "cores": 1}
    with model:
        return pm.sample(draws, tune=tune, compute_convergence_checks=False, **(given | options))


@pytest.fixture(scope="module")
def sampled():
    model = make_model()
    return model, sample(model, chains=2)


def trees_of(model, value):
    layout = model["mu_forest"].owner.op.layout
    return naive.read_trees(value, layout.m, layout.max_nodes)


def test_log_probability_is_that_of_plain_python():
    with pm.Model() as model:
        alpha = pm.Beta("alpha", 9, 1)
        beta = pm.Gamma("beta", 4, 2)
        sd = pm.HalfNormal("sd", 1)
        leaf = pmt.NormalLeaf(0.2, sd)
        pmt.SoftBART("mu", X, m=3, alpha=alpha, beta=beta, leaf=leaf, bandwidth=0.3)
    logp = model.compile_logp(vars=[model["mu_forest"]])
    with model:
        drawn = pm.draw(
            [model[v] for v in ("mu_forest", "alpha", "beta", "sd", "mu_split_weights")],
            20,
            random_seed=2,
        )
    for value, a, b, s, w in zip(*drawn, strict=True):
        point = model.initial_point() | {
            "mu_forest": value,
            "alpha_logodds__": np.log(a / (1 - a)),
            "beta_log__": np.log(b),
            "sd_log__": np.log(s),
        }
        # of the simplex transform: logs less their mean, without the last
        logs = np.log(np.maximum(w, 1e-300))
        if logs.min() < -600:
            continue
        point["mu_split_weights_simplex__"] = (logs - logs.mean())[:-1]
        expected = naive.log_prior(trees_of(model, value), a, b, w, 0.3, 0.2, s)
        assert logp(point) == pytest.approx(expected, rel=1e-8)
    broken = value.copy()
    broken[0, 1] += 1.0
    assert logp(point | {"mu_forest": broken}) == -np.inf
    gradient = model.compile_dlogp(vars=[alpha, beta, sd])(point)
    assert np.isfinite(gradient).all() and gradient.shape == (3,)


def test_prior_draws_have_the_prior():
    """Sizes, columns, bandwidths and values of 2,000 forests, at 5 standard errors."""
    with pm.Model() as model:
        leaf = pmt.NormalLeaf(0.5, 2.0)
        pmt.SoftBART("mu", X, m=2, alpha=0.8, beta=1.5, leaf=leaf, split_prior=[3, 1, 0])
        values = pm.draw(model["mu_forest"], 2000, random_seed=3)
    trees = [one for value in values for one in trees_of(model, value)]
    splits = np.array([len(naive.splits_of(tree)) for tree, _ in trees])
    p = 0.8 * (1.0 + np.arange(10)) ** -1.5
    expected = (2.0 ** np.arange(10) * np.cumprod(p)).sum()
    assert abs(splits.mean() - expected) < 5 * splits.std() / np.sqrt(len(splits))
    columns = np.array([s[1] for t, _ in trees for s in naive.splits_of(t)])
    assert set(columns) == {0, 1} and abs((columns == 0).mean() - 0.75) < 0.03
    tau = np.array([tau for _, tau in trees])
    assert stats.kstest(tau, stats.expon(scale=0.1).cdf).pvalue > 1e-6
    leaves = [v for t, s in trees for _, v in naive.leaves(t, s, np.zeros((1, 3)))]
    assert stats.kstest(leaves, stats.norm(0.5, 2.0).cdf).pvalue > 1e-6
    with model:
        prior = pm.sample_prior_predictive(10, random_seed=1)
    u = naive.to_unit(X, X)
    for value, f in zip(prior.prior["mu_forest"][0], prior.prior["mu"][0], strict=True):
        np.testing.assert_allclose(f, naive.function(trees_of(model, value.values), u), atol=1e-11)


def test_predictions_at_new_rows_are_those_of_plain_python(sampled):
    model, idata = sampled
    with model:
        pm.set_data({"mu_X": NEW})
        found = pm.sample_posterior_predictive(
            idata, var_names=["mu", "y"], predictions=True, progressbar=False, random_seed=1
        )
        pm.set_data({"mu_X": X})
    assert found.predictions["y"].shape == (2, 20, 7)
    u, u_train = naive.to_unit(X, NEW), naive.to_unit(X, X)
    for at in np.ndindex(2, 20):
        trees = trees_of(model, idata.posterior["mu_forest"].values[at])
        expected = naive.function(trees, u)
        np.testing.assert_allclose(found.predictions["mu"].values[at], expected, atol=1e-11)
        cached = idata.posterior["mu"].values[at]
        np.testing.assert_allclose(cached, naive.function(trees, u_train), atol=1e-11)


def test_the_same_seed_gives_the_same_draws():
    model = make_model()
    one, two = (sample(model, 10, 5) for _ in range(2))
    np.testing.assert_array_equal(one.posterior["mu_forest"], two.posterior["mu_forest"])
    other = sample(model, 10, 5, random_seed=2)
    assert (one.posterior["mu"].values != other.posterior["mu"].values).any()
    again = sample(make_model(), 10, 5)
    np.testing.assert_allclose(one.posterior["mu"], again.posterior["mu"], atol=1e-12)


LIKELIHOODS = {
    "normal": lambda mu: pm.Normal("y", mu, 0.3, observed=Y, shape=mu.shape),
    "probit": lambda mu: pm.Bernoulli(
        "y", pm.math.invprobit(mu), observed=(Y > 1).astype(int), shape=mu.shape
    ),
    "student": lambda mu: pm.StudentT("y", nu=4, mu=mu, sigma=0.3, observed=Y, shape=mu.shape),
    "poisson": lambda mu: pm.Poisson(
        "y", pm.math.exp(mu), observed=(Y > 1).astype(int), shape=mu.shape
    ),
    "gamma": lambda mu: pm.Gamma(
        "y", alpha=2, beta=2 / pm.math.exp(mu), observed=np.exp(Y), shape=mu.shape
    ),
}


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_a_saved_state_goes_on_as_the_chain_did(name):
    model = make_model(likelihood=LIKELIHOODS[name])
    with model:
        step = pmt.SoftCGM(rng=1)
    step.setup_chain(np.random.default_rng(3), 5, 10)
    point = model.initial_point()
    for _ in range(5):
        point, _ = step.step(point)
    state, kept = pickle.loads(pickle.dumps(step.sampling_state)), dict(point)
    first = []
    for _ in range(3):
        point, stats_ = step.step(point)
        first.append((point["mu_forest"], stats_[0]["log_likelihood"]))
    with model:
        other = cloudpickle.loads(cloudpickle.dumps(pmt.SoftCGM(rng=2)))
    other.sampling_state = state
    point = kept
    for value, log_likelihood in first:
        point, stats_ = other.step(point)
        np.testing.assert_array_equal(point["mu_forest"], value)
        assert stats_[0]["log_likelihood"] == log_likelihood
    # which is that of the model
    expected = model.compile_logp(vars=[model["y"]])(point)
    assert log_likelihood == pytest.approx(expected, abs=1e-6)


def test_statistics_and_assigned_steps(sampled):
    _, idata = sampled
    stats_ = idata.sample_stats
    assert {"accept_grow", "accept_bandwidth", "mean_bandwidth", "n_leaves", "max_depth"} <= set(
        stats_
    )
    assert stats_["variable_inclusion"].dims == ("chain", "draw", "column")
    counts = stats_["variable_inclusion"].values
    np.testing.assert_array_equal(counts.sum(axis=-1) + 4, stats_["n_leaves"])
    assert (idata.posterior["mu_split_weights"].sum("mu_split_weights_dim_0") - 1 < 1e-9).all()


def test_a_hard_column_has_steps():
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    with pm.Model() as model:
        pmt.SoftBART("mu", frame, Y, m=5, hard=["b"], split_prior={"a": 0, "c": 0})
        value = pm.draw(model["mu_forest"], random_seed=4)
        f = model["mu"].eval({model["mu_forest"]: value})
    np.testing.assert_array_equal(forest_inputs(model["mu_forest"]).hard.data, [False, True, False])
    u = naive.to_unit(X, X)
    np.testing.assert_allclose(f, naive.function(trees_of(model, value), u, {1}), atol=1e-12)
    cuts = sorted(s[2] for t, _ in trees_of(model, value) for s in naive.splits_of(t))
    pieces = np.searchsorted(cuts, u[:, 1])
    assert all(np.ptp(f[pieces == k]) < 1e-12 for k in set(pieces)) and len(set(np.round(f, 9))) > 1


def test_beyond_the_training_rows_the_function_is_constant(sampled):
    model, idata = sampled
    with model:
        pm.set_data({"mu_X": np.stack([X.max(axis=0), X.max(axis=0) + 5])})
        found = pm.sample_posterior_predictive(
            idata, var_names=["mu"], predictions=True, progressbar=False
        )
        pm.set_data({"mu_X": X})
    f = found.predictions["mu"].values
    np.testing.assert_array_equal(f[..., 0], f[..., 1])


def test_other_steps_refuse_soft_trees_and_this_one_hard_trees():
    model = make_model()
    with model:
        for step in (pmt.Hybrid, pmt.CGM, pmt.GrowPrune, pmt.ParticleGibbs):
            with pytest.raises(ValueError, match="soft trees, which pymc_trees.SoftCGM samples"):
                step([model["mu"]])
            with pytest.raises(ValueError, match="soft trees, which pymc_trees.SoftCGM samples"):
                step()
        with pytest.raises(NotImplementedError, match="SoftCGM"):
            pm.Metropolis([model["mu_forest"]])
        with pytest.raises(NotImplementedError, match="SoftCGM"):
            pm.find_MAP(progressbar=False)
    with pm.Model():
        mu = pmt.BART("mu", X, Y, m=3)
        pm.Normal("y", mu, 1, observed=Y)
        with pytest.raises(ValueError, match="trees with hard splits"):
            pmt.SoftCGM([mu])


@pytest.mark.full
def test_hard_and_soft_forests_in_one_model():
    with pm.Model() as model:
        mu = pmt.SoftBART("mu", X, Y, m=3) + pmt.BART("nu", X, Y, m=3)
        pm.Normal("y", mu, 0.3, observed=Y)
    idata = sample(model, 5, 5)
    assert {"n_leaves_mu_forest", "n_leaves_nu_forest"} <= set(idata.sample_stats)


def test_a_likelihood_that_is_no_product_over_rows_is_refused():
    model = make_model(
        likelihood=lambda mu: pm.MvNormal("y", mu, np.eye(30) + 0.5, observed=Y, shape=mu.shape)
    )
    with model, pytest.raises(NotImplementedError, match="each row depends only on its own"):
        pmt.SoftCGM()


def test_a_forest_that_outgrows_its_room_says_what_to_do():
    with pm.Model() as model:
        leaf = pmt.NormalLeaf(0, 1)
        mu = pmt.SoftBART("mu", X, m=1, leaf=leaf, max_nodes=3, beta=0.1, bandwidth=0.01)
        pm.Normal("y", mu, 0.01, observed=np.sin(20 * X[:, 0]))
    with pytest.raises(RuntimeError, match=r"mu_forest outgrew max_nodes=3. .* max_nodes=6"):
        sample(model, 200, 0)


def test_answers_of_posterior_tools(sampled):
    model, idata = sampled
    pmt.check_draws(idata, model)
    given = {"progressbar": False}
    shares = pmt.get_variable_inclusion(idata, model, **given)
    np.testing.assert_array_equal(
        shares["count"].values, idata.sample_stats["variable_inclusion"].values
    )
    assert pmt.get_interaction_inclusion(idata, model, **given)["count"].shape == (2, 20, 3, 3)
    grid = np.array([0.2, 0.8])
    curve = pmt.partial_dependence(idata, model, 0, grid=grid, **given)["average"]
    first, last = (X.copy() for _ in range(2))
    first[:, 0], last[:, 0] = grid
    trees = trees_of(model, idata.posterior["mu_forest"].values[1, 3])
    means = [naive.function(trees, naive.to_unit(X, rows)).mean() for rows in (first, last)]
    np.testing.assert_allclose(curve.values[1, 3].ravel(), means, atol=1e-10)
    assert np.isfinite(pmt.comparisons(idata, model, 0, **given)["x0"]).all()
    assert np.isfinite(pmt.permutation_importance(idata, model, X, Y, **given)["loss"]).all()
    for refused in (pmt.tree_text, pmt.summarise_trees):
        with pytest.raises(ValueError, match="The trees of .* are soft"):
            refused(idata, model)
    with pytest.raises(ValueError, match="path-dependent values are not defined: give background="):
        pmt.shap_values(idata, model, **given)
    with pytest.raises(ValueError, match="for which only shap_values and shap_interactions"):
        pmt.sobol_indices(idata, model, **given)


def test_a_forest_is_evaluated_elsewhere(sampled):
    model, idata = sampled
    value = idata.posterior["mu_forest"].values[0, 5]
    with model:
        f = pmt.evaluate(model["mu_forest"], NEW).eval({model["mu_forest"]: value})
    u = naive.to_unit(X, NEW)
    np.testing.assert_allclose(f, naive.function(trees_of(model, value), u), atol=1e-12)


def test_draws_of_another_model_are_told(sampled):
    model, idata = sampled
    for other, match in (
        (make_model(hard=[0]), "hard columns"),
        (make_model(m=5), r"other m \(\d+ instead of 5\)"),
        (make_model(max_nodes=500), "max_nodes"),
    ):
        with pytest.raises(ValueError, match=match):
            pmt.check_draws(idata, other)
    altered = idata.copy()
    altered["posterior"] = altered.posterior.to_dataset().assign(
        mu_forest=altered.posterior["mu_forest"] * (1 + 1e-12)
    )
    with pytest.raises(ValueError, match="altered"):
        pmt.check_draws(altered, model)
