"""Gaussian priors, compared with the log densities of PyMC."""

import numpy as np
import pymc as pm
import pytensor
import pytest
import scipy.sparse

from pymc_trees.terms.rows import read_gaussian, zero_sum_basis

pytestmark = pytest.mark.usefixtures("quick_compile")
W = np.array([[0, 1, 0, 1], [1, 0, 1, 0], [0, 1, 0, 1], [1, 0, 1, 0.0]])
COV = np.array([[2, 0.5], [0.5, 1]])


def walk(s):
    return pm.GaussianRandomWalk("v", mu=0.3, sigma=s, init_dist=pm.Normal.dist(1, 2), steps=4)


CASES = {
    "matrix": lambda s, a: pm.Normal("v", 1.0, s, shape=(2, 3)),
    "sds": lambda s, a: pm.Normal("v", np.arange(3.0), s * np.arange(1, 4)),
    "number": lambda s, a: pm.Normal("v", 0, tau=s),
    "flat": lambda s, a: pm.Flat("v", shape=3),
    "zero sum": lambda s, a: pm.ZeroSumNormal("v", s, shape=5),
    "zero sum, rows": lambda s, a: pm.ZeroSumNormal("v", s, shape=(2, 4)),
    "zero sum, both axes": lambda s, a: pm.ZeroSumNormal("v", s, shape=(3, 4), n_zerosum_axes=2),
    "covariance": lambda s, a: pm.MvNormal("v", np.ones(2), COV * s, shape=(3, 2)),
    "precision": lambda s, a: pm.MvNormal("v", np.ones(2), tau=COV * s),
    "random walk": lambda s, a: walk(s),
    "ICAR": lambda s, a: pm.ICAR("v", W=W, sigma=s, zero_sum_stdev=0.1),
    "CAR": lambda s, a: pm.CAR("v", mu=np.ones(4), W=W, alpha=a, tau=s),
    "CAR, sparse": lambda s, a: pm.CAR(
        "v", mu=np.ones(4), W=scipy.sparse.csr_matrix(W), alpha=a, tau=s
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_density_is_that_of_pymc(name):
    rng = np.random.default_rng(3)
    with pm.Model() as model:
        CASES[name](pm.HalfNormal("s"), pm.Uniform("a", 0, 1))
    rv, start = model["v"], model.initial_point()
    gaussian = read_gaussian(model, rv)
    parts = [gaussian.mean, gaussian.precision, gaussian.log_norm]
    wanted = [*model.replace_rvs_by_values(parts), model.logp(vars=[rv])]
    function = pytensor.function(model.value_vars, wanted, on_unused_input="ignore")
    value_name, constants = model.rvs_to_values[rv].name, []
    for _ in range(4):
        point = {k: 0.5 * rng.normal(size=np.shape(number)) for k, number in start.items()}
        mean, precision, log_norm, logp = function(*(point[v.name] for v in model.value_vars))
        away = point[value_name].reshape(-1) - mean
        dense = np.diag(precision) if precision.ndim == 1 else precision
        constants.append(logp - log_norm + 0.5 * away @ dense @ away)
    np.testing.assert_allclose(constants, constants[0], atol=1e-8)


@pytest.mark.parametrize("name", [name for name in CASES if name.startswith("zero sum")])
def test_a_zero_sum_variable_is_an_orthonormal_function_of_its_value(name):
    with pm.Model() as model:
        CASES[name](pm.HalfNormal("s"), pm.Uniform("a", 0, 1))
    rv = model["v"]
    value = model.rvs_to_values[rv]
    basis = zero_sum_basis(model, rv, tuple(rv.shape.eval()))
    np.testing.assert_allclose(basis.T @ basis, np.eye(basis.shape[1]), atol=1e-12)
    numbers = np.random.default_rng(3).normal(size=model.initial_point()[value.name].shape)
    [variable] = model.replace_rvs_by_values([rv])
    np.testing.assert_allclose(
        variable.eval({value: numbers}).reshape(-1), basis @ numbers.reshape(-1)
    )


@pytest.mark.parametrize(
    "declare",
    [
        lambda: pm.StudentT("v", 3, shape=3),
        lambda: pm.LogNormal("v", shape=3),
        lambda: pm.Normal("v", shape=3, transform=pm.distributions.transforms.ordered),
        lambda: pm.Truncated("v", pm.Normal.dist(), lower=0, shape=3),
        lambda: pm.GaussianRandomWalk("v", init_dist=pm.Laplace.dist(0, 1), steps=2),
    ],
)
def test_others_are_none(declare):
    with pm.Model() as model:
        declare()
    assert read_gaussian(model, model["v"]) is None
