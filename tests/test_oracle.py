"""Tests of the exact enumeration oracle: hand calculations, quadrature, simulation."""

import math
from collections import Counter

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import dblquad, quad
from support import oracle as o
from support.tiers import tiers

PROBLEMS = o.datasets()
LEAVES = ("normal", "normal_gamma", "dirichlet")
each_problem = pytest.mark.parametrize("name", PROBLEMS)


def parts(*leaves):
    return frozenset(frozenset(leaf) for leaf in leaves)


def prior_by_partition(X, **prior):
    return o.collapse_trees(o.enumerate_trees(X, **prior))


def close(got, expected, rtol=1e-10, atol=1e-13):
    np.testing.assert_allclose(got, expected, rtol=rtol, atol=atol)


def same_dict(got, expected):
    assert set(got) == set(expected)
    close([got[k] for k in got], [expected[k] for k in got], rtol=1e-9)


# Prior ----------------------------------------------------------------------------


@each_problem
def test_prior_mass_is_one_and_trees_are_distinct(name):
    p = PROBLEMS[name]
    trees = o.enumerate_trees(p.X, **p.prior)
    close(math.fsum(math.exp(t[0]) for t in trees), 1.0, rtol=1e-12)
    assert len({info.structure for _, _, info in trees}) == len(trees)
    for _, partition, info in trees:
        assert sorted(i for leaf in partition for i in leaf) == list(range(p.n))
        assert info.n_leaves == len(partition) == 1 + sum(info.split_counts)


def test_number_of_trees_in_one_column():
    # T(n) = 1 + sum_k T(k) T(n - k), worked by hand
    counts = [len(o.enumerate_trees(np.arange(n)[:, None], 0.5, 1)) for n in range(1, 7)]
    assert counts == [1, 2, 5, 15, 51, 188]


def test_three_rows_by_hand():
    a, b = 0.7, 1.3
    q = a * 2**-b
    expected = {
        parts([0, 1, 2]): 1 - a,
        parts([0], [1, 2]): a * 0.25 * (1 - q),
        parts([0, 1], [2]): a * 0.75 * (1 - q),
        parts([0], [1], [2]): a * q,
    }
    same_dict(prior_by_partition([[0.0], [1.0], [4.0]], alpha=a, beta=b), expected)


def test_grid_by_hand():
    a, b = 0.7, 1.3
    q = a * 2**-b
    X = [[0.0], [1.0], [4.0]]
    # cut 0 is in the gap [0, 1); cuts 1 and 3 are in [1, 4); cuts -1 and 9 cut nothing
    got = prior_by_partition(X, alpha=a, beta=b, cuts=[np.array([-1.0, 0.0, 1.0, 3.0, 9.0])])
    expected = {
        parts([0, 1, 2]): 1 - a,
        parts([0], [1, 2]): a / 3 * (1 - q),
        parts([0, 1], [2]): a * 2 / 3 * (1 - q),
        parts([0], [1], [2]): a * q,
    }
    same_dict(got, expected)
    # a cut at the maximum leaves the right child empty: it is not available
    got = prior_by_partition(X, alpha=a, beta=b, cuts=[np.array([0.5, 2.0, 4.0])])
    close(got[parts([0], [1, 2])], a / 2 * (1 - q))
    # no grid cut between rows 0 and 1: that node is a leaf with probability one
    got = prior_by_partition(X, alpha=a, beta=b, cuts=[np.array([2.0, 3.0])])
    same_dict(got, {parts([0, 1, 2]): 1 - a, parts([0, 1], [2]): a})


def test_column_weights_by_hand():
    a, b = 0.7, 1.3
    q = a * 2**-b
    X = [[0, 0, 9], [1, 0, 9], [1, 1, 9]]
    trees = o.enumerate_trees(X, a, b, split_prior=[3, 1, 50])
    structures = {info.structure: math.exp(lp) for lp, _, info in trees}
    first, second = (0, (0.0, 1.0)), (1, (0.0, 1.0))
    expected = {
        (): 1 - a,
        (*first, (), ()): a * 0.75 * (1 - q),
        (*second, (), ()): a * 0.25 * (1 - q),
        (*first, (), (*second, (), ())): a * 0.75 * q,
        (*second, (*first, (), ()), ()): a * 0.25 * q,
    }
    same_dict(structures, expected)
    # a column of weight zero is never used, and leaves rows 0 and 1 without a split
    got = prior_by_partition(X, alpha=a, beta=b, split_prior=[0, 1, 1])
    same_dict(got, {parts([0, 1, 2]): 1 - a, parts([0, 1], [2]): a})


@pytest.mark.parametrize("name", tiers(PROBLEMS, quick=["binary_constant"]))
def test_prior_agrees_with_simulation(name):
    p, draws = PROBLEMS[name], 3000
    rng = np.random.default_rng(20240501)
    trees = o.enumerate_trees(p.X, **p.prior)
    seen = [o.structure_of(o.draw_tree(rng, p.X, **p.prior), p.X) for _ in range(draws)]
    structures = {info.structure: math.exp(lp) for lp, _, info in trees}
    assert {s for s, _ in seen} <= set(structures)
    assert {(s, part) for s, part in seen} <= {(i.structure, part) for _, part, i in trees}
    for law, observed in [
        (structures, Counter(s for s, _ in seen)),
        (o.collapse_trees(trees), Counter(part for _, part in seen)),
    ]:
        big = [k for k in law if law[k] * draws >= 5]
        expected = [law[k] * draws for k in big]
        counts = [observed[k] for k in big]
        if (rest := draws - sum(expected)) > 1:
            expected, counts = [*expected, rest], [*counts, draws - sum(counts)]
        expected = np.array(expected) * draws / sum(expected)
        assert sum(counts) == draws
        assert stats.chisquare(counts, expected).pvalue > 1e-3


@each_problem
def test_truncation_leaves_out_deep_trees_only(name):
    p = PROBLEMS[name]
    whole = o.enumerate_trees(p.X, **p.prior)
    short = o.enumerate_trees(p.X, **p.prior, max_depth=2)
    assert 0 < len(short) < len(whole)
    same_dict(
        {i.structure: lp for lp, _, i in short},
        {i.structure: lp for lp, _, i in whole if i.depth <= 2},
    )


# Leaf models ----------------------------------------------------------------------


@pytest.mark.parametrize("name", ["gaps", "noisy"])
def test_normal_leaf_by_quadrature(name):
    p, rows = PROBLEMS[name], [1, 3, 4]
    sigma = np.broadcast_to(p.sigma, p.n)

    def joint(mu, power=0):
        like = stats.norm.pdf(p.y[rows], mu, sigma[rows]).prod()
        return mu**power * like * stats.norm.pdf(mu, p.mean, p.sd)

    z, m1, m2 = (quad(joint, -9, 9, args=(k,), epsabs=1e-13)[0] for k in range(3))
    leaf = p.normal()
    close(leaf(rows), math.log(z), rtol=1e-8)
    close(leaf.moments(rows), (m1 / z, m2 / z - (m1 / z) ** 2), rtol=1e-7)


def test_normal_gamma_leaf_by_quadrature():
    p, rows = PROBLEMS["gaps"], [1, 3, 4]

    def integral(f):
        # mu = z / sqrt(tau)
        def joint(z, tau):
            mu = z / math.sqrt(tau)
            residual = p.y[rows] - mu
            like = np.prod(np.exp(-0.5 * tau * residual**2) * math.sqrt(tau / 2 / math.pi))
            gamma = stats.gamma.pdf(tau, p.nu / 2, scale=2 / (p.nu * p.lam))
            normal = math.sqrt(p.a * tau / 2 / math.pi) * math.exp(-0.5 * p.a * tau * mu**2)
            return f(mu, tau) * like * gamma * normal / math.sqrt(tau)

        return dblquad(joint, 0, 25, -12, 12, epsabs=1e-8, epsrel=1e-7)[0]

    z = integral(lambda mu, tau: 1.0)
    m1 = integral(lambda mu, tau: mu) / z
    m2 = integral(lambda mu, tau: mu**2) / z
    t1 = integral(lambda mu, tau: tau) / z
    t2 = integral(lambda mu, tau: tau**2) / z
    leaf = p.normal_gamma()
    close(leaf(rows), math.log(z), rtol=1e-5)
    close(leaf.moments(rows), (m1, m2 - m1**2), rtol=1e-4)
    close(leaf.precision_moments(rows), (t1, t2 - t1**2), rtol=1e-4)


def test_dirichlet_leaf_by_quadrature():
    rows = [0, 1, 2, 4]
    labels = np.array([2, 0, 2, 1, 1])
    leaf = o.DirichletLeaf(labels, 3, 4.5)
    counts = np.array([1, 1, 2])

    def integral(f):
        def joint(b, a):
            probs = np.array([a, b, 1 - a - b])
            return f(probs) * np.prod(probs**counts) * np.prod(probs**0.5) * constant

        return dblquad(joint, 0, 1, 0, lambda a: 1 - a, epsabs=1e-9)[0]

    constant = math.gamma(4.5) / math.gamma(1.5) ** 3
    z = integral(lambda probs: 1.0)
    m1 = np.array([integral(lambda probs, k=k: probs[k]) for k in range(3)]) / z
    m2 = np.array([integral(lambda probs, k=k: probs[k] ** 2) for k in range(3)]) / z
    mean, variance = leaf.moments(rows)
    close(leaf(rows), math.log(z), rtol=1e-6)
    close(mean, m1, rtol=1e-5)
    close(variance, m2 - m1**2, rtol=1e-5)


def test_quadrature_leaf_on_poisson_and_normal():
    counts, rows = np.array([3, 0, 5, 1]), [0, 2, 3]

    def log_likelihood(rows, values):
        return stats.poisson.logpmf(counts[rows][:, None], np.exp(values)).sum(axis=0)

    leaf = o.QuadratureLeaf(log_likelihood, o.normal_log_density(0.3, 1.1), -8, 8)

    def joint(mu, power):
        like = stats.poisson.pmf(counts[rows], math.exp(mu)).prod()
        return mu**power * like * stats.norm.pdf(mu, 0.3, 1.1)

    z, m1, m2 = (quad(joint, -8, 6, args=(k,), epsabs=1e-14)[0] for k in range(3))
    close(leaf(rows), math.log(z), rtol=1e-7)
    close(leaf.moments(rows), (m1 / z, m2 / z - (m1 / z) ** 2), rtol=1e-6)

    p = PROBLEMS["gaps"]
    normal = o.QuadratureLeaf(
        lambda rows, v: stats.norm.logpdf(p.y[rows][:, None], v, p.sigma).sum(axis=0),
        o.normal_log_density(p.mean, p.sd),
        -9,
        9,
    )
    trees = o.enumerate_trees(p.X, **p.prior)
    for got, expected in zip(o.posterior(trees, normal), o.posterior(trees, p.normal())):
        close(got, expected, rtol=1e-9)


# Posterior of one tree --------------------------------------------------------------


@pytest.mark.parametrize("X, alpha", [(np.ones((5, 2)), 0.9), (np.arange(10.0).reshape(5, 2), 0.0)])
def test_stump_only_evidence(X, alpha):
    y, sigma = np.array([0.3, -1.0, 0.8, 2.0, 0.1]), np.array([0.5, 1.0, 0.7, 0.6, 2.0])
    trees = o.enumerate_trees(X, alpha, 1.0)
    assert len(trees) == 1
    weights, log_evidence = o.posterior(trees, o.NormalLeaf(y, sigma, 0.4, 1.5))
    covariance = np.diag(sigma**2) + 1.5**2
    exact = stats.multivariate_normal.logpdf(y, np.full(5, 0.4), covariance)
    close(log_evidence, exact)
    assert weights == [1.0]


def test_two_rows_by_hand():
    y, alpha, sigma, sd = np.array([-0.5, 1.1]), 0.6, 0.7, 1.3
    trees = o.enumerate_trees([[0.0], [1.0]], alpha, 2.0)
    leaf = o.NormalLeaf(y, sigma, 0.0, sd)
    weights, log_evidence = o.posterior(trees, leaf)
    together = stats.multivariate_normal.pdf(y, cov=sigma**2 * np.eye(2) + sd**2)
    apart = stats.norm.pdf(y, 0, math.hypot(sigma, sd)).prod()
    evidence = (1 - alpha) * together + alpha * apart
    w = (1 - alpha) * together / evidence
    close(log_evidence, math.log(evidence))
    close(o.pair_probabilities(trees, weights, 2), [[1, w], [w, 1]])
    same_dict(o.leaf_count_distribution(trees, weights), {1: w, 2: 1 - w})
    same_dict(o.depth_distribution(trees, weights), {0: w, 1: 1 - w})
    same_dict(o.partition_probabilities(trees, weights), {parts([0, 1]): w, parts([0], [1]): 1 - w})
    same_dict(o.structure_probabilities(trees, weights), {(): w, (0, (0.0, 1.0), (), ()): 1 - w})
    v1, v2 = 1 / (1 / sd**2 + 1 / sigma**2), 1 / (1 / sd**2 + 2 / sigma**2)
    m1, m2 = y / sigma**2 * v1, y.sum() / sigma**2 * v2
    mean = w * m2 + (1 - w) * m1
    second = w * (v2 + m2**2) + (1 - w) * (v1 + m1**2)
    close(o.row_moments(trees, weights, leaf.moments, 2), (mean, np.sqrt(second - mean**2)))


@pytest.mark.parametrize("max_depth", tiers([None, 2], quick=[2]))
@pytest.mark.parametrize("leaf_name", LEAVES)
@each_problem
def test_two_routes_agree(name, leaf_name, max_depth):
    p = PROBLEMS[name]
    leaf = getattr(p, leaf_name)()
    trees = o.enumerate_trees(p.X, **p.prior, max_depth=max_depth)
    weights, log_evidence = o.posterior(trees, leaf)
    # normal-gamma: check the precision here, its mean goes through the same code
    moments = leaf.precision_moments if leaf_name == "normal_gamma" else leaf.moments
    other = o.dynamic_posterior(p.X, leaf, **p.prior, max_depth=max_depth, leaf_moments=moments)
    close(other.log_evidence, log_evidence)
    close(other.pair_probabilities, o.pair_probabilities(trees, weights, p.n))
    same_dict(other.leaf_counts, o.leaf_count_distribution(trees, weights))
    depths = o.depth_distribution(trees, weights)
    close([other.depths.get(k, 0.0) for k in depths], list(depths.values()), atol=1e-12)
    mean, sd = o.row_moments(trees, weights, moments, p.n)
    close(other.mean, mean)
    close(other.sd, sd, rtol=1e-8)
    if leaf_name == "dirichlet":
        assert mean.shape == (p.n, 3)
        close(mean.sum(axis=1), 1.0)
    partitions = o.partition_prior(p.X, **p.prior, max_depth=max_depth)
    same_dict(partitions, o.collapse_trees(trees))


@pytest.mark.parametrize("leaf_name", LEAVES)
@each_problem
def test_datasets_are_not_trivial(name, leaf_name):
    p = PROBLEMS[name]
    trees = o.enumerate_trees(p.X, **p.prior)
    weights, _ = o.posterior(trees, getattr(p, leaf_name)())
    assert max(o.partition_probabilities(trees, weights).values()) < 0.5
    if name == "deep":
        depths = o.depth_distribution(trees, weights)
        assert sum(mass for depth, mass in depths.items() if depth >= 3) > 0.6


def test_structure_of_refuses_empty_children():
    with pytest.raises(ValueError, match="empty"):
        o.structure_of((0, 9.0, None, None), [[0.0], [1.0]])


# Sums of trees ------------------------------------------------------------------------


@each_problem
def test_sum_of_one_tree_is_one_tree(name):
    p = PROBLEMS[name]
    got = o.tree_sum_posterior(1, p.X, p.y, p.sigma, p.mean, p.sd, **p.prior)
    exact = o.dynamic_posterior(p.X, p.normal(), **p.prior, leaf_moments=p.normal().moments)
    close(got.log_evidence, exact.log_evidence)
    close(got.mean, exact.mean)
    close(got.sd, exact.sd, rtol=1e-8)
    close(got.pair_probabilities, exact.pair_probabilities)
    same_dict(got.leaf_counts, exact.leaf_counts)


@pytest.mark.parametrize("name", ["gaps", "noisy"])
def test_two_stumps_are_one_stump_of_twice_the_variance(name):
    p = PROBLEMS[name]
    got = o.two_tree_posterior(p.X, p.y, p.sigma, p.mean, p.sd, 1e-13, 1.0)
    leaf = o.NormalLeaf(p.y, p.sigma, 2 * p.mean, math.sqrt(2) * p.sd)
    one = o.dynamic_posterior(p.X, leaf, 1e-13, 1.0, leaf_moments=leaf.moments)
    close(got.log_evidence, one.log_evidence)
    close(got.mean, one.mean)
    close(got.sd, one.sd)
    close(got.leaf_counts[2], 1.0)


def test_two_trees_by_regression_on_every_ordered_pair_of_trees():
    p, n = PROBLEMS["noisy"], 4
    X, y, s = p.X[:n], p.y[:n], p.sigma[:n]
    trees = o.enumerate_trees(X, **p.prior)
    masses, firsts, seconds, leaves, pairs = [], [], [], [], []
    for lp1, part1, _ in trees:
        for lp2, part2, _ in trees:
            D = np.array([[float(i in leaf) for leaf in (*part1, *part2)] for i in range(n)])
            prior = np.full(D.shape[1], p.mean)
            spread = p.sd**2 * D @ D.T + np.diag(s**2)
            marginal = stats.multivariate_normal.pdf(y, D @ prior, spread)
            cov = np.linalg.inv(np.eye(len(prior)) / p.sd**2 + D.T @ (D / s[:, None] ** 2))
            value = D @ cov @ (D.T @ (y / s**2) + prior / p.sd**2)
            masses.append(math.exp(lp1 + lp2) * marginal)
            firsts.append(value)
            seconds.append(D @ cov @ D.T + np.outer(value, value))
            leaves.append(len(prior))
            pairs.append(D @ D.T / 2)
    got = o.two_tree_posterior(X, y, s, p.mean, p.sd, **p.prior)
    w = np.array(masses) / sum(masses)
    mean = w @ np.array(firsts)
    covariance = np.tensordot(w, np.array(seconds), axes=1) - np.outer(mean, mean)
    close(got.log_evidence, math.log(sum(masses)))
    close(got.mean, mean)
    close(got.covariance, covariance, rtol=1e-8)
    close(got.sd, np.sqrt(np.diag(covariance)), rtol=1e-8)
    counts = {k: w[np.array(leaves) == k].sum() for k in set(leaves)}
    same_dict(got.leaf_counts, counts)
    close(got.pair_probabilities, np.tensordot(w, np.array(pairs), axes=1))
    close(sum(weight for _, weight in got.combinations), 1.0)


@pytest.mark.parametrize("n_trees", tiers([1, 2, 3], quick=[2]))
@pytest.mark.parametrize("name", ["noisy", "three_columns"])
def test_sums_agree_with_simulation(name, n_trees):
    """Prior draws of trees and leaf values, weighted by the likelihood."""
    p, draws = PROBLEMS[name], 6000 // n_trees
    rng = np.random.default_rng(7)
    f = np.array(
        [
            sum(
                o.draw_values(rng, o.draw_tree(rng, p.X, **p.prior), p.X, p.mean, p.sd)
                for _ in range(n_trees)
            )
            for _ in range(draws)
        ]
    )
    sigma = np.full(p.n, 1.0) * p.sigma
    weights = np.exp(stats.norm.logpdf(p.y, f, sigma).sum(axis=1))
    got = o.tree_sum_posterior(n_trees, p.X, p.y, p.sigma, p.mean, p.sd, **p.prior)
    evidence = weights.mean()
    error = weights.std() / math.sqrt(draws) / evidence
    assert error < 0.2
    assert abs(evidence / math.exp(got.log_evidence) - 1) < 4 * error
    w = weights / weights.sum()
    spread = np.sqrt(np.sum(w[:, None] ** 2 * (f - got.mean) ** 2, axis=0))
    assert (np.abs(w @ f - got.mean) < 4 * spread).all()
    assert (spread < 0.5 * got.sd).all()
    square = (f - got.mean) ** 2
    spread = np.sqrt(np.sum(w[:, None] ** 2 * (square - got.sd**2) ** 2, axis=0))
    assert (np.abs(w @ square - got.sd**2) < 4 * spread).all()
