"""Single trees with mean and precision, and with class probabilities, end to end."""

import numpy as np
import pymc as pm
import pytest
from support.small_models import sample
from support.tiers import tiers

import pymc_trees as pmt

pytestmark = pytest.mark.usefixtures("quick_compile")
N = 80


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(2).random((N, 2))


def predict(idata, names):
    return pm.sample_posterior_predictive(
        idata, predictions=True, var_names=names, progressbar=False, random_seed=1
    ).predictions


@pytest.mark.parametrize("step", tiers([pmt.CGM, pmt.GrowPrune], quick=[pmt.CGM]))
def test_mean_and_precision(X, step):
    right = X[:, 0] > 0.5
    y = np.random.default_rng(3).normal(3.0 * right, np.where(right, 0.2, 1.0))
    with pm.Model() as model:
        data = pm.Data("X", X)
        mu, tau = pmt.DecisionTree("mu", data, leaf=pmt.NormalGammaLeaf(0.1, 3.0, 0.5))
        pm.Normal("y", mu=mu, tau=tau, observed=y, shape=mu.shape)
        idata = sample(60, 150, step=[step()])
        pm.set_data({"X": [[0.25, 0.5], [0.75, 0.5], [0.9, 0.9]]})
        pred = predict(idata, ["mu", "mu_tau", "y"])
    assert set(model.named_vars) >= {"mu", "mu_tau", "mu_forest"}
    mean = pred["mu"].mean(("chain", "draw")).values
    sd = (pred["mu_tau"] ** -0.5).mean(("chain", "draw")).values
    np.testing.assert_allclose(mean, [0, 3, 3], atol=0.6)
    assert 0.6 < sd[0] < 1.6 and 0.1 < sd[1] < 0.4
    assert pred["y"].shape == (2, 60, 3)
    assert (idata.posterior["mu_tau"] > 0).all()


@pytest.mark.full
def test_three_classes(X):
    truth = np.array([[0.9, 0.05, 0.05], [0.1, 0.1, 0.8]])[(X[:, 0] > 0.5).astype(int)]
    y = (np.random.default_rng(4).random((N, 1)) > truth.cumsum(1)).sum(1)
    with pm.Model():
        data = pm.Data("X", X)
        p = pmt.DecisionTree("p", data, leaf=pmt.DirichletLeaf(3.0, 3))
        pm.Categorical("y", p=p, observed=y, shape=p.shape[:1])
        idata = sample(60, 150)
        pm.set_data({"X": [[0.25, 0.5], [0.75, 0.5]]})
        pred = predict(idata, ["p", "y"])
    assert idata.posterior["p"].shape == (2, 60, N, 3)
    np.testing.assert_allclose(idata.posterior["p"].values.sum(-1), 1.0)
    found = pred["p"].mean(("chain", "draw")).values
    np.testing.assert_allclose(found, [[0.9, 0.05, 0.05], [0.1, 0.1, 0.8]], atol=0.2)
    assert pred["y"].shape == (2, 60, 2)


@pytest.mark.full
@pytest.mark.parametrize("likelihood", ["Categorical", "Bernoulli"])
def test_two_classes_however_they_are_written(X, likelihood):
    y = (np.random.default_rng(5).random(N) < np.where(X[:, 1] > 0.6, 0.95, 0.1)).astype(int)
    with pm.Model():
        p = pmt.DecisionTree("p", X, leaf=pmt.DirichletLeaf(2.0, 2))
        if likelihood == "Categorical":
            pm.Categorical("y", p=p, observed=y)
        else:
            pm.Bernoulli("y", p=p[:, 1], observed=y)
        idata = sample(40, 120)
    found = idata.posterior["p"].mean(("chain", "draw")).values[:, 1]
    assert found[X[:, 1] > 0.65].mean() > 0.8 and found[X[:, 1] < 0.55].mean() < 0.25
    test_two_classes_however_they_are_written.seen.append(idata.posterior["p"].values)
    for other in test_two_classes_however_they_are_written.seen:
        np.testing.assert_allclose(other, idata.posterior["p"].values)


test_two_classes_however_they_are_written.seen = []
