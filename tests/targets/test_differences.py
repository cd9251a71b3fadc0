"""Derivatives by differences, where PyTensor has none or has NaN: of slopes, else of values."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from numpy.testing import assert_allclose
from pytensor.scalar.basic import UnaryScalarOp, upgrade_to_float
from pytensor.tensor.elemwise import Elemwise
from support.laws.likelihoods import ENDS, spoilt, switched

import pymc_trees as pmt
from pymc_trees.core.leaves.nonconjugate.gaussian import make_gaussian_leaf
from pymc_trees.core.leaves.nonconjugate.joint import fit_tree
from pymc_trees.core.leaves.nonconjugate.native import call_native, call_slopes
from pymc_trees.core.leaves.nonconjugate.surrogate import fill_surrogate
from pymc_trees.targets.choose import read_target

pytestmark = pytest.mark.filterwarnings("ignore:The likelihood of a forest uses")
N = 6
X = np.arange(float(N))[:, None]
Y = np.array([0.0, 1.0, 2.0, 3.0, 1.0, 5.0])
F = np.array([-0.5, 0.0, 0.3, 0.8, 1.5, -1.2])


class BlackBox(UnaryScalarOp):
    """exp, as a function of a number that nothing is known of."""

    nfunc_spec = ("numpy.exp", 1, 1)

    def impl(self, x):
        return np.exp(x)


black_box = Elemwise(BlackBox(upgrade_to_float, name="black_box"))


def leaf_of(likelihood, fit, k=1, sd=0.7):
    """Leaf model of a likelihood at outputs (n, K), and its target, which owns the native code."""
    with pm.Model() as model:
        shape = None if k == 1 else (k, N)
        leaf = pmt.NormalLeaf(0.1, sd)
        likelihood(pmt.BART("f", X, m=1, leaf=leaf, shape=shape, separate_trees=False))
    target = read_target(model, model["f_forest"])
    given = target.at(model.initial_point())
    leaf, _ = target.leaf_data(*given, np.array(fit, dtype=float), np.random.default_rng(1))
    return leaf, target


def derivatives(leaf, fit, target):
    """PyTensor's derivatives, and those that proposals use; the target keeps its code."""
    n, k = fit.shape
    own, used = np.empty((n, k + k * k)), np.empty((n, k + k * k))
    rows = np.arange(n)
    call_native(leaf.slopes_at, n, rows, fit, leaf.table, leaf.data, own)
    call_slopes(leaf, n, rows, fit, used)
    return own, used


def poisson(f):
    pm.Potential("y", Y * f - pm.math.exp(f))


def no_curvature(f):
    poisson(f)
    pm.Potential("none", spoilt(f, N, 1.5))


def no_slope(f):
    poisson(f)
    pm.Potential("none", spoilt(f, N, 0.5))


def no_derivative(f):
    pm.Potential("y", Y * f - black_box(f))


# Error of a difference: h^2 / 6 of a third derivative, and rounding of values over h^2.
@pytest.mark.parametrize(
    ("likelihood", "has_slope", "has_curvature"),
    [
        (poisson, True, True),
        (no_curvature, True, False),
        (no_slope, False, False),
        (no_derivative, False, False),
    ],
)
def test_they_are_the_derivatives(likelihood, has_slope, has_curvature):
    fit = F[:, None]
    leaf, target = leaf_of(likelihood, fit)
    own, used = derivatives(leaf, fit, target)
    assert target.kind == "rowwise"
    assert (np.isfinite(own[:, 0]) == has_slope).all()
    assert (np.isfinite(own).all(axis=1) == has_curvature).all()
    expected = np.column_stack([Y - np.exp(F), -np.exp(F)])
    assert_allclose(used, expected, rtol=1e-12 if has_curvature else 1e-6, atol=1e-6)


def test_times_known_exactly_or_to_an_interval():
    fit = F[:, None]
    leaf, target = leaf_of(lambda f: switched(f, N), fit)
    own, used = derivatives(leaf, fit, target)
    has_none = np.isnan(own[:, 1])
    assert 0 < has_none.sum() < N and np.isfinite(own[:, 0]).all()
    assert_allclose(used[~has_none], own[~has_none])
    assert_allclose(used[:, 0], own[:, 0])
    # of a time in [0, end] log p = log(1 - exp(-z)), z = (end / exp(mu))^1.4
    z = (ENDS[:N] * np.exp(-F))[has_none] ** 1.4
    assert_allclose(used[has_none, 0], -1.4 * z / np.expm1(z))
    bend = z * (1.0 / np.expm1(z) - z * np.exp(z) / np.expm1(z) ** 2)
    assert_allclose(used[has_none, 1], 1.4**2 * bend, rtol=1e-5)


def test_numbers_that_overflow():
    """exp(f)^2 is infinite before exp(f) is, where the log-likelihood is all but linear."""

    def odds(f):
        # twice, for once is read as the weight of one of two classes
        pm.Potential("y", 2.0 * pt.log(1.0 - 1.0 / (1.0 + pt.exp(-f))))

    fit = np.array([-30.0, -1.0, 0.0, 1.0, 150.0, 450.0])[:, None]
    leaf, target = leaf_of(odds, fit)
    own, used = derivatives(leaf, fit, target)
    assert not np.isfinite(own[-1]).all()
    p = 1.0 / (1.0 + np.exp(-fit[:, 0]))
    assert_allclose(used, 2.0 * np.column_stack([-p, -p * (1.0 - p)]), atol=2e-6)


def test_a_row_outside_the_support_is_left_out():
    def bounded(f):
        pm.Potential("y", pt.switch(f < 1.0, -(f**2), -np.inf))
        pm.Potential("none", spoilt(f, N, 0.5))

    leaf, target = leaf_of(bounded, F[:, None])
    _, used = derivatives(leaf, F[:, None], target)
    inside = F < 1.0
    assert not np.isfinite(used[~inside]).all(axis=1).any()
    assert_allclose(used[inside], np.column_stack([-2 * F, np.full(N, -2.0)])[inside], atol=1e-6)


@pytest.mark.parametrize("power", [1.5, 0.5])
def test_two_outputs(power):
    """Mixed derivatives too."""

    def likelihood(f):
        pm.Potential("y", Y * f[0] - pm.math.exp(f[0] + 0.5 * f[1]))
        pm.Potential("none", spoilt(f[0], N, power))

    fit = np.column_stack([F, F[::-1]])
    leaf, target = leaf_of(likelihood, fit, k=2)
    assert target.kind == "rowwise"
    own, used = derivatives(leaf, fit, target)
    assert np.isnan(own).any(axis=1).all()
    e = np.exp(fit[:, 0] + 0.5 * fit[:, 1])
    expected = np.column_stack([Y - e, -0.5 * e, -e, -0.5 * e, -0.5 * e, -0.25 * e])
    assert_allclose(used, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("power", [1.5, 0.5])
def test_all_rows_together(power):
    """A tree of three leaves, and the rows under which whole trees grow, in closed form."""

    def likelihood(f):
        pm.Normal("y", pt.cumsum(f), 0.8, observed=Y)
        pm.Potential("none", spoilt(pt.cumsum(f), N, power))

    leaf, target = leaf_of(likelihood, F[:, None])
    assert target.kind == "joint"
    labels = np.array([0, 1, 1, 2, 0, 2])
    leaf.labels[:] = labels
    fit = fit_tree(leaf, 3)
    C, Z = np.tril(np.ones((N, N))), np.eye(3)[labels]
    precision = np.eye(3) / 0.7**2 + Z.T @ C.T @ C @ Z / 0.8**2
    rhs = 0.1 / 0.7**2 + Z.T @ C.T @ (Y - C @ F) / 0.8**2
    assert_allclose(fit.factor @ fit.factor.T, precision, rtol=1e-4, atol=1e-4)
    # Newton's method ends within 0.1 sd, at once for a quadratic but for errors of differences
    assert_allclose(fit.mode, np.linalg.solve(precision, rhs), atol=1e-3)
    near = make_gaussian_leaf(leaf.mean, leaf.sd, N, 1)
    fill_surrogate(leaf, near)
    bend = C.T @ C @ np.ones(N) if power == 1.5 else np.diag(C.T @ C)  # all rows, or each by itself
    assert_allclose(near.w, bend / 0.8**2, rtol=1e-4)
