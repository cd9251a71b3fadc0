"""A transformed model and the direct one have the same posterior: the same draws by the same seed.

With y = a f + b + noise of sd s, (y - b)/a = f + noise of sd s/|a|. The sweep works in the second
form whichever is written, so that draws agree to rounding. A move is accepted by comparing numbers,
so that agreement is of whole chains or of nothing.
"""

import numpy as np
import pymc as pm
import pytest
from support.small_models import sample, step_data

import pymc_trees as pmt

pytestmark = pytest.mark.usefixtures("quick_compile")
X, Y = step_data()
ROWS = np.linspace(0.5, 1.5, 30)


def fit(observed, sd, mean=lambda mu: mu):
    """Draws of f."""
    with pm.Model():
        mu = pmt.BART("mu", X, leaf=pmt.NormalLeaf(0.4, 0.8), m=5, max_nodes=295)
        pm.Normal("y", mean(mu), sd, observed=observed, shape=mu.shape)
        return sample(25, 0).posterior["mu"].values


@pytest.fixture(scope="module")
def direct(quick_compile):
    return fit(Y, 0.5), fit(Y, 0.5 * ROWS)


@pytest.mark.parametrize(
    ("observed", "sd", "mean"),
    [
        (3 * Y + 2, 1.5, lambda mu: 3 * mu + 2),
        (-2 * Y, 1.0, lambda mu: -2 * mu),
        (2 - Y, 0.5, lambda mu: 2 - mu),
        (Y + ROWS, 0.5, lambda mu: mu + ROWS),
        (Y * ROWS + 1, 0.5 * ROWS, lambda mu: ROWS * mu + 1),
        (Y / 4, 0.125, lambda mu: mu / 4),
    ],
)
def test_common_noise(direct, observed, sd, mean):
    np.testing.assert_allclose(fit(observed, sd, mean), direct[0], rtol=1e-9, atol=1e-9)


def test_noise_by_row(direct):
    found = fit(-2 * Y + 5, ROWS, lambda mu: 5 - 2 * mu)
    np.testing.assert_allclose(found, direct[1], rtol=1e-9, atol=1e-9)
    assert np.abs(direct[0] - direct[1]).max() > 0.1


def test_a_row_with_slope_zero_says_nothing():
    mask = (np.arange(30) != 4).astype(float)
    rest = fit(Y * mask, 0.5, lambda mu: mask * mu)
    wild = fit(np.where(mask, Y, 1e3), 0.5, lambda mu: mask * mu)
    np.testing.assert_allclose(rest, wild, rtol=1e-9, atol=1e-9)
    assert np.isfinite(rest).all()


def test_slope_and_offset_of_other_variables_move_with_the_point():
    with pm.Model() as model:
        a, b = pm.Normal("a", 2, 0.1), pm.Normal("b", 0, 5)
        mu = pmt.BART("mu", X, leaf=pmt.NormalLeaf(0.4, 0.8), m=5, max_nodes=295)
        pm.Normal("y", a * mu + b, 0.5, observed=2 * Y + 7, shape=mu.shape)
        step = pmt.CGM(rng=np.random.default_rng(3))
    point = {**model.initial_point(), "a": np.array(2.0), "b": np.array(7.0)}
    with pm.Model() as plain:
        mu = pmt.BART("mu", X, leaf=pmt.NormalLeaf(0.4, 0.8), m=5, max_nodes=295)
        pm.Normal("y", mu, 0.25, observed=Y, shape=mu.shape)
        other = pmt.CGM(rng=np.random.default_rng(3))
    at = plain.initial_point()
    for _ in range(10):
        point, _ = step.step(point)
        at, _ = other.step(at)
    f = model.compile_fn(model["mu"], inputs=[model["mu_forest"]])
    g = plain.compile_fn(plain["mu"], inputs=[plain["mu_forest"]])
    one, two = f({"mu_forest": point["mu_forest"]}), g({"mu_forest": at["mu_forest"]})
    np.testing.assert_allclose(one, two, rtol=1e-9, atol=1e-9)
