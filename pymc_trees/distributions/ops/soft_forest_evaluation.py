"""The function of X that a forest of soft trees stands for, as a PyTensor Op."""

import numpy as np
from pytensor.graph.basic import Variable
from pytensor.link.numba.dispatch.basic import numba_njit, register_funcify_default_op_cache_key

from pymc_trees._version import KERNELS_VERSION
from pymc_trees.core.soft_forest.encode import evaluate as evaluate_kernel
from pymc_trees.distributions.forest_inputs import forest_inputs
from pymc_trees.distributions.ops.function_of_rows import FunctionOfRows
from pymc_trees.distributions.ops.soft_forest_logp import NO_GRADIENT
from pymc_trees.distributions.ops.soft_forest_rv import read_soft_sizes, sizes_vector


class SoftForestEvaluate(FunctionOfRows):
    """The function of an encoded forest of soft trees at the rows of X, shape (rows of X, 1).

    Beside value and X it takes the training inputs, the map of the columns, the hard ones, the
    fingerprint of the declaration and `sizes_vector`.
    """

    __props__ = ()
    n_outputs = 1
    gufunc_signature = "(r,f),(n,p),(t,p),(k),(k),(q),(p),(),(s)->(n,o)"

    def perform(self, node, inputs, outputs):
        """Evaluate."""
        value, X, X_train, knots, heights, offsets, hard, fingerprint, sizes = inputs
        outputs[0][0] = evaluate_kernel(
            np.ascontiguousarray(value),
            np.ascontiguousarray(X),
            X_train,
            knots,
            heights,
            offsets,
            hard,
            read_soft_sizes(sizes),
            float(fingerprint),
        )

    def pullback(self, inputs, outputs, cotangents):
        """Refused."""
        raise NotImplementedError(NO_GRADIENT)


@register_funcify_default_op_cache_key(SoftForestEvaluate)
def _numba_evaluate(op, node, **kwargs):
    @numba_njit
    def evaluate_soft_forest(value, X, X_train, knots, heights, offsets, hard, fingerprint, sizes):
        return evaluate_kernel(
            np.ascontiguousarray(value),
            np.ascontiguousarray(X),
            np.ascontiguousarray(X_train),
            np.ascontiguousarray(knots),
            np.ascontiguousarray(heights),
            np.ascontiguousarray(offsets),
            np.ascontiguousarray(hard),
            read_soft_sizes(np.ascontiguousarray(sizes)),
            fingerprint.item(),
        )

    return evaluate_soft_forest, KERNELS_VERSION


def evaluate_soft(forest: Variable, X) -> Variable:
    """(n,) function of a forest variable of soft trees at the rows of X."""
    known = forest_inputs(forest)
    declared = (known.X, *known.unit_map, known.hard, known.fingerprint)
    sizes = sizes_vector(forest.owner.op.layout)
    return SoftForestEvaluate()(forest, X, *declared, sizes)[:, 0]
