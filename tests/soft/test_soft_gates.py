"""Kernels of the gates against plain numpy, and their gradient against differences."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from support.soft_models import TOPOLOGIES, leaf_shares

from pymc_trees.dcc.kernels.encode import (
    encode,
    evaluate,
    label_of,
    n_fields,
    node_table,
    summarise,
)
from pymc_trees.dcc.kernels.gates import (
    STEEPEST,
    exp_of_minus,
    gate_gradient,
    leaf_probabilities,
)
from pymc_trees.dcc.topology_model import SoftGates

N, P = 7, 3


def parameters(rng, label):
    splits = len(label) // 2
    return rng.dirichlet(np.ones(P), splits), rng.random(splits), rng.normal(size=(splits + 1, 2))


def shares(label, x, delta, tau, h):
    """(n, L) probabilities of leaves, and (n, S) gates, at (n, p) inputs."""
    phi, gates = np.empty((len(tau) + 1, len(x))), np.empty((len(tau), len(x)))
    inputs = np.ascontiguousarray(x.T)
    leaf_probabilities(inputs, delta, tau, h, node_table(label), phi, gates)
    return phi.T, gates.T


def test_the_exponential_is_that_of_numpy(rng):
    s = np.concatenate([[0.0, 1e-300, np.log(2) / 2, np.log(2), STEEPEST], rng.random(9_000) * 100])
    for n in (1, 7, len(s)):  # fewer than are computed at a time, too
        fraction, out = np.empty(n), np.empty(n)
        exp_of_minus(s[:n], fraction, out, out.view(np.int64))
        np.testing.assert_allclose(out, np.exp(-s[:n]), rtol=1e-15)
    assert out[0] == 1.0


def test_a_row_without_a_number_goes_right():
    phi, gates = shares("SLL", np.array([[np.nan]]), np.ones((1, 1)), np.array([0.5]), 0.1)
    assert phi.tolist() == [[0.0, 1.0]] and gates.tolist() == [[0.0]]


@pytest.mark.parametrize("label", TOPOLOGIES)
def test_leaf_probabilities(label, rng):
    x, (delta, tau, _) = rng.random((N, P)), parameters(rng, label)
    phi, _ = shares(label, x, delta, tau, 0.1)
    np.testing.assert_allclose(phi, leaf_shares(label, x, delta, tau, 0.1), rtol=1e-12)
    np.testing.assert_allclose(phi.sum(axis=1), 1.0, rtol=1e-12)


def test_left_is_where_the_weighted_input_exceeds_the_threshold():
    x = np.array([[0.1], [0.9]])
    phi, _ = shares("SLL", x, np.ones((1, 1)), np.array([0.5]), 0.01)
    np.testing.assert_allclose(phi, [[0, 1], [1, 0]], atol=1e-12)


def test_hard_gates_do_not_overflow():
    phi, _ = shares("SLL", np.array([[0.0], [1.0]]), np.ones((1, 1)), np.array([0.5]), 1e-6)
    np.testing.assert_array_equal(phi, [[0, 1], [1, 0]])


def test_no_probability_has_reduced_precision():
    x = np.linspace(0.0, 1.0, 400)[:, None]
    tau, tiny = np.array([0.5, 0.45, 0.4]), np.finfo(float).tiny
    phi, gates = shares("SSSLLLL", x, np.ones((3, 1)), tau, 1e-3)
    assert not ((phi > 0) & (phi < tiny)).any() and not ((gates > 0) & (gates < tiny)).any()
    np.testing.assert_allclose(phi.sum(axis=1), 1.0, rtol=1e-12)
    exact = leaf_shares("SSSLLLL", x, np.ones((3, 1)), tau, 1e-3)
    np.testing.assert_allclose(phi, exact, rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("label", TOPOLOGIES[1:])
@pytest.mark.parametrize("n", [1, N, 70])
def test_gradient(n, label, rng):
    x, (delta, tau, _) = rng.random((n, P)), parameters(rng, label)
    table, h = node_table(label), 0.15
    phi, gates = shares(label, x, delta, tau, h)
    weight = rng.normal(size=phi.shape)
    d_delta, d_tau = np.zeros_like(delta), np.zeros_like(tau)
    inputs, weights, left = (np.ascontiguousarray(one.T) for one in (x, weight, gates))
    gate_gradient(inputs, h, table, left, weights, d_delta, d_tau)

    def total(delta, tau):
        return (weight * shares(label, x, delta, tau, h)[0]).sum()

    e = 1e-6
    for at in np.ndindex(*delta.shape):
        step = np.zeros_like(delta)
        step[at] = e
        slope = (total(delta + step, tau) - total(delta - step, tau)) / (2 * e)
        assert d_delta[at] == pytest.approx(slope, rel=1e-5, abs=1e-7)
    for k in range(len(tau)):
        step = np.zeros_like(tau)
        step[k] = e
        slope = (total(delta, tau + step) - total(delta, tau - step)) / (2 * e)
        assert d_tau[k] == pytest.approx(slope, rel=1e-5, abs=1e-7)


@pytest.mark.parametrize("label", ["SLL", "SSLLSLL"])
def test_compiled_graphs_compute_the_same(label, rng):
    """PyTensor allows its compiler to reorder sums; in the kernels it must not."""
    x, (delta, tau, _) = rng.random((70, P)), parameters(rng, label)
    inputs, table = np.ascontiguousarray(x.T), node_table(label)
    weight = rng.normal(size=(len(tau) + 1, len(x)))
    d, t = pt.matrix(), pt.vector()
    phi, gates = SoftGates()(d, t, pt.constant(inputs), pt.constant(0.05), pt.constant(table))
    slopes = pt.grad(pt.sum(pt.constant(weight) * phi), [d, t])
    phi, gates, *slopes = pytensor.function([d, t], [phi, gates, *slopes])(delta, tau)
    exact = leaf_shares(label, x, delta, tau, 0.05)
    np.testing.assert_allclose(phi.T, exact, rtol=1e-9, atol=1e-15)
    np.testing.assert_allclose(gates.T, shares(label, x, delta, tau, 0.05)[1], rtol=1e-12)
    d_delta, d_tau = np.zeros_like(delta), np.zeros_like(tau)
    gate_gradient(inputs, 0.05, table, gates, weight, d_delta, d_tau)
    np.testing.assert_allclose(slopes[0], d_delta, rtol=1e-10)
    np.testing.assert_allclose(slopes[1], d_tau, rtol=1e-10)


@pytest.mark.parametrize("label", TOPOLOGIES)
def test_an_encoded_tree_evaluates_to_its_function(label, rng):
    X = 5.0 + 3.0 * rng.random((N, P))
    delta, tau, values = parameters(rng, label)
    low, span = X.min(axis=0), np.ptp(X, axis=0)
    value = encode(label, delta, tau, values, 15, 77.0)
    assert value.shape == (15, n_fields(P, 2)) and label_of(value) == label
    out = evaluate(value, X, low, span, 0.1, 2, 77.0)
    expected = leaf_shares(label, (X - low) / span, delta, tau, 0.1) @ values
    np.testing.assert_allclose(out, expected, rtol=1e-12)
    splits, leaves, read = summarise(value, 2, 77.0)
    assert splits.sum() == len(tau) and leaves.sum() == len(tau) + 1
    np.testing.assert_array_equal(read, values)


@pytest.mark.parametrize("label", TOPOLOGIES)
def test_a_value_with_any_entry_changed_is_no_tree(label, rng):
    delta, tau, values = parameters(rng, label)
    good = encode(label, delta, tau, values, 9, 77.0)
    X = rng.random((N, P))
    for at in np.ndindex(*good.shape):
        for entry in (np.nextafter(good[at], np.inf), -good[at] - 1.0, np.nan, -2.0):
            if entry == good[at]:
                continue
            value = good.copy()
            value[at] = entry
            assert len(summarise(value, 2, 77.0)[2]) == 0
            assert np.isnan(evaluate(value, X, np.zeros(P), np.ones(P), 0.1, 2, 77.0)).all()
    assert np.isnan(evaluate(good, X, np.zeros(P), np.ones(P), 0.1, 2, 78.0)).all()
    assert len(summarise(good, 2, 77.0)[2]) == len(tau) + 1
