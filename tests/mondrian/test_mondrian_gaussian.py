"""Belief propagation is the dense Gaussian solution; the mixture averages over extensions."""

from functools import partial

import numpy as np
import pytest
from scipy import integrate, special, stats
from support.mondrian_twin import grow, live, rows_below, rules, stream

from pymc_trees.mondrian.kernels.predict import (
    Hierarchy,
    add_left_out,
    add_moments,
    by_row,
    collect,
    draw,
    edge,
    log_density,
    product,
    quantiles,
    send_messages,
)
from pymc_trees.mondrian.kernels.tree import MAX_TIMES, branching_times

GRID = np.linspace(-3, 4, 2001)
PRIOR = Hierarchy(0.7, 2.0, 0.4, 0.1)


def data(rng, n=40):
    X = rng.random((n, 2))
    return X, np.sin(5 * X[:, 0]) + 0.3 * rng.normal(size=n)


def variance_at(prior, time):
    """Prior variance of a mean at some time."""
    return prior.gamma_1 * (special.expit(prior.gamma_2 * time) - 0.5)


def path(tree, node):
    """The node and all above it."""
    nodes = [int(node)]
    while tree.parent[nodes[-1]] >= 0:
        nodes.append(int(tree.parent[nodes[-1]]))
    return nodes


def shared_time(tree, a, b):
    """Time up to which two nodes have the same mean's path."""
    common = next(j for j in path(tree, a) if j in path(tree, b))
    return min(tree.time[common], tree.lifetime[0])


def dense(tree, X, y, prior):
    """Covariance of labels with each other; of node means with labels; leaves of the rows."""
    below = rows_below(tree, X)
    nodes = live(tree)
    leaf = np.array(
        [next(j for j in nodes if tree.column[j] < 0 and i in below[j]) for i in range(len(X))]
    )
    cov = np.array(
        [[variance_at(prior, shared_time(tree, a, b)) for b in leaf] for a in leaf]
    ) + prior.noise * np.eye(len(X))
    return nodes, leaf, cov


@pytest.mark.parametrize("lifetime", [np.inf, 2.0])
@pytest.mark.parametrize("min_samples_split", [2, 6])
def test_messages_give_the_dense_posterior(rng, min_samples_split, lifetime):
    X, y = data(rng)
    tree, labels = stream(rng, X, y, rules(min_samples_split), lifetime)
    belief = send_messages(tree, labels, PRIOR)
    nodes, leaf, cov = dense(tree, X, y, PRIOR)
    weights = np.linalg.solve(cov, y - PRIOR.mean)
    for j in nodes:
        cross = np.array([variance_at(PRIOR, shared_time(tree, j, b)) for b in leaf])
        own = variance_at(PRIOR, min(tree.time[j], tree.lifetime[0]))
        mean, var = product(
            belief.mean_above[j],
            belief.var_above[j] + edge(tree, PRIOR, j),
            belief.mean_below[j],
            belief.var_below[j],
        )
        assert mean == pytest.approx(PRIOR.mean + cross @ weights, abs=1e-9)
        assert var == pytest.approx(own - cross @ np.linalg.solve(cov, cross), abs=1e-9)


@pytest.mark.parametrize("min_samples_split", [2, 6])
def test_left_out_is_the_dense_prediction_from_the_others(rng, min_samples_split):
    X, y = data(rng, 25)
    tree, labels = grow(rng, X, y, rules(min_samples_split))
    nodes, leaf, cov = dense(tree, X, y, PRIOR)
    found = np.zeros((2, 25))
    add_left_out(tree, labels, send_messages(tree, labels, PRIOR), y, leaf, *found)
    for i in range(25):
        others = np.arange(25) != i
        cross = cov[i, others]
        inner = cov[np.ix_(others, others)]
        mean = PRIOR.mean + cross @ np.linalg.solve(inner, y[others] - PRIOR.mean)
        var = cov[i, i] - cross @ np.linalg.solve(inner, cross)
        np.testing.assert_allclose(found[:, i], [mean, var + mean**2], atol=1e-9)


def extension(tree, x):
    """[(node, start, end, distance)] along the path of a point."""
    j, start, out = int(tree.state[0]), 0.0, []
    while True:
        end = min(tree.time[j], tree.lifetime[0])
        low, high = tree.box[j]
        out.append((j, start, end, np.maximum(np.maximum(x - high, low - x), 0).sum()))
        if tree.column[j] < 0:
            return out
        j = int(tree.left[j] if x[tree.column[j]] <= tree.cut[j] else tree.right[j])
        start = end


def dense_prediction(tree, leaf, cov, y, node, time):
    """Mean and variance of a new label whose leaf leaves the tree at ``time``, above ``node``.

    ``time`` None: in the leaf ``node``.
    """
    lifetime = tree.lifetime[0]
    cross = np.array([shared_time(tree, node, b) for b in leaf])
    if time is not None:
        cross = np.minimum(cross, time)
    cross = variance_at(PRIOR, cross)
    mean = PRIOR.mean + cross @ np.linalg.solve(cov, y - PRIOR.mean)
    var = variance_at(PRIOR, lifetime) - cross @ np.linalg.solve(cov, cross) + PRIOR.noise
    return mean, var


def one_row(tree, labels, belief, x):
    return collect(tree, labels, belief, x[None])[0]


@pytest.mark.parametrize("lifetime", [np.inf, 2.0])
def test_mixture_is_the_integral_over_extensions(rng, lifetime):
    """Quadrature error is below 4e-6 of gamma_1 in s and s**2; 5e-5 leaves room for density."""
    X, y = data(rng, 15)
    tree, labels = grow(rng, X, y, rules(3), lifetime)
    belief = send_messages(tree, labels, PRIOR)
    _, leaf, cov = dense(tree, X, y, PRIOR)
    at = 0.2
    for x in np.vstack([rng.uniform(-0.3, 1.3, (3, 2)), [[3.0, 9.0]], X[:1]]):
        exact, stays = np.zeros(4), 1.0
        for j, start, end, eta in extension(tree, x):

            def values(mean, var):
                density = np.exp(-((at - mean) ** 2) / var / 2) / np.sqrt(2 * np.pi * var)
                return np.array([mean**0, mean, var + mean**2, density])

            def f(u, j=j, start=start, eta=eta):
                return (
                    eta
                    * np.exp(-eta * u)
                    * values(*dense_prediction(tree, leaf, cov, y, j, start + u))
                )

            if eta > 0:
                until = min(end - start, 40 / eta)
                exact += stays * integrate.quad_vec(f, 0, until, epsabs=1e-9)[0]
                stays *= np.exp(-eta * (end - start))
        exact += stays * values(*dense_prediction(tree, leaf, cov, y, j, None))
        w, m, v = one_row(tree, labels, belief, x).T
        found = values(m, v) @ w
        assert exact[0] == pytest.approx(1, abs=1e-8)
        np.testing.assert_allclose(found, exact, atol=5e-5)
        assert found[0] == pytest.approx(1, abs=1e-12)
        first, second = np.zeros(1), np.zeros(1)
        add_moments(tree, labels, belief, x[None], 0.5, first, second)
        np.testing.assert_allclose([first[0], second[0]], [w @ (m - 0.5), w @ (v + (m - 0.5) ** 2)])


def test_mixture_is_the_average_over_sampled_extensions(rng):
    """Means of 4,000 sampled extensions, within 5 standard errors; exact and fast belief."""
    X, y = data(rng, 25)
    tree, labels = grow(rng, X, y, rules(3))
    _, leaf, cov = dense(tree, X, y, PRIOR)
    belief, fast = send_messages(tree, labels, PRIOR), PRIOR._replace(noise=0.1)
    for x in np.array([[0.5, 0.5], [1.1, 0.4], [-1.0, 2.0]]):
        draws = []
        for _ in range(4000):
            for node, start, end, eta in extension(tree, x):
                j = node
                time = start + rng.exponential(1 / eta) if eta > 0 else np.inf
                if time < end:
                    break
            else:
                time = None
            mean, var = dense_prediction(tree, leaf, cov, y, j, time)
            fast_mean = labels.mean[j]
            fast_var = labels.squares[j] / labels.n[j] + 0.1
            draws.append([mean, var + mean**2, fast_mean, fast_var + fast_mean**2])
        error = np.std(draws, axis=0) / np.sqrt(4000)
        w, m, v = one_row(tree, labels, belief, x).T
        found = [w @ m, w @ (v + m**2)]
        w, m, v = one_row(tree, labels, fast, x).T
        found += [w @ m, w @ (v + m**2)]
        moments = np.zeros((2, 1))
        add_moments(tree, labels, fast, x[None], 0.0, *moments)
        np.testing.assert_allclose(moments[:, 0], found[2:])
        assert (np.abs(np.mean(draws, axis=0) - found) < 5 * error + 1e-5).all()


def test_far_away_is_the_prior(rng):
    X, y = data(rng)
    tree, labels = grow(rng, X, y, rules(3))
    w, m, v = one_row(tree, labels, send_messages(tree, labels, PRIOR), np.array([1e7, 0.5])).T
    assert w @ m == pytest.approx(PRIOR.mean, abs=1e-5)
    assert w @ (v + m**2) - (w @ m) ** 2 == pytest.approx(PRIOR.gamma_1 / 2 + PRIOR.noise, abs=1e-5)


def test_labels_that_are_all_alike_need_no_variance(rng):
    X = rng.random((20, 2))
    y = np.full(20, 3.0)
    tree, labels = grow(rng, X, y, rules(2))
    belief = send_messages(tree, labels, Hierarchy(3.0, 0.0, 0.4, 0.0))
    parts, _ = collect(tree, labels, belief, np.vstack([X[:3], [[5.0, 5.0]]]))
    assert (parts[:, 1] == 3.0).all()
    assert (parts[:, 2] == 0.0).all()


@pytest.mark.parametrize("alpha", [1e-3, 0.05, 0.7, 1.0, 1.3, 20.0, 1e4])
@pytest.mark.parametrize("spread", [1e-2, 1.0, 30.0, np.inf])
def test_quadrature_of_the_branching_time(alpha, spread):
    eta = 1.7
    gamma = alpha * eta
    delta = spread / max(eta, gamma)
    weight, decay = np.empty(MAX_TIMES), np.empty(MAX_TIMES)
    n = branching_times(eta, gamma, delta, weight, decay)
    weight, decay = weight[:n], decay[:n]
    assert weight.sum() == pytest.approx(-np.expm1(-eta * delta), rel=1e-12)
    assert (weight >= 0).all()
    points = [p for c in (0.1, 1, 10) for p in (c / eta, c / gamma)]
    until = min(delta, 45 / eta)
    for c in (1.0, 0.3):
        used = c / (1 + c) - c * decay / (1 + c * decay)  # s / gamma_1
        for power in (1, 2):

            def f(u, c=c, power=power):
                d = c * np.exp(-gamma * u)
                return eta * np.exp(-eta * u) * (c / (1 + c) - d / (1 + d)) ** power

            knots = [0.0, *sorted(p for p in points if p < until), until]
            exact = sum(
                integrate.quad(f, a, b, epsabs=1e-13, epsrel=1e-11)[0]
                for a, b in zip(knots[:-1], knots[1:])
            )
            scale = -np.expm1(-eta * delta)
            assert abs(weight @ used**power - exact) < 4e-6 * scale


def test_moments_online_are_those_of_the_rows(rng):
    X, y = data(rng, 80)
    for settings in ({}, {"min_samples_split": 6}, {"max_leaves": 9}):
        for start in (0, 40, 80):
            tree, labels = stream(rng, X, y + 1e6, rules(**settings), start=start)
            for j, rows in rows_below(tree, X).items():
                assert labels.n[j] == len(rows)
                assert labels.mean[j] == pytest.approx(1e6 + y[rows].mean(), rel=1e-12)
                assert labels.squares[j] == pytest.approx(
                    ((y[rows] - y[rows].mean()) ** 2).sum(), abs=1e-6
                )


@pytest.fixture
def mixtures(rng):
    """Five mixtures of two trees, one with a point in it."""
    parts, counts = [], []
    for _ in range(2):
        counts.append(rng.integers(1, 5, 5))
        part = np.column_stack([rng.random((sum(counts[-1]), 2)), rng.random(sum(counts[-1]))])
        stops = np.cumsum(counts[-1])
        for a, b in zip(stops - counts[-1], stops):
            part[a:b, 0] /= part[a:b, 0].sum()
        parts.append(part)
    parts[0][0, 2] = 0.0
    return by_row(parts, counts)


def cdf(parts, starts, i, at):
    w, m, v = parts[starts[i] : starts[i + 1]].T
    return sum(
        a * stats.norm.cdf(at, b, np.sqrt(c)) if c > 0 else a * (at >= b)
        for a, b, c in zip(w, m, v)
    )


def test_mixtures_of_rows(rng, mixtures):
    parts, starts = mixtures
    levels = np.array([1e-6, 0.05, 0.5, 0.9])
    found = np.empty((5, 4))
    quantiles(parts, starts, levels, special.ndtri(levels), found)
    y = rng.random(5)
    density = np.empty(5)
    log_density(parts, starts, y, density)
    draws = np.empty((5, 4000))
    draw(rng, parts, starts, draws)
    for i in range(5):
        assert parts[starts[i] : starts[i + 1], 0].sum() == pytest.approx(1)
        for q, at in zip(levels, found[i]):
            assert cdf(parts, starts, i, at + 1e-9) >= q - 1e-12
            assert cdf(parts, starts, i, at - 1e-9) <= q + 1e-12
        w, m, v = parts[starts[i] : starts[i + 1]].T
        w, m, v = w[v > 0], m[v > 0], v[v > 0]
        exact = np.log((w * stats.norm.pdf(y[i], m, np.sqrt(v))).sum())
        assert density[i] == pytest.approx(exact)
        if i:
            table = np.array([cdf(parts, starts, i, at) for at in GRID])
            assert stats.kstest(draws[i], partial(np.interp, xp=GRID, fp=table)).pvalue > 1e-5
