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
    register_funcify_and_cache_key,
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
from pymc_trees.core.value.evaluate import same_content
from pymc_trees.core.value.fields import CHECKSUM, is_intact
from pymc_trees.core.value.output_cache import cache_evaluated, cached_outputs, link_table, look_up
from pymc_trees.distributions.forest_inputs import SoftForestInputs, forest_inputs
from pymc_trees.distributions.leaves.contract import LEAVES, starts
from pymc_trees.distributions.ops.function_of_rows import FunctionOfRows
from pymc_trees.distributions.tree_priors.contract import TreeCounts
from pymc_trees.distributions.tree_priors.depth import DepthPrior

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


@njit(cache=True)
def draw_from_prior(
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
    sizes,
):
    """Encoded forest of the parameters of a variable."""
    prior = make_soft_prior(alpha, beta, weights, bandwidth)
    return draw_soft_value(rng, prior, mean, sd, sizes, fingerprint)


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
        X, knots, heights, offsets, hard, *numbers, size = parameters
        if size not in (None, ()):
            raise NotImplementedError("A forest has no batch dimensions: declare one per model.")
        fingerprint, bandwidth, alpha, beta, weights, mean, sd = numbers
        with deferred_interrupts():
            return draw_from_prior(
                rng,
                np.ascontiguousarray(X),
                knots,
                heights,
                offsets,
                hard,
                *(float(v) for v in (fingerprint, bandwidth, alpha, beta)),
                np.ascontiguousarray(weights),
                float(mean),
                float(sd),
                soft_sizes(self.layout),
            )


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
        return draw_from_prior(
            rng,
            np.ascontiguousarray(X),
            np.ascontiguousarray(knots),
            np.ascontiguousarray(heights),
            np.ascontiguousarray(offsets),
            np.ascontiguousarray(hard),
            fingerprint,
            bandwidth,
            alpha,
            beta,
            np.ascontiguousarray(weights),
            mean,
            sd,
            layout,
        )

    return draw, KERNELS_VERSION


class SoftStumps(Op):
    """Encoded forest of stumps with the same bandwidth: where chains start."""

    __props__ = ("layout",)

    def __init__(self, layout: SoftLayout):
        self.layout = SoftLayout(*layout)

    def make_node(self, *inputs):
        """Apply to the mean of leaf values, their spread, the bandwidth and the fingerprint."""
        output = pt.matrix(shape=self.layout.shape, dtype="float64")
        return Apply(self, [pt.as_tensor(v, dtype="float64") for v in inputs], [output])

    def infer_shape(self, node, input_shapes):
        """Shape of the layout."""
        return [tuple(pt.constant(s, dtype="int64") for s in self.layout.shape)]

    def perform(self, node, inputs, outputs):
        """Encode."""
        numbers = (float(v) for v in inputs)
        mean, spread, bandwidth, fingerprint = numbers
        outputs[0][0] = stumps_value(mean, spread, bandwidth, soft_sizes(self.layout), fingerprint)


@register_funcify_and_cache_key(SoftStumps)
def _numba_stumps(op, node, **kwargs):
    def in_python(*inputs):
        outputs = [[None]]
        op.perform(node, inputs, outputs)
        return outputs[0][0]

    @numba_njit
    def stumps(mean, spread, bandwidth, fingerprint):
        with numba.objmode(value="float64[:, ::1]"):
            value = in_python(mean, spread, bandwidth, fingerprint)
        return value

    return stumps, None


@_support_point.register(SoftForestRV)
def _initial_forest(op, rv, rng, size, *inputs):
    known = SoftForestInputs.of(inputs)
    [mean], [spread] = starts(op.leaf_type, 1, *known.leaf)
    return SoftStumps(op.layout)(mean, spread, known.bandwidth, known.fingerprint)


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
    """What the log-probability knows of an encoded forest, by `core.soft_forest.encode`."""

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
        """Refused: counts of trees have no gradient."""
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
    known = SoftForestInputs.of(inputs)
    alpha, beta, weights = known.alpha, known.beta, known.weights
    splits, leaves, leaf_values, columns, bandwidths, log_cuts = SoftForestSummary()(
        value, known.hard, known.fingerprint, sizes_vector(op.layout)
    )
    counts = TreeCounts(splits, leaves, pt.zeros(3))
    logp = DepthPrior.logp(counts, alpha, beta) + log_cuts
    positive = pt.switch(weights > 0, weights, 1.0)  # no tree of a model has an excluded column
    logp += pt.sum(columns * pt.log(positive)) - pt.sum(columns) * pt.log(pt.sum(weights))
    logp -= pt.sum(bandwidths / known.bandwidth + pt.log(known.bandwidth))
    logp += pt.sum(op.leaf_type.logp(leaf_values, *known.leaf))
    conditions, words = DepthPrior.conditions(alpha, beta)
    conditions, words = [*conditions, pt.all(weights >= 0)], f"{words}, split_prior >= 0"
    return check_parameters(logp, *conditions, msg=words)


# ---------------------- The function of X that a forest of soft trees stands for, as a PyTensor Op


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
            fit = cached_outputs(value, value[sizes[1], CHECKSUM], number)
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
        cache_evaluated(value, value[numbers.max_nodes, CHECKSUM], fingerprint, out)


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
