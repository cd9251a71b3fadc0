"""Ridges read from models: which variables trade places with the level of a forest."""

import numpy as np
import pymc as pm
import pytest

import pymc_trees as pmt
from pymc_trees.distributions.without_dims import without_dims
from pymc_trees.targets.ridges import Ridges

pytestmark = pytest.mark.usefixtures("quick_compile")
N = 12
rng = np.random.default_rng(0)
X, Z = rng.random((N, 2)), rng.normal(size=N)
G, ONES = np.arange(N) % 4, np.ones(N)
COUNTS = rng.poisson(1.0, N)
ORDERED = pm.distributions.transforms.ordered


def forest(name="f", leaf=None, **options):
    return pmt.BART(name, X, m=3, leaf=leaf or pmt.NormalLeaf(0, 0.3), **options)


def counts(eta):
    pm.Poisson("y", pm.math.exp(eta), observed=COUNTS)


def binary(eta):
    pm.Bernoulli("y", logit_p=eta, observed=COUNTS > 0)


def intercept():
    counts(forest() + pm.StudentT("b", nu=4, sigma=2))


def centred():
    a = pm.Normal("a", pm.Normal("mu"), pm.HalfNormal("tau"), shape=4)
    binary(forest() + a[G] + pm.Normal("b"))


def not_centred():
    level, tau = pm.Normal("mu"), pm.HalfNormal("tau")
    binary(forest() + (level + tau * pm.Normal("z", shape=4))[G])


def nested():
    mu = pm.Normal("mu", pm.Normal("top"), 1.0, shape=2)
    binary(forest() + pm.Normal("a", mu[np.array([0, 0, 1, 1])], 0.5, shape=4)[G])


def cut_points():
    cuts = pm.Normal("c", 0, 3, shape=3, transform=ORDERED, initval=[-1.0, 0.0, 1.0])
    pm.OrderedLogistic("y", eta=forest(), cutpoints=cuts, observed=G)


def probit_cut_points():
    cuts = pm.Normal("c", 0, 3, shape=3, transform=ORDERED, initval=[-1.0, 0.0, 1.0])
    pm.OrderedProbit("y", eta=2 * forest(), cutpoints=cuts, observed=G)


def two_forests():
    counts(forest("g") + 2 * forest())


def design_with_constant():
    counts(forest() + np.column_stack([ONES, Z, Z**2]) @ pm.Normal("b", shape=3))


def design_of_groups():
    """Groups as columns beside another one, and all of it scaled."""
    b = pm.Normal("b", shape=5)
    counts(pm.HalfNormal("s") * (forest() + np.column_stack([np.eye(4)[G], Z]) @ b))


def times():
    b = pm.Normal("b")
    pm.Deterministic("median", pm.math.exp(b))
    pm.Weibull("y", alpha=2, beta=pm.math.exp(forest() + b), observed=np.abs(Z) + 0.1)


def two_terms():
    """A Potential of the rows, a small one, a latent variable of rows."""
    b = pm.Normal("b")
    eta = forest() + b
    pm.Potential("y", pm.logp(pm.Poisson.dist(pm.math.exp(eta)), COUNTS).sum())
    pm.Potential("more", -(b**4))
    pm.Normal("latent", eta, 1.0, shape=N)


def basis():
    leaf = pmt.BasisLeaf(np.column_stack([ONES, Z]), sd=0.3)
    pm.Normal("y", forest(leaf=leaf) + pm.Normal("b") + Z * pm.Normal("v"), 1, observed=Z)


def soft():
    mu = pmt.SoftBART("f", X, m=3, leaf=pmt.NormalLeaf(0, 0.3), split_prior=np.ones(2))
    counts(mu + pm.Normal("b"))


def variance_leaf():
    mean, tau = pmt.DecisionTree("f", X, leaf=pmt.NormalGammaLeaf())
    pm.Normal("y", mean + pm.Normal("b"), 1 / pm.math.sqrt(tau), observed=Z)


def no_counterpart():
    """No counterparts: a slope, a sum to zero, a curved term, a product, other rows."""
    eta = forest() + Z * pm.Normal("b") + pm.ZeroSumNormal("a", shape=4)[G]
    c, d, e = pm.Normal("c"), pm.Normal("d"), pm.Normal("e")
    pm.Normal("other", e, 1.0, observed=0.3)
    counts(eta + c**2 + d * pm.Normal("u") + e + pm.LogNormal("positive"))


def in_the_leaves():
    level = pm.Normal("level")
    counts(forest(leaf=pmt.NormalLeaf(level, 0.3)) + level)


def in_another_transform():
    """The bound of a variable moves: so would the variable, whose value is relative to it."""
    b = pm.Normal("b")
    u = pm.Uniform("u", b, 10.0)
    pm.NegativeBinomial("y", mu=pm.math.exp(forest() + b), alpha=pm.math.exp(u), observed=COUNTS)


def a_column():
    """A column of the forest moves its rows to other leaves."""
    z = pm.Normal("z", shape=N)
    f = pmt.BART("f", pmt.with_columns(X, z=z), m=3, leaf=pmt.NormalLeaf(0, 0.3))
    counts(f + z + pm.Normal("b"))


def a_column_of_another():
    z = pm.Normal("z", shape=N)
    g = pmt.BART("g", pmt.with_columns(X, z=z), m=3, leaf=pmt.NormalLeaf(0, 0.4))
    counts(g + forest() + z)


LEVEL = [-1.0] * 4
CASES = {
    intercept: [{"b": -1.0}],
    centred: [{"a": LEVEL}, {"a": LEVEL, "mu": -1.0}, {"b": -1.0}],
    not_centred: [{"mu": -1.0}, {"z": (LEVEL, "tau")}],
    nested: [
        {"a": LEVEL},
        {"a": LEVEL, "mu": [-1.0] * 2},
        {"a": LEVEL, "mu": [-1.0] * 2, "top": -1.0},
    ],
    cut_points: [{"c": [1.0, 0.0, 0.0]}],
    probit_cut_points: [{"c": [2.0, 0.0, 0.0]}],
    two_forests: [{"g_forest": [-2.0]}],
    design_with_constant: [{"b": [-1.0, 0.0, 0.0]}],
    design_of_groups: [{"b": [*LEVEL, 0.0]}],
    times: [{"b": -1.0}],
    two_terms: [{"b": -1.0}],
    basis: [{"b": -1.0}, {"v": -1.0}],
    soft: [{"b": -1.0}],
    variance_leaf: [{"b": -1.0}],
    no_counterpart: [],
    a_column: [{"b": -1.0}],
    a_column_of_another: [{"g_forest": [-1.0]}],
    in_the_leaves: [],
    in_another_transform: [],
}


@pytest.mark.parametrize("declare", CASES, ids=lambda one: one.__name__)
def test_what_moves_along(declare):
    with pm.Model() as model:
        declare()
    model = without_dims(model)
    *others, forest = [rv for rv in model.free_RVs if rv.name.endswith("_forest")]
    found = []
    for ridge in Ridges(model, forest, others).solve():
        moved = dict(ridge.others)
        for one in ridge.shifts:
            factor = one.factor
            moved[one.rv.name] = one.by if factor is None else (one.by, "tau")
            if factor is not None:
                np.testing.assert_allclose(
                    factor.eval({model.rvs_to_values[model["tau"]]: np.log(0.4)}), 2.5
                )
        found.append(moved)
    assert len(found) == len(CASES[declare])
    for moved, wanted in zip(found, CASES[declare], strict=True):
        assert list(moved) == list(wanted)
        for name, way in wanted.items():
            by, *factor = moved[name] if isinstance(moved[name], tuple) else (moved[name],)
            by_wanted, *factor_wanted = way if isinstance(way, tuple) else (way,)
            np.testing.assert_array_equal(by, by_wanted)
            assert factor == factor_wanted


def test_named_dimensions():
    with pm.Model(coords={"group": list("abcd")}) as model:
        a = pm.Normal("a", pm.Normal("mu"), 1.0, dims="group")
        binary(forest() + a[G])
    [first, second] = Ridges(model, model["f_forest"]).solve()
    assert [one.rv.name for one in first.shifts] == ["a"]
    assert [one.rv.name for one in second.shifts] == ["a", "mu"]
