"""The log-probability against plain Python, and its gradients against differences."""

import numpy as np
import pymc as pm
import pytest
from scipy import stats
from support import twin
from support.small_models import forest_of, step_data

import pymc_trees as pmt
from pymc_trees.distributions.forest_inputs import declared

pytestmark = pytest.mark.usefixtures("quick_compile")


def design(rng, n=18):
    """Columns with repeats, two values, a constant and general position; some rows repeated."""
    X = np.column_stack(
        [rng.integers(0, 5, n), rng.integers(0, 2, n), np.full(n, 2.0), rng.random(n)]
    ).astype(float)
    X[:4] = X[0]
    return X


def normal(values, mean, sd):
    return sum(stats.norm.logpdf(v[0], mean, sd) for v in values)


def normal_gamma(values, a, nu, lam):
    return sum(
        stats.gamma.logpdf(tau, nu / 2, scale=2 / (nu * lam))
        + stats.norm.logpdf(mu, 0, 1 / np.sqrt(a * tau))
        for mu, tau in values
    )


def dirichlet(values, alpha, k):
    return sum(stats.dirichlet.logpdf(np.array(v) / sum(v), np.full(k, alpha / k)) for v in values)


CASES = {
    "normal": (4, pmt.NormalLeaf(0.3, 1.5), lambda v: normal(v, 0.3, 1.5)),
    "normal_gamma": (1, pmt.NormalGammaLeaf(0.5, 4.0, 0.7), lambda v: normal_gamma(v, 0.5, 4, 0.7)),
    "dirichlet": (1, pmt.DirichletLeaf(4.5, 3), lambda v: dirichlet(v, 4.5, 3)),
}


@pytest.mark.parametrize("n_cuts", [None, 3])
@pytest.mark.parametrize("kind", CASES)
def test_constant_settings(kind, n_cuts, rng):
    m, leaf, log_leaves = CASES[kind]
    X = design(rng)
    weights = np.array([1.0, 3.0, 2.0, 0.5])
    with pm.Model() as model:
        forest = pmt.Forest(
            "forest", X, m=m, alpha=0.9, beta=0.4, leaf=leaf, split_prior=weights, n_cuts=n_cuts
        )
    layout = forest.owner.op.layout
    cuts = None
    if n_cuts is not None:
        cuts = declared(forest).cuts
    logp = model.compile_logp()
    seen = set()
    for value in pm.draw(forest, 25, random_seed=3):
        trees = twin.read_trees(value, layout)
        expected = twin.log_tree_prior(trees, X, 0.9, 0.4, weights, cuts)
        expected += log_leaves([v for tree in trees for v in twin.leaf_values(tree)])
        np.testing.assert_allclose(logp({"forest": value}), expected, rtol=1e-9, atol=1e-9)
        seen.add(twin.n_leaves(trees))
    assert len(seen) > 4


def test_an_excluded_column_is_never_chosen(rng):
    X = design(rng)
    weights = np.array([0.0, 1.0, 1.0, 2.0])
    with pm.Model() as model:
        forest = pmt.Forest(
            "f", X, m=5, alpha=0.9, beta=0.4, leaf=pmt.NormalLeaf(0, 1), split_prior=weights
        )
    logp = model.compile_logp()
    for value in pm.draw(forest, 10, random_seed=4):
        trees = twin.read_trees(value, forest.owner.op.layout)
        expected = twin.log_tree_prior(trees, X, 0.9, 0.4, weights)
        expected += normal([v for tree in trees for v in twin.leaf_values(tree)], 0, 1)
        np.testing.assert_allclose(logp({"f": value}), expected, rtol=1e-9)
        nodes = value[: forest.owner.op.layout.max_nodes, 0]
        assert (nodes > 0).any() and not (nodes == 0).any()


@pytest.fixture(scope="module")
def hyper(quick_compile):
    """Model whose settings are all random, one forest with splits, and settings to look at."""
    X = design(np.random.default_rng(1))
    with pm.Model() as model:
        alpha = pm.Beta("alpha", 4, 2)
        beta = pm.Gamma("beta", 2, 2)
        weights = pm.Dirichlet("weights", np.ones(4))
        mean, sd = pm.Normal("mean"), pm.HalfNormal("sd")
        pmt.BART(
            "mu",
            X,
            m=4,
            alpha=alpha,
            beta=beta,
            split_prior=weights,
            leaf=pmt.NormalLeaf(mean, sd),
            max_nodes=4 * 35,
        )
        point = model.initial_point()
    hypers = [model[v] for v in ("alpha", "beta", "weights", "mean", "sd")]
    given = {"alpha": 0.85, "beta": 0.6, "mean": 0.2, "sd": 0.7}
    given["weights"] = np.array([0.1, 0.4, 0.2, 0.3])
    forest = model["mu_forest"]
    values = pm.draw(pm.do(model, given)["mu_forest"], 8, random_seed=7)
    return model, X, point, hypers, given, forest, values


def test_random_settings(hyper):
    model, X, point, hypers, given, forest, values = hyper
    logp = model.compile_logp(vars=[forest], jacobian=False)
    unconstrain = {}
    for rv in hypers:
        value_var, transform = model.rvs_to_values[rv], model.rvs_to_transforms[rv]
        x = np.asarray(given[rv.name])
        unconstrain[value_var.name] = (
            x if transform is None else transform.forward(x, *rv.owner.inputs).eval()
        )
    for value in values:
        trees = twin.read_trees(value, forest.owner.op.layout)
        expected = twin.log_tree_prior(trees, X, 0.85, 0.6, given["weights"])
        expected += normal([v for tree in trees for v in twin.leaf_values(tree)], 0.2, 0.7)
        got = logp({**unconstrain, "mu_forest": value})
        np.testing.assert_allclose(got, expected, rtol=1e-9)


def test_gradients_against_differences(hyper):
    model, X, point, hypers, given, forest, values = hyper
    logp, dlogp = model.compile_logp(), model.compile_dlogp(hypers)
    names = [model.rvs_to_values[rv].name for rv in hypers]
    rng = np.random.default_rng(5)
    for value in values[:3]:
        at = {name: point[name] + rng.normal(0, 0.3, np.shape(point[name])) for name in names}
        at["mu_forest"] = value
        gradient = dlogp(at)
        differences = []
        for name in names:
            for k in range(np.size(at[name])):
                step = np.zeros(np.size(at[name]))
                step[k] = 1e-5
                step = step.reshape(np.shape(at[name]))
                up, down = {**at, name: at[name] + step}, {**at, name: at[name] - step}
                differences.append((logp(up) - logp(down)) / 2e-5)
        np.testing.assert_allclose(gradient, differences, rtol=1e-5, atol=1e-5)
        assert (np.abs(gradient) > 1e-3).all()


def test_out_of_range_settings_have_no_finite_log_probability():
    X = step_data(10)[0]
    with pm.Model() as model:
        alpha = pm.Normal("alpha", 0.5)
        pmt.BART("mu", X, m=2, alpha=alpha, leaf=pmt.NormalLeaf(0, 1), max_nodes=38)
    forest, layout, _ = forest_of(model)
    value = pm.draw(pm.do(model, {"alpha": 0.5})["mu_forest"], random_seed=1)
    logp = model.compile_logp()
    assert np.isfinite(logp({"alpha": 0.5, "mu_forest": value}))
    for bad in (-0.1, 0.0, 1.0, 1.3):
        assert logp({"alpha": bad, "mu_forest": value}) == -np.inf
