"""Geweke's joint test of models with random columns: steps given the data, new data, for ever.

One iteration is every step given what is observed, and new observations from the model. If all of
it is right, the chain has the joint prior of columns, forest, parameters and data. It is compared
with independent draws of that prior: averages over 100 batches of the chain against averages of the
draws, in standard errors of the difference (5 of them: by chance in one of 60,000 runs).

Geweke (2004). Getting it right: joint distribution tests of posterior simulators. JASA 99(467).
"""

import numpy as np
import pymc as pm
import pytest
from support.naive.batches import batch_means

import pymc_trees as pmt
from pymc_trees.step_methods import latent_column
from pymc_trees.targets.latent_columns import LatentColumnTarget

pytestmark = [pytest.mark.full, pytest.mark.usefixtures("quick_compile")]
BATCHES, Z, N = 100, 5.0, 7
X = np.random.default_rng(8).random((N, 1)).round(1)
CUTS = np.array([-0.8, 0.0, 0.8])
PRIOR = {"m": 2, "alpha": 0.8, "beta": 1.0, "max_nodes": 60, "leaf": pmt.NormalLeaf(0.2, 0.6)}


def normal():
    """Measured by a Normal, under a mean that is not known."""
    z = pm.Normal("z", pm.Normal("mean", 0, 0.7), 0.8, shape=N)
    pm.Normal("w", z, 0.6, observed=pm.Data("w_data", np.zeros(N)))
    f = pmt.BART("f", pmt.with_columns(X, z=z, cuts={"z": CUTS}), **PRIOR)
    pm.Normal("y", f, pm.Gamma("sigma", 9.0, 12.0), observed=pm.Data("y_data", np.zeros(N)))


def accepted():
    """Measured by what is no Normal: proposals from tables, and slices."""
    z = pm.Gumbel("z", pm.Normal("mean", 0, 0.7), 0.6, shape=N)
    pm.Laplace("w", z, 0.5, observed=pm.Data("w_data", np.zeros(N)))
    f = pmt.BART("f", pmt.with_columns(X, z=z, cuts={"z": CUTS}), **PRIOR)
    pm.Normal("y", f, pm.Gamma("sigma", 9.0, 12.0), observed=pm.Data("y_data", np.zeros(N)))


def uniform():
    """Nothing but the forest sees the column."""
    z = pm.Uniform("z", -1.5, 1.5, shape=N)
    f = pmt.BART("f", pmt.with_columns(X, z=z, cuts={"z": CUTS}), **PRIOR)
    pm.Normal("y", f, pm.Gamma("sigma", 9.0, 12.0), observed=pm.Data("y_data", np.zeros(N)))


def categories():
    """Sets of categories, whose probabilities are not known."""
    z = pm.Categorical("z", pm.Dirichlet("p", [2.0, 3.0, 1.0]), shape=N)
    f = pmt.BART("f", pmt.with_columns(X, z=z), **PRIOR)
    zeros = np.zeros(N, dtype="int64")
    pm.Poisson("y", pm.math.exp(f), observed=pm.Data("y_data", zeros))


CASES = {case.__name__: case for case in (normal, accepted, uniform, categories)}


def functions(draw):
    """(k,) what is compared, of a dict of values."""
    z, f, y = draw["z"].astype(float), draw["f"], draw["y"]
    more = [draw["mean"]] if "mean" in draw else [draw["p"][0]] if "p" in draw else []
    more += [np.log(draw["sigma"])] if "sigma" in draw else []
    more += [draw["w"][0]] if "w" in draw else []
    one = np.array([z[0], z[-1], f[0], f[-1], y[0], *more])
    two = [z[0] * f[0], z[0] * z[1], z[0] * y[0], f[0] * f[1], f[0] * y[0], z[1] * y[1]]
    two += [z[0] * v for v in more]
    return np.concatenate([one, one**2, two])


def names_of(model):
    return [v.name for v in (*model.free_RVs, model["f"]) if not v.name.startswith("f_")]


def of_the_prior(model, draws):
    names = [*names_of(model), *(v.name for v in model.observed_RVs)]
    arrays = pm.draw([model[name] for name in names], draws, random_seed=1)
    named = dict(zip(names, arrays, strict=True))
    return np.array([functions({k: v[i] for k, v in named.items()}) for i in range(draws)])


def chain(model, draws):
    rng = np.random.default_rng(2)
    moves = {"grow": 0.25, "prune": 0.25, "change": 0.2, "swap": 0.1, "perturb": 0.2}
    with model:
        steps = [pmt.LatentColumn(), pmt.CGM(moves=moves, moves_per_visit=4)]
        steps += [pmt.NoiseScale()] if "sigma" in model.named_vars else []
        others = [model[name] for name in ("mean", "p") if name in model.named_vars]
        steps += [pm.Slice(others)] if others else []
    for step in steps:
        step.setup_chain(rng.spawn(1)[0], 200, draws)
    names = names_of(model)
    numbers = model.compile_fn(
        model.replace_rvs_by_values([model[name] for name in names]),
        inputs=model.value_vars,
        on_unused_input="ignore",
    )
    point, rows = model.initial_point(random_seed=1), []
    for k in range(draws + 200):
        if k == 200:
            for step in steps:
                step.stop_tuning()
        for step in steps:
            point, _ = step.step(point)
        draw = dict(zip(names, numbers(point), strict=True))
        if "sigma" in draw:
            draw["y"] = rng.normal(draw["f"], draw["sigma"])
        else:
            draw["y"] = rng.poisson(np.exp(draw["f"]))
        if "w_data" in model.named_vars:
            of_laplace = "laplace" in str(model["w"].owner.op)
            draw["w"] = rng.laplace(draw["z"], 0.5) if of_laplace else rng.normal(draw["z"], 0.6)
            model["w_data"].set_value(draw["w"])
        model["y_data"].set_value(draw["y"].astype(model["y_data"].dtype))
        if k >= 200:
            rows.append(functions(draw))
    return np.array(rows)


def distances(model, draws):
    """z of each function."""
    batches, prior = batch_means(chain(model, draws), BATCHES), of_the_prior(model, 8_000)
    difference = batches.mean(axis=0) - prior.mean(axis=0)
    return difference / np.sqrt(
        batches.var(axis=0, ddof=1) / BATCHES + prior.var(axis=0) / len(prior)
    )


@pytest.mark.parametrize("name", CASES)
def test_parameters_and_data_in_turn(name):
    with pm.Model() as model:
        CASES[name]()
    z = distances(model, 6_000)
    assert (np.abs(z) < Z).all(), z.round(1)


# A step that ignores data is not seen: new data come from what it drew. So these use them wrongly.


def measured_four_times(monkeypatch):
    original = LatentColumnTarget._given
    monkeypatch.setattr(
        LatentColumnTarget,
        "_given",
        lambda self, prior, measured: original(self, prior, 4 * list(measured)),
    )
    return normal


def without_probabilities(monkeypatch):
    choose = latent_column.choose_cells
    kernel = lambda logs, *others: choose(logs - np.log([[1.0], [1.0], [0.4]]), *others)  # noqa: E731
    monkeypatch.setattr(latent_column, "choose_cells", kernel)
    return categories


def narrow(monkeypatch):
    """Proposals from another prior."""
    original = latent_column.try_proposals

    def mistaken(proposals, *others):
        return original(0.8 * proposals, *others)

    monkeypatch.setattr(latent_column, "try_proposals", mistaken)
    return uniform


@pytest.mark.parametrize("mistake", [measured_four_times, without_probabilities, narrow])
def test_a_mistake_is_seen(mistake, monkeypatch):
    with pm.Model() as model:
        mistake(monkeypatch)()
    z = distances(model, 6_000)
    assert np.abs(z).max() > 1.5 * Z, z.round(1)
