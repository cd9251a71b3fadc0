"""Which vectors and hyperparameters of a model are drawn with its forests."""

import numpy as np
import pymc as pm
import pytensor
import pytest
from pytensor.tensor.random.basic import BernoulliRV
from scipy import stats

import pymc_trees as pmt
from pymc_trees.distributions.tree_variable import is_tree_variable
from pymc_trees.terms.leaves import affordable_leaves, steps_between, sweep_cost
from pymc_trees.terms.rows import read_rows

pytestmark = pytest.mark.usefixtures("quick_compile")
rng = np.random.default_rng(0)
N = 40
X, Y = rng.random((N, 3)), rng.normal(size=N)
G, C = rng.integers(0, 4, N), rng.integers(0, 2, N)
LEAF = pmt.NormalLeaf(0.0, 0.5)


def forest(name="f", **options):
    return pmt.BART(name, X, m=5, **{"leaf": LEAF} | options)


def normal(mean, sd=None):
    pm.Normal("y", mean, pm.HalfNormal("s") if sd is None else sd, observed=Y)


def centred():
    a = pm.Normal("a", pm.Normal("centre"), pm.HalfNormal("tau"), shape=4)
    normal(forest() + a[G])


def not_centred():
    z, b = pm.Normal("z", shape=4), pm.Normal("b")
    normal(pm.Deterministic("mean", b + forest() + pm.HalfNormal("tau") * z[G]))


def probit():
    a = pm.ZeroSumNormal("a", pm.HalfNormal("tau"), shape=4)
    pm.Bernoulli("y", p=pm.math.invprobit(forest() + a[G]), observed=C)


def correlated_slopes():
    sds = pm.HalfNormal.dist(1, shape=2)
    chol, _, _ = pm.LKJCholeskyCov("chol", n=2, eta=2, sd_dist=sds)
    ab = pm.math.dot(chol, pm.Normal("z", shape=(2, 4)))
    normal(forest() + ab[0, G] + ab[1, G] * X[:, 1])


def two_forests_and_a_product():
    b, a = pm.Normal("b", shape=2), pm.Normal("a")
    effect = forest("g")
    normal(a + forest() + effect * C + b[0] * effect * C)


def gaussian_process():
    eta, ls = pm.HalfNormal("eta"), pm.InverseGamma("ls", 5, 5)
    gp = pm.gp.HSGP(m=[8], c=1.5, cov_func=eta**2 * pm.gp.cov.ExpQuad(1, ls=ls))
    normal(forest() + gp.prior("h", X=X[:, :1]))


def linear_leaf():
    normal(forest(leaf=pmt.LinearLeaf()) + X @ pm.Normal("b", shape=3))


def soft_trees():
    b, effect = pm.Normal("b", shape=3), forest("g")
    soft = pmt.SoftBART("f", X, m=5, leaf=LEAF)
    normal(soft * X[:, 0] + effect + pm.Normal("a", 0, pm.HalfNormal("tau"), shape=4)[G] + X @ b)


def poisson():
    pm.Poisson("y", pm.math.exp(forest() + pm.Normal("a", shape=4)[G]), observed=C)


def in_the_sd_too():
    a = pm.Normal("a", shape=4)
    normal(forest() + a[G], pm.math.exp(a[G]))


def a_potential():
    a = pm.Normal("a", shape=4)
    pm.Potential("more", -(a**2).sum())
    normal(forest() + a[G])


def a_monotone_forest():
    normal(forest() + forest("g", monotone={0: 1}) + pm.Normal("a", shape=4)[G])


def a_monotone_forest_first():
    normal(forest("g", monotone={0: 1}) + forest() + pm.Normal("a", shape=4)[G])


def a_power_of_a_forest():
    normal(forest() + pm.math.exp(forest("g")) + pm.Normal("a", shape=4)[G])


def a_share_of_a_forest():
    normal(forest() * pm.math.sigmoid(forest("g")) + pm.Normal("a", shape=4)[G])


def a_potential_of_a_forest():
    g = forest("g")
    pm.Potential("more", -(g**2).sum())
    normal(forest() + g + pm.Normal("a", shape=4)[G])


def lines_in_a_probit():
    mean = forest() + forest("g", leaf=pmt.LinearLeaf(0, 0.5)) + pm.Normal("a", shape=4)[G]
    pm.Bernoulli("y", p=pm.math.invprobit(mean), observed=C)


def a_forest_in_the_sd():
    normal(forest() + pm.Normal("a", shape=4)[G], pm.math.exp(forest("g")))


def a_forest_with_rows_of_its_own():
    g = forest("g")
    pm.Normal("x", g, 1.0, observed=Y)
    normal(forest() + g + pm.Normal("a", shape=4)[G])


def a_deterministic_of_it():
    a = pm.Normal("a", shape=4)
    pm.Deterministic("twice", 2 * a)
    normal(forest() + a[G])


def shared_with_another():
    tau = pm.HalfNormal("tau")
    pm.Normal("z", 0, tau, observed=1.0)
    normal(forest() + pm.Normal("a", 0, tau, shape=4)[G])


def a_column_of_a_forest():
    z = pm.Normal("z", shape=N)
    f = pmt.BART("f", pmt.with_columns(X, z=z), m=3, leaf=pmt.NormalLeaf(0, 0.3))
    normal(f + z + pm.Normal("a", shape=4)[G])


def no_forest():
    normal(pm.Normal("a", shape=4)[G])


# model -> forests, vectors, hyperparameters; None where there is nothing to draw
CASES = {
    centred: ("f", "a", "tau centre"),
    not_centred: ("f", "z b", "tau"),
    probit: ("f", "a", "tau"),
    correlated_slopes: ("f", "z", ""),
    two_forests_and_a_product: ("f g", "a", ""),
    gaussian_process: ("f", "h_hsgp_coeffs", "eta ls"),
    linear_leaf: ("f", "b", ""),
    soft_trees: ("f g", "a b", "tau"),
    a_monotone_forest: ("f", "a", ""),
    a_monotone_forest_first: ("f", "a", ""),
    a_power_of_a_forest: ("f", "a", ""),
    a_share_of_a_forest: ("f", "a", ""),
    a_potential_of_a_forest: ("f", "a", ""),
    lines_in_a_probit: ("f", "a", ""),
    a_forest_in_the_sd: ("f", "a", ""),
    a_forest_with_rows_of_its_own: ("f", "a", ""),
    poisson: None,
    in_the_sd_too: None,
    a_potential: None,
    a_deterministic_of_it: ("f", "a", ""),
    shared_with_another: ("f", "a", ""),
    a_column_of_a_forest: ("f", "a", ""),
    no_forest: None,
}


@pytest.mark.parametrize("declare", CASES, ids=lambda declare: declare.__name__)
def test_what_is_drawn_jointly(declare):
    with pm.Model() as model:
        declare()
    read, expected = read_rows(model), CASES[declare]
    if expected is None:
        assert read == []
        with model, pytest.raises(ValueError, match="vars"):
            pmt.GaussianTerms()
        return
    [rows] = read
    forests, vectors, hypers = (set(names.split()) for names in expected)
    assert {one.name.removesuffix("_forest") for one in rows.forests} == forests
    assert {one.name for one in rows.vectors} == vectors
    assert {one.name for one in rows.hypers} == hypers


@pytest.mark.parametrize(
    "declare", [declare for declare, drawn in CASES.items() if drawn], ids=lambda one: one.__name__
)
def test_the_mean_is_that_of_the_model(declare):
    """What is drawn jointly, and all that is not, at trees and vectors drawn from the prior."""
    with pm.Model() as model:
        declare()
    [rows] = read_rows(model)
    law = model["y"].owner.op
    mean = law.dist_params(model["y"].owner)[0]
    offset = 0.0 if rows.affine.offset is None else rows.affine.offset
    members = [*rows.outputs, *rows.natural]
    contributed = [
        (one.folded * v.ravel()[one.index]).sum(axis=-1)
        for v, one in ((v, rows.affine.maps[v]) for v in members)
    ]
    total = offset + sum(contributed)
    drawn = [*rows.forests, *rows.vectors]
    at_values = [
        model[rv.name.removesuffix("_forest")] if is_tree_variable(rv) else rv for rv in drawn
    ]
    wanted = model.replace_rvs_by_values([mean, *at_values])
    numbers = model.compile_fn(wanted, inputs=model.value_vars, on_unused_input="ignore")
    ours = pytensor.function([*model.value_vars, *members], total, on_unused_input="ignore")
    rvs = [rv for rv in model.free_RVs if is_tree_variable(rv)]
    for seed in range(3):
        trees = pm.draw(rvs, random_seed=seed)
        point = model.initial_point() | dict(zip([rv.name for rv in rvs], trees, strict=True))
        for vector in rows.vectors:
            point[model.rvs_to_values[vector].name] = rng.normal(
                size=point[model.rvs_to_values[vector].name].shape
            )
        expected, *values = numbers(point)
        shaped = [
            np.reshape(value, (N, -1)) if v in rows.outputs else value
            for v, value in zip(members, values, strict=True)
        ]
        found = ours(*(point[v.name] for v in model.value_vars), *shaped)
        if isinstance(law, BernoulliRV):
            found = stats.norm.cdf(found)
        np.testing.assert_allclose(found, np.broadcast_to(expected, (N,)), atol=1e-9)


def test_other_lengths_are_read_again():
    with pm.Model(coords={"k": range(4)}) as model:
        groups = pm.Data("groups", G)
        normal(forest() + pm.Normal("a", dims="k")[groups])
    assert read_rows(model)[0].natural[0].type.shape == (4,)
    assert read_rows(model) is read_rows(model)
    model.set_dim("k", 5, range(5))
    with model:
        pm.set_data({"groups": np.arange(N) % 5})
    assert read_rows(model)[0].natural[0].type.shape == (5,)


def test_a_model_is_read_again_when_it_has_grown():
    with pm.Model() as model:
        a = pm.Normal("a", shape=4)
        mean = forest() + a[G]
        assert read_rows(model) == []
        normal(mean)
    assert len(read_rows(model)) == 1


@pytest.mark.parametrize("most_leaves", [1_000, 5])
def test_a_step_keeps_what_it_does_not_draw(most_leaves):
    """Other variables stay; a row's mean is the sum of its parts; with few leaves, some trees."""
    with pm.Model() as model:
        not_centred()
        step = pmt.GaussianTerms(most_leaves=most_leaves)
    step.setup_chain(np.random.default_rng(1), 10, 10)
    start = model.initial_point()
    point, [stats] = step.step(start)
    assert stats["gaussian_terms_leaves"] == 5
    changed = {name for name in start if not np.array_equal(start[name], point[name])}
    assert changed == {"z", "b", "tau_log__", "f_forest"}
    logp = model.compile_logp()
    assert np.isfinite(logp(point))


def test_cost_decides():
    """Few leaves where each row has a precision of its own; rare draws of long vectors."""
    assert affordable_leaves(1_000, sweep_cost(1_000, 200), by_bits=True) > 250  # of some 500
    assert affordable_leaves(10_000, sweep_cost(10_000, 200), by_bits=False) < 200

    def between(n, n_coefficients):
        return steps_between(n, 50, sweep_cost(n, 50), n_coefficients, 1)

    assert [between(1_000, k) for k in (1, 40)] == [1, 1]
    assert 2 < between(1_000, 400) < 20
    assert between(100_000, 400) == 1


def test_long_vectors_are_drawn_now_and_then():
    with pm.Model() as model:
        a = pm.Normal("a", 0, pm.HalfNormal("tau"), shape=400)
        normal(forest() + a[G])
        step = pmt.GaussianTerms()
    step.setup_chain(np.random.default_rng(1), 10, 10)
    point, leaves = model.initial_point(), []
    for _ in range(2 * step._draws[0].every):
        before = point
        point, [stats] = step.step(point)
        leaves.append(stats["gaussian_terms_leaves"] > 0)
        assert (not np.array_equal(before["a"], point["a"])) == leaves[-1]
    assert leaves.count(True) == 2


def test_the_number_of_leaves_is_checked():
    with pm.Model():
        centred()
        for wrong in (0, 2.5, "many"):
            with pytest.raises((ValueError, TypeError), match="most_leaves"):
                pmt.GaussianTerms(most_leaves=wrong)


def test_a_forest_at_other_rows():
    with pm.Model():
        f = forest()
        normal(f[::-1] + pm.Normal("a", shape=4)[G])
        with pytest.raises(ValueError, match="vars"):
            pmt.GaussianTerms()


def test_a_start_outside_the_prior():
    with pm.Model() as model:
        tau = pm.Uniform("tau", 0, 1, default_transform=None)
        normal(forest() + pm.Normal("a", 0, tau, shape=4)[G])
        step = pmt.GaussianTerms()
    step.setup_chain(np.random.default_rng(1), 10, 10)
    with pytest.raises(ValueError, match="tau is 0 or not finite"):
        step.step(model.initial_point() | {"tau": np.array(2.0)})


def test_nothing_is_drawn_where_rounding_would_decide():
    with pm.Model() as model:
        normal(forest() + pm.Normal("a", shape=4)[G], pm.HalfNormal("s"))
        step = pmt.GaussianTerms()
    step.setup_chain(np.random.default_rng(1), 10, 10)
    start = model.initial_point() | {"s_log__": np.array(-20.0)}
    point, [stats] = step.step(start)
    assert stats["gaussian_terms_leaves"] == 0
    assert all(np.array_equal(point[name], start[name]) for name in start)
    point, [stats] = step.step(start | {"s_log__": np.array(-5.0)})
    assert stats["gaussian_terms_leaves"] == 5
    assert np.isfinite(model.compile_logp()(point))


def test_what_is_read_at_other_rows_is_not_kept():
    with pm.Model() as model:
        data = pm.Data("X", X)
        a = pm.Normal("a", 0, 1, shape=4)
        pm.Normal("y", pmt.BART("f", data, m=5, leaf=LEAF) + a[G], 0.5, observed=Y)
        pm.set_data({"X": X[::-1].copy()})
        assert read_rows(model) == []
        pm.set_data({"X": X})
        [rows] = read_rows(model)
        assert [v.name for v in rows.vectors] == ["a"]
        assert read_rows(model)[0] is rows
