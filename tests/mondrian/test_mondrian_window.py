"""A Mondrian forest with `window`: which rows it knows, their law, and a stream that changes."""

import pickle

import numpy as np
import pytest

import pymc_trees as pmt

KINDS = ["classes", "numbers"]


def data(kind, n, seed=0, flipped=False):
    rng = np.random.default_rng(seed)
    X = rng.random((n, 2))
    above = (X[:, 0] > 0.5) != flipped
    y = above.astype(int) if kind == "classes" else above + 0.1 * rng.normal(size=n)
    return X, y


def make(kind, **settings):
    settings = {"n_estimators": 5, "random_state": 1, **settings}
    if kind == "classes":
        return pmt.MondrianForestClassifier(**settings)
    return pmt.MondrianForestRegressor(**settings)


def feed(forest, X, y, part):
    more = {"classes": [0, 1]} if isinstance(forest, pmt.MondrianForestClassifier) else {}
    for begin in range(0, len(X), part):
        forest.partial_fit(X[begin : begin + part], y[begin : begin + part], **more)
    return forest


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("part", [1, 7, 95, 300])
def test_it_knows_the_latest_rows(kind, part):
    X, y = data(kind, 300)
    forest, sizes = make(kind, window=80), set()
    for stop in range(part, 301, part):
        feed(forest, X[stop - part : stop], y[stop - part : stop], part)
        known, labels = forest._fitted.learnt_rows()
        sizes.add(len(known))
        np.testing.assert_array_equal(known, X[stop - len(known) : stop])
        np.testing.assert_array_equal(labels, y[stop - len(known) : stop])
        assert forest.n_samples_seen_ == stop
        assert min(stop, 80) <= len(known) <= 90 and len(forest._fitted.rows.X) <= 90
        forest._fitted._check()  # trees of as many rows, in their boxes
    if part == 1:
        assert sizes == set(range(1, 91))


@pytest.mark.parametrize("kind", KINDS)
def test_a_window_that_is_never_full_changes_nothing(kind):
    X, y = data(kind, 200)
    given = [feed(make(kind, window=window), X, y, 50).predict(X) for window in (None, 200)]
    np.testing.assert_array_equal(*given)


@pytest.mark.parametrize("kind", KINDS)
def test_its_law_is_that_of_batch_training(kind):
    """Root splits and numbers of leaves after 46 rows, of which 42 are known, against `fit`.

    The trees were grown from 38 of them, and extended by four. 2,000 trees each: 4.5 standard
    errors of a difference.
    """
    X, y = data(kind, 46)
    X[:, 1] *= 2
    settings = {"n_estimators": 2000, "min_samples_split": 2, "lifetime": 3.0}
    forest = feed(make(kind, window=38, **settings), X, y, 1)
    known, labels = forest._fitted.learnt_rows()
    assert len(known) == 42
    batch = make(kind, **settings | {"random_state": 2}).fit(known, labels)
    roots = []
    for one in (forest, batch):
        trees = [tree for tree, _ in one._fitted.trees]
        at = [tree.state[0] for tree in trees]
        columns = np.array([tree.column[k] for tree, k in zip(trees, at, strict=True)])
        times = np.array([min(tree.time[k], 3.0) for tree, k in zip(trees, at, strict=True)])
        cuts = np.array([tree.cut[k] for tree, k in zip(trees, at, strict=True)])
        roots.append((columns == 1, times, cuts[columns == 1], one.n_leaves_))
    for first, second in zip(*roots, strict=True):
        error = np.sqrt(first.var() / first.size + second.var() / second.size)
        assert abs(first.mean() - second.mean()) < 4.5 * error


@pytest.mark.parametrize("kind", KINDS)
def test_it_follows_a_stream_that_flips(kind):
    """The labels change sides after 1,500 rows; 1,000 rows later one forest has forgotten."""
    parts = [data(kind, 1500), data(kind, 1000, 1, flipped=True)]
    X, y = (np.concatenate(each) for each in zip(*parts, strict=True))
    X_new, y_new = data(kind, 500, 2, flipped=True)
    right = []
    for window in (None, 400):
        found = feed(make(kind, window=window, n_estimators=20), X, y, 250).predict(X_new)
        right.append(np.mean((found > 0.5) == (y_new > 0.5)))
    assert right[0] < 0.7 and right[1] > 0.95


def test_pickles_and_copies_go_on_alike():
    X, y = data("classes", 400)
    forest = feed(make("classes", window=100), X[:250], y[:250], 50)
    again = pickle.loads(pickle.dumps(forest))
    for one in (forest, again):
        feed(one, X[250:], y[250:], 30)
    np.testing.assert_array_equal(forest.predict_proba(X), again.predict_proba(X))
    assert again.n_samples_seen_ == 400


def test_settings_are_checked():
    X, y = data("numbers", 30)
    for wrong in (0, 2.5, "all"):
        with pytest.raises(ValueError, match="window="):
            make("numbers", window=wrong).fit(X, y)
    with pytest.raises(ValueError, match="give one of them"):
        make("numbers", window=10, max_memory=1).fit(X, y)
    forest = make("numbers", window=10).fit(X, y)
    assert len(forest._fitted.rows.learnt()[0]) == 10
    with pytest.raises(ValueError, match="window=20, but the trees were grown with 10"):
        forest.set_params(window=20).partial_fit(X, y)


def test_no_memory_to_grow_anew_leaves_no_trees(monkeypatch):
    X, y = data("numbers", 60)
    forest = feed(make("numbers", window=40), X[:45], y[:45], 5)

    def fails(*_):
        raise MemoryError

    monkeypatch.setattr(type(forest._fitted), "_regrow", fails)
    with pytest.raises(MemoryError):
        forest.partial_fit(X[45:], y[45:])
    monkeypatch.undo()
    assert np.isfinite(feed(forest, X, y, 60).predict(X)).all()  # made anew
