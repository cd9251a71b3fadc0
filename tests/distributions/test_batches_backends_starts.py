"""Minibatches, simulators, backends and values of other fits end in words, with what works."""

import numpy as np
import pymc as pm
import pytensor
import pytest
from support.small_models import bart_model, sample, step_data
from support.soft_models import regression

import pymc_trees as pmt
from pymc_trees.distributions.tree_variable import tree_variables
from pymc_trees.targets.graph import UnsupportedModelError

pytestmark = pytest.mark.usefixtures("quick_compile")

X, Y = step_data(20)
SHORT = {"draws": 2, "tune": 2, "chains": 1}
LEAF = pmt.NormalLeaf(0.0, 0.5)
WITHOUT = r"the whole arrays, without pm.Minibatch and total_size"


def of_all_rows(declare):
    """What the message recommends."""
    with pm.Model():
        declare(X, Y)
        assert sample(**SHORT).posterior.sizes["draw"] == 2


def normal(X, y, **more):
    mu = pmt.BART("mu", X, m=2, leaf=LEAF)
    return pm.Normal("y", mu, 1.0, observed=y, **more)


def test_batches_of_the_inputs_are_refused():
    with pm.Model() as model:
        batch, y = pm.Minibatch(X, Y, batch_size=5)
        for front in (pmt.BART, pmt.SoftBART, pmt.SoftDecisionTree, pmt.DecisionTree):
            with pytest.raises(TypeError, match=f"X depends on a pm.Minibatch.*{WITHOUT}"):
                front("mu", batch, y)
            with pytest.raises(TypeError, match=f"Y depends on a pm.Minibatch.*{WITHOUT}"):
                front("mu", X, y)
        assert not model.free_RVs
    of_all_rows(normal)


OF_BATCHES = {
    "y": lambda mu: pm.Normal("y", mu, 1.0, observed=pm.Minibatch(Y, batch_size=20)),
    "total_size": lambda mu: pm.Normal(
        "y", mu[:5], 1.0, observed=pm.Minibatch(Y, batch_size=5), total_size=20
    ),
    "rows": lambda mu: pm.Normal("y", mu[pm.Minibatch(np.arange(20), batch_size=20)], observed=Y),
    "offset": lambda mu: pm.Normal("y", mu + pm.Minibatch(Y, batch_size=20), 1.0, observed=Y),
    "potential": lambda mu: pm.Potential("y", -((mu - pm.Minibatch(Y, batch_size=20)) ** 2)),
}


@pytest.mark.parametrize("of", OF_BATCHES)
@pytest.mark.filterwarnings("ignore:total_size not provided")
def test_batches_in_a_likelihood_are_refused(of):
    with pm.Model():
        OF_BATCHES[of](pmt.BART("mu", X, Y))
        with pytest.raises(UnsupportedModelError, match=f"y depends on a pm.Minibatch.*{WITHOUT}"):
            sample(**SHORT)


@pytest.mark.parametrize(
    ("front", "step"),
    [
        (pmt.SoftBART, pmt.SoftCGM),
        (pmt.SoftDecisionTree, pmt.DCCTree),
        (pmt.SoftDecisionTree, pmt.RJHMC),
    ],
)
def test_soft_trees_refuse_batches(front, step):
    with pm.Model():
        OF_BATCHES["offset"](front("mu", X, Y))
        with pytest.raises(UnsupportedModelError, match="y depends on a pm.Minibatch"):
            step()


def test_other_samplers_refuse_batches():
    with pm.Model():
        OF_BATCHES["offset"](pmt.DecisionTree("mu", X, Y))
        for attempt in (pmt.sample_tree_smc, pmt.sample_sharded, pmt.ParticleGibbs):
            with pytest.raises(UnsupportedModelError, match="y depends on a pm.Minibatch"):
                attempt()


def test_batches_elsewhere_are_left_alone():
    with pm.Model() as model:
        normal(X, Y)
        slope = pm.Normal("slope")
        pm.Normal("z", slope, observed=pm.Minibatch(Y, batch_size=20), total_size=20)
        assert len(pmt.CGM().forests) == 1
    assert [tree.name for tree in tree_variables(model)] == ["mu_forest"]
    with pm.Model():
        mean = pm.Normal("mean")
        pm.Normal("y", mean, observed=pm.Minibatch(Y, batch_size=5), total_size=20)
        pm.fit(2, progressbar=False)


def simulated(rng, mu, size=None):
    return rng.normal(mu, 1.0)


@pytest.mark.parametrize("front", [pmt.BART, pmt.SoftBART, pmt.SoftDecisionTree])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of PyTensor, about pm.Simulator
def test_simulators_are_refused_with_what_works(front):
    with pm.Model():
        mu = front("mu", X, Y)
        pm.Simulator("y", simulated, mu, epsilon=1.0, observed=Y)
        with pytest.raises(UnsupportedModelError, match="y is a pm.Simulator.*CustomDist"):
            sample(**SHORT | {"tune": 100})
        with pytest.raises(NotImplementedError, match="sample_smc cannot sample .'mu_forest'."):
            pm.sample_smc(5, chains=1, cores=1, progressbar=False)


@pytest.mark.full  # compiles kernels of rows
def test_what_a_simulator_can_be_replaced_by():
    of_all_rows(normal)
    of_all_rows(
        lambda X, y: pm.CustomDist(
            "y",
            pmt.BART("mu", X, m=2, leaf=LEAF),
            logp=lambda value, mu: pm.logp(pm.Normal.dist(mu, 1.0), value),
            observed=y,
        )
    )


@pytest.fixture(scope="module")
def models(quick_compile):
    with pm.Model() as tree:
        pm.Normal("y", pmt.SoftDecisionTree("mu", X, Y), 1.0, observed=Y)
    return {"forest": bart_model(20, m=2, sigma=None), "soft": regression(n=20)[0], "tree": tree}


@pytest.mark.parametrize("backend", ["jax", "pytorch", "mlx"])
@pytest.mark.parametrize("of", ["forest", "soft", "tree"])
# PyTensor's rewrites for a library that is not installed
@pytest.mark.filterwarnings("ignore")
def test_backends_that_cannot_compile_trees(models, backend, of):
    mode, model = backend.upper(), models[of]
    said = f"The backend '{backend}' cannot compile functions of trees.*backend='numba'"
    short = {"model": model, **SHORT, "tune": 100}
    attempts = [
        lambda: sample(**short, compile_kwargs={"mode": mode}),
        lambda: model.compile_logp(mode=mode),
        lambda: pm.draw(model["mu"], mode=mode),
    ]
    if backend == "jax":
        attempts.append(lambda: sample(**short, backend="jax"))
    for attempt in attempts:
        with pytest.raises(NotImplementedError, match=said):
            attempt()
    with pytensor.config.change_flags(mode=mode), pytest.raises(NotImplementedError, match=said):
        model.compile_logp()


@pytest.mark.full  # compiles everything anew
@pytest.mark.parametrize("backend", ["numba", "c"])
def test_backends_that_compile_trees(models, backend):
    found = sample(**SHORT, model=models["forest"], backend=backend)
    assert found.posterior.sizes["draw"] == 2


def test_values_of_other_fits(models):
    model = models["forest"]
    draw = sample(**SHORT, model=model).posterior
    value, function = draw["mu_forest"].values[0, -1], draw["mu"].values[0, -1]
    works = "one draw of a fit of this model, idata.posterior..mu_forest...values.0, -1."
    wrong = {
        "with other m .2 instead of 3": (bart_model(20, m=3, sigma=None), value),
        "max_nodes .78 instead of 90": (bart_model(20, m=2, sigma=None, max_nodes=90), value),
        "with other .*n_cuts": (bart_model(20, m=2, sigma=None, n_cuts=3), value),
        "it holds several draws": (model, draw["mu_forest"].values),
        r"has shape \(20,\).*it holds no trees": (model, function),
        r"has shape \(\), but": (model, 0.0),
        "altered": (model, draw["mu_forest"].values.mean(axis=(0, 1))),
        "is not an array of trees": (model, {}),
        "belong to another model": (models["soft"], value),
        "has shape .*max_nodes": (models["tree"], value),
    }
    for said, (other, given) in wrong.items():
        for initvals in ({"mu_forest": given}, [{"mu_forest": given}]):
            with pytest.raises((ValueError, TypeError), match=f"initvals: .*{said}.*{works}"):
                sample(**SHORT | {"tune": 100}, model=other, initvals=initvals)
        rest = [v for v in other.free_RVs if v.name == "sigma"]
        if rest:
            with pytest.raises((ValueError, TypeError), match=f"initvals: .*{said}.*{works}"):
                pm.find_MAP(
                    vars=rest,
                    model=other,
                    initvals={"mu_forest": given},
                    return_inferencedata=True,
                    jitter=False,
                )
    for works in (value, draw["mu_forest"][0, -1], value.tolist()):
        assert sample(**SHORT, model=model, initvals={"mu_forest": works}).posterior.sizes["draw"]
    both = {"mu_forest": value, "mu": function, "sigma": 1.0}
    per_chain = [both, None]
    assert sample(2, 2, model=model, initvals=per_chain).posterior.sizes["chain"] == 2
    quiet = {"progressbar": False, "return_inferencedata": True, "jitter": False}
    best = pm.find_MAP(vars=[model["sigma"]], model=model, initvals=both, **quiet)
    np.testing.assert_array_equal(best.posterior["mu_forest"][0, 0], value)


@pytest.mark.parametrize("of", ["forest", "soft", "tree"])
def test_a_function_of_trees_is_no_start(models, of):
    model = models[of]
    said = r"initvals: mu follows from the trees of \['mu_forest'\], and cannot be set.*leave it"
    for initvals in ({"mu": Y}, [{"mu": Y}]):
        with pytest.raises(ValueError, match=said):
            sample(**SHORT | {"tune": 100}, model=model, initvals=initvals)


def test_values_given_in_the_declaration():
    model = bart_model(20, m=2, sigma=None)
    value = sample(**SHORT, model=model).posterior["mu_forest"].values[0, -1]
    said = "initvals: f has shape .*with other m .2 instead of 3.*Leave it out"
    with pm.Model(), pytest.raises(ValueError, match=said):
        pmt.Forest("f", X, m=3, leaf=LEAF, initval=value)
    with pytest.raises(ValueError, match="initvals: the value of mu_forest is not a forest"):
        model.set_initval(model["mu_forest"], value + 1)
    model.set_initval(model["mu_forest"], value)
    np.testing.assert_array_equal(model.initial_point()["mu_forest"], value)
