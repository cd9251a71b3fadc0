"""A pickled Mondrian forest that does not hold together is refused, and never walked."""

import pickle

import numpy as np
import pytest
from support.scale import scaled

import pymc_trees as pmt
from pymc_trees.mondrian.kernels.tree import CLOSED, FREE, ROOT, USED


def made(kind, **settings):
    rng = np.random.default_rng(3)
    X = rng.random((80, 3))
    y = X[:, 0] + 0.1 * rng.normal(size=80)
    if kind == "classes":
        forest = pmt.MondrianForestClassifier(3, random_state=1, **settings)
        return forest.partial_fit(X[:40], y[:40] > 0.5, classes=[False, True]), X, y > 0.5
    return pmt.MondrianForestRegressor(3, random_state=1, **settings).fit(X[:40], y[:40]), X, y


@pytest.mark.parametrize("kind", ["classes", "numbers"])
@pytest.mark.parametrize(
    "settings", [{}, {"max_leaf_nodes": 4}, {"scaling": "first"}, {"max_memory": 0.05}]
)
def test_a_forest_at_any_time_is_sound(kind, settings):
    forest, X, y = made(kind, **settings)
    for k in range(40, 80):
        forest.partial_fit(X[k : k + 1], y[k : k + 1])
        if k % 5 == 0:
            again = pickle.loads(pickle.dumps(forest))
            np.testing.assert_array_equal(again.predict(X), forest.predict(X))


def corruptions(tree, labels, rng):
    """(array, index, value) that the tree cannot have; a node, and its parent, are split nodes."""
    used = tree.state[USED]
    splits = np.flatnonzero(tree.column[:used] >= 0)
    leaves = np.flatnonzero(tree.column[:used] == -1)
    paused = leaves[tree.paused[leaves]]
    split, leaf, stays = rng.choice(splits), rng.choice(leaves), rng.choice(paused)
    far = int(rng.choice([-5, -1, used, 2**31 - 1]))
    return [
        (tree.left, split, far),
        (tree.right, split, far),
        (tree.left, split, split),
        (tree.right, split, tree.left[split]),
        (tree.column, split, rng.choice([3, 2**31 - 1, -1, -2, -7])),
        (tree.column, leaf, 0),
        (tree.parent, tree.left[split], far),
        (tree.parent, tree.state[ROOT], 0),
        (tree.state, ROOT, far),
        (tree.state, USED, rng.choice([0, used - 1, used + 1, 2**40])),
        (tree.state, FREE, rng.choice([tree.state[ROOT], used, -3])),
        (tree.state, 3, 7777),
        (tree.state, 4, 41),
        (tree.state, CLOSED, 1),
        (tree.first_row, stays, rng.choice([-1, 40, 2**31 - 1])),
        (tree.next_row, tree.first_row[stays], tree.first_row[stays]),
        (tree.count, leaf, rng.choice([0, -1, 2**62])),
        (tree.cut, split, rng.choice([np.nan, np.inf, -1e9])),
        (tree.time, split, rng.choice([np.nan, np.inf, -1.0])),
        (tree.time, leaf, 1.0),
        (tree.box, (leaf, 0, 1), rng.choice([np.nan, 1e9, -np.inf])),
        (tree.lifetime, 0, rng.choice([np.nan, -1.0, 1e-9])),
        (labels[0], leaf, -1),
        (labels[-1], leaf, -3),
    ]


@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_corrupted_trees_are_refused(kind):
    forest, X, _ = made(kind)
    rng = np.random.default_rng(4)
    good = pickle.dumps(forest)
    for _ in range(scaled(10)):
        count = len(corruptions(*forest._fitted.trees[0], rng))
        for k in range(count):
            bad = pickle.loads(good)
            array, index, value = corruptions(*bad._fitted.trees[rng.integers(3)], rng)[k]
            if np.array_equal(array[index], value):
                continue
            array[index] = value
            with pytest.raises(ValueError, match="damaged, or was written by another version"):
                pickle.loads(pickle.dumps(bad))


def test_arrays_that_do_not_fit_are_refused():
    forest, X, y = made("classes")
    good = pickle.dumps(forest)

    def tree_with(grown, **arrays):
        tree, labels = grown.trees[1]
        grown.trees[1] = (tree._replace(**arrays), labels)

    def rows_with(grown, **values):
        for name, value in values.items():
            setattr(grown.rows, name, value)

    tree = forest._fitted.trees[1][0]
    spoilers = (
        lambda g: tree_with(g, left=tree.left[:5].copy()),
        lambda g: tree_with(g, cut=tree.cut.astype(np.float32)),
        lambda g: tree_with(g, box=tree.box[:, :, :2].copy()),
        lambda g: tree_with(g, next_row=tree.next_row[:3].copy()),
        lambda g: tree_with(g, state=tree.state[:3].copy()),
        lambda g: tree_with(g, left="left"),
        lambda g: rows_with(g, n=41),
        lambda g: rows_with(g, n=-1),
        lambda g: rows_with(g, X=g.rows.X[:, :2].copy()),
        lambda g: rows_with(g, y=g.rows.y + 7),
        lambda g: rows_with(g, y=g.rows.y.astype(float)),
        lambda g: g.generators.pop(),
        lambda g: g.trees.pop(),
        lambda g: vars(g).pop("rules"),
        lambda g: vars(g).update(format=0),
        lambda g: vars(g).update(names=None, empty=None),
    )
    for spoil in spoilers:
        bad = pickle.loads(good)
        spoil(bad._fitted)
        with pytest.raises(ValueError, match="damaged, or was written by another version"):
            pickle.loads(pickle.dumps(bad))


def test_a_sample_that_is_none_is_refused():
    forest, X, y = made("numbers", max_memory=0.05)
    good = pickle.dumps(forest.partial_fit(np.tile(X, (20, 1)), np.tile(y, 20)))
    for name, value in (("n", 10**6), ("y", np.zeros(3)), ("X", np.full((5, 3), np.nan))):
        bad = pickle.loads(good)
        setattr(bad._fitted.sample, name, value)
        with pytest.raises(ValueError, match="damaged, or was written by another version"):
            pickle.loads(pickle.dumps(bad))
    again = pickle.loads(good)
    np.testing.assert_array_equal(again.predict(X), forest.predict(X))


def test_a_state_of_another_version_is_refused():
    forest, *_ = made("numbers")
    old = {**forest.get_params(), "n_samples_seen_": 40, "n_features_in_": 3, "_in_python": []}
    with pytest.raises(ValueError, match="written by another version"):
        pmt.MondrianForestRegressor().__setstate__(old)
    unfitted = pickle.loads(pickle.dumps(pmt.MondrianForestRegressor(7)))
    assert unfitted.n_estimators == 7


def test_a_forest_read_from_a_mapped_file_learns_on_without_writing_to_it(tmp_path):
    import joblib

    forest, X, y = made("numbers")
    joblib.dump(forest, tmp_path / "forest.joblib")
    before = (tmp_path / "forest.joblib").read_bytes()
    for mode in ("r", "r+"):
        mapped = joblib.load(tmp_path / "forest.joblib", mmap_mode=mode)
        np.testing.assert_array_equal(mapped.predict(X), forest.predict(X))
        assert mapped.partial_fit(X[40:], y[40:]).n_samples_seen_ == 80
        del mapped
    assert (tmp_path / "forest.joblib").read_bytes() == before
