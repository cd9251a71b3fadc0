"""What `dcc.nuts` uses of private parts, pinned; and that the chains are right."""

import inspect
import pickle
from dataclasses import fields

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from pymc.pytensorf import compile
from pymc.step_methods.hmc.base_hmc import BaseHMC
from pymc.step_methods.hmc.integration import CpuLeapfrogIntegrator
from pymc.step_methods.hmc.quadpotential import (
    QuadPotentialDiagAdapt,
    QuadPotentialDiagAdaptState,
    QuadPotentialFull,
)

from pymc_trees.dcc.nuts import Density, run_chain, start_chain, start_with_covariance

pytestmark = pytest.mark.versions

SD = np.array([1.0, 3.0, 0.2])


def normal(q):
    """Log-density and gradient of independent normals."""
    return -0.5 * ((q / SD) ** 2).sum(), -q / SD**2


def chain(seed=1):
    return start_chain(Density(normal), np.zeros(3), np.random.default_rng(seed), 0.8, 50)


def test_nuts_takes_a_density_of_ones_own():
    assert (
        "logp_dlogp_func"
        in inspect.signature(pm.step_methods.arraystep.GradientSharedStep).parameters
    )
    source = inspect.getsource(CpuLeapfrogIntegrator.__init__)
    for used in ("_pytensor_function", "_raveled_inputs", ".dtype"):
        assert used in source
    assert "_extra_vars_shared" in inspect.getsource(pm.step_methods.arraystep.GradientSharedStep)


def compiled():
    """A function of a vector and of two shared values, which can be set."""
    scale, shift = (
        pytensor.shared(np.array([2.0, 2.0, 2.0]), "scale"),
        pytensor.shared(1.0, "shift"),
    )
    q = pt.dvector("q")
    function = compile([q], [pt.sum(scale * q) + shift, 2 * scale])
    return function, scale, shift


def test_the_machine_code_of_a_compiled_function_is_called():
    function, scale, shift = compiled()
    direct = Density(function)._pytensor_function
    assert direct is not function
    q = np.arange(3.0)
    for _ in range(2):
        for found, expected in zip(direct(q), function(q), strict=True):
            np.testing.assert_array_equal(found, expected)
        scale.set_value(-np.ones(3))
        shift.set_value(5.0)
    assert direct(q)[0] == 2.0
    again = pickle.loads(pickle.dumps(Density(function)))
    assert again._pytensor_function(q)[0] == 2.0


def test_a_function_without_machine_code_is_called_itself():
    with pytensor.config.change_flags(mode="FAST_COMPILE", linker="py"):
        function, *_ = compiled()
    assert Density(function)._pytensor_function(np.arange(3.0))[0] == 7.0
    assert Density(normal)._pytensor_function is normal


def test_a_trajectory_has_255_gradients_at_most():
    """Steps of less than a 1000th of the narrowest sd would not turn back before many more."""
    start = start_with_covariance(
        Density(normal), np.zeros(3), np.random.default_rng(1), 0.8, 1e-8 * np.eye(3)
    )
    assert run_chain(Density(normal), start, 4).gradients == 4 * 255


def test_a_step_has_what_is_set_on_it():
    assert "tune" in {f.name for f in fields(BaseHMC._state_class)}
    kept = {f.name for f in fields(QuadPotentialDiagAdaptState)}
    assert {"_initial_mean", "_initial_diag", "_var", "adaptation_window"} <= kept
    assert list(inspect.signature(QuadPotentialDiagAdapt).parameters)[:4] == [
        "n",
        "initial_mean",
        "initial_diag",
        "initial_weight",
    ]
    assert list(inspect.signature(QuadPotentialFull).parameters) == ["cov", "dtype", "rng"]
    step = pm.NUTS
    assert {"diverging", "tree_size"} <= set(step.stats_dtypes_shapes)
    run = run_chain(Density(normal), chain(), 3, tune=True)
    assert run.chain.state.step_adapt._tuned_stats == []


def test_chains_of_any_dimension_are_right():
    density = Density(normal)
    warm = run_chain(density, chain(), 500, tune=True)
    run = run_chain(density, warm.chain, 2000)
    assert not run.diverging.any() and run.gradients > 2000
    # Nearly independent draws: 5 standard errors of 2,000
    np.testing.assert_allclose(run.draws.std(axis=0), SD, rtol=0.12)
    assert (np.abs(run.draws.mean(axis=0)) < 0.12 * SD).all()


def test_a_chain_goes_on_where_it_was():
    density = Density(normal)
    warm = run_chain(density, chain(), 50, tune=True).chain
    whole = run_chain(density, warm, 20).draws
    first = run_chain(density, warm, 8)
    second = run_chain(density, first.chain, 12)
    np.testing.assert_array_equal(np.concatenate([first.draws, second.draws]), whole)


def test_what_was_adapted_is_kept():
    warm = run_chain(Density(normal), chain(), 400, tune=True).chain
    run = run_chain(Density(normal), warm, 5)
    for name in ("_log_bar", "_count"):
        assert getattr(run.chain.state.step_adapt, name) == getattr(warm.state.step_adapt, name)
    np.testing.assert_array_equal(run.chain.state.potential._var, warm.state.potential._var)
    assert run.chain.state.potential._var[1] > 3 * run.chain.state.potential._var[0]


def test_variances_are_those_of_the_last_draws_of_the_adaptation():
    """A first guess that is far off is forgotten within two windows."""
    start = start_chain(
        Density(normal), np.zeros(3), np.random.default_rng(1), 0.8, 100, np.full(3, 100.0)
    )
    np.testing.assert_array_equal(start.variances, 100.0)
    warm = run_chain(Density(normal), start, 320, tune=True).chain
    # Of 100 to 200 draws whose squares are correlated a little: an sd has an error of some 10%.
    np.testing.assert_allclose(np.sqrt(warm.variances), SD, rtol=0.4)


def test_a_model_on_the_stack_is_left_alone():
    with pm.Model() as model:
        pm.Normal("q")
        start_chain(Density(normal), np.zeros(3), np.random.default_rng(1), 0.8, 50)
    assert [v.name for v in model.free_RVs] == ["q"]


@pytest.mark.parametrize("seeds", [(1, 1), (1, 2)])
def test_draws_follow_the_seed(seeds):
    a, b = (run_chain(Density(normal), chain(s), 20, tune=True).draws for s in seeds)
    assert np.array_equal(a, b) == (seeds[0] == seeds[1])


COVARIANCE = np.array([[1.0, 0.95, 0.0], [0.95, 1.0, 0.3], [0.0, 0.3, 4.0]])


def correlated(q):
    """Log-density and gradient of a normal with `COVARIANCE`."""
    gradient = -np.linalg.solve(COVARIANCE, q)
    return 0.5 * q @ gradient, gradient


def test_a_chain_with_a_covariance_is_right_goes_on_and_keeps_it():
    density = Density(correlated)
    start = start_with_covariance(density, np.zeros(3), np.random.default_rng(1), 0.8, COVARIANCE)
    warm = run_chain(density, start, 200, tune=True).chain
    whole = run_chain(density, warm, 3000)
    # Draws of a normal in its own coordinates are nearly independent: errors of 3,000 below 0.03
    # of a variance. Momenta by the covariance in place of its inverse need 19 times the gradients.
    np.testing.assert_allclose(np.cov(whole.draws.T), COVARIANCE, atol=0.4)
    np.testing.assert_allclose(np.corrcoef(whole.draws.T)[0, 1], 0.95, atol=0.01)
    assert whole.gradients < 3000 * 8
    first = run_chain(density, warm, 8)
    second = run_chain(density, first.chain, 12)
    both = np.concatenate([first.draws, second.draws])
    np.testing.assert_array_equal(both, whole.draws[:20])
    np.testing.assert_array_equal(second.chain.covariance, COVARIANCE)
    np.testing.assert_array_equal(second.chain.variances, np.diag(COVARIANCE))
