"""The forest of soft trees: random variable, prior draw, log-probability, function of X."""

import numba
import numpy as np
import pytensor.tensor as pt
from pymc.distributions.dist_math import check_parameters
from pymc.distributions.distribution import _support_point
from pymc.logprob.abstract import _logprob
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.op import Op
from pytensor.link.numba.dispatch.basic import (
    numba_njit,
    register_funcify_default_op_cache_key,
)
from pytensor.link.numba.dispatch.random import numba_core_rv_funcify
from pytensor.tensor.random.op import RandomVariable

from pymc_trees._version import KERNELS_VERSION
from pymc_trees.core.compile.cache import njit
from pymc_trees.core.compile.threads import by_rows, given_threads, taken_threads
from pymc_trees.core.interrupts import deferred_interrupts
from pymc_trees.core.soft_forest.encode import (
    SoftLayout,
    SoftSizes,
    draw_soft_value,
    soft_sizes,
    stumps_value,
    summarise,
)
from pymc_trees.core.soft_forest.encode import evaluate as evaluate_kernel
from pymc_trees.core.soft_forest.prior import make_soft_prior
from pymc_trees.core.value.evaluate import (
    cache_evaluated,
    cached_outputs,
    link_table,
    look_up,
    same_content,
)
from pymc_trees.core.value.fields import CHECKSUM, is_intact
from pymc_trees.distributions.forest_inputs import FunctionOfRows, SoftForestInputs, forest_inputs
from pymc_trees.distributions.leaves.contract import LEAVES, starts
from pymc_trees.distributions.ops.forest_rv import Stumps
from pymc_trees.distributions.tree_priors.contract import DepthPrior, TreeCounts

# ------------- The forest of soft trees as a random variable: its Op, prior draw and initial point
#
# Its inputs are described in `distributions.forest_inputs`.


def sizes_vector(layout: SoftLayout) -> np.ndarray:
    """`SoftSizes` of a layout as a vector: data, so that no graph is compiled for a size."""
    return np.array(soft_sizes(layout), dtype=np.int64)


@njit(cache=True)
def read_soft_sizes(s):
    """`SoftSizes` from such a vector."""
    return SoftSizes(s[0], s[1], s[2], s[3])


class SoftForestRV(RandomVariable):
    """Random variable whose value is an encoded sum of soft trees (`core.soft_forest.encode`)."""

    name = "soft_forest"
    dtype = "float64"
    __props__ = ("name", "signature", "dtype", "inplace", "layout")
    _print_name = ("SoftForest", "\\operatorname{SoftForest}")
    inputs_type = SoftForestInputs
    leaf = "normal"

    def __init__(self, *, layout: SoftLayout, **kwargs):
        self.layout = SoftLayout(*layout)
        self.leaf_type = LEAVES[self.leaf]
        rows, fields = self.layout.shape
        kwargs["signature"] = f"(n,p),(k),(k),(q),(p),(),(),(),(),(p),(),()->({rows},{fields})"
        super().__init__(**kwargs)

    def rng_fn(self, rng, *parameters):
        """Draw from the prior."""
        *inputs, size = parameters
        if size not in (None, ()):
            raise NotImplementedError("A forest has no batch dimensions: declare one per model.")
        declared = SoftForestInputs.of(inputs)
        alpha, beta, bandwidth = map(float, (declared.alpha, declared.beta, declared.bandwidth))
        mean, sd = map(float, declared.leaf)
        with deferred_interrupts():
            prior = make_soft_prior(alpha, beta, np.ascontiguousarray(declared.weights), bandwidth)
            return draw_soft_value(
                rng, prior, mean, sd, soft_sizes(self.layout), float(declared.fingerprint)
            )

    def stumps(self, mean, spread, bandwidth, fingerprint):
        """Encoded forest of stumps with the same bandwidth, either side of the same leaf value."""
        numbers = (float(v) for v in (mean, spread, bandwidth))
        return stumps_value(*numbers, soft_sizes(self.layout), float(fingerprint))


def is_soft_forest(rv) -> bool:
    """Whether a random variable is a forest of soft trees."""
    return bool(rv.owner) and isinstance(rv.owner.op, SoftForestRV)


@numba_core_rv_funcify.register(SoftForestRV)
def _numba_draw(op, node):
    layout = soft_sizes(op.layout)

    @numba_njit
    def draw(
        rng,
        X,
        knots,
        heights,
        offsets,
        hard,
        fingerprint,
        bandwidth,
        alpha,
        beta,
        weights,
        mean,
        sd,
    ):
        prior = make_soft_prior(alpha, beta, np.ascontiguousarray(weights), bandwidth)
        return draw_soft_value(rng, prior, mean, sd, layout, fingerprint)

    return draw, KERNELS_VERSION


@_support_point.register(SoftForestRV)
def _initial_forest(op, rv, rng, size, *inputs):
    declared = SoftForestInputs.of(inputs)
    [mean], [spread] = starts(op.leaf_type, 1, *declared.leaf)
    return Stumps(op)(mean, spread, declared.bandwidth, declared.fingerprint)


# ------- Log-probability of an encoded forest of soft trees, a symbolic expression of its settings
#
# With ``S_d`` split nodes and ``L_d`` leaves at depth d, ``C_j`` splits on column j with the
# weight ``s_j``, bandwidths ``tau_t`` of prior mean b, and the cuts uniform between their bounds
# (Linero and Yang 2018, section 3),
#
#     log p = sum_d S_d log p_d + sum_d L_d log(1 - p_d) + sum_j C_j log(s_j / sum s) + log cuts
#             - sum_t (tau_t / b + log b) + log p(leaf values),        p_d = alpha (1 + d)**-beta
#
# Every node may split, whatever the rows. A value that is not an intact forest has -inf.


NO_GRADIENT = (
    "The log-probability of a forest of soft trees has no gradient with respect to them. Sample "
    "them with pymc_trees.SoftCGM (pm.sample() assigns it automatically); find_MAP, fit and "
    "other methods that need gradients of every variable cannot sample them."
)


class SoftForestSummary(Op):
    """What the log-probability needs of an encoded forest, by `core.soft_forest.encode`."""

    __props__ = ()

    def make_node(self, value, hard, fingerprint, sizes):
        """Apply to an encoded value, one entry for each column, fingerprint and `sizes_vector`."""
        vector, scalar = pt.TensorType("float64", (None,)), pt.TensorType("float64", ())
        leaves = pt.TensorType("float64", (None, 1))
        outputs = [vector(), vector(), leaves(), vector(), vector(), scalar()]
        return Apply(self, [pt.as_tensor(v) for v in (value, hard, fingerprint, sizes)], outputs)

    def perform(self, node, inputs, outputs):
        """Summarise."""
        value, hard, fingerprint, sizes = inputs
        sizes = read_soft_sizes(sizes)
        results = summarise(np.ascontiguousarray(value), hard.size, sizes, float(fingerprint))
        for storage, result in zip(outputs, results, strict=True):
            storage[0] = np.asarray(result)

    def pullback(self, inputs, outputs, cotangents):
        """Raise an error: counts of trees have no gradient."""
        raise NotImplementedError(NO_GRADIENT)


@register_funcify_default_op_cache_key(SoftForestSummary)
def _numba_summary(op, node, **kwargs):
    @numba_njit
    def summary(value, hard, fingerprint, sizes):
        splits, leaves, values, columns, bandwidths, log_cuts = summarise(
            np.ascontiguousarray(value),
            hard.size,
            read_soft_sizes(np.ascontiguousarray(sizes)),
            fingerprint.item(),
        )
        return splits, leaves, values, columns, bandwidths, np.asarray(log_cuts)

    return summary, KERNELS_VERSION


@_logprob.register(SoftForestRV)
def _soft_forest_logp(op, values, rng, size, *inputs, **kwargs):
    [value] = values
    declared = SoftForestInputs.of(inputs)
    alpha, beta, weights = declared.alpha, declared.beta, declared.weights
    splits, leaves, leaf_values, columns, bandwidths, log_cuts = SoftForestSummary()(
        value, declared.hard, declared.fingerprint, sizes_vector(op.layout)
    )
    counts = TreeCounts(splits, leaves, pt.zeros(3))
    logp = DepthPrior.logp(counts, alpha, beta) + log_cuts
    positive = pt.switch(weights > 0, weights, 1.0)  # no tree of a model has an excluded column
    logp += pt.sum(columns * pt.log(positive)) - pt.sum(columns) * pt.log(pt.sum(weights))
    logp -= pt.sum(bandwidths / declared.bandwidth + pt.log(declared.bandwidth))
    logp += pt.sum(op.leaf_type.logp(leaf_values, *declared.leaf))
    conditions, message = DepthPrior.conditions(alpha, beta)
    conditions, message = [*conditions, pt.all(weights >= 0)], f"{message}, split_prior >= 0"
    return check_parameters(logp, *conditions, msg=message)


# ---------------------- The function of X that a forest of soft trees stands for, as a PyTensor Op


WORTH = 400_000
"""Visits of rows in soft trees from which on threads are worthwhile: one takes some 10 ns."""


class SoftForestEvaluate(FunctionOfRows):
    """The function of an encoded forest of soft trees at the rows of X, shape (rows of X, 1).

    Its other inputs are the training inputs, the map of the columns, which of them are hard, the
    fingerprint of the declaration and `sizes_vector`.
    """

    __props__ = ()
    n_outputs = 1
    gufunc_signature = "(r,f),(n,p),(t,p),(k),(k),(q),(p),(),(s)->(n,o)"

    def perform(self, node, inputs, outputs):
        """Evaluate."""
        value, X, X_train, knots, heights, offsets, hard, fingerprint, sizes = inputs
        value, X, fingerprint = *map(np.ascontiguousarray, (value, X)), float(fingerprint)
        at_training, fit = X is X_train or np.array_equal(X, X_train), None
        if at_training and is_intact(value, int(sizes[1]), fingerprint):
            fit = cached_outputs(value, value[sizes[1], CHECKSUM], fingerprint)
        if fit is None:
            out = outputs[0][0] = np.empty((len(X), 1))
            columns = (knots, heights, offsets, hard)
            walk_in_threads(at_training, value, X, *columns, sizes, fingerprint, out)
        else:
            outputs[0][0] = fit.copy()

    def pullback(self, inputs, outputs, cotangents):
        """Raise an error: trees have no gradient."""
        raise NotImplementedError(NO_GRADIENT)


def walk_in_threads(at_training, value, X, knots, heights, offsets, hard, sizes, fingerprint, out):
    """Write the function at the rows of X, from Python, on the threads of this process' chain.

    At the training rows it is kept, for graphs that read a forest which no step moves.
    """
    s = read_soft_sizes(sizes)

    def walk(start, stop):
        rows = X[start:stop]
        out[start:stop] = evaluate_kernel(
            value, rows, knots, heights, offsets, hard, s, fingerprint
        )

    with taken_threads(given_threads() if s.m * len(X) >= WORTH else 1) as n_threads:
        by_rows(walk, len(X), n_threads)
    if at_training and is_intact(value, s.max_nodes, fingerprint):
        cache_evaluated(value, value[s.max_nodes, CHECKSUM], fingerprint, out)


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
            if look_up(table(), value, value[max_nodes, CHECKSUM], number, X[:0], out):
                return out
        with numba.objmode():
            walk_in_threads(
                at_training, value, X, knots, heights, offsets, hard, sizes, number, out
            )
        return out

    return evaluate_soft_forest, KERNELS_VERSION


def evaluate_soft(forest: Variable, X) -> Variable:
    """(n,) function of a forest variable of soft trees at the rows of X."""
    declared = forest_inputs(forest)
    return SoftForestEvaluate()(
        forest,
        X,
        declared.X,
        *declared.unit_map,
        declared.hard,
        declared.fingerprint,
        sizes_vector(forest.owner.op.layout),
    )[:, 0]
