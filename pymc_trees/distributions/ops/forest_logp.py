"""Log-probability of an encoded forest, a symbolic expression of its settings.

With ``S_d`` split nodes and ``O_d`` leaves that could have split at depth d, and node by node the
density of the cut and the probability of the column (Lakshminarayanan 2015, eq. 4-6),

    log p = sum_d S_d log p_d + sum_d O_d log(1 - p_d) + log cuts + log columns + log p(leaf values)
    p_d = alpha (1 + d)**-beta

or, for a Mondrian process with lifetime L (`core.priors.mondrian`),

    log p = terms[0] - L terms[1] + log cuts + log columns + log p(leaf values)

and -inf when a split is later than L. Counts and terms come from the value, so the expression is
differentiable in every setting; a value that is not an intact forest has log-probability -inf.
"""

import numpy as np
import pytensor.tensor as pt
from pymc.distributions.dist_math import check_parameters
from pymc.logprob.abstract import _logprob
from pytensor.graph.basic import Apply, Constant
from pytensor.graph.op import Op
from pytensor.link.numba.dispatch.basic import (
    numba_njit,
    register_funcify_and_cache_key,
)

from pymc_trees._version import KERNELS_VERSION
from pymc_trees.core.value.fields import Layout, sizes
from pymc_trees.core.value.summary import column_choices_of, summarise
from pymc_trees.distributions.forest_inputs import ForestInputs
from pymc_trees.distributions.ops.by_name import (
    N_SCALARS,
    read_sizes,
    sizes_of,
    summarise_by_name,
)
from pymc_trees.distributions.ops.forest_rv import ForestRV, kinds_reader
from pymc_trees.distributions.tree_priors.contract import TreeCounts

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
        """Refused: counts of trees and choices of columns have no gradient."""
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
        splits, open_leaves = np.empty(s.max_nodes + 1), np.empty(s.max_nodes + 1)
        values, scalars = np.empty((s.max_nodes, s.n_values)), np.empty(N_SCALARS)
        found = call(
            value.ctypes,
            numbers.ctypes,
            fingerprint.item(),
            splits.ctypes,
            open_leaves.ctypes,
            values.ctypes,
            scalars.ctypes,
        )
        depths, leaves = found & 0xFFFFFFFF, found >> 32
        log_cuts, log_columns = np.asarray(scalars[0]), np.asarray(scalars[1])
        return (
            splits[:depths],
            open_leaves[:depths],
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
    known, prior = ForestInputs.of(inputs), op.prior_type
    first, second, weights = known.alpha, known.beta, known.weights
    splits, open_leaves, leaf_values, log_cuts, log_columns, times = ForestSummary(op.layout)(
        value, known.fingerprint, sizes_of(op.layout)
    )
    logp = prior.logp(TreeCounts(splits, open_leaves, times), first, second) + log_cuts
    conditions, words = prior.conditions(first, second)
    if prior.weighs_columns:
        conditions, words = [*conditions, pt.all(weights >= 0)], f"{words}, split_prior >= 0"
    if isinstance(weights, Constant):
        logp += log_columns
    else:
        chosen, sets, counts = ColumnChoices(op.layout)(value, *known.design, sizes_of(op.layout))
        # 0 log 0 for a column that no node chose
        logp += pt.sum(pt.switch(pt.gt(chosen, 0), chosen * pt.log(weights), 0.0))
        logp -= pt.sum(counts * pt.log(pt.dot(sets, weights)))
    logp += pt.sum(op.leaf_type.logp(leaf_values, *known.leaf))
    return check_parameters(logp, *conditions, msg=words)
