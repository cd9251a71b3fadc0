"""A Mondrian forest with `max_memory`: what it takes, what it forgets, and what stays as it was."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import pymc_trees as pmt
from pymc_trees.mondrian import trees as module
from pymc_trees.mondrian.kernels.extend import rows_of, thin
from pymc_trees.mondrian.kernels.tree import NONE, USED, make_tree

KINDS = ["classes", "numbers"]
N = 12_000


def data(kind, n=N):
    """Rows; classes that are almost coins, so that few leaves are pure, or a function and noise."""
    rng = np.random.default_rng(7)
    X = rng.random((n, 3))
    if kind == "classes":
        return X, (rng.random(n) < 0.4 + 0.2 * X[:, 0]).astype(int)
    return X, np.sin(5 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=n)


def make(kind, **settings):
    settings = {"n_estimators": 4, "random_state": 1, **settings}
    if kind == "classes":
        return pmt.MondrianForestClassifier(**settings)
    return pmt.MondrianForestRegressor(**settings)


def feed(forest, X, y, part=600):
    more = {"classes": [0, 1]} if isinstance(forest, pmt.MondrianForestClassifier) else {}
    for begin in range(0, len(X), part):
        forest.partial_fit(X[begin : begin + part], y[begin : begin + part], **more)
    return forest


def predictions(forest, X):
    if isinstance(forest, pmt.MondrianForestClassifier):
        return forest.predict_proba(X)
    return np.stack(forest.predict(X, return_std=True))


def bytes_of(forest):
    """Of all arrays of a forest, those of its beliefs among them."""
    grown = forest._fitted
    arrays = [a for tree in grown.trees for part in tree for a in part]
    arrays += [grown.rows.X, grown.rows.y, grown.sample.X, grown.sample.y]
    beliefs = [] if grown.beliefs is None else grown.beliefs[1]
    arrays += [a for belief in beliefs for a in belief if isinstance(a, np.ndarray)]
    return sum(a.nbytes for a in arrays)


def same_trees(forest, other):
    """Whether two forests have the same trees, but for the numbers of the rows they wait with."""
    for (tree, labels), (twin, as_labels) in zip(forest._fitted.trees, other._fitted.trees):
        places = np.flatnonzero(tree.column[: tree.state[USED]] > -2)
        for name in ("column", "cut", "time", "parent", "left", "right", "box", "count", "paused"):
            np.testing.assert_array_equal(
                getattr(tree, name)[places], getattr(twin, name)[places], err_msg=name
            )
        for array, copy in zip(labels, as_labels):
            np.testing.assert_array_equal(array[places], copy[places])
        np.testing.assert_array_equal(tree.lifetime, twin.lifetime)


@pytest.mark.parametrize("kind", KINDS)
def test_within_its_memory_a_forest_is_what_it_is_without_a_bound(kind):
    X, y = data(kind, 2500)
    forests = make(kind), make(kind, max_memory=30)
    for forest in forests:
        feed(forest, X[:2000], y[:2000])
        feed(forest, X[2000:2020], y[2000:2020], 1)
        feed(forest, X[2020:], y[2020:], 480)
    same_trees(*forests)
    np.testing.assert_array_equal(*(predictions(forest, X) for forest in forests))


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("numbers", {"max_memory": 0.3, "max_leaf_nodes": 40}),
        ("classes", {"max_memory": 0.5, "max_leaf_nodes": 160}),
        ("numbers", {"max_memory": 1, "lifetime": 1.5}),
        ("classes", {"max_memory": 1, "lifetime": 1.5}),
    ],
)
def test_rows_that_are_let_go_of_were_not_needed(kind, settings):
    """The same trees bit for bit, though most rows are gone."""
    X, y = data(kind)
    forests = make(kind, **settings), make(kind, **settings | {"max_memory": None})
    for forest in forests:
        feed(feed(forest, X[:40], y[:40]), X[40:], y[40:])
    grown = forests[0]._fitted
    assert not forests[0].closed_.any() and grown.sample.seen == N > 3 * grown.rules.max_rows
    same_trees(*forests)
    grown._check()


@pytest.mark.parametrize("kind", KINDS)
def test_a_forest_takes_no_more_than_its_memory(kind):
    X, y = data(kind)
    for settings in ({}, {"min_samples_split": 3}, {"max_leaf_nodes": 30}, {"n_estimators": 1}):
        forest = make(kind, max_memory=0.6, **settings)
        for begin in range(0, N, 1200):
            feed(forest, X[begin : begin + 1200], y[begin : begin + 1200], 400)
            predictions(forest, X[:5])
            assert bytes_of(forest) < 600_000
        forest._fitted._check()
        assert forest.n_samples_seen_ == N
        many = forest.n_leaves_.sum()
        assert "max_leaf_nodes" in settings or many > 500  # it makes use of what it has


@pytest.mark.parametrize("kind", KINDS)
def test_trees_with_a_quarter_of_their_leaves_are_never_closed(kind):
    """Each of many trees waits with rows of its own; what nodes leave over is for these."""
    X, y = data(kind)
    settings = {"max_memory": 1.2, "n_estimators": 30}
    full = feed(make(kind, **settings), X, y)
    assert full.closed_.all()
    forest = make(kind, max_leaf_nodes=int(full.n_leaves_.max()) // 4, **settings)
    feed(forest, X, y)
    assert not forest.closed_.any() and forest._fitted.sample.seen == N
    assert bytes_of(forest) < 1.2e6


@pytest.mark.parametrize("kind", KINDS)
def test_a_closed_tree_counts_all_rows_in_the_leaves_it_has(kind):
    X, y = data(kind)
    forest = feed(make(kind, max_memory=0.6), X[:6000], y[:6000])
    assert forest.closed_.all()
    before = [(tree.column.copy(), tree.cut.copy()) for tree, _ in forest._fitted.trees]
    feed(forest, X[6000:11_000], y[6000:11_000])
    feed(forest, X[11_000:11_050], y[11_000:11_050], 1)
    X, y = X[:11_050], y[:11_050]
    trees = zip(forest._fitted.trees, forest.apply(X).T, before, strict=True)
    for (tree, labels), leaf_of, (column, cut) in trees:
        np.testing.assert_array_equal(tree.column, column)
        np.testing.assert_array_equal(tree.cut, cut)
        for leaf in np.flatnonzero(tree.column[: tree.state[USED]] == NONE):
            here = leaf_of == leaf
            assert tree.count[leaf] == here.sum()
            np.testing.assert_array_equal(tree.box[leaf], [X[here].min(0), X[here].max(0)])
            if kind == "classes":
                np.testing.assert_array_equal(labels.counts[leaf], np.bincount(y[here], None, 2))
            else:
                assert labels.n[leaf] == here.sum()
                np.testing.assert_allclose(labels.mean[leaf], y[here].mean())
                around = np.square(y[here] - y[here].mean()).sum()
                np.testing.assert_allclose(labels.squares[leaf], around, atol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_how_rows_are_cut_into_calls_does_not_matter(kind):
    """In blocks that each go into a tree by its own generator."""
    X, y = data(kind)
    forests = [
        feed(make(kind, max_memory=0.6, n_jobs=jobs), X, y, part)
        for part, jobs in ((600, 1), (1500, 2))
    ]
    same_trees(*forests)
    np.testing.assert_array_equal(*(predictions(forest, X[:500]) for forest in forests))


def test_predictions_go_on_to_improve_where_trees_are_closed():
    X, y = data("numbers")
    truth = np.sin(5 * X[:, 0]) + X[:, 1]
    errors = []
    forest = make("numbers", max_memory=0.6, n_estimators=10)
    for begin, end in ((0, 1500), (1500, 3000), (3000, N)):
        feed(forest, X[begin:end], y[begin:end])
        errors.append(np.sqrt(np.mean((forest.predict(X) - truth) ** 2)))
    assert forest.closed_.all()
    assert errors[0] > errors[1] > errors[2]


def test_classes_that_are_far_apart_leave_room_for_a_later_one():
    """Pure leaves hold all rows, and then some of them: no tree is closed for want of rows."""
    rng = np.random.default_rng(3)
    X, half = rng.random((N, 3)), N // 2
    y = np.where(X[:, 0] < 0.5, 0, 1)
    X[:, 0] += y  # a gap
    late = (X[:, 0] > 1.8) & (np.arange(N) >= half)
    y[late] = 2
    forest = make("classes", max_memory=1).partial_fit(X[:300], y[:300], classes=[0, 1, 2])
    for begin in range(300, N, 300):
        if begin == half:
            assert forest._fitted.sample.seen == half and not forest.closed_.any()
        forest.partial_fit(X[begin : begin + 300], y[begin : begin + 300])
    forest._fitted._check()
    early = X[:, 0] < 1.75
    np.testing.assert_array_equal(forest.predict(X)[early], y[early])
    assert np.mean(forest.predict(X[late]) == 2) > 0.9  # closed trees could not tell them


def chained(n):
    tree = make_tree(1, np.inf, 1, n)
    tree.state[USED], tree.column[0], tree.paused[0], tree.first_row[0] = 1, NONE, True, n - 1
    tree.next_row[:] = np.arange(n) - 1
    return tree


def chain(tree):
    rows, row = [], tree.first_row[0]
    while row != NONE:
        rows, row = [*rows, int(row)], tree.next_row[row]
    return rows


def test_a_chain_is_thinned_evenly_and_keeps_its_latest_row():
    tree = chained(10)
    np.testing.assert_array_equal(rows_of(tree, 0, 99), np.arange(10))
    np.testing.assert_array_equal(rows_of(tree, 0, 4), [2, 4, 7, 9])
    thin(tree, 0, 10)
    assert chain(tree) == list(range(9, -1, -1))
    thin(tree, 0, 3)
    assert chain(tree) == [9, 8, 4, 0]
    thin(tree, 0, 1)
    assert chain(tree) == [9, 8, 4, 0][:1] + [8, 4, 0]


@pytest.mark.parametrize("kind", KINDS)
def test_a_block_that_fails(monkeypatch, kind):
    """All rows that count are there again, as long as none was let go of; later nothing is."""
    X, y = data(kind)
    extend, calls = module.extend_tree, []

    def broken(*given):
        calls.append(1)
        if len(calls) == 2:
            raise MemoryError
        return extend(*given)

    forest = feed(make(kind, max_memory=0.6), X[:1000], y[:1000])
    assert forest._fitted.sample.seen == 0
    with monkeypatch.context() as patch, pytest.raises(MemoryError):
        patch.setattr(module, "extend_tree", broken)
        feed(forest, X[1000:1600], y[1000:1600])
    assert forest.n_samples_seen_ == 1000
    forest._fitted._check()
    feed(forest, X[1000:], y[1000:])
    assert forest.n_samples_seen_ == N == forest._fitted.sample.seen
    calls.clear()
    with monkeypatch.context() as patch, pytest.raises(MemoryError):
        patch.setattr(module, "extend_tree", broken)
        feed(forest, X[:600], y[:600])
    with pytest.raises(NotFittedError):
        forest.predict(X)
    assert feed(forest, X[:600], y[:600]).n_samples_seen_ == 600


@pytest.mark.parametrize("kind", KINDS)
def test_the_least_memory_is_told_and_is_enough(kind):
    X, y = data(kind, 3000)
    with pytest.raises(ValueError, match="take at least .* megabytes") as refused:
        make(kind, max_memory=1e-4).fit(X, y)
    least = float(str(refused.value).split("at least ")[1].split()[0])
    forest = make(kind, max_memory=least).fit(X, y)
    assert np.isfinite(predictions(forest, X[:50])).all()
    assert bytes_of(forest) < 1e6 * least
