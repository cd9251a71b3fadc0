"""Gates of a soft tree as differentiable PyTensor Ops: leaf probabilities, coordinates."""

import numpy as np
import pytensor.tensor as pt
from pytensor.gradient import DisconnectedType, disconnected_type
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.link.numba.dispatch.basic import numba_njit, register_funcify_default_op_cache_key

from pymc_trees._version import KERNELS_VERSION
from pymc_trees.dcc.kernels.gates import gate_gradient, gates_at, gates_gradient, leaf_probabilities

# ---------------- Leaf probabilities of a soft tree of any topology as differentiable PyTensor Ops
#
# The topology is an input (`dcc.kernels.topology.node_table`): one compiled function serves all.


_matrix = pt.TensorType("float64", (None, None))
_vector = pt.TensorType("float64", (None,))


class SoftGates(Op):
    """(L, n) leaf probabilities (eq. 5), and the (S, n) gates (eq. 4) for the gradient."""

    __props__ = ()

    def make_node(self, delta, tau, x, h, table):
        """Apply to (S, p) weights, (S,) thresholds, (p, n) scaled inputs, sharpness, node table."""
        inputs = [pt.as_tensor(v) for v in (delta, tau, x, h, table)]
        return Apply(self, inputs, [_matrix(), _matrix()])

    def perform(self, node, inputs, outputs):
        """Evaluate."""
        outputs[0][0], outputs[1][0] = _forward(*inputs)

    def connection_pattern(self, node):
        """Gradients flow through Delta and tau."""
        return [[True, True], [True, True], [False] * 2, [False] * 2, [False] * 2]

    def pullback(self, inputs, outputs, cotangents):
        """Gradient with respect to Delta and tau; nothing depends on the gates themselves."""
        _, _, x, h, table = inputs
        d_delta, d_tau = SoftGatesGradient()(x, h, table, outputs[1], cotangents[0])
        return [d_delta, d_tau] + [disconnected_type()] * 3


class SoftGatesGradient(Op):
    """Gradient of ``sum(weight * phi)`` with respect to Delta, (S, p), and tau, (S,)."""

    __props__ = ()

    def make_node(self, x, h, table, gates, weight):
        """Apply to inputs and outputs of `SoftGates`, and an (L, n) weight."""
        inputs = [pt.as_tensor(v) for v in (x, h, table, gates, weight)]
        return Apply(self, inputs, [_matrix(), _vector()])

    def perform(self, node, inputs, outputs):
        """Evaluate."""
        outputs[0][0], outputs[1][0] = _backward(*inputs)


def _forward(delta, tau, x, h, table):
    c = np.ascontiguousarray
    phi = np.empty((tau.shape[0] + 1, x.shape[1]))
    gates = np.empty((tau.shape[0], x.shape[1]))
    leaf_probabilities(c(x), c(delta), c(tau), h.item(), c(table), phi, gates)
    return phi, gates


def _backward(x, h, table, gates, weight):
    c = np.ascontiguousarray
    d_delta, d_tau = np.zeros((gates.shape[0], x.shape[0])), np.zeros(gates.shape[0])
    gate_gradient(c(x), h.item(), c(table), c(gates), c(weight), d_delta, d_tau)
    return d_delta, d_tau


@register_funcify_default_op_cache_key(SoftGates)
def _numba_gates(op, node, **kwargs):
    return numba_njit(_forward), KERNELS_VERSION


@register_funcify_default_op_cache_key(SoftGatesGradient)
def _numba_gradient(op, node, **kwargs):
    return numba_njit(_backward), KERNELS_VERSION


# --------------------------------------------------------------------------------------------------
# Gates of a soft tree as differentiable functions of unconstrained coordinates: PyTensor Ops.


_vector_of_coordinates = pt.TensorType("float64", (None,))


class SoftCoordinates(Op):
    """Thresholds (S,), weights (S, p), and the log Jacobian of both: `dcc.kernels.gates`."""

    __props__ = ("p",)

    def __init__(self, p):
        self.p = p

    def make_node(self, coordinates):
        """Apply to (S p,) coordinates."""
        matrix = pt.TensorType("float64", (None, self.p))
        return Apply(
            self, [pt.as_tensor(coordinates)], [_vector_of_coordinates(), matrix(), pt.dscalar()]
        )

    def perform(self, node, inputs, outputs):
        """Evaluate."""
        [coordinates] = inputs
        for out, value in zip(outputs, _forward_of_coordinates(coordinates, self.p), strict=True):
            out[0] = value

    def pullback(self, inputs, outputs, cotangents):
        """Gradient with respect to the coordinates."""
        gradients = [
            pt.zeros_like(out) if isinstance(c.type, DisconnectedType) else c
            for out, c in zip(outputs, cotangents, strict=True)
        ]
        return [SoftCoordinatesGradient()(inputs[0], outputs[1], *gradients)]


class SoftCoordinatesGradient(Op):
    """Gradient with respect to the coordinates, (S p,)."""

    __props__ = ()

    def make_node(self, coordinates, delta, d_tau, d_delta, d_total):
        """Apply to coordinates, weights, and gradients with respect to the three outputs."""
        inputs = [pt.as_tensor(v) for v in (coordinates, delta, d_tau, d_delta, d_total)]
        return Apply(self, inputs, [_vector_of_coordinates()])

    def perform(self, node, inputs, outputs):
        """Evaluate."""
        outputs[0][0] = _backward_of_coordinates(*inputs)


def _forward_of_coordinates(coordinates, p):
    splits = coordinates.shape[0] // p
    tau, delta = np.empty(splits), np.empty((splits, p))
    total = gates_at(np.ascontiguousarray(coordinates), tau, delta)
    return tau, delta, np.asarray(total)


def _backward_of_coordinates(coordinates, delta, d_tau, d_delta, d_total):
    c = np.ascontiguousarray
    out = np.empty(coordinates.shape[0])
    gates_gradient(c(coordinates), c(delta), c(d_tau), c(d_delta), d_total.item(), out)
    return out


@register_funcify_default_op_cache_key(SoftCoordinates)
def _numba_coordinates(op, node, **kwargs):
    forward, p = numba_njit(_forward_of_coordinates), op.p

    @numba_njit
    def coordinates(coordinates):
        return forward(coordinates, p)

    return coordinates, KERNELS_VERSION


@register_funcify_default_op_cache_key(SoftCoordinatesGradient)
def _numba_gradient_of_coordinates(op, node, **kwargs):
    return numba_njit(_backward_of_coordinates), KERNELS_VERSION
