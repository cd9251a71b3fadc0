"""The function of X that a soft tree stands for, as a PyTensor Op."""

import numpy as np
from pytensor.link.numba.dispatch.basic import numba_njit, register_funcify_default_op_cache_key

from pymc_trees._version import KERNELS_VERSION
from pymc_trees.core.soft.encode import evaluate
from pymc_trees.distributions.ops.function_of_rows import FunctionOfRows
from pymc_trees.distributions.ops.soft_tree_rv import NO_GRADIENT


class SoftEvaluate(FunctionOfRows):
    """Outputs of an encoded soft tree at the rows of X, shape (rows of X, K).

    It refuses gradients: what a tree is differentiable in depends on its topology, and DCC-Tree
    puts `soft_gates.SoftGates` in its place. Beside value and X it takes the range of the training
    inputs (low, span), the sharpness and the fingerprint of the declaration.
    """

    __props__ = ("n_values",)
    gufunc_signature = "(r,f),(n,p),(p),(p),(),()->(n,k)"

    def __init__(self, n_values: int):
        self.n_values = self.n_outputs = n_values

    def perform(self, node, inputs, outputs):
        """Evaluate."""
        value, X, low, span, h, fingerprint = inputs
        value, X = np.ascontiguousarray(value), np.ascontiguousarray(X)
        outputs[0][0] = evaluate(value, X, low, span, float(h), self.n_values, float(fingerprint))

    def pullback(self, inputs, outputs, cotangents):
        """Refused."""
        raise NotImplementedError(NO_GRADIENT)


@register_funcify_default_op_cache_key(SoftEvaluate)
def _numba_evaluate(op, node, **kwargs):
    n_values = op.n_values

    @numba_njit
    def evaluate_soft_tree(value, X, low, span, h, fingerprint):
        return evaluate(
            np.ascontiguousarray(value),
            np.ascontiguousarray(X),
            np.ascontiguousarray(low),
            np.ascontiguousarray(span),
            h.item(),
            n_values,
            fingerprint.item(),
        )

    return evaluate_soft_tree, KERNELS_VERSION
