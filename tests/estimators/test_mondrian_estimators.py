"""Both forests as scikit-learn estimators: its own checks, and what they promise beside."""

import copy
import pickle
from functools import partial

import numpy as np
import pytest
from scipy import stats
from sklearn.datasets import make_classification
from sklearn.model_selection import cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks

import pymc_trees as pmt
from pymc_trees.mondrian.predictive import score

FORESTS = [pmt.MondrianForestClassifier, pmt.MondrianForestRegressor]


# scikit-learn warns of checks that are skipped, and the checks of what they try.
@parametrize_with_checks([pmt.MondrianForestClassifier(), pmt.MondrianForestRegressor()])
@pytest.mark.filterwarnings("default")
@pytest.mark.versions
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@parametrize_with_checks(
    [
        pmt.MondrianForestClassifier(5, max_leaf_nodes=7, scaling="first", n_jobs=2),
        pmt.MondrianForestClassifier(20, max_memory=1),
        pmt.MondrianForestRegressor(5, posterior="fast", lifetime=3.0, scaling="first"),
        pmt.MondrianForestRegressor(20, max_memory=1),
    ]
)
@pytest.mark.filterwarnings("default")
@pytest.mark.full
def test_scikit_learn_checks_of_other_settings(estimator, check):
    check(estimator)


def rows(rng, n=120):
    X = rng.random((n, 3))
    return X, np.where(X[:, 0] > 0.5, 2.0, -1.0) + 0.1 * rng.normal(size=n)


@pytest.fixture(params=FORESTS, ids=["classes", "numbers"])
def forest(request):
    """An unfitted forest, its labels made from numbers, and its predictions as one array."""
    if request.param is pmt.MondrianForestClassifier:
        return request.param(10, random_state=3), lambda y: y > 0, lambda f, X: f.predict_proba(X)
    return (
        request.param(10, random_state=3),
        lambda y: y,
        lambda f, X: np.stack(f.predict(X, return_std=True)),
    )


def feed(forest, X, y, parts):
    for part in np.array_split(np.arange(len(X)), parts):
        if isinstance(forest, pmt.MondrianForestClassifier):
            forest.partial_fit(X[part], y[part], classes=np.unique(y))
        else:
            forest.partial_fit(X[part], y[part])
    return forest


def test_same_seed_same_forest_whatever_the_threads(rng, forest):
    forest, kind, predict = forest
    X, y = rows(rng, 400)
    X, y = X[:300], kind(y[:300])
    other = copy.deepcopy(forest).set_params(n_jobs=2)
    for learn in (lambda f: f.fit(X, y), lambda f: feed(f, X, y, 3)):
        first, second = learn(forest), learn(other)
        np.testing.assert_array_equal(predict(first, X), predict(second, X))
    outside = X + 1
    forest.set_params(random_state=4).fit(X, y)
    assert not np.array_equal(predict(forest, outside), predict(other.fit(X, y), outside))


def test_pickled_forest_goes_on_alike(rng, forest):
    forest, kind, predict = forest
    X, y = rows(rng)
    y = kind(y)
    feed(forest, X[:60], y[:60], 2)
    again = pickle.loads(pickle.dumps(forest))
    np.testing.assert_array_equal(predict(again, X), predict(forest, X))
    feed(forest, X[60:], y[60:], 2), feed(again, X[60:], y[60:], 2)
    np.testing.assert_array_equal(predict(again, X), predict(forest, X))
    assert again.n_samples_seen_ == 120


def test_online_predictions_have_the_law_of_the_batch(rng, forest):
    """Predictions at one point, of 400 forests of one tree each way: KS at p > 1e-4.

    Finds a distance of 0.2 between the laws with probability 0.99.
    """
    forest, kind, predict = forest
    X, y = rows(rng, 30)
    y = kind(y)
    forest.set_params(n_estimators=400, min_samples_split=5)
    at = np.array([[0.55, 0.4, 1.1]])
    laws = []
    for order in (None, rng.permutation(30)):
        f = copy.deepcopy(forest).set_params(random_state=int(rng.integers(1000)))
        f = f.fit(X, y) if order is None else feed(f, X[order], y[order], 30)
        each, grown = [], f._fitted
        for tree in grown.trees:
            grown.trees, grown.beliefs = [tree], None
            each.append(predict(f, at).ravel()[0])
        laws.append(each)
    assert stats.ks_2samp(*laws).pvalue > 1e-4


def test_few_rows_take_the_short_way_to_the_same_end(rng, forest):
    """Lists, which scikit-learn's checks turn into arrays, and arrays that need no check."""
    forest, label, predict = forest
    X, y = rows(rng, 60)
    y = label(y).astype(int if label(y).dtype == bool else float)
    array, lists = feed(copy.deepcopy(forest), X, y, 60), copy.deepcopy(forest)
    for x, value in zip(X, y):
        more = {"classes": [0, 1]} if y.dtype == int else {}
        lists.partial_fit([list(x)], [value], **more)
    np.testing.assert_array_equal(predict(array, X), predict(lists, X))
    before = array.n_samples_seen_
    for bad_X, bad_y in (
        (np.full((1, 3), np.nan), y[:1]),
        (X[:1, :2].copy(), y[:1]),
        (X[:1], y[:2]),
        (X[0], y[:1]),
        (X[:0], y[:0]),
        (X[:1], y[:1] + (7 if y.dtype == int else np.inf)),
    ):
        with pytest.raises(ValueError):
            array.partial_fit(bad_X, bad_y)
    assert array.n_samples_seen_ == before


def test_leaves_and_paths(rng, forest):
    forest, kind, _ = forest
    X, y = rows(rng)
    feed(forest, X, kind(y), 4)
    leaves = forest.apply(X)
    paths, ends = forest.decision_path(X)
    assert leaves.shape == (120, 10)
    assert paths.shape == (120, ends[-1])
    for t in range(10):
        tree, _ = forest._fitted.trees[t]
        block = paths[:, ends[t] : ends[t + 1]].toarray()
        assert (block[np.arange(120), leaves[:, t]] == 1).all()
        assert (block[:, tree.state[0]] == 1).all()
        assert (tree.column[leaves[:, t]] == -1).all()
        used = np.arange(block.shape[1])
        np.testing.assert_array_equal(block.sum(axis=0), tree.count[used])


def test_scaling_is_an_affine_map_of_the_features(rng, forest):
    forest, kind, predict = forest
    X, y = rows(rng)
    y, low, high = kind(y), np.array([-3.0, 0.0, 2.0]), np.array([5.0, 100.0, 2.5])
    wanted = predict(forest.fit(X, y), X)
    wide = low + X * (high - low)
    np.testing.assert_allclose(
        predict(forest.set_params(scaling=(low, high)).fit(wide, y), wide), wanted
    )
    X[0], X[1] = 0, 1
    wanted = predict(forest.set_params(scaling=None).fit(X, y), X)
    wide = low + X * (high - low)
    np.testing.assert_allclose(
        predict(forest.set_params(scaling="first").fit(wide, y), wide), wanted
    )


def test_units_of_the_features_do_not_matter(rng, forest):
    forest, kind, predict = forest
    X, y = rows(rng)
    wanted = predict(forest.fit(X, kind(y)), X)
    np.testing.assert_allclose(predict(forest.fit(1024 * X, kind(y)), 1024 * X), wanted)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"n_estimators": 0}, "n_estimators=0: must be a whole number of at least 1"),
        ({"min_samples_split": 1}, "min_samples_split=1: must be a whole number of at least 2"),
        ({"min_samples_split": 2.5}, "min_samples_split"),
        ({"lifetime": -1.0}, "lifetime must be a number above 0"),
        ({"lifetime": np.nan}, "lifetime"),
        ({"max_leaf_nodes": 0}, "max_leaf_nodes"),
        ({"scaling": "last"}, "scaling must be None, 'first' or a pair"),
        ({"scaling": (1.0, 0.0)}, "low < high"),
        ({"scaling": (np.zeros(2), np.ones(2))}, "one entry per feature"),
    ],
)
def test_settings_out_of_range_are_named(rng, forest, settings, words):
    forest, kind, _ = forest
    X, y = rows(rng)
    with pytest.raises(ValueError, match=words):
        forest.set_params(**settings).fit(X, kind(y))


@pytest.mark.parametrize(
    "name", ["gamma_1", "gamma_2", "noise_variance", "mean", "posterior", "hyperparameters"]
)
def test_settings_of_the_hierarchy_are_checked(rng, name):
    X, y = rows(rng)
    with pytest.raises(ValueError, match=name):
        pmt.MondrianForestRegressor(**{name: np.inf}).fit(X, y)


def test_classifier_refuses_what_it_cannot_know(rng):
    X, y = rows(rng)
    forest = pmt.MondrianForestClassifier(3, random_state=1)
    with pytest.raises(ValueError, match="classes must be passed on the first call"):
        forest.partial_fit(X, y > 0)
    forest.partial_fit(X, y > 0, classes=[False, True])
    with pytest.raises(ValueError, match="differ from those of the first call"):
        forest.partial_fit(X, y > 0, classes=[0, 1, 2])
    with pytest.raises(ValueError, match="gamma"):
        pmt.MondrianForestClassifier(gamma=0).fit(X, y > 0)
    for name, value in (("smoothing", "ikn"), ("concentration", -0.1), ("concentration", np.nan)):
        with pytest.raises(ValueError, match=f"{name} must be"):
            pmt.MondrianForestClassifier(**{name: value}).fit(X, y > 0)
        with pytest.raises(ValueError, match=f"{name} must be"):
            forest.set_params(**{name: value}).predict(X)
        forest.set_params(**{name: "shares" if name == "smoothing" else None})
    words = pmt.MondrianForestClassifier(3).partial_fit(X[:2], ["a", "b"], classes=["a", "b", "c"])
    assert words.predict_proba(X).shape == (120, 3)
    with pytest.raises(ValueError, match="not in classes_"):
        words.partial_fit(X[:2], ["a", "z"])


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e308])
def test_values_that_no_box_can_hold_are_refused(rng, forest, value):
    forest, kind, _ = forest
    X, y = rows(rng)
    X[0, 0] = value
    if np.isfinite(value):
        X[1, 0] = -value
    with pytest.raises(ValueError, match="NaN|infinity|rescale X"):
        forest.fit(X, kind(y))


def test_mixture_methods_agree_with_each_other(rng):
    X, y = rows(rng, 200)
    at = np.vstack([X[:3], [[1.5, 0.5, 0.5], [40.0, 0.0, 0.0]]])
    for settings in ({}, {"posterior": "fast"}, {"lifetime": 2.0}, {"max_leaf_nodes": 10}):
        f = pmt.MondrianForestRegressor(20, random_state=2, **settings).fit(X, y)
        mean, sd = f.predict(at, return_std=True)
        np.testing.assert_array_equal(mean, f.predict(at))
        draws = f.sample_y(at, 4000, random_state=1)
        assert (np.abs(draws.mean(axis=1) - mean) < 5 * sd / np.sqrt(4000)).all()
        grid = np.linspace(-12, 12, 4001)
        for i in range(len(at)):
            density = np.exp(f.log_predictive_density(np.tile(at[i], (len(grid), 1)), grid))
            step = grid[1] - grid[0]
            assert (density * step).sum() == pytest.approx(1, abs=2e-3)
            assert (grid * density * step).sum() == pytest.approx(mean[i], abs=5e-3)
            cdf = (np.cumsum(density) - density / 2) * step
            levels = [0.05, 0.5, 0.9]
            found = f.predict_quantiles(at[i : i + 1], levels)[0]
            np.testing.assert_allclose(np.interp(found, grid, cdf), levels, atol=1e-2)
            assert stats.kstest(draws[i], partial(np.interp, xp=grid, fp=cdf)).pvalue > 1e-5


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"posterior": "fast"},
        {"lifetime": 2.0},
        {"max_leaf_nodes": 10},
        {"hyperparameters": "heuristic"},
    ],
)
def test_far_from_the_data_is_the_prior(rng, settings):
    X, y = rows(rng, 200)
    y = 1e4 + 3 * y
    f = pmt.MondrianForestRegressor(20, random_state=2, **settings).fit(X, y)
    mean, sd = f.predict([[1e6, 0, 0], [0, -1e6, 1e6]], return_std=True)
    np.testing.assert_allclose(mean, y.mean(), rtol=1e-6)
    np.testing.assert_allclose(sd, y.std(), rtol=2e-2 if "posterior" in settings else 1e-3)
    near = f.predict(X, return_std=True)[1]
    assert near.mean() < 0.7 * y.std()


def test_score_is_the_ranked_probability_score(rng):
    mean, sd, y = 0.3, 0.7, np.array([-1.0, 0.4, 2.0])
    grid = np.linspace(-9, 9, 180_001)
    for at in y:
        gap = (stats.norm.cdf(grid, mean, sd) - (grid >= at)) ** 2
        assert score(at, mean, sd) == pytest.approx(np.trapezoid(gap, grid), abs=1e-4)


def test_leave_one_out_settings_predict_better(rng):
    """The heuristic smooths far too much here: one dimension, hardly any noise."""
    X = rng.random((300, 1))
    y = np.sin(9 * X[:, 0]) + 0.05 * rng.normal(size=300)
    at = rng.random((300, 1))
    scores = {}
    for how in ("leave-one-out", "heuristic"):
        f = pmt.MondrianForestRegressor(30, hyperparameters=how, random_state=1).fit(X, y)
        scores[how] = score(np.sin(9 * at[:, 0]), *f.predict(at, return_std=True))
    assert scores["leave-one-out"] < 0.5 * scores["heuristic"]


def test_classifier_draws_and_density(rng):
    X, y = rows(rng)
    names = np.array(["a", "b"])[(y > 0).astype(int)]
    f = pmt.MondrianForestClassifier(20, random_state=2).fit(X, names)
    p = f.predict_proba(X[:5])
    draws = f.sample_y(X[:5], 4000, random_state=1)
    share = (draws == "b").mean(axis=1)
    assert (np.abs(share - p[:, 1]) < 5 * np.sqrt(p[:, 1] * p[:, 0] / 4000) + 1e-12).all()
    exact = np.log(p[np.arange(5), (names[:5] == "b").astype(int)])
    np.testing.assert_allclose(f.log_predictive_density(X[:5], names[:5]), exact)


def test_draws_are_arviz_data(rng):
    import arviz as az

    X, y = rows(rng, 200)
    f = pmt.MondrianForestRegressor(20, random_state=2).fit(X[:100], y[:100])
    data = f.to_arviz(X[100:], y[100:], n_draws=200, random_state=1)
    assert data.posterior_predictive["y"].dims == ("chain", "draw", "row")
    assert data.posterior_predictive["y"].shape == (1, 200, 100)
    np.testing.assert_array_equal(data.observed_data["y"], y[100:])
    for plot, layers in (
        (az.plot_ppc_dist, ("predictive_dist", "observed_dist")),
        (az.plot_ppc_pit, ("ecdf_lines",)),
    ):
        drawn = plot(data, backend="none").viz
        assert all("y" in drawn[layer] for layer in layers)
    g = pmt.MondrianForestClassifier(20, random_state=2).fit(X[:100], y[:100] > 0)
    data = g.to_arviz(X[100:], y[100:] > 0, n_draws=200, random_state=1)
    assert set(np.unique(data.posterior_predictive["y"])) <= {0, 1}
    assert data.attrs["classes"] == ["False", "True"]


def test_it_learns():
    X, y = make_classification(600, 6, n_informative=5, n_redundant=1, class_sep=2, random_state=0)
    forest = pmt.MondrianForestClassifier(30, scaling="first", random_state=0)
    assert cross_val_score(forest, X, y, cv=3).mean() > 0.9


def test_sklearn_inspection_reads_the_forests():
    """Partial dependence by brute force is the mean prediction; a column of noise matters least."""
    from sklearn.inspection import partial_dependence, permutation_importance

    X = np.random.default_rng(3).random((120, 2))
    y = np.sin(4 * X[:, 0])
    forest = pmt.MondrianForestRegressor(n_estimators=20, random_state=1).fit(X, y)
    found = partial_dependence(forest, X, [0], grid_resolution=5)
    for value, mean in zip(found["grid_values"][0], found["average"][0], strict=True):
        held = np.column_stack([np.full(len(X), value), X[:, 1]])
        np.testing.assert_allclose(mean, forest.predict(held).mean(), rtol=1e-12)
    lost = permutation_importance(forest, X, y, n_repeats=3, random_state=1)["importances_mean"]
    assert lost[0] > lost[1]
