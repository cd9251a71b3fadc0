"""Coordinates of the gates against plain numpy, and their gradient against differences."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from scipy.special import expit, log_expit

from pymc_trees.dcc.kernels.gates import gates_at, gates_gradient
from pymc_trees.dcc.topology_model import SoftCoordinates

SIZES = [(0, 3), (1, 1), (1, 2), (2, 3), (3, 7)]


def gates(coordinates, p):
    splits = len(coordinates) // p
    tau, delta = np.empty(splits), np.empty((splits, p))
    total = gates_at(coordinates, tau, delta)
    return tau, delta, total


@pytest.mark.parametrize(("splits", "p"), SIZES)
def test_thresholds_and_weights(splits, p, rng):
    q = 3.0 * rng.normal(size=splits * p)
    tau, delta, _ = gates(q, p)
    np.testing.assert_allclose(tau, expit(q[:splits]), rtol=1e-13)
    for s, stick in enumerate(q[splits:].reshape(splits, p - 1)):
        left = 1.0
        for k, z in enumerate(stick):
            g = expit(z - np.log(p - 1 - k))
            np.testing.assert_allclose(delta[s, k], left * g, rtol=1e-12)
            left *= 1.0 - g
        np.testing.assert_allclose(delta[s, p - 1], left, rtol=1e-10)


@pytest.mark.parametrize(("splits", "p"), SIZES)
def test_the_log_jacobian_is_that_of_differences(splits, p, rng):
    q, e = rng.normal(size=splits * p), 1e-6

    def free(q):
        tau, delta, _ = gates(q, p)
        return np.concatenate([tau, delta[:, :-1].ravel()])

    slopes = [(free(q + e * one) - free(q - e * one)) / (2 * e) for one in np.eye(len(q))]
    _, expected = np.linalg.slogdet(np.array(slopes).reshape(len(q), len(q)))
    assert gates(q, p)[2] == pytest.approx(expected, abs=1e-7)


def test_coordinates_of_zero_are_equal_weights():
    tau, delta, _ = gates(np.zeros(10), 5)
    np.testing.assert_allclose(tau, 0.5)
    np.testing.assert_allclose(delta, 0.2, rtol=1e-14)


def test_no_logarithm_cancels_far_out():
    """At q = 40 the double 1 - g is 0, and at -800 g is; their logarithms are -40 and -800."""
    tau, delta, total = gates(np.array([40.0, -800.0]), 2)
    assert tau[0] == 1.0 and delta.tolist() == [[0.0, 1.0]]
    assert total == pytest.approx(log_expit(-40.0) + log_expit(-800.0), rel=1e-14)


@pytest.mark.parametrize(("splits", "p"), SIZES)
@pytest.mark.parametrize("which", ["all", "weights", "jacobian"])
def test_gradient(splits, p, which, rng):
    q, e = rng.normal(size=splits * p), 1e-6
    of_tau, of_delta = rng.normal(size=splits), rng.normal(size=(splits, p))
    coordinates = pt.dvector()
    tau, delta, log_jacobian = SoftCoordinates(p)(coordinates)
    total = {
        "all": pt.sum(of_tau * tau) + pt.sum(of_delta * delta) + 0.7 * log_jacobian,
        "weights": pt.sum(of_delta * delta),
        "jacobian": log_jacobian,
    }[which]
    function = pytensor.function([coordinates], [total, pt.grad(total, coordinates)])
    _, gradient = function(q)
    slopes = [
        (function(q + e * one)[0] - function(q - e * one)[0]) / (2 * e) for one in np.eye(len(q))
    ]
    np.testing.assert_allclose(gradient, np.array(slopes), rtol=1e-6, atol=1e-8)
    if which == "all":
        out = np.empty_like(q)
        gates_gradient(q, gates(q, p)[1], of_tau, of_delta, 0.7, out)
        np.testing.assert_allclose(gradient, out, rtol=1e-13)
