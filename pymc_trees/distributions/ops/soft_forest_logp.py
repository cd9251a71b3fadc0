"""Log-probability of an encoded forest of soft trees, a symbolic expression of its settings.

With ``S_d`` split nodes and ``L_d`` leaves at depth d, ``C_j`` splits on column j with the weight
``s_j``, bandwidths ``tau_t`` of prior mean b, and the cuts uniform between their bounds
(Linero and Yang 2018, section 3),

    log p = sum_d S_d log p_d + sum_d L_d log(1 - p_d) + sum_j C_j log(s_j / sum s) + log cuts
            - sum_t (tau_t / b + log b) + log p(leaf values),        p_d = alpha (1 + d)**-beta

Every node may split, whatever the rows. A value that is not an intact forest has -inf.
"""

import numpy as np
import pytensor.tensor as pt
from pymc.distributions.dist_math import check_parameters
from pymc.logprob.abstract import _logprob
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.link.numba.dispatch.basic import numba_njit, register_funcify_default_op_cache_key

from pymc_trees._version import KERNELS_VERSION
from pymc_trees.core.soft_forest.encode import summarise
from pymc_trees.distributions.forest_inputs import SoftForestInputs
from pymc_trees.distributions.ops.soft_forest_rv import (
    SoftForestRV,
    read_soft_sizes,
    sizes_vector,
)
from pymc_trees.distributions.tree_priors.contract import TreeCounts
from pymc_trees.distributions.tree_priors.depth import DepthPrior

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
