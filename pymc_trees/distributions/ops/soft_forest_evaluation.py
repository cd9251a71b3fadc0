"""The function of X that a forest of soft trees stands for, as a PyTensor Op."""

import numba
import numpy as np
from pytensor.graph.basic import Variable
from pytensor.link.numba.dispatch.basic import numba_njit, register_funcify_default_op_cache_key

from pymc_trees._version import KERNELS_VERSION
from pymc_trees.core.compile.threads import by_rows, given_threads, taken_threads
from pymc_trees.core.soft_forest.encode import evaluate as evaluate_kernel
from pymc_trees.core.value.checksum import is_intact
from pymc_trees.core.value.evaluate import same_content
from pymc_trees.core.value.fields import CHECKSUM
from pymc_trees.core.value.known import keep_walked, known_fit, link_table, look_up
from pymc_trees.distributions.forest_inputs import forest_inputs
from pymc_trees.distributions.ops.function_of_rows import FunctionOfRows
from pymc_trees.distributions.ops.soft_forest_logp import NO_GRADIENT
from pymc_trees.distributions.ops.soft_forest_rv import read_soft_sizes, sizes_vector

WORTH = 400_000
"""Visits of a row in a soft tree from which threads pay off: each takes some 10 ns."""


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
        value, X, number = *map(np.ascontiguousarray, (value, X)), float(fingerprint)
        at_training, fit = X is X_train or np.array_equal(X, X_train), None
        if at_training and is_intact(value, int(sizes[1]), number):
            fit = known_fit(value, value[sizes[1], CHECKSUM], number)
        if fit is None:
            outputs[0][0] = np.empty((len(X), 1))
            given = (value, X, knots, heights, offsets, hard, sizes, number, outputs[0][0])
            walk_in_threads(at_training, *given)
        else:
            outputs[0][0] = fit.copy()

    def pullback(self, inputs, outputs, cotangents):
        """Refused."""
        raise NotImplementedError(NO_GRADIENT)


def walk_in_threads(at_training, value, X, knots, heights, offsets, hard, sizes, fingerprint, out):
    """Write the function at the rows of X, from Python, on the threads of this process' chain.

    At the training rows it is kept, for graphs that read a forest which no step moves.
    """
    numbers = read_soft_sizes(sizes)
    given = (knots, heights, offsets, hard, numbers, fingerprint)

    def walk(start, stop):
        out[start:stop] = evaluate_kernel(value, X[start:stop], *given)

    with taken_threads(given_threads() if numbers.m * len(X) >= WORTH else 1) as n_threads:
        by_rows(walk, len(X), n_threads)
    if at_training and is_intact(value, numbers.max_nodes, fingerprint):
        keep_walked(value, value[numbers.max_nodes, CHECKSUM], fingerprint, out)


@register_funcify_default_op_cache_key(SoftForestEvaluate)
def _numba_evaluate(op, node, **kwargs):
    table = link_table()

    @numba_njit
    def evaluate_soft_forest(value, X, X_train, knots, heights, offsets, hard, fingerprint, sizes):
        value, X = np.ascontiguousarray(value), np.ascontiguousarray(X)
        X_train, knots = np.ascontiguousarray(X_train), np.ascontiguousarray(knots)
        heights, offsets = np.ascontiguousarray(heights), np.ascontiguousarray(offsets)
        hard, sizes = np.ascontiguousarray(hard), np.ascontiguousarray(sizes)
        max_nodes, number, out = sizes[1], fingerprint.item(), np.empty((X.shape[0], 1))
        at_training = same_content(X, X_train)
        if at_training and is_intact(value, max_nodes, number):
            if look_up(table(), value, value[max_nodes, CHECKSUM], number, out):
                return out
        with numba.objmode():
            walk_in_threads(
                at_training, value, X, knots, heights, offsets, hard, sizes, number, out
            )
        return out

    return evaluate_soft_forest, KERNELS_VERSION


def evaluate_soft(forest: Variable, X) -> Variable:
    """(n,) function of a forest variable of soft trees at the rows of X."""
    known = forest_inputs(forest)
    declared = (known.X, *known.unit_map, known.hard, known.fingerprint)
    sizes = sizes_vector(forest.owner.op.layout)
    return SoftForestEvaluate()(forest, X, *declared, sizes)[:, 0]
