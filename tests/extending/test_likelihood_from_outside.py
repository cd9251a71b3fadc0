"""A likelihood of rows that is no part of the package: its numbers, its derivatives, its draws."""

import numpy as np
import pymc as pm
import pytest
from scipy import stats
from support.small_models import step_data

import pymc_trees as pmt
from extending.gumbel_likelihood import GumbelLikelihood
from pymc_trees.targets.choose import read_target
from pymc_trees.targets.likelihoods.contract import ROW_LIKELIHOODS
from pymc_trees.targets.rowwise import KernelTarget

X, Y = step_data(30)
SLOPE = np.linspace(0.5, 2.0, 30)
ROW_LIKELIHOODS.pop(pm.Gumbel.rv_type, None)  # other tests read a pm.Gumbel from its graph


def register(monkeypatch):
    monkeypatch.setitem(ROW_LIKELIHOODS, pm.Gumbel.rv_type, [GumbelLikelihood])


@pytest.fixture
def registered(monkeypatch):
    register(monkeypatch)


def declare(mu=lambda f: SLOPE * f + 0.3, beta=lambda f: 0.7):
    with pm.Model() as model:
        f = pmt.BART("f", X, m=3, leaf=pmt.NormalLeaf(0.0, 0.5))
        pm.Gumbel("y", mu(f), beta(f), observed=Y)
    return model


def of_rows(kernel, numbers, f):
    return np.array([kernel(row, one) for row, one in zip(numbers, f, strict=True)])


def test_kernels_are_the_log_density_and_its_derivatives(registered):
    model = declare()
    target = read_target(model, model["f_forest"])
    assert isinstance(target, KernelTarget) and isinstance(target.likelihood, GumbelLikelihood)
    _, seen = target.at(model.initial_point())
    numbers = seen.data.reshape(seen.table)
    f, h = np.random.default_rng(1).normal(size=30), 1e-4
    here, up, down = (of_rows(target.likelihood.value, numbers, f + by) for by in (0.0, h, -h))
    np.testing.assert_allclose(here, stats.gumbel_r.logpdf(Y, SLOPE * f + 0.3, 0.7), rtol=1e-6)
    first, second = of_rows(target.likelihood.slopes, numbers, f).T
    np.testing.assert_allclose(first, (up - down) / (2 * h), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(second, (up - 2 * here + down) / h**2, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "changed",
    [{"beta": lambda f: pm.math.exp(f)}, {"mu": lambda f: f**2}],
    ids=["beta sees f", "mu is curved"],
)
def test_other_models_are_read_from_their_graph(registered, changed):
    model = declare(**changed)
    assert not isinstance(read_target(model, model["f_forest"]), KernelTarget)


@pytest.mark.full
@pytest.mark.usefixtures("quick_compile")
def test_draws_are_those_of_the_graph(monkeypatch):
    options = {"progressbar": False, "compute_convergence_checks": False, "random_seed": 4}

    def draws():
        with declare():
            return pm.sample(20, tune=20, chains=1, step=[pmt.CGM()], **options)

    slower = draws()
    register(monkeypatch)
    faster = draws()
    np.testing.assert_allclose(faster.posterior["f"], slower.posterior["f"], rtol=1e-5, atol=1e-7)
    for name in ("log_likelihood", "accept_grow"):
        np.testing.assert_allclose(faster.sample_stats[name], slower.sample_stats[name], rtol=1e-5)
