"""The forest as a random variable: its Op, prior draw, initial point and log-probability."""

import zlib

import numba
import numpy as np
import pytensor.tensor as pt
from pymc.distributions.dist_math import check_parameters
from pymc.distributions.distribution import _support_point
from pymc.logprob.abstract import _logprob
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.op import Op
from pytensor.link.numba.dispatch.basic import (
    numba_njit,
    register_funcify_and_cache_key,
)
from pytensor.link.numba.dispatch.random import numba_core_rv_funcify
from pytensor.tensor.random.op import RandomVariable

from pymc_trees._version import KERNELS_VERSION
from pymc_trees.core.columns.design import design_of, make_design
from pymc_trees.core.compile.cache import described
from pymc_trees.core.interrupts import deferred_interrupts
from pymc_trees.core.leaves.contract import ConstantLeaf
from pymc_trees.core.samplers.prior_draw import draw_value, stumps_value
from pymc_trees.core.value.fields import Layout, sizes
from pymc_trees.core.value.summary import column_choices_of, summarise
from pymc_trees.distributions.forest_inputs import ForestInputs, declared
from pymc_trees.distributions.leaves.contract import LEAVES, starts
from pymc_trees.distributions.ops.by_name import (
    N_SCALARS,
    read_sizes,
    reader_of,
    sizes_of,
    summarise_by_name,
)
from pymc_trees.distributions.tree_priors.contract import PRIORS, TreeCounts

# ------------------- The forest as a random variable: its Op, its prior draw and its initial point
#
# Its inputs are described in `distributions.forest_inputs`.


class ForestRV(RandomVariable):
    """Random variable whose value is an encoded forest (`core.value.fields`)."""

    name = "forest"
    dtype = "float64"
    __props__ = ("name", "signature", "dtype", "inplace", "layout", "leaf", "tree_prior")
    _print_name = ("Forest", "\\operatorname{Forest}")
    inputs_type = ForestInputs

    def __init__(self, *, layout: Layout, leaf: str, tree_prior: str, **kwargs):
        self.layout = Layout(*layout)
        self.leaf, self.leaf_type = leaf, LEAVES[leaf]
        self.tree_prior, self.prior_type = tree_prior, PRIORS[tree_prior]
        rows, fields = self.layout.shape
        settings = "".join(f",{signature}" for signature in self.leaf_type.signatures)
        kwargs["signature"] = f"(n,p),(g),(q),(),(l),(),(),(p),(c){settings}->({rows},{fields})"
        super().__init__(**kwargs)

    def rng_fn(self, rng, *parameters):
        """Draw from the prior."""
        *inputs, size = parameters
        X, grid, offsets, fingerprint, kinds, alpha, beta, weights, constants, leaf_parameters = (
            ForestInputs.of(inputs)
        )
        if size not in (None, ()):
            raise NotImplementedError("A forest has no batch dimensions: declare one per model.")
        leaf = self.leaf_type.prior(*(v if np.ndim(v) else float(v) for v in leaf_parameters))
        with deferred_interrupts():
            prior = self.prior_type.kernel(float(alpha), float(beta), np.ascontiguousarray(weights))
            kinds = kinds if self.layout.mixed else None
            design = design_of(np.ascontiguousarray(X), grid, offsets, kinds, prior.weights)
            outputs = self.leaf_type.at_rows(self.layout.n_values, X, constants)
            order = order_of(self, constants, kinds)
            return draw_value(
                rng, design, prior, leaf, outputs, sizes(self.layout), float(fingerprint), order
            )

    def stumps(self, X, grid, offsets, fingerprint, kinds, weights, constants, centre, spread):
        """Encoded forest of stumps, either side of the same (V,) leaf values."""
        cuts = np.split(grid, offsets[1:-1]) if offsets.size else None
        return stumps_value(
            make_design(X, cuts, kinds if self.layout.mixed else None),
            self.prior_type.kernel(0.5, 0.0, weights),
            centre,
            spread,
            sizes(self.layout),
            float(fingerprint),
        )


def order_of(op: ForestRV, constants: np.ndarray, kinds: np.ndarray | None):
    """What the leaf values of a tree must satisfy together, or None."""
    if not op.leaf_type.has_order():
        return None
    return op.leaf_type.order(constants, np.empty(0) if kinds is None else kinds)


def leaf_at(forest: Variable, X: np.ndarray | None = None):
    """Leaf model that reads what a forest's leaves return at rows; default: the training rows."""
    op = forest.owner.op
    if op.leaf_type.is_constant():
        return ConstantLeaf(op.layout.n_values)
    numbers = declared(forest)
    X = numbers.X if X is None else X
    return op.leaf_type.at_rows(op.layout.n_values, X, numbers.constants)


def is_forest(rv) -> bool:
    """Whether a random variable is a forest."""
    return bool(rv.owner) and isinstance(rv.owner.op, ForestRV)


@numba_core_rv_funcify.register(ForestRV)
def _numba_draw(op, node):
    make_leaf = op.leaf_type.prior
    make_tree_prior = op.prior_type.kernel
    layout = sizes(op.layout)
    as_kinds = kinds_reader(op.layout)
    read, make_order = reader_of(op.leaf_type.outputs), op.leaf_type.order

    @numba_njit
    def draw(
        rng, X, grid, offsets, fingerprint, kinds, alpha, beta, weights, constants, *leaf_parameters
    ):
        prior = make_tree_prior(alpha, beta, np.ascontiguousarray(weights))
        X = np.ascontiguousarray(X)
        outputs = read(layout.n_values, X, np.ascontiguousarray(constants))
        design = design_of(
            X,
            np.ascontiguousarray(grid),
            np.ascontiguousarray(offsets),
            as_kinds(kinds),
            prior.weights,
        )
        leaf = make_leaf(*leaf_parameters)
        order = make_order(np.ascontiguousarray(constants), np.ascontiguousarray(kinds))
        return draw_value(rng, design, prior, leaf, outputs, layout, fingerprint, order)

    return draw, KERNELS_VERSION + zlib.crc32(described(op.leaf_type).encode())


@numba_njit
def _contiguous(kinds):
    return np.ascontiguousarray(kinds)


@numba_njit
def _none(kinds):
    return None


def kinds_reader(layout: Layout):
    """Compiled function of ``kinds``: the same array, or None for a design of plain numbers."""
    return _contiguous if layout.mixed else _none


class Stumps(Op):
    """Encoded forest of stumps, where chains start: the method `stumps` of the Op of a forest."""

    __props__ = ("forest",)

    def __init__(self, forest: RandomVariable):
        self.forest = forest

    def make_node(self, *inputs):
        """Apply to what `stumps` takes."""
        output = pt.matrix(shape=self.forest.layout.shape, dtype="float64")
        return Apply(self, [pt.as_tensor(v) for v in inputs], [output])

    def infer_shape(self, node, input_shapes):
        """Shape of the layout."""
        return [tuple(pt.constant(s, dtype="int64") for s in self.forest.layout.shape)]

    def perform(self, node, inputs, outputs):
        """Encode."""
        outputs[0][0] = self.forest.stumps(*inputs)


@register_funcify_and_cache_key(Stumps)
def _numba_stumps(op, node, **kwargs):
    def in_python(inputs):
        return op.forest.stumps(*inputs)

    @numba_njit
    def stumps(*inputs):
        with numba.objmode(value="float64[:, ::1]"):
            value = in_python(inputs)
        return value

    return stumps, None


@_support_point.register(ForestRV)
def _initial_forest(op, rv, rng, size, *inputs):
    parameters = ForestInputs.of(inputs)
    centre, spread = (
        pt.stack([pt.as_tensor(v, dtype="float64") for v in values])
        for values in starts(op.leaf_type, op.layout.n_values, *parameters.leaf)
    )
    return Stumps(op)(*parameters.design, parameters.weights, parameters.constants, centre, spread)


# --------------------- Log-probability of an encoded forest, a symbolic expression of its settings
#
# With ``S_d`` split nodes and ``O_d`` leaves that could have split at depth d, and node by node
# the density of the cut and the probability of the column (Lakshminarayanan 2015, eq. 4-6),
#
#     log p = sum_d S_d log p_d + sum_d O_d log(1 - p_d) + log cuts + log columns
#             + log p(leaf values)
#     p_d = alpha (1 + d)**-beta
#
# or, for a Mondrian process with lifetime L (`core.priors.mondrian`),
#
#     log p = terms[0] - L terms[1] + log cuts + log columns + log p(leaf values)
#
# and -inf when a split is later than L. Counts and terms come from the value, so the expression
# is differentiable in every setting; a value that is not an intact forest has log-probability
# -inf.


NO_GRADIENT = (
    "The log-probability of a forest has no gradient with respect to its trees. Sample them with "
    "pymc_trees.Hybrid or pymc_trees.CGM (pm.sample() assigns one automatically); find_MAP, fit "
    "and other methods that need gradients of every variable cannot treat a forest."
)


class _ForestOp(Op):
    __props__ = ("layout",)

    def __init__(self, layout: Layout):
        self.layout = Layout(*layout)

    def pullback(self, inputs, outputs, cotangents):
        """Raise an error: counts of trees and choices of columns have no gradient."""
        raise NotImplementedError(NO_GRADIENT)


class ForestSummary(_ForestOp):
    """Counts, terms and leaf values of an encoded forest, by `core.value.summary`."""

    def make_node(self, value, fingerprint, sizes):
        """Apply to an encoded value, its design's fingerprint and `sizes_of`."""
        vector, scalar = pt.TensorType("float64", (None,)), pt.TensorType("float64", ())
        leaves = pt.TensorType("float64", (None, self.layout.n_values))
        outputs = [vector(), vector(), leaves(), scalar(), scalar(), vector()]
        return Apply(self, [pt.as_tensor(v) for v in (value, fingerprint, sizes)], outputs)

    def perform(self, node, inputs, outputs):
        """Summarise."""
        value, fingerprint, _ = inputs
        results = summarise(np.ascontiguousarray(value), sizes(self.layout), float(fingerprint))
        for storage, result in zip(outputs, results, strict=True):
            storage[0] = np.asarray(result)


@register_funcify_and_cache_key(ForestSummary)
def _numba_summary(op, node, **kwargs):
    call = summarise_by_name.link()

    @numba_njit
    def summary(value, fingerprint, sizes):
        value, numbers = np.ascontiguousarray(value), np.ascontiguousarray(sizes)
        s = read_sizes(numbers)
        splits, splittable_leaves = np.empty(s.max_nodes + 1), np.empty(s.max_nodes + 1)
        values, scalars = np.empty((s.max_nodes, s.n_values)), np.empty(N_SCALARS)
        lengths = call(
            value.ctypes,
            numbers.ctypes,
            fingerprint.item(),
            splits.ctypes,
            splittable_leaves.ctypes,
            values.ctypes,
            scalars.ctypes,
        )
        depths, leaves = lengths & 0xFFFFFFFF, lengths >> 32
        log_cuts, log_columns = np.asarray(scalars[0]), np.asarray(scalars[1])
        return (
            splits[:depths],
            splittable_leaves[:depths],
            values[:leaves],
            log_cuts,
            log_columns,
            scalars[2:],
        )

    return summary, f"{ForestSummary} {KERNELS_VERSION}"


class ColumnChoices(_ForestOp):
    """Columns chosen by the split nodes, and the sets they were chosen from."""

    def make_node(self, value, X, grid, offsets, fingerprint, kinds, sizes):
        """Apply to an encoded value, its design and `sizes_of`."""
        inputs = [pt.as_tensor(v) for v in (value, X, grid, offsets, fingerprint, kinds, sizes)]
        vector, matrix = pt.TensorType("float64", (None,)), pt.TensorType("float64", (None, None))
        return Apply(self, inputs, [vector(), matrix(), vector()])

    def perform(self, node, inputs, outputs):
        """List the choices."""
        value, X, grid, offsets, fingerprint, kinds, _ = inputs
        results = column_choices_of(
            np.ascontiguousarray(value),
            np.ascontiguousarray(X),
            grid,
            offsets,
            float(fingerprint),
            sizes(self.layout),
            kinds if self.layout.mixed else None,
        )
        for storage, result in zip(outputs, results, strict=True):
            storage[0] = result


@register_funcify_and_cache_key(ColumnChoices)
def _numba_choices(op, node, **kwargs):
    as_kinds = kinds_reader(op.layout)

    @numba_njit
    def choices(value, X, grid, offsets, fingerprint, kinds, sizes):
        return column_choices_of(
            np.ascontiguousarray(value),
            np.ascontiguousarray(X),
            np.ascontiguousarray(grid),
            np.ascontiguousarray(offsets),
            fingerprint.item(),
            read_sizes(sizes),
            as_kinds(kinds),
        )

    return choices, f"{ColumnChoices} {op.layout.mixed} {KERNELS_VERSION}"


@_logprob.register(ForestRV)
def _forest_logp(op, values, rng, size, *inputs, **kwargs):
    [value] = values
    declared, prior = ForestInputs.of(inputs), op.prior_type
    first, second, weights = declared.alpha, declared.beta, declared.weights
    splits, splittable_leaves, leaf_values, log_cuts, log_columns, times = ForestSummary(op.layout)(
        value, declared.fingerprint, sizes_of(op.layout)
    )
    logp = prior.logp(TreeCounts(splits, splittable_leaves, times), first, second) + log_cuts
    conditions, message = prior.conditions(first, second)
    if prior.weighs_columns:
        conditions, message = [*conditions, pt.all(weights >= 0)], f"{message}, split_prior >= 0"
    if isinstance(weights, Constant):
        logp += log_columns
    else:
        chosen, sets, counts = ColumnChoices(op.layout)(
            value, *declared.design, sizes_of(op.layout)
        )
        # 0 log 0 for a column that no node chose
        logp += pt.sum(pt.switch(pt.gt(chosen, 0), chosen * pt.log(weights), 0.0))
        logp -= pt.sum(counts * pt.log(pt.dot(sets, weights)))
    logp += pt.sum(op.leaf_type.logp(leaf_values, *declared.leaf))
    return check_parameters(logp, *conditions, msg=message)
