"""Gates of a soft tree as differentiable functions of unconstrained coordinates: PyTensor Ops."""

import numpy as np
import pytensor.tensor as pt
from pytensor.gradient import DisconnectedType
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.link.numba.dispatch.basic import numba_njit, register_funcify_default_op_cache_key

from pymc_trees._version import KERNELS_VERSION
from pymc_trees.core.soft.gates import gates_at, gates_gradient

_vector = pt.TensorType("float64", (None,))


class SoftCoordinates(Op):
    """Thresholds (S,), weights (S, p), and the log Jacobian of both: `core.soft.gates`."""

    __props__ = ("p",)

    def __init__(self, p):
        self.p = p

    def make_node(self, coordinates):
        """Apply to (S p,) coordinates."""
        matrix = pt.TensorType("float64", (None, self.p))
        return Apply(self, [pt.as_tensor(coordinates)], [_vector(), matrix(), pt.dscalar()])

    def perform(self, node, inputs, outputs):
        """Evaluate."""
        [coordinates] = inputs
        for out, found in zip(outputs, _forward(coordinates, self.p), strict=True):
            out[0] = found

    def pullback(self, inputs, outputs, cotangents):
        """Gradient with respect to the coordinates."""
        given = [
            pt.zeros_like(out) if isinstance(c.type, DisconnectedType) else c
            for out, c in zip(outputs, cotangents, strict=True)
        ]
        return [SoftCoordinatesGradient()(inputs[0], outputs[1], *given)]


class SoftCoordinatesGradient(Op):
    """Gradient with respect to the coordinates, (S p,)."""

    __props__ = ()

    def make_node(self, coordinates, delta, d_tau, d_delta, d_total):
        """Apply to coordinates, weights, and gradients with respect to the three outputs."""
        inputs = [pt.as_tensor(v) for v in (coordinates, delta, d_tau, d_delta, d_total)]
        return Apply(self, inputs, [_vector()])

    def perform(self, node, inputs, outputs):
        """Evaluate."""
        outputs[0][0] = _backward(*inputs)


def _forward(coordinates, p):
    splits = coordinates.shape[0] // p
    tau, delta = np.empty(splits), np.empty((splits, p))
    total = gates_at(np.ascontiguousarray(coordinates), tau, delta)
    return tau, delta, np.asarray(total)


def _backward(coordinates, delta, d_tau, d_delta, d_total):
    c = np.ascontiguousarray
    out = np.empty(coordinates.shape[0])
    gates_gradient(c(coordinates), c(delta), c(d_tau), c(d_delta), d_total.item(), out)
    return out


@register_funcify_default_op_cache_key(SoftCoordinates)
def _numba_coordinates(op, node, **kwargs):
    forward, p = numba_njit(_forward), op.p

    @numba_njit
    def coordinates(coordinates):
        return forward(coordinates, p)

    return coordinates, KERNELS_VERSION


@register_funcify_default_op_cache_key(SoftCoordinatesGradient)
def _numba_gradient(op, node, **kwargs):
    return numba_njit(_backward), KERNELS_VERSION
