"""The forest of soft trees as a random variable: its Op, prior draw and initial point.

Its inputs are described in `distributions.forest_inputs`.
"""

import numba
import numpy as np
import pytensor.tensor as pt
from pymc.distributions.distribution import _support_point
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.link.numba.dispatch.basic import numba_njit, register_funcify_and_cache_key
from pytensor.link.numba.dispatch.random import numba_core_rv_funcify
from pytensor.tensor.random.op import RandomVariable

from pymc_trees._version import KERNELS_VERSION
from pymc_trees.core.compile.cache import njit
from pymc_trees.core.interrupts import deferred_interrupts
from pymc_trees.core.soft_forest.fields import SoftLayout, SoftSizes, soft_sizes
from pymc_trees.core.soft_forest.prior import make_soft_prior
from pymc_trees.core.soft_forest.prior_draw import draw_soft_value, stumps_value
from pymc_trees.distributions.forest_inputs import SoftForestInputs
from pymc_trees.distributions.leaves.contract import LEAVES, starts


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
    """Random variable whose value is an encoded sum of soft trees (`core.soft_forest.fields`)."""

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
