"""Class counts are those of a batch, estimates those of the model, predictions the average over
sampled extensions."""

import numpy as np
import pytest
from scipy import integrate
from support.mondrian_twin import grow, live, rows_below, rules, stream
from support.stable_process import count_vectors, posterior_mean, probability, with_row

import pymc_trees as pmt
from pymc_trees.mondrian.kernels.categories import MOST_COUNTED, Smoothing, add_class_probabilities
from pymc_trees.mondrian.kernels.extend import extend_tree

K = 3
ESTIMATES = [(True, 0.0), (True, 0.4), (False, 0.0), (False, 0.4)]


def data(rng, n=60, repeat=1):
    X = np.repeat(rng.random((n // repeat, 2)), repeat, axis=0)
    y = (X[:, 0] > 0.5).astype(np.int64) + (rng.random(n) < 0.2)
    y[:3] = [0, 1, 2]
    return X, y


def counts_of(tree, X, y):
    """dict node -> rows per class."""
    return {j: np.bincount(y[rows], minlength=K) for j, rows in rows_below(tree, X).items()}


@pytest.mark.parametrize("settings", [{}, {"min_samples_split": 6}, {"max_leaves": 9}])
@pytest.mark.parametrize("pause_pure", [False, True])
@pytest.mark.parametrize("repeat", [1, 5])
def test_counts_online_are_those_of_the_rows(rng, settings, pause_pure, repeat):
    X, y = data(rng, repeat=repeat)
    order = rng.permutation(60)
    X, y = X[order], y[order]
    y[:3] = [0, 1, 2]
    for start in (0, 30, 60):
        tree, labels = stream(rng, X, y, rules(**settings, pause_pure=pause_pure), start=start)
        counts = counts_of(tree, X, y)
        for j in live(tree):
            np.testing.assert_array_equal(labels.counts[j], counts[j])


def customers_of(tree, counts):
    """dict node -> customers per dish (thesis, alg. 5.3)."""
    found = {}
    for j in reversed(live(tree)):
        if tree.column[j] < 0:
            found[j] = counts[j]
        else:
            found[j] = sum(np.minimum(found[int(c)], 1) for c in (tree.left[j], tree.right[j]))
    return found


class Slow:
    """Estimates at the nodes of a tree, from its rows."""

    def __init__(self, tree, X, y, gamma, one_table, theta):
        self.tree, self.gamma, self.one_table, self.theta = tree, gamma, one_table, theta
        self.counts = counts_of(tree, X, y)
        self.customers = customers_of(tree, self.counts)

    def at(self, j, delta, above):
        """Estimate at a node: (1) or (3)."""
        d, theta = np.exp(-self.gamma * delta), self.theta
        if self.one_table:
            c = self.customers[j]
            t = np.minimum(c, 1)
            return (c - d * t + (theta + d * t.sum()) * above) / (c.sum() + theta)
        n = self.counts[j].sum()
        weight = 1.0 if d + theta == 0 else 1 / (1 + (d + theta) / (n * (1 - d)))
        return weight * self.counts[j] / n + (1 - weight) * above

    def after(self, u, j, delta, above):
        """Estimate at a new parent above a node: (2) or (4)."""
        e, d = np.exp(-self.gamma * u), np.exp(-self.gamma * delta)
        if self.one_table:
            t = np.minimum(self.customers[j], 1)
            return (1 - e) * t / t.sum() + e * above
        n = self.counts[j].sum()
        return above + (1 - e) / (1 - d + d / n) * (self.counts[j] / n - above)

    def walk(self, x, branch):
        """Sum over the path of what ``branch`` gives for it, and the end of the path."""
        tree, above, j = self.tree, np.full(K, 1 / K), int(self.tree.state[0])
        start, stays, total = 0.0, 1.0, 0.0
        while True:
            end = min(tree.time[j], tree.lifetime[0])
            low, high = tree.box[j]
            eta = np.maximum(np.maximum(x - high, low - x), 0).sum()
            done = branch(eta, j, end - start, above)
            if done is not None:
                total = total + stays * done
                stays *= np.exp(-eta * (end - start)) if eta > 0 else 1.0
            above = self.at(j, end - start, above)
            if tree.column[j] < 0:
                return total + stays * above
            j = int(tree.left[j] if x[tree.column[j]] <= tree.cut[j] else tree.right[j])
            start = end


def predict(tree, labels, gamma, X, one_table, theta):
    out = np.zeros((len(X), K))
    add_class_probabilities(tree, labels, Smoothing(one_table, gamma, theta), X, out)
    return out


@pytest.mark.parametrize("estimate", ESTIMATES)
@pytest.mark.parametrize("lifetime", [np.inf, 1.5])
@pytest.mark.parametrize("gamma", [0.3, 20.0])
def test_branching_time_is_integrated(rng, gamma, lifetime, estimate):
    X, y = data(rng, repeat=4)
    tree, labels = grow(rng, X, y, rules(3, pause_pure=True), lifetime)
    slow = Slow(tree, X, y, gamma, *estimate)
    points = np.vstack([rng.uniform(-0.5, 1.5, (12, 2)), X[:8:2]])

    def branch(eta, j, delta, above):
        if eta == 0:
            return np.zeros(K)

        def f(t, k):
            return eta * np.exp(-eta * t) * slow.after(t, j, delta, above)[k]

        return np.array([integrate.quad(f, 0, delta, args=(k,), epsabs=1e-12)[0] for k in range(K)])

    exact = [slow.walk(x, branch) for x in points]
    found = predict(tree, labels, gamma, points, *estimate)
    np.testing.assert_allclose(found, exact, atol=1e-8)
    np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-12)
    assert found.min() >= 0


class Branched(Exception):
    pass


@pytest.mark.parametrize("estimate", [ESTIMATES[0], ESTIMATES[3]])
def test_prediction_is_the_average_over_extensions(rng, estimate):
    """Standard errors of 4,000 draws are below 0.008; 5 of them are allowed."""
    X, y = data(rng)
    tree, labels = grow(rng, X, y, rules(2, pause_pure=True))
    slow = Slow(tree, X, y, 3.0, *estimate)

    def branch(eta, j, delta, above):  # alg. 5.6, no label
        age = rng.exponential(1 / eta) if eta > 0 else np.inf
        if age < delta:  # the new leaf has no customers: its parent's estimate
            raise Branched(slow.after(age, j, delta, above))

    def extended(x):
        try:
            return slow.walk(x, branch)
        except Branched as end:
            return end.args[0]

    for x in np.array([[0.45, 0.5], [1.2, 0.1], [-0.3, -0.3], [0.55, 1.05]]):
        draws = np.array([extended(x) for _ in range(4000)])
        error = draws.std(axis=0) / np.sqrt(4000)
        found = predict(tree, labels, 3.0, x[None], *estimate)[0]
        assert (np.abs(draws.mean(axis=0) - found) < 5 * error + 1e-12).all()


@pytest.mark.parametrize("estimate", ESTIMATES)
def test_far_away_is_the_prior(rng, estimate):
    X, y = data(rng)
    tree, labels = grow(rng, X, y, rules(2, pause_pure=True))
    far = predict(tree, labels, 20.0, np.array([[1e9, 0.0]]), *estimate)
    np.testing.assert_allclose(far, 1 / K, atol=1e-6)


BASE = np.array([0.5, 0.3, 0.2])


def slope(law):
    """Of the best linear estimate of a label's indicator from its share among other rows.

    ``law``: (share of label 0, its chance given the others, probability).
    """
    share, chance, p = np.array(law).T
    assert p.sum() == pytest.approx(1)
    apart = share - p @ share
    return (p @ (apart * chance)) / (p @ apart**2)


@pytest.mark.parametrize("n", [1, 2, 5])
@pytest.mark.parametrize("theta", [0.0, 0.4])
@pytest.mark.parametrize("d", [1e-6, 0.3, 0.9])
def test_shares_are_the_best_linear_estimate_at_a_node(d, theta, n):
    """(3), against the exact law of n + 1 labels of one process."""
    law = []
    for counts, orders in count_vectors(n, 3):
        node = (d, theta, counts, ())
        chance = posterior_mean(node, (), BASE)[0]
        law.append((counts[0] / n, chance, orders * probability(node, BASE)))
    assert slope(law) == pytest.approx(n * (1 - d) / (n * (1 - d) + d + theta), rel=1e-6)


@pytest.mark.parametrize("n", [1, 4])
@pytest.mark.parametrize("d, e", [(1e-6, 0.3), (0.2, 0.5), (0.6, 0.9)])
def test_shares_are_the_best_linear_estimate_above_a_node(d, e, n):
    """(4), against the exact law of n labels of a node and one of its new parent."""
    law = []
    for counts, orders in count_vectors(n, 3):
        tree = (e, 0.0, (0, 0, 0), ((d / e, 0.0, counts, ()),))
        p = probability(tree, BASE)
        chance = probability(with_row(tree, (), 0), BASE) / p
        law.append((counts[0] / n, chance, orders * p))
    assert slope(law) == pytest.approx((1 - e) * n / (n * (1 - d) + d), rel=1e-6)


def test_one_table_is_the_posterior_mean_as_discounts_go_to_0():
    """So the shares of a place do not go up there, by the model itself; with rows alone they do."""
    d, base = 1e-5, np.full(2, 0.5)
    leaves = tuple((d, 0.0, counts, ()) for counts in [(4, 1), (3, 1), (0, 2)])
    tree = (d, 0.0, (0, 0), leaves)
    root = np.array([2, 3]) / 5  # two of the children have seen label 0, three have seen label 1
    np.testing.assert_allclose(posterior_mean(tree, (), base), root, atol=1e-3)
    np.testing.assert_allclose(posterior_mean(tree, (0,), base), [0.8, 0.2], atol=1e-3)


def shares_of(forest, X):
    return forest.predict_proba(X).mean(axis=0)


SHARES = np.array([0.8, 0.15, 0.05])


@pytest.mark.parametrize(
    "settings",
    [{}, {"min_samples_split": 30}, {"max_leaf_nodes": 10}, {"lifetime": 3.0}, {"max_memory": 0.2}],
)
def test_shares_of_repeated_rows_are_kept(rng, settings):
    """Every place has the same shares; so have new points and the places, however rows come."""
    places = rng.random((60, 2))
    X, y = np.repeat(places, 20, axis=0), np.tile([0] * 16 + [1] * 3 + [2], 60)
    order = rng.permutation(len(X))
    forest = pmt.MondrianForestClassifier(5, random_state=1, **settings)
    for rows in (order[:500], *np.array_split(order[500:510], 10), order[510:]):
        forest.partial_fit(X[rows], y[rows], classes=[0, 1, 2])
    inside = rng.uniform(0.2, 0.8, (200, 2))
    np.testing.assert_allclose(shares_of(forest, inside), SHARES, atol=0.04)
    np.testing.assert_allclose(shares_of(forest, places), SHARES, atol=0.04)
    if not settings:
        forest.set_params(smoothing="kneser-ney")
        assert shares_of(forest, inside)[0] < 0.4


def test_points_between_whole_numbers(rng):
    X = rng.integers(0, 4, (1600, 2)).astype(float)
    y = (rng.random(1600) < np.where(X[:, 0] > 1, 0.3, 0.1)).astype(int)
    forest = pmt.MondrianForestClassifier(20, random_state=1).fit(X, y)
    found = forest.predict_proba([[0.5, 0.5], [2.5, 1.5]])[:, 1]
    low, high = (y[side].mean() for side in (X[:, 0] < 2, X[:, 0] > 1))
    np.testing.assert_allclose(found, [low, high], atol=0.06)
    forest.set_params(smoothing="kneser-ney")
    np.testing.assert_allclose(forest.predict_proba([[0.5, 0.5]]), 0.5, atol=1e-3)


def test_a_place_with_rows_of_one_class_does_not_exclude_the_others(rng):
    """The more rows it has, the less: 0.3 rows of its parent's estimate."""
    X = np.repeat(np.arange(4.0), [1, 10, 40, 40])[:, None]
    y = np.repeat([0, 0, 1, 0], [1, 10, 40, 40])
    forest = pmt.MondrianForestClassifier(50, random_state=1).fit(X, y)
    other = forest.predict_proba([[0.0], [1.0], [3.0]])[:, 1]
    assert other[0] > 2 * other[1] > 0 and other[1] > 2 * other[2] > 0
    forest.set_params(concentration=0)
    np.testing.assert_array_equal(forest.predict_proba([[0.0], [1.0], [3.0]])[:, 1], 0)


def test_a_place_is_known_in_spite_of_rounding(rng):
    X = np.round(rng.random((300, 2)), 1)
    y = rng.integers(0, 2, 300)
    forest = pmt.MondrianForestClassifier(5, random_state=1).fit(X, y)
    near = X * 3 / 3 * 0.1 / 0.1
    assert (near != X).any()
    np.testing.assert_allclose(forest.predict_proba(near), forest.predict_proba(X))


def test_a_count_stops_where_it_would_overflow(rng):
    X, y = data(rng)
    tree, labels = grow(rng, X, y, rules(2))
    labels.counts[tree.state[0], 1] = MOST_COUNTED - 1
    row, label = X[:1].repeat(3, axis=0), np.ones(3, dtype=np.int64)
    rows = np.vstack([X, row]), np.append(y, label)
    tree, labels = extend_tree(rng, tree, labels, rules(2), *rows, 60, 63)
    assert labels.counts[tree.state[0], 1] == MOST_COUNTED
