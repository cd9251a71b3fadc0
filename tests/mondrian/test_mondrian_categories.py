"""Class counts are those of a batch, and predictions the average over sampled extensions."""

import numpy as np
import pytest
from scipy import integrate
from support.mondrian_twin import grow, live, rows_below, rules, stream

from pymc_trees.core.mondrian.categories import add_class_probabilities

K = 3


def data(rng, n=60):
    X = rng.random((n, 2))
    y = (X[:, 0] > 0.5).astype(np.int64) + (rng.random(n) < 0.2)
    return X, y


def counts_of(tree, X, y):
    """dict node -> customers per dish (thesis, alg. 5.3), from the rows."""
    below = rows_below(tree, X)
    counts = {}
    for j in reversed(live(tree)):
        if tree.column[j] < 0:
            counts[j] = np.bincount(y[below[j]], minlength=K)
        else:
            counts[j] = sum(np.minimum(counts[int(c)], 1) for c in (tree.left[j], tree.right[j]))
    return counts


@pytest.mark.parametrize("settings", [{}, {"min_samples_split": 6}, {"max_leaves": 9}])
@pytest.mark.parametrize("pause_pure", [False, True])
def test_counts_online_are_those_of_the_rows(rng, settings, pause_pure):
    X, y = data(rng)
    y[:3] = [0, 1, 2]
    for start in (0, 30, 60):
        tree, labels = stream(rng, X, y, rules(**settings, pause_pure=pause_pure), start=start)
        for j, counts in counts_of(tree, X, y).items():
            np.testing.assert_array_equal(labels.counts[j], counts)


def mean_at(counts, delta, gamma, above):
    """Posterior mean at a node (5.5)."""
    d = np.exp(-gamma * delta)
    tables = np.minimum(counts, 1)
    return (counts - d * tables + d * tables.sum() * above) / counts.sum()


def walk(tree, counts, gamma, x, branch):
    """Sum over the path of what ``branch`` gives for it, and the end of the path."""
    above, j, start, stays, total = np.full(K, 1 / K), int(tree.state[0]), 0.0, 1.0, 0.0
    while True:
        end = min(tree.time[j], tree.lifetime[0])
        low, high = tree.box[j]
        eta = np.maximum(np.maximum(x - high, low - x), 0).sum()
        total = total + stays * branch(eta, end - start, np.minimum(counts[j], 1), above)
        stays *= np.exp(-eta * (end - start)) if eta > 0 else 1.0
        above = mean_at(counts[j], end - start, gamma, above)
        if tree.column[j] < 0:
            return total + stays * above
        j = int(tree.left[j] if x[tree.column[j]] <= tree.cut[j] else tree.right[j])
        start = end


def predict(tree, labels, gamma, X):
    out = np.zeros((len(X), K))
    add_class_probabilities(tree, labels, gamma, X, out)
    return out


@pytest.mark.parametrize("lifetime", [np.inf, 1.5])
@pytest.mark.parametrize("gamma", [0.3, 20.0])
def test_branching_time_is_integrated(rng, gamma, lifetime):
    X, y = data(rng)
    y[:3] = [0, 1, 2]
    tree, labels = grow(rng, X, y, rules(3, pause_pure=True), lifetime)
    counts = counts_of(tree, X, y)
    points = np.vstack([rng.uniform(-0.5, 1.5, (12, 2)), X[:4]])

    def branch(eta, delta, tables, above):
        if eta == 0:
            return np.zeros(K)

        def f(t, k):
            return eta * np.exp(-eta * t) * mean_at(tables, t, gamma, above)[k]

        return np.array([integrate.quad(f, 0, delta, args=(k,), epsabs=1e-12)[0] for k in range(K)])

    exact = [walk(tree, counts, gamma, x, branch) for x in points]
    found = predict(tree, labels, gamma, points)
    np.testing.assert_allclose(found, exact, atol=1e-8)
    np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-12)


def extended_prediction(rng, tree, counts, gamma, x):
    """Sample one extension (alg. 5.6, no label) and return the posterior mean at x's leaf."""
    above, j, start = np.full(K, 1 / K), int(tree.state[0]), 0.0
    while True:
        end = min(tree.time[j], tree.lifetime[0])
        low, high = tree.box[j]
        eta = np.maximum(np.maximum(x - high, low - x), 0).sum()
        if eta > 0:
            age = rng.exponential(1 / eta)
            if start + age < end:  # the new leaf has no customers: its parent's mean
                return mean_at(np.minimum(counts[j], 1), age, gamma, above)
        above = mean_at(counts[j], end - start, gamma, above)
        if tree.column[j] < 0:
            return above
        j = int(tree.left[j] if x[tree.column[j]] <= tree.cut[j] else tree.right[j])
        start = end


def test_prediction_is_the_average_over_extensions(rng):
    """Standard errors of 4,000 draws are below 0.008; 5 of them are allowed."""
    X, y = data(rng)
    y[:3] = [0, 1, 2]
    tree, labels = grow(rng, X, y, rules(2, pause_pure=True))
    counts = counts_of(tree, X, y)
    for x in np.array([[0.45, 0.5], [1.2, 0.1], [-0.3, -0.3], [0.55, 1.05]]):
        draws = np.array([extended_prediction(rng, tree, counts, 3.0, x) for _ in range(4000)])
        error = draws.std(axis=0) / np.sqrt(4000)
        found = predict(tree, labels, 3.0, x[None])[0]
        assert (np.abs(draws.mean(axis=0) - found) < 5 * error + 1e-12).all()


def test_far_away_is_the_prior(rng):
    X, y = data(rng)
    tree, labels = grow(rng, X, y, rules(2, pause_pure=True))
    far = predict(tree, labels, 20.0, np.array([[1e9, 0.0]]))
    np.testing.assert_allclose(far, 1 / K, atol=1e-6)
