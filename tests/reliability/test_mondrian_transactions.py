"""A Mondrian forest that fails to learn is the forest it was: all of it, or the rows it counts."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import pymc_trees as pmt
from pymc_trees.mondrian import trees as module
from pymc_trees.mondrian.kernels.tree import ROOT, ROWS

KINDS = ["classes", "numbers"]


def data(n=400, p=3):
    rng = np.random.default_rng(1)
    X = rng.random((n, p))
    return X, X[:, 0] + 0.1 * rng.normal(size=n)


def make(kind, X, y, n=200, **settings):
    """A forest of the first n rows, and all labels as it takes them."""
    settings = {"n_estimators": 8, "random_state": 1, **settings}
    if kind == "classes":
        labels = np.where(y > 0.5, "high", "low")
        return pmt.MondrianForestClassifier(**settings).fit(X[:n], labels[:n]), labels
    forest = pmt.MondrianForestRegressor(hyperparameters="heuristic", **settings)
    return forest.fit(X[:n], y[:n]), y


def seen(forest, X):
    """All that a forest says of itself, and what it predicts."""
    known = [forest.n_samples_seen_, forest.n_features_in_, forest.apply(X).tolist()]
    if hasattr(forest, "classes_"):
        return [*known, forest.classes_.tolist(), forest.predict_proba(X).tolist()]
    return [*known, np.stack(forest.predict(X, return_std=True)).tolist()]


def check_whole(forest, X):
    """Every tree holds the rows that are counted, and predicts."""
    n = forest.n_samples_seen_
    assert forest._fitted.rows.n == n
    for tree, _ in forest._fitted.trees:
        assert tree.state[ROWS] == tree.count[tree.state[ROOT]] == n
    forest._fitted._check()
    assert np.isfinite(seen(forest, X)[-1]).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("settings", "columns", "words"),
    [
        ({"lifetime": -1}, 1, "lifetime"),
        ({"n_estimators": 0}, 3, "n_estimators"),
        ({"max_leaf_nodes": 0}, 2, "max_leaf_nodes"),
        ({"max_memory": 1e-6}, 2, "max_memory=1e-06: 8 trees of 2 features take at least"),
        ({"scaling": "last"}, 1, "scaling"),
        ({"n_jobs": 0}, 2, "n_jobs"),
    ],
)
def test_a_fit_that_is_refused_changes_nothing(kind, settings, columns, words):
    X, y = data(2000)
    forest, labels = make(kind, X, y)
    before = seen(forest, X)
    others = np.where(y > 0.5, "x", "z") if kind == "classes" else labels
    old = {name: getattr(forest, name) for name in settings}
    with pytest.raises(ValueError, match=words):
        forest.set_params(**settings).fit(X[:, :columns], others)
    forest.set_params(**old)
    assert seen(forest, X) == before
    with pytest.raises(ValueError, match="expecting 3 features"):
        forest.predict(X[:, :columns] if columns < 3 else X[:, :2])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_a_fit_that_breaks_off_changes_nothing(monkeypatch, kind, error):
    X, y = data()
    forest, labels = make(kind, X, y)
    before, grow, calls = seen(forest, X), module.grow_tree, []

    def broken(*given):
        calls.append(1)
        if len(calls) == 3:
            raise error
        return grow(*given)

    monkeypatch.setattr(module, "grow_tree", broken)
    with pytest.raises(error):
        forest.fit(X[:, :2], labels)
    assert seen(forest, X) == before
    calls.clear()
    new = type(forest)(8)
    with pytest.raises(error):
        new.fit(X, labels)
    with pytest.raises(NotFittedError):
        new.predict(X)
    assert not hasattr(new, "n_samples_seen_") and not hasattr(new, "n_features_in_")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("few", [True, False], ids=["few rows", "many rows"])
@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_rows_go_into_all_trees_or_none(monkeypatch, kind, few, error):
    """The extension breaks off with some trees extended; the rows of finished blocks stay."""
    X, y = data(1200)
    forest, labels = make(kind, X, y)
    name = "extend_forest" if few else "extend_tree"
    extend, calls = getattr(module, name), []

    def broken(*given):
        calls.append(1)
        result = extend(*given)
        if len(calls) == (2 if few else 11):
            raise error
        return result

    with monkeypatch.context() as patch, pytest.raises(error):
        patch.setattr(module, name, broken)
        forest.partial_fit(X[200:205], labels[200:205])
        forest.partial_fit(X[205:210] if few else X[205:], labels[205:210] if few else labels[205:])
    assert forest.n_samples_seen_ == (205 if few else 205 + module._FIRST_BLOCK)
    check_whole(forest, X)
    n = forest.n_samples_seen_
    forest.partial_fit(X[n:], labels[n:])
    assert forest.n_samples_seen_ == 1200
    check_whole(forest, X)


def test_without_memory_for_any_trees_a_forest_is_unfitted(monkeypatch):
    X, y = data()
    forest, labels = make("numbers", X, y)

    def broken(*given):
        raise MemoryError

    with monkeypatch.context() as patch, pytest.raises(MemoryError):
        patch.setattr(module, "extend_forest", broken)
        patch.setattr(module, "grow_tree", broken)
        forest.partial_fit(X[200:205], labels[200:205])
    with pytest.raises(NotFittedError):
        forest.predict(X)
    assert forest.partial_fit(X, labels).n_samples_seen_ == 400


@pytest.mark.parametrize("kind", KINDS)
def test_partial_fit_refuses_settings_it_would_not_follow(kind):
    X, y = data(500)
    forest, labels = make(kind, X, y, scaling=(np.zeros(3), np.ones(3)))
    before = seen(forest, X)
    for settings, words in (
        ({"lifetime": 2.0}, "lifetime=2.0, but the trees were grown with inf"),
        ({"n_estimators": 9}, "n_estimators=9"),
        ({"n_estimators": "many"}, "n_estimators='many': must be"),
        ({"min_samples_split": 50}, "min_samples_split"),
        ({"max_leaf_nodes": 5}, "max_leaf_nodes"),
        ({"max_memory": 10}, "max_memory=10, but the trees were grown with None"),
        ({"scaling": None}, "scaling=None"),
        ({"scaling": (np.zeros(3), np.full(3, 2.0))}, "scaling"),
        ({"n_jobs": 0}, "n_jobs"),
        ({"gamma": -1.0} if kind == "classes" else {"posterior": "nonsense"}, "gamma|posterior"),
    ):
        old = {name: getattr(forest, name) for name in settings}
        with pytest.raises(ValueError, match=words):
            forest.set_params(**settings).partial_fit(X[200:], labels[200:])
        forest.set_params(**old)
        assert seen(forest, X) == before
    forest.set_params(scaling=[np.zeros(3), np.ones(3)]).partial_fit(X[200:], labels[200:])
    assert forest.n_samples_seen_ == 500


def test_predictions_follow_their_settings(monkeypatch):
    X, y = data()
    forest, _ = make("numbers", X, y)
    exact = forest.predict(X)
    other = forest.set_params(posterior="fast").predict(X)
    assert not np.array_equal(exact, other)
    np.testing.assert_array_equal(forest.set_params(posterior="exact").predict(X), exact)
    with pytest.raises(ValueError, match="posterior='nonsense': choose from"):
        forest.set_params(posterior="nonsense").predict(X)
