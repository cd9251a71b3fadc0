"""Numbers at the ends of the range: refused before a Mondrian forest learns them, or harmless."""

import numpy as np
import pytest

import pymc_trees as pmt

CLASSIFIER, REGRESSOR = pmt.MondrianForestClassifier, pmt.MondrianForestRegressor


def data(n=60):
    rng = np.random.default_rng(0)
    X = rng.random((n, 3))
    return X, X[:, 0] + 0.1 * rng.normal(size=n)


def predictions(forest, X):
    if isinstance(forest, CLASSIFIER):
        return forest.predict_proba(X)
    return np.stack(forest.predict(X, return_std=True))


@pytest.mark.parametrize("make", [CLASSIFIER, REGRESSOR])
@pytest.mark.parametrize("scaling", [None, "first", (0.0, 1e-10)])
@pytest.mark.parametrize("value", [1e308, -1e308, 1e285])
def test_a_row_that_overflows_is_not_learnt(make, scaling, value):
    X, y = data()
    forest = make(5, scaling=scaling, random_state=1).fit(X, y > 0.5)
    before = predictions(forest, X)
    for row in ([value, 0.5, 0.5], [value, -value, value]):
        with pytest.raises(ValueError, match="rescale X"):
            forest.partial_fit([row], [True])
    np.testing.assert_array_equal(predictions(forest, X), before)
    assert forest.n_samples_seen_ == 60
    with pytest.raises(ValueError, match="rescale X"):
        make(5).fit(np.vstack([X, [[value, 0.5, 0.5]]]), np.append(y > 0.5, True))


@pytest.mark.parametrize("make", [CLASSIFIER, REGRESSOR])
@pytest.mark.parametrize("scaling", [None, "first", (0.0, 1e-10)])
@pytest.mark.parametrize("unit", [1.0, 1e-300, 1e250])
def test_predictions_at_the_ends_of_the_range_are_those_far_away(make, scaling, unit):
    X, y = data()
    forest = make(5, scaling=scaling, random_state=1)
    if scaling == (0.0, 1e-10):
        forest.set_params(scaling=(0.0, unit))
    forest.fit(unit * X, y > 0.5)
    far = np.array([[1e308, 0, 0], [-1e308, 1e308, -1e308], [1.7e308] * 3])
    found, wanted = predictions(forest, far), predictions(forest, [[1e12 * unit] * 3] * 3)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-9)
    if make is CLASSIFIER:
        np.testing.assert_allclose(found, 0.5)
    assert forest.apply(far).shape == (3, 5)


def test_labels_whose_squares_overflow_are_not_learnt():
    X, y = data()
    forest = REGRESSOR(5, random_state=1).fit(X, y)
    before = predictions(forest, X)
    for bad in (1e200, -1e308):
        with pytest.raises(ValueError, match="squares"):
            forest.partial_fit(X[:1], np.array([bad]))
        with pytest.raises(ValueError, match="squares"):
            REGRESSOR(5).fit(X, bad * y)
    np.testing.assert_array_equal(predictions(forest, X), before)
    large = REGRESSOR(5, random_state=1).fit(X, 2.0**460 * y)
    np.testing.assert_allclose(predictions(large, X), 2.0**460 * before)


def test_labels_whose_squares_vanish_are_not_called_certain():
    X, y = data()
    with pytest.raises(ValueError, match="Rescale y"):
        REGRESSOR(5).fit(X, 1e-200 * y).predict(X)
    assert (REGRESSOR(5).fit(X, np.full(60, 1e-200)).predict(X) == 1e-200).all()


def test_density_of_a_label_out_of_reach_is_zero():
    X, y = data(4)
    forest = REGRESSOR(5, random_state=1).fit(*data())
    found = forest.log_predictive_density(X, np.array([1e308, -1e200, 1e100, y[3]]))
    assert (found[:2] == -np.inf).all() and np.isfinite(found[3]) and not np.isnan(found).any()


@pytest.mark.parametrize(
    "settings",
    [
        {"lifetime": 1e-12},
        {"lifetime": 1e-280},
        {"max_leaf_nodes": 1},
        {"max_leaf_nodes": 1, "hyperparameters": "heuristic"},
        {"lifetime": 1e-12, "noise_variance": 0.01},
    ],
)
def test_one_leaf_predicts_the_mean_without_a_warning(settings):
    X, y = data()
    mean, sd = REGRESSOR(5, random_state=1, **settings).fit(X, y).predict(X, return_std=True)
    np.testing.assert_allclose(mean, y.mean(), atol=1e-3)
    far = REGRESSOR(5, random_state=1, **settings).fit(X, y).predict([[1e300] * 3], return_std=True)
    np.testing.assert_allclose(np.ravel(far), [y.mean(), y.std()], rtol=1e-6)
    assert (sd <= far[1] * (1 + 1e-9)).all() and (sd > 0).all()


def test_settings_whose_products_overflow_are_refused():
    X, y = data()
    for settings in ({"gamma_1": 1e300}, {"gamma_2": 1e300}, {"mean": 1e150}, {"lifetime": 1e-300}):
        [name] = settings
        with pytest.raises(ValueError, match=name):
            REGRESSOR(3, **settings).fit(X, y)
    with pytest.raises(ValueError, match="gamma"):
        CLASSIFIER(3, gamma=1e300).fit(X, y > 0)
    with pytest.raises(ValueError, match="gamma_2=1 is too small .* lifetime"):
        REGRESSOR(3, gamma_2=1.0, lifetime=1e-12).fit(X, y).predict(X)


def test_a_constant_column_of_large_values_is_scaled():
    X, y = data()
    X[:, 1] = 1e20
    forest = REGRESSOR(3, scaling="first", random_state=1).fit(X, y)
    assert np.isfinite(forest.predict(X)).all()
