"""Geweke's joint test of models with group effects beside a forest, as `pm.sample()` steps them.

One iteration is every step given y, and a new y from the model. If all of it is right, the chain
has the joint prior of forest, effects, their sd, noise and y. It is compared with independent draws
of that prior: averages over 100 batches of the chain against averages of the draws, in standard
errors of the difference (5 of them: by chance in one of 60,000 runs).

Geweke (2004). Getting it right: joint distribution tests of posterior simulators. JASA 99(467).
"""

import numpy as np
import pymc as pm
import pytest
from scipy.special import expit
from support.naive.batches import batch_means

import pymc_trees as pmt
from pymc_trees.terms import joint

pytestmark = [pytest.mark.full, pytest.mark.usefixtures("quick_compile")]
BATCHES, Z = 100, 5.0
RNG = np.random.default_rng(8)
N, GROUPS = 9, 3
X, GROUP = np.round(RNG.random((N, 2)), 1), np.arange(N) % GROUPS
SLOPE = np.linspace(-1.0, 1.0, N)
PRIOR = {"m": 2, "alpha": 0.8, "beta": 1.0, "max_nodes": 60}


def forest(leaf=None):
    return pmt.BART("f", X, leaf=leaf or pmt.NormalLeaf(0.2, 0.5), **PRIOR)


def soft():
    return pmt.SoftBART("f", X, leaf=pmt.NormalLeaf(0.2, 0.5), **PRIOR)


def linear():
    return forest(pmt.LinearLeaf(0.2, 0.5, 0.4, columns="path"))


def declare(f, likelihood="normal"):
    """Groups with a mean and an sd, and a coefficient."""
    with pm.Model() as model:
        y = pm.Data("observed", np.zeros(N))
        tau = pm.Gamma("tau", 8.0, 12.0)
        a = pm.Normal("a", pm.Normal("level", 0, 0.5), tau, shape=GROUPS)
        eta = f() + a[GROUP] + pm.Normal("b", 0, 0.4) * SLOPE
        if likelihood == "normal":
            pm.Normal("y", eta, pm.Gamma("sigma", 9.0, 12.0), observed=y)
        else:
            pm.Bernoulli("y", logit_p=eta, observed=y)
    return model


def functions(draw):
    """(k,) what is compared, of a dict of values."""
    f, a, y = draw["f"], draw["a"], draw["y"]
    scales = [np.log(draw[name]) for name in ("tau", "sigma") if name in draw]
    one = np.array([f[0], f[-1], a[0], draw["level"], draw["b"], *scales, y[0], y[-1]])
    two = [f[0] * f[-1], f[0] * a[0], a[0] * a[1], a[0] * draw["level"], f[0] * draw["b"]]
    return np.concatenate([one, one**2, two, [y[0] * f[0], y[0] * a[0], y[0] * y[3]]])


def of_the_prior(model, draws, seed):
    wanted = [v for v in (*model.free_RVs, *model.observed_RVs) if not v.name.startswith("f_")]
    wanted.append(model["f"])
    arrays = pm.draw(wanted, draws, random_seed=seed)
    named = {v.name: array for v, array in zip(wanted, arrays, strict=True)}
    return np.array([functions({k: v[i] for k, v in named.items()}) for i in range(draws)])


def chain(model, trees, draws, seed):
    rng = np.random.default_rng(seed)
    with model:
        steps = [trees(), pmt.GaussianTerms()]
        steps += [pmt.NoiseScale()] if "sigma" in model.named_vars else []
    for step in steps:
        step.setup_chain(rng.spawn(1)[0], 200, draws)
    wanted = [v for v in model.free_RVs if not v.name.startswith("f_")]
    names = [v.name for v in (*wanted, model["f"])]
    numbers = model.compile_fn(
        model.replace_rvs_by_values([*wanted, model["f"]]),
        inputs=model.value_vars,
        on_unused_input="ignore",
    )
    point, rows = model.initial_point(), []
    for k in range(draws + 200):
        if k == 200:
            for step in steps:
                step.stop_tuning()
        for step in steps:
            point, _ = step.step(point)
        draw = dict(zip(names, numbers(point), strict=True))
        eta = draw["f"] + draw["a"][GROUP] + draw["b"] * SLOPE
        if "sigma" in draw:
            y = rng.normal(eta, draw["sigma"])
        else:
            y = (rng.random(N) < expit(eta)).astype(float)
        model["observed"].set_value(y)
        if k >= 200:
            rows.append(functions(draw | {"y": y}))
    return np.array(rows)


def distances(prior, joint_draws):
    """z of each function."""
    batches = batch_means(joint_draws, BATCHES)
    difference = batches.mean(axis=0) - prior.mean(axis=0)
    return difference / np.sqrt(
        batches.var(axis=0, ddof=1) / BATCHES + prior.var(axis=0) / len(prior)
    )


CASES = {
    "forest": (forest, pmt.CGM, "normal"),
    "logit": (forest, pmt.CGM, "bernoulli"),
    "soft trees": (soft, pmt.SoftCGM, "normal"),
    "linear leaves": (linear, pmt.CGM, "normal"),
}


@pytest.mark.parametrize("name", list(CASES))
def test_parameters_and_data_in_turn(name):
    f, trees, likelihood = CASES[name]
    model = declare(f, likelihood)
    z = distances(of_the_prior(model, 8_000, 1), chain(model, trees, 4_000, 2))
    assert (np.abs(z) < Z).all(), z


def test_a_mistake_is_seen(monkeypatch):
    """Leaf values drawn given the vectors of before."""
    draw = joint.draw_leaves
    monkeypatch.setattr(
        joint, "draw_leaves", lambda rng, marginal, scaled: draw(rng, marginal, 0.5 * scaled)
    )
    model = declare(forest)
    z = distances(of_the_prior(model, 8_000, 1), chain(model, pmt.CGM, 3_000, 2))
    assert np.abs(z).max() > 2 * Z, z
