"""Leaf models: marginals against quadrature, conditional draws against their law, bookkeeping.

Draws: means and variances of 20,000 at 5 standard errors, Kolmogorov-Smirnov at p > 1e-5.
"""

import math

import numpy as np
import pytest
from scipy import integrate, stats
from support.chains import CGM, make_setup, sweep_on
from support.naive.laws import PROBLEMS

from pymc_trees.core.forest.trees import make_trees, preorder
from pymc_trees.core.leaves.contract import (
    add_rows,
    draw_values,
    log_likelihood,
    log_marginal,
    n_stats,
    swap_residual,
)
from pymc_trees.core.leaves.dirichlet import make_dirichlet
from pymc_trees.core.leaves.normal import make_normal
from pymc_trees.core.leaves.normal_gamma import make_normal_gamma
from pymc_trees.core.value.encode import fit_of

Y = np.array([-0.9, -0.2, -1.1, 1.2, 0.4, 1.3])
LABELS = np.array([0, 2, 1, 1, 0, 1])
PRECISION = np.array([2.0, 0.5, 0.0, 1.0, 3.0, 0.7])
SUBSETS = ([], [3], [0, 2], [1, 2, 5], list(range(6)))


def models():
    return {
        "normal": make_normal(0.3, 0.8, Y.copy(), 2.0, 11),
        "normal rows": make_normal(0.3, 0.8, Y.copy(), PRECISION, 11),
        "normal gamma": make_normal_gamma(0.3, 3.0, 0.4, Y),
        "dirichlet": make_dirichlet(1.5, 3, LABELS),
    }


def stats_of(leaf, rows):
    listed = np.zeros(8, dtype=np.uint32)
    listed[1 : 1 + len(rows)] = rows
    out = np.full(n_stats(leaf), np.nan)
    add_rows(leaf, listed, 1, 1 + len(rows), out)
    return out


def row_terms(leaf, rows):
    """What the normal leaf leaves out of its marginal: the same however rows are shared."""
    w = np.broadcast_to(leaf.w, 6)[rows]
    seen = w > 0
    r = leaf.r[rows][seen] - leaf.mean
    return 0.5 * float(np.sum(np.log(w[seen] / (2 * np.pi)) - w[seen] * r**2))


def quadrature(name, leaf, rows):
    """Log of the integral of likelihood times prior over the leaf value."""
    if name.startswith("normal") and name != "normal gamma":
        w = np.broadcast_to(leaf.w, 6)[rows]
        rows_seen = [i for i, w_i in zip(rows, w) if w_i > 0]

        def density(mu):
            scale = np.broadcast_to(leaf.w, 6)[rows_seen] ** -0.5
            data = stats.norm(mu, scale).pdf(leaf.r[rows_seen]).prod()
            return data * stats.norm(leaf.mean, leaf.sd).pdf(mu)

        return math.log(integrate.quad(density, -8, 8, points=[-1, 0, 1], limit=200)[0])
    if name == "normal gamma":

        def inner(tau):
            sd = 1 / math.sqrt(leaf.a * tau)
            grid = np.linspace(-14 * sd - 2, 14 * sd + 2, 4001)
            data = np.prod([stats.norm(grid, tau**-0.5).pdf(Y[i]) for i in rows], axis=0)
            mass = integrate.simpson(data * stats.norm(0, sd).pdf(grid), x=grid)
            return mass * stats.gamma(leaf.nu / 2, scale=2 / (leaf.nu * leaf.lam)).pdf(tau)

        return math.log(integrate.quad(inner, 1e-9, 40, limit=200, points=[0.5, 2, 8])[0])
    # Integrate the class probabilities of the first two of three classes over the simplex.
    each = leaf.alpha / 3
    counts = np.bincount(LABELS[rows], minlength=3)
    # A beta law of p_0, then of p_1 / (1 - p_0), by numbers: stick breaking.
    first = stats.beta(each, 2 * each).expect(
        lambda p: p ** counts[0] * (1 - p) ** (counts[1] + counts[2])
    )
    second = stats.beta(each, each).expect(lambda q: q ** counts[1] * (1 - q) ** counts[2])
    return math.log(first * second)


@pytest.mark.parametrize("rows", SUBSETS, ids=str)
@pytest.mark.parametrize("name", models())
@pytest.mark.filterwarnings("ignore::scipy.integrate.IntegrationWarning")
def test_marginal_is_the_integral(name, rows):
    leaf = models()[name]
    found = log_marginal(leaf, stats_of(leaf, rows))
    if name in ("normal", "normal rows"):
        found += row_terms(leaf, rows)
    assert found == pytest.approx(quadrature(name, leaf, rows), abs=2e-5)


@pytest.mark.parametrize("name", models())
def test_statistics_of_rows_and_trees_are_direct_sums(name, rng):
    leaf = models()[name]
    trees = make_trees(2, 11, 3, 6)
    trees.leaf_of[0], trees.leaf_of[1] = [5, 6, 5, 6, 6, 5], [1, 1, 7, 7, 8, 8]
    trees.values[:] = rng.normal(size=(11, 3))
    for node in range(11):
        trees.count[node] = (trees.leaf_of == node).sum()
    if not hasattr(leaf, "r"):
        nodes, stats_ = np.array([5, 6], dtype=np.int32), np.zeros((11, n_stats(leaf)))
        swap_residual(leaf, trees, -1, 0, nodes, 2, stats_)
        for node in (5, 6):
            rows = np.flatnonzero(trees.leaf_of[0] == node)
            assert np.allclose(stats_[node], stats_of(leaf, rows), atol=1e-12)
        return
    trees = trees._replace(values=np.ascontiguousarray(trees.values[:, :1]))
    value = trees.values[:, 0]
    target = leaf.r + value[trees.leaf_of[0]] + value[trees.leaf_of[1]]
    w = np.broadcast_to(leaf.w, 6)
    for old, new, nodes in ((-1, 0, [5, 6]), (0, 1, [1, 7, 8])):
        ids, stats_ = np.array(nodes, dtype=np.int32), np.full((11, 2), np.nan)
        swap_residual(leaf, trees, old, new, ids, len(nodes), stats_)
        open_residual = target - value[trees.leaf_of[1 - new]]
        assert np.allclose(leaf.r, open_residual, atol=1e-12)
        for node in nodes:
            rows = np.flatnonzero(trees.leaf_of[new] == node)
            direct = [w[rows].sum(), (w * open_residual)[rows].sum()]
            assert np.allclose(stats_[node], direct, atol=1e-12)
            assert np.allclose(stats_of(leaf, rows), direct, atol=1e-12)
    swap_residual(leaf, trees, 1, -1, ids, 0, stats_)
    assert np.allclose(leaf.r, target - value[trees.leaf_of].sum(axis=0), atol=1e-12)


def draws(leaf, rows, k, rng, n=20_000):
    found, out = stats_of(leaf, rows), np.empty((n, k))
    for row in out:
        draw_values(leaf, rng, found, row)
    return out


@pytest.mark.parametrize("rows", SUBSETS, ids=str)
def test_draws_have_the_conditional_law(rows, rng):
    m = models()
    for name in ("normal", "normal rows"):
        leaf = m[name]
        w = np.broadcast_to(leaf.w, 6)[rows]
        precision = leaf.sd**-2 + w.sum()
        centre = (leaf.mean / leaf.sd**2 + (w * leaf.r[rows]).sum()) / precision
        law = stats.norm(centre, precision**-0.5)
        assert stats.kstest(draws(leaf, rows, 1, rng)[:, 0], law.cdf).pvalue > 1e-5
    leaf, y = m["normal gamma"], Y[rows]
    n, total = len(rows), y.sum()
    b = leaf.nu * leaf.lam + (y**2).sum() - total**2 / (n + leaf.a)
    mu, tau = draws(leaf, rows, 2, rng).T
    law = stats.gamma((n + leaf.nu) / 2, scale=2 / b)
    assert stats.kstest(tau, law.cdf).pvalue > 1e-5
    z = (mu - total / (n + leaf.a)) * np.sqrt((n + leaf.a) * tau)
    assert stats.kstest(z, "norm").pvalue > 1e-5
    leaf = m["dirichlet"]
    shape = leaf.alpha / 3 + np.bincount(LABELS[rows], minlength=3)
    found = draws(leaf, rows, 3, rng)
    assert np.allclose(found.sum(axis=1), 1)
    for k in range(3):
        law = stats.beta(shape[k], shape.sum() - shape[k])
        assert stats.kstest(found[:, k], law.cdf).pvalue > 1e-5


def test_probabilities_of_a_tiny_concentration_stay_positive(rng):
    leaf = make_dirichlet(1e-3, 4, np.empty(0))
    found = draws(leaf, [], 4, rng, 2000)
    assert (found > 0).all() and np.allclose(found.sum(axis=1), 1)
    assert np.abs(found.mean(axis=0) - 0.25).max() < 5 * np.sqrt(0.1875 / 2000)


def test_a_far_centre_costs_the_normal_gamma_leaf_no_digits():
    near, far = make_normal_gamma(1e-30, 3.0, 0.4, Y), make_normal_gamma(1e-30, 3.0, 0.4, Y + 1e6)
    for rows in ([0, 2], [1, 2, 5], list(range(6))):
        a, b = (log_marginal(leaf, stats_of(leaf, rows)) for leaf in (near, far))
        assert a == pytest.approx(b, abs=1e-7)


@pytest.mark.parametrize("name", ["gaps", "noisy"])
def test_target_less_residual_is_the_sum_of_the_trees_after_many_sweeps(name, rng):
    problem, m = PROBLEMS[name], 4
    setup = make_setup(problem, "normal", m=m)
    fit = np.empty((problem.n, 1))
    for _ in range(20):
        assert sweep_on(rng, setup.problem, CGM, setup.work, 1000)[0].any()
        fit_of(setup.leaf, setup.trees, fit)
        assert np.abs(problem.y - setup.leaf.r - fit[:, 0]).max() < 1e-9
    sigma = np.broadcast_to(problem.sigma, problem.n)
    exact = stats.norm(fit[:, 0], sigma).logpdf(problem.y).sum()
    assert log_likelihood(setup.leaf, setup.trees) == pytest.approx(exact, abs=1e-8)


@pytest.mark.parametrize("leaf_name", ["normal_gamma", "dirichlet"])
def test_likelihood_of_one_tree(leaf_name, rng):
    problem = PROBLEMS["gaps"]
    setup = make_setup(problem, leaf_name)
    for _ in range(20):
        assert sweep_on(rng, setup.problem, CGM, setup.work)[0].any()
        values = setup.trees.values[setup.trees.leaf_of[0]]
        if leaf_name == "dirichlet":
            exact = np.log(values[np.arange(problem.n), problem.labels]).sum()
        else:
            exact = stats.norm(values[:, 0], values[:, 1] ** -0.5).logpdf(problem.y).sum()
        assert log_likelihood(setup.leaf, setup.trees) == pytest.approx(exact, abs=1e-10)
    assert preorder(setup.trees, 0, setup.work.nodes) >= 1
