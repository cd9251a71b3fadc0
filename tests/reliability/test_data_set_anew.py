"""Model data set anew after a step was made: the step sees them as the model does, or refuses."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from support.small_models import FAST, bart_model, sample, step_data
from support.soft_models import regression
from support.tiers import tiers

import pymc_trees as pmt
from pymc_trees.targets.graph import ForestUseError

pytestmark = pytest.mark.usefixtures("quick_compile")
X, Y = step_data(24)
REFUSED = r"evaluated at inputs other than those.*set the data back"


@pytest.mark.parametrize("kind", [pmt.CGM, pmt.Hybrid, pmt.ParticleGibbs])
def test_other_inputs_are_refused_at_the_start_of_a_chain(kind):
    with bart_model(n=24, m=2, max_nodes=94):
        step = kind()
        pm.set_data({"X": X[::-1]})
        with pytest.raises(ForestUseError, match=f"mu_forest is {REFUSED}"):
            sample(3, 3, step=step)
        pm.set_data({"X": X})
        sample(3, 3, step=step)


@pytest.mark.full
def test_the_reason_arrives_from_other_processes():
    with bart_model(n=24, m=2, max_nodes=94):
        step = pmt.CGM()
        pm.set_data({"X": X[::-1]})
        with pytest.raises(Exception, match=f"(?s)mu_forest is {REFUSED}"):
            sample(3, 3, step=step, cores=2)


def test_between_two_chains():
    def set_anew(trace, draw):
        if draw.chain == 0 and draw.draw_idx == 2:
            pm.set_data({"X": X[::-1]})

    with bart_model(n=24, m=2, max_nodes=94), pytest.raises(ForestUseError, match=REFUSED):
        sample(3, 3, callback=set_anew)


def test_expressions_and_several_data_variables():
    with pm.Model() as model:
        a, b = pm.Data("a", X), pm.Data("b", X)
        one = pmt.BART("one", pt.exp(a), Y, m=2, max_nodes=94)
        two = pmt.BART("two", b, Y, m=2, max_nodes=94)
        pmt.evaluate(model["one_forest"], pm.Data("new", X[:3]))
        pm.Normal("y", one + two, 1.0, observed=Y, shape=one.shape)
        steps = [pmt.CGM(["one"]), pmt.CGM(["two"])]
        for name, forest in (("a", "one_forest"), ("b", "two_forest")):
            pm.set_data({name: X + 1})
            with pytest.raises(ForestUseError, match=f"{forest} is {REFUSED}"):
                sample(2, 2, step=steps)
            pm.set_data({name: X})
        sample(2, 2, step=steps)


def test_a_function_at_other_rows_is_free_to_change():
    with pm.Model() as model:
        mu = pmt.BART("mu", pm.Data("X", X), Y, m=2, max_nodes=94)
        new = pm.Data("new", X[:3])
        pm.Deterministic("there", pmt.evaluate(model["mu_forest"], new))
        pm.Normal("y", mu, 1.0, observed=Y, shape=mu.shape)
        step = pmt.CGM()
        pm.set_data({"new": X[:5]})
        assert sample(2, 2, step=step).posterior["there"].shape == (2, 2, 5)


def normal(mu, y, offset):
    pm.Normal("y", mu + offset, 0.7, observed=y, shape=mu.shape)


def poisson(mu, y, offset):
    pm.Poisson("y", pt.exp(mu + offset), observed=y, shape=mu.shape)


def joint(mu, y, offset):
    pm.Potential("y", -((pt.sum(mu + offset - y)) ** 2))


def gamma_leaves(mu, y, offset):
    pm.Normal("y", mu=mu[0], tau=mu[1], observed=y)


LIKELIHOODS = [normal, poisson, joint, gamma_leaves]


@pytest.mark.parametrize("likelihood", tiers(LIKELIHOODS, quick=[normal, gamma_leaves]))
def test_other_observations_and_offsets_are_those_of_the_model(likelihood):
    """The step made before the data were set moves as one that was made after."""
    counts = np.round(np.abs(Y))
    with pm.Model() as model:
        data, y, offset = pm.Data("X", X), pm.Data("seen", counts), pm.Data("off", np.zeros(24))
        if likelihood is gamma_leaves:
            mu = pmt.DecisionTree("mu", data, leaf=pmt.NormalGammaLeaf(), max_nodes=47)
        else:
            mu = pmt.BART("mu", data, m=2, leaf=pmt.NormalLeaf(0, 1), max_nodes=94)
        likelihood(mu, y, offset)
        before = pmt.CGM()
        first = walk(before, model)
        pm.set_data({"seen": counts[::-1] + 1, "off": np.linspace(-2, 2, 24)})
        again, after = walk(before, model), walk(pmt.CGM(), model)
    np.testing.assert_array_equal(again, after)
    assert not np.array_equal(first, again)


def walk(step, model):
    step.setup_chain(np.random.default_rng(1), 0, 12)
    point = model.initial_point()
    for _ in range(12):
        point, _ = step.step(point)
    return point["mu_forest"]


def test_soft_trees_refuse_other_inputs():
    model, X, _ = regression(n=20)
    with model:
        step = pmt.DCCTree(chains=1, tune=20, local_draws=5)
        pm.set_data({"mu_X": X[::-1]})
        with pytest.raises(ValueError, match=f"mu_forest is {REFUSED}"):
            pm.sample(2, tune=2, chains=1, step=step, cores=1, **FAST)
        with pytest.raises(ValueError, match=f"mu_forest is {REFUSED}"):
            pmt.sample_dcc(1, 2, 1, cores=1, progressbar=False)
        pm.set_data({"mu_X": X})
        step.setup_chain(np.random.default_rng(1), 2, 2)


def test_classes_of_a_soft_tree_are_those_of_the_model():
    X = np.linspace(0, 1, 12)[:, None]
    with pm.Model() as model:
        p = pmt.SoftDecisionTree("p", X, leaf=pmt.DirichletLeaf(2.0, 2), h=(0.2, 0.1))
        pm.Categorical("y", p=p, observed=pm.Data("seen", (X[:, 0] > 0.5).astype(int)))
        step = pmt.DCCTree(chains=1, tune=20, local_draws=5)
        step.setup_chain(np.random.default_rng(1), 2, 2)
        step.step(model.initial_point())
        kept = step.functions
        step.setup_chain(np.random.default_rng(1), 2, 2)
        assert step.functions is kept
        pm.set_data({"seen": (X[:, 0] < 0.5).astype(int)})
        step.setup_chain(np.random.default_rng(1), 2, 2)
        assert step.functions is None
