"""`pm.sample` assigns `GaussianTerms`, and leaves it out where a step for the forest is passed."""

import numpy as np
import pymc as pm
import pytest
from pymc.sampling import mcmc
from pymc.step_methods import CompoundStep
from support.small_models import assert_same_draws
from threadpoolctl import threadpool_limits

import pymc_trees as pmt

pytestmark = pytest.mark.usefixtures("quick_compile")
RNG = np.random.default_rng(1)
X, GROUP = RNG.random((30, 2)), np.arange(30) % 3
Y = X[:, 0] + 0.5 * GROUP + RNG.normal(0, 0.2, 30)
RUN = {"tune": 6, "draws": 6, "chains": 2, "progressbar": False, "random_seed": 1}


def declared(rows: str = "normal", tree=pmt.BART):
    with pm.Model(coords={"school": list("abc")}) as model:
        f = tree("f", X, Y, **({} if tree is pmt.DecisionTree else {"m": 4}))
        tau = pm.HalfNormal("tau")
        eta = f + pm.Normal("a", 0, tau, dims="school")[GROUP]
        if rows == "normal":
            pm.Normal("y", eta, pm.HalfNormal("sigma"), observed=Y)
        elif rows == "probit":
            pm.Bernoulli("y", p=pm.math.invprobit(eta), observed=Y > 0.5)
        else:
            pm.Poisson("y", pm.math.exp(eta), observed=np.round(Y**2))
    return model


def assigned(model, step=None, **options):
    """Names of variables by step."""
    with model:
        passed, selected = mcmc.assign_step_methods(model, step)
        made = mcmc.instantiate_steppers(model, passed, selected, step_kwargs=options or None)
    return {
        type(one).__name__: {value.name for value in one.vars}
        for one in (made if isinstance(made, list) else [made])
    }


@pytest.mark.parametrize("rows", ["normal", "probit"])
@pytest.mark.parametrize("tree", [pmt.BART, pmt.DecisionTree, pmt.SoftBART])
def test_terms_around_gaussian_rows_are_assigned(rows, tree):
    by_step = assigned(declared(rows, tree))
    assert by_step["GaussianTerms"] == {"a", "tau_log__"}
    if tree is pmt.SoftBART:
        assert by_step["SoftCGM"] == {"f_forest"}
        assert by_step["NUTS"] == {"f_leaf_sd_log__"}
    else:
        assert by_step["Hybrid"] == {"f_forest"}
        assert "NUTS" not in by_step


def test_rows_that_are_not_gaussian_are_left_to_nuts():
    assert assigned(declared("poisson"))["NUTS"] == {"a", "tau_log__"}


def test_a_step_that_is_passed_for_the_forest_leaves_it_out():
    with declared() as model:
        hybrid, terms = pmt.Hybrid(), pmt.GaussianTerms()
        slice_of_a = pm.Slice([model["a"]])
    assert assigned(model, [hybrid])["NUTS"] == {"a", "tau_log__"}
    assert "NUTS" not in assigned(model, [hybrid, terms])
    assert assigned(model, [slice_of_a])["NUTS"] == {"tau_log__"}
    with declared(tree=pmt.SoftBART) as model:
        sweep = pmt.SoftCGM()
    assert {"a", "tau_log__"} < assigned(model, [sweep])["NUTS"]


def test_options_of_nuts_are_taken():
    by_step = assigned(declared(), nuts={"target_accept": 0.9})
    assert by_step["NUTS"] == {"sigma_log__"} and "GaussianTerms" in by_step
    by_step = assigned(declared("probit"), nuts={"target_accept": 0.9})
    assert by_step["NUTS"] == {"a", "tau_log__"}


@pytest.mark.parametrize("tree", [pmt.BART, pmt.SoftBART])
def test_a_shared_state_changes_no_draw(tree):
    """The sweep's state, or its value decoded: the draws are equal."""
    model = declared(tree=tree)
    shared = pm.sample(model=model, cores=1, **RUN)
    with model:
        if tree is pmt.SoftBART:
            around = [pm.NUTS([model["f_leaf_sd"]]), pmt.SplitWeights()]
            steps = [*around, pmt.SoftCGM(), pmt.GaussianTerms(), pmt.NoiseScale()]
        else:
            steps = [pmt.Hybrid(), pmt.GaussianTerms(), pmt.NoiseScale()]
    compound = CompoundStep(steps)
    decoded = pm.sample(model=model, cores=1, step=compound, **RUN)
    assert_same_draws(shared, decoded)


@pytest.mark.parametrize("tree", [pmt.BART, pmt.SoftBART])
def test_processes_and_resuming_make_the_same_draws(tree):
    model = declared(tree=tree)
    once = pm.sample(model=model, cores=1, **RUN | {"draws": 9})
    first = pm.sample(model=model, cores=2, **RUN)
    assert_same_draws(once, pmt.resume(first, model, draws=3, progressbar=False))


def test_threads_of_linear_algebra_change_no_draw():
    """OpenBLAS adds in another order with two: without the limit of the step, draws differ."""
    rng = np.random.default_rng(2)
    X, group = rng.random((500, 2)), rng.integers(0, 40, 500)
    with pm.Model() as model:
        f = pmt.BART("f", X, X[:, 0], m=280)
        a = pm.Normal("a", 0, 0.5, shape=40)
        pm.Normal("y", f + a[group], 0.5, observed=X[:, 0])
        step = pmt.GaussianTerms(most_leaves=500, rng=1)
    drawn = []
    for n_threads in (1, 2):
        step.setup_chain(np.random.default_rng(3), 0, 1)
        with threadpool_limits(n_threads):
            drawn.append(step.step(model.initial_point(1))[0])
    for name, value in drawn[0].items():
        np.testing.assert_array_equal(value, drawn[1][name])
    assert (drawn[0]["a"] != 0).all()


@pytest.mark.parametrize("rows", ["normal", "poisson"])
def test_names_that_look_like_types_of_numbers(rows):
    """As those of a formula: PyTensor takes a name given to `tensor` for a dtype, if it can."""
    with pm.Model(coords={"school": list("abc")}) as model:
        f = pmt.BART("1,f", X, Y, m=2)
        eta = f + pm.HalfNormal("1|g_sigma") * pm.Normal("1|g_offset", dims="school")[GROUP]
        if rows == "normal":
            pm.Normal("y", eta, 0.5, observed=Y)
        else:
            pm.Poisson("y", pm.math.exp(eta), observed=np.round(Y**2))
    step = "GaussianTerms" if rows == "normal" else "NUTS"
    assert assigned(model)[step] == {"1|g_offset", "1|g_sigma_log__"}
