"""The soft tree as a random variable: its Op, prior draw, initial point and log-probability.

Its inputs after the generator and the size are the fingerprint of the declaration and the leaf
parameters. The prior of the topology (eq. 6) times,
at every split, that of the direction Delta (`LOG_DENSITY`) and of ``tau ~ Beta(1, 1)``, times that
of the leaf values.
"""

from math import lgamma, log
from typing import NamedTuple

import numpy as np
import pytensor.tensor as pt
from pymc.distributions.distribution import Continuous, _support_point
from pymc.logprob.abstract import _logprob
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.op import Op
from pytensor.link.numba.dispatch.basic import numba_njit, register_funcify_default_op_cache_key
from pytensor.link.numba.dispatch.random import numba_core_rv_funcify
from pytensor.tensor.random.op import RandomVariable

from pymc_trees._version import KERNELS_VERSION
from pymc_trees.core.interrupts import deferred_interrupts
from pymc_trees.core.value.fields import fingerprint as hash_parts
from pymc_trees.dcc.kernels.encode import (
    STUMP,
    draw_value,
    encode,
    evaluate,
    n_fields,
    summarise,
)
from pymc_trees.distributions.data.numbers import as_tensor
from pymc_trees.distributions.forest_inputs import FunctionOfRows
from pymc_trees.distributions.leaves.contract import LEAVES

NO_GRADIENT = (
    "A soft tree has no gradient as a whole: its topology is discrete. Sample the model with "
    "pm.sample(), which assigns pymc_trees.DCCTree or RJHMC, or with pymc_trees.sample_dcc; "
    "find_MAP, fit and other methods that need gradients of every variable cannot treat it."
)


BY_INDEX = "index"
LOG_DENSITY = {
    "dirichlet": lambda p: lgamma(p),  # Delta ~ Dirichlet(1, .., 1)
    BY_INDEX: lambda p: -log(p),  # a corner of the simplex, all equally likely
}
"""Kinds of directions: log of the prior density of one over p inputs."""


class SoftTreeRV(RandomVariable):
    """Random variable whose value is an encoded soft tree (`dcc.kernels.encode`)."""

    name = "soft_tree"
    dtype = "float64"
    __props__ = (
        "name",
        "signature",
        "dtype",
        "inplace",
        "p",
        "n_values",
        "max_nodes",
        "leaf",
        "alpha",
        "beta",
        "h",
        "direction",
    )
    _print_name = ("SoftTree", "\\operatorname{SoftTree}")

    def __init__(self, *, p, n_values, max_nodes, leaf, alpha, beta, h, direction, **kwargs):
        self.p, self.n_values, self.max_nodes = p, n_values, max_nodes
        self.leaf, self.leaf_type = leaf, LEAVES[leaf]
        self.alpha, self.beta, self.h = alpha, beta, h
        self.direction = direction
        settings = "".join(f",{one}" for one in self.leaf_type.signatures)
        kwargs["signature"] = f"(){settings}->({max_nodes},{n_fields(p, n_values)})"
        super().__init__(**kwargs)

    def rng_fn(self, rng, fingerprint, *rest):
        """Draw from the prior."""
        *leaf_parameters, size = rest
        if size not in (None, ()):
            raise NotImplementedError("A soft tree has no batch dimensions: declare one per model.")
        leaf = self.leaf_type.prior(*(float(v) for v in leaf_parameters))
        with deferred_interrupts():
            return draw_value(
                rng,
                self.alpha,
                self.beta,
                leaf,
                self.p,
                self.n_values,
                self.max_nodes,
                float(fingerprint),
                self.by_index,
            )

    @property
    def by_index(self) -> bool:
        """Whether a split has one input, drawn by index."""
        return self.direction == BY_INDEX

    @property
    def log_density_of_direction(self) -> float:
        """Log of the prior density of one split's Delta."""
        return LOG_DENSITY[self.direction](self.p)


class SoftTreeInputs(NamedTuple):
    """Parameters of a soft tree."""

    fingerprint: Variable
    leaf: tuple[Variable, ...]


def soft_tree_inputs(tree: Variable) -> SoftTreeInputs:
    """Parameters of a soft tree variable."""
    return SoftTreeInputs(tree.owner.inputs[2], tuple(tree.owner.inputs[3:]))


def is_soft_tree(rv) -> bool:
    """Whether a random variable is a soft tree."""
    return bool(rv.owner) and isinstance(rv.owner.op, SoftTreeRV)


def declared(X: np.ndarray, h: float, leaf: str, n_values: int, direction: str) -> float:
    """Fingerprint of a declaration: training inputs, sharpness, leaf and kind of directions."""
    # The default kind is left out, so that draws of earlier versions stay valid.
    kind = [direction] if direction == BY_INDEX else []
    return hash_parts(np.asarray(X, dtype=np.float64), h, leaf, n_values, *kind)


def fingerprint_of(rv) -> float:
    """Fingerprint of a soft tree's declaration."""
    return float(soft_tree_inputs(rv).fingerprint.data)


def is_training_inputs(rv, X: np.ndarray) -> bool:
    """Whether a soft tree was declared at these inputs."""
    op = rv.owner.op
    return declared(X, op.h[1], op.leaf, op.n_values, op.direction) == fingerprint_of(rv)


@numba_core_rv_funcify.register(SoftTreeRV)
def _numba_draw(op, node):
    make_leaf = op.leaf_type.prior
    alpha, beta = float(op.alpha), float(op.beta)
    p, n_values, max_nodes, by_index = op.p, op.n_values, op.max_nodes, op.by_index

    @numba_njit
    def draw(rng, fingerprint, *leaf_parameters):
        leaf = make_leaf(*leaf_parameters)
        return draw_value(rng, alpha, beta, leaf, p, n_values, max_nodes, fingerprint, by_index)

    return draw, KERNELS_VERSION


class Stump(Op):
    """Encoded soft tree of one leaf: where chains start."""

    __props__ = ("p", "n_values", "max_nodes")

    def __init__(self, p: int, n_values: int, max_nodes: int):
        self.p, self.n_values, self.max_nodes = p, n_values, max_nodes

    def make_node(self, fingerprint, values):
        """Apply to the declaration's fingerprint and (K,) leaf values."""
        shape = (self.max_nodes, n_fields(self.p, self.n_values))
        inputs = [pt.as_tensor(fingerprint), pt.as_tensor(values)]
        return Apply(self, inputs, [pt.matrix(shape=shape, dtype="float64")])

    def perform(self, node, inputs, outputs):
        """Encode."""
        fingerprint, values = inputs
        nothing = np.zeros((0, self.p))
        outputs[0][0] = encode(
            STUMP, nothing, np.zeros(0), values[None], self.max_nodes, float(fingerprint)
        )


@_support_point.register(SoftTreeRV)
def _initial_tree(op, rv, rng, size, fingerprint, *leaf_parameters):
    centre = op.leaf_type.initial_value(op.n_values, *leaf_parameters)
    values = pt.stack([pt.as_tensor(c, dtype="float64") for c in centre])
    return Stump(op.p, op.n_values, op.max_nodes)(fingerprint, values)


class SoftTreeSummary(Op):
    """Splits per depth, leaves per depth and leaf values of an encoded soft tree."""

    __props__ = ("n_values",)

    def __init__(self, n_values: int):
        self.n_values = n_values

    def make_node(self, value, fingerprint):
        """Apply to an encoded value and the declaration's fingerprint."""
        vector = pt.TensorType("float64", (None,))
        values = pt.TensorType("float64", (None, self.n_values))
        inputs = [pt.as_tensor(value), pt.as_tensor(fingerprint)]
        return Apply(self, inputs, [vector(), vector(), values()])

    def perform(self, node, inputs, outputs):
        """Summarise."""
        value, fingerprint = inputs
        results = summarise(np.ascontiguousarray(value), self.n_values, float(fingerprint))
        for storage, result in zip(outputs, results, strict=True):
            storage[0] = result

    def pullback(self, inputs, outputs, cotangents):
        """Refused: a topology has no gradient."""
        raise NotImplementedError(NO_GRADIENT)


@register_funcify_default_op_cache_key(SoftTreeSummary)
def _numba_summary(op, node, **kwargs):
    n_values = op.n_values

    @numba_njit
    def summary(value, fingerprint):
        return summarise(np.ascontiguousarray(value), n_values, fingerprint.item())

    return summary, KERNELS_VERSION


@_logprob.register(SoftTreeRV)
def _soft_tree_logp(op, values, rng, size, fingerprint, *leaf_parameters, **kwargs):
    [value] = values
    splits, leaves, leaf_values = SoftTreeSummary(op.n_values)(value, fingerprint)
    # in logs: at a depth without splits the count 0 times the log of an underflow is no number
    log_p = log(op.alpha) - op.beta * np.log1p(np.arange(op.max_nodes))
    depths = splits.shape[0]
    logp = pt.dot(splits, pt.constant(log_p)[:depths])
    logp += pt.dot(leaves, pt.constant(np.log1p(-np.exp(log_p)))[:depths])
    logp += pt.sum(splits) * op.log_density_of_direction  # that of tau is 1
    logp += pt.sum(op.leaf_type.logp(leaf_values, *leaf_parameters))
    return pt.switch(pt.eq(leaf_values.shape[0], 0), -np.inf, logp)


class SoftTree(Continuous):
    """The random variable behind `SoftDecisionTree`; its arguments are checked there."""

    rv_type = SoftTreeRV

    @classmethod
    def dist(cls, fingerprint, leaf, p, max_nodes, alpha, beta, h, direction, **kwargs):
        """Soft tree that is not registered in a model."""
        op = SoftTreeRV(
            p=p,
            n_values=leaf.n_values,
            max_nodes=max_nodes,
            leaf=leaf.name,
            alpha=alpha,
            beta=beta,
            h=h,
            direction=direction,
        )
        _, tree = op(
            pt.constant(fingerprint, dtype="float64"),
            *(as_tensor(v) for v in leaf.parameters),
            rng=pt.random.shared_rng(seed=None),
            return_next_rng=True,
        )
        return tree


# --------------------------------- The function of X that a soft tree stands for, as a PyTensor Op


class SoftEvaluate(FunctionOfRows):
    """Outputs of an encoded soft tree at the rows of X, shape (rows of X, K).

    It refuses gradients: the parameters of a tree depend on its topology, and DCC-Tree replaces
    this Op by `dcc.topology_model.SoftGates`. Besides value and X it takes the range of the
    training inputs (low, span), the sharpness and the fingerprint of the declaration.
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
