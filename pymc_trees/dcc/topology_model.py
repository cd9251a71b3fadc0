"""A model with a soft tree at one topology at a time: densities, prior draws, values of variables.

The unconstrained vector q holds, in this order,

========================= ======================= =====================================
other free variables      their value variables   PyMC's transforms
leaf values               L (normal leaf only)    none
thresholds tau            S                       logit
weights Delta             S (p - 1)               stick-breaking, 0 for equal weights
========================= ======================= =====================================

The topology is a shared node table, so each function is compiled once for all topologies. Also
shared are the weights of splits that use one input, which are not part of q, and the values of
variables that other steps move.
"""

from functools import cached_property
from typing import NamedTuple

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
from pymc.pytensorf import compile, reseed_rngs
from pytensor.gradient import DisconnectedType, disconnected_type
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.op import Op
from pytensor.graph.replace import graph_replace
from pytensor.graph.traversal import ancestors
from pytensor.link.numba.dispatch.basic import numba_njit, register_funcify_default_op_cache_key

from pymc_trees._version import KERNELS_VERSION
from pymc_trees.core.interrupts import deferred_interrupts
from pymc_trees.dcc.kernels.encode import STUMP, encode, n_splits, node_table
from pymc_trees.dcc.kernels.gates import gate_gradient, gates_at, gates_gradient, leaf_probabilities
from pymc_trees.dcc.nuts import Density
from pymc_trees.dcc.read_model import SoftModel, check_inputs, observed_classes, read_model
from pymc_trees.dcc.soft_tree_rv import fingerprint_of, soft_tree_inputs
from pymc_trees.distributions.forest_inputs import Evaluation
from pymc_trees.distributions.tree_variable import evaluations

# ------------- Gates of a soft tree as differentiable PyTensor Ops: leaf probabilities, coordinates


# ---------------- Leaf probabilities of a soft tree of any topology as differentiable PyTensor Ops
#
# The topology is an input (`dcc.kernels.topology.node_table`): one compiled function serves all.


_matrix = pt.TensorType("float64", (None, None))
_vector = pt.TensorType("float64", (None,))


class SoftGates(Op):
    """(L, n) leaf probabilities (eq. 5), and the (S, n) gates (eq. 4) for the gradient."""

    __props__ = ()

    def make_node(self, delta, tau, x, h, table):
        """Apply to (S, p) weights, (S,) thresholds, (p, n) scaled inputs, sharpness, node table."""
        inputs = [pt.as_tensor(v) for v in (delta, tau, x, h, table)]
        return Apply(self, inputs, [_matrix(), _matrix()])

    def perform(self, node, inputs, outputs):
        """Evaluate."""
        outputs[0][0], outputs[1][0] = _forward(*inputs)

    def connection_pattern(self, node):
        """Gradients flow through Delta and tau."""
        return [[True, True], [True, True], [False] * 2, [False] * 2, [False] * 2]

    def pullback(self, inputs, outputs, cotangents):
        """Gradient with respect to Delta and tau; nothing depends on the gates themselves."""
        _, _, x, h, table = inputs
        d_delta, d_tau = SoftGatesGradient()(x, h, table, outputs[1], cotangents[0])
        return [d_delta, d_tau] + [disconnected_type()] * 3


class SoftGatesGradient(Op):
    """Gradient of ``sum(weight * phi)`` with respect to Delta, (S, p), and tau, (S,)."""

    __props__ = ()

    def make_node(self, x, h, table, gates, weight):
        """Apply to inputs and outputs of `SoftGates`, and an (L, n) weight."""
        inputs = [pt.as_tensor(v) for v in (x, h, table, gates, weight)]
        return Apply(self, inputs, [_matrix(), _vector()])

    def perform(self, node, inputs, outputs):
        """Evaluate."""
        outputs[0][0], outputs[1][0] = _backward(*inputs)


def _forward(delta, tau, x, h, table):
    c = np.ascontiguousarray
    phi = np.empty((tau.shape[0] + 1, x.shape[1]))
    gates = np.empty((tau.shape[0], x.shape[1]))
    leaf_probabilities(c(x), c(delta), c(tau), h.item(), c(table), phi, gates)
    return phi, gates


def _backward(x, h, table, gates, weight):
    c = np.ascontiguousarray
    d_delta, d_tau = np.zeros((gates.shape[0], x.shape[0])), np.zeros(gates.shape[0])
    gate_gradient(c(x), h.item(), c(table), c(gates), c(weight), d_delta, d_tau)
    return d_delta, d_tau


@register_funcify_default_op_cache_key(SoftGates)
def _numba_gates(op, node, **kwargs):
    return numba_njit(_forward), KERNELS_VERSION


@register_funcify_default_op_cache_key(SoftGatesGradient)
def _numba_gradient(op, node, **kwargs):
    return numba_njit(_backward), KERNELS_VERSION


# --------------------------------------------------------------------------------------------------
# Gates of a soft tree as differentiable functions of unconstrained coordinates: PyTensor Ops.


_vector_of_coordinates = pt.TensorType("float64", (None,))


class SoftCoordinates(Op):
    """Thresholds (S,), weights (S, p), and the log Jacobian of both: `dcc.kernels.gates`."""

    __props__ = ("p",)

    def __init__(self, p):
        self.p = p

    def make_node(self, coordinates):
        """Apply to (S p,) coordinates."""
        matrix = pt.TensorType("float64", (None, self.p))
        return Apply(
            self, [pt.as_tensor(coordinates)], [_vector_of_coordinates(), matrix(), pt.dscalar()]
        )

    def perform(self, node, inputs, outputs):
        """Evaluate."""
        [coordinates] = inputs
        for out, value in zip(outputs, _forward_of_coordinates(coordinates, self.p), strict=True):
            out[0] = value

    def pullback(self, inputs, outputs, cotangents):
        """Gradient with respect to the coordinates."""
        gradients = [
            pt.zeros_like(out) if isinstance(c.type, DisconnectedType) else c
            for out, c in zip(outputs, cotangents, strict=True)
        ]
        return [SoftCoordinatesGradient()(inputs[0], outputs[1], *gradients)]


class SoftCoordinatesGradient(Op):
    """Gradient with respect to the coordinates, (S p,)."""

    __props__ = ()

    def make_node(self, coordinates, delta, d_tau, d_delta, d_total):
        """Apply to coordinates, weights, and gradients with respect to the three outputs."""
        inputs = [pt.as_tensor(v) for v in (coordinates, delta, d_tau, d_delta, d_total)]
        return Apply(self, inputs, [_vector_of_coordinates()])

    def perform(self, node, inputs, outputs):
        """Evaluate."""
        outputs[0][0] = _backward_of_coordinates(*inputs)


def _forward_of_coordinates(coordinates, p):
    splits = coordinates.shape[0] // p
    tau, delta = np.empty(splits), np.empty((splits, p))
    total = gates_at(np.ascontiguousarray(coordinates), tau, delta)
    return tau, delta, np.asarray(total)


def _backward_of_coordinates(coordinates, delta, d_tau, d_delta, d_total):
    c = np.ascontiguousarray
    out = np.empty(coordinates.shape[0])
    gates_gradient(c(coordinates), c(delta), c(d_tau), c(d_delta), d_total.item(), out)
    return out


@register_funcify_default_op_cache_key(SoftCoordinates)
def _numba_coordinates(op, node, **kwargs):
    forward, p = numba_njit(_forward_of_coordinates), op.p

    @numba_njit
    def coordinates(coordinates):
        return forward(coordinates, p)

    return coordinates, KERNELS_VERSION


@register_funcify_default_op_cache_key(SoftCoordinatesGradient)
def _numba_gradient_of_coordinates(op, node, **kwargs):
    return numba_njit(_backward_of_coordinates), KERNELS_VERSION


# -------------------------------------------------------------------------------------------------


START_ATTEMPTS = 1000
"""Maximal number of prior draws in the search for a start with a finite log-density."""


class Parameters(NamedTuple):
    """The parameters of one topology as functions of q."""

    others: list[Variable]
    """Value variables of the other free variables."""
    values: Variable
    """(L, 1) leaf values, or None with a Dirichlet leaf."""
    tau: Variable
    """(S,)"""
    delta: Variable
    """(S, p)"""
    log_jacobian: Variable
    """Of tau and Delta."""


class TopologyModel:
    """Compiled functions of a model with a soft tree, for one topology at a time.

    Parameters
    ----------
    model : pymc.Model
        With one `SoftDecisionTree`.
    soft : SoftModel, optional
        The same model taken apart; by default as DCC-Tree does.
    """

    def __init__(self, model: pm.Model, soft: SoftModel | None = None):
        self.soft = soft = read_model(model) if soft is None else soft
        check_inputs(soft)
        self.op = soft.tree.owner.op
        self.label = STUMP
        self._table = pytensor.shared(node_table(STUMP), "node_table")
        self._h = pytensor.shared(np.float64(self.op.h[1]), "h")
        self._one_hot = pytensor.shared(np.zeros((0, self.op.p)), "corners")
        self._q = pt.vector("q", dtype="float64")
        start = soft.model.initial_point()
        self.others = [soft.model.rvs_to_values[rv] for rv in soft.others]
        """Value variables of the other free variables in q."""
        self._shapes = [np.shape(start[v.name]) for v in self.others]
        self.n_others = sum(int(np.prod(shape)) for shape in self._shapes)
        fixed = [soft.model.rvs_to_values[rv] for rv in soft.fixed]
        self._fixed = {
            value: pytensor.shared(start[value.name], value.name, shape=value.type.shape)
            for value in fixed
        }
        self._parameters = self._read_q()
        self._classes = None if soft.labels is None else observed_classes(soft)
        self._concentrations: Variable | None = None
        self._log_prior, self._log_likelihood = self._densities()

    # ------------------------------------------------------------------------ the topology

    def set_topology(self, label: str, h: float | None = None) -> None:
        """Choose the topology of all functions; the sharpness defaults to the model's."""
        self.label = label
        self._table.set_value(node_table(label))
        self.set_sharpness(self.op.h[1] if h is None else h)

    def set_sharpness(self, h: float) -> None:
        """Choose the sharpness of all gates."""
        self._h.set_value(h)

    @property
    def has_values(self) -> bool:
        """Whether leaf values are parameters; otherwise they are integrated out."""
        return self.op.leaf_type.sampled_in_soft_trees

    @property
    def gate_size(self) -> int:
        """Parameters of a split: its threshold, and its weights unless it uses one input."""
        return 1 if self.op.by_index else self.op.p

    @property
    def dimension(self) -> int:
        """Length of q for the topology."""
        n = n_splits(self.label)
        return self.n_others + (n + 1) * self.has_values + n * self.gate_size

    def is_current(self) -> bool:
        """Whether the observed classes, which the functions hold as numbers, are still the same.

        All other data of the model are read anew at every call, except the inputs.
        """
        compiled = self._classes
        return compiled is None or np.array_equal(compiled, observed_classes(self.soft))

    # --------------------------------------------------------------------- graphs in terms of q

    def _read_q(self) -> Parameters:
        q, at = self._q, 0
        others = []
        for value, shape in zip(self.others, self._shapes, strict=True):
            size = int(np.prod(shape))
            piece = q[at : at + size].reshape(shape)
            others.append(pt.specify_broadcastable(piece) if value.type.ndim == 0 else piece)
            at += size
        n_split = self._table.shape[0] // 2
        start = pt.constant(at, dtype="int64")
        leaf_values = None
        if self.has_values:
            leaf_values = q[start : start + n_split + 1].reshape((-1, 1))
            start = start + n_split + 1
        # A split with one input has a threshold in q, and no weights.
        tau, delta, log_jacobian = SoftCoordinates(self.gate_size)(q[start:])
        delta = self._one_hot if self.op.by_index else delta
        return Parameters(others, leaf_values, tau, delta, log_jacobian)

    @property
    def _replacements(self) -> list[tuple[Variable, Variable]]:
        """Value variables of the model, and what stands for them."""
        return [*zip(self.others, self._parameters.others, strict=True), *self._fixed.items()]

    @property
    def _leaf_settings(self) -> list[Variable]:
        """Parameters of the leaf prior, in terms of value variables."""
        inputs = soft_tree_inputs(self.soft.tree)
        return self.soft.model.replace_rvs_by_values(list(inputs.leaf))

    def _leaf_probabilities(self, evaluation: Evaluation) -> Variable:
        """(L, n) leaf probabilities at the rows at which the tree is evaluated."""
        low, span, *_ = evaluation.rest
        scaled = np.ascontiguousarray(((evaluation.X.eval() - low.data) / span.data).T)
        parameters = self._parameters
        return SoftGates()(
            parameters.delta, parameters.tau, pt.constant(scaled), self._h, self._table
        )[0]

    def _in_terms_of_q(self, graphs: list[Variable]) -> list[Variable]:
        """Graphs of value variables as functions of q."""
        tree = self.soft.model.rvs_to_values[self.soft.tree]
        replace = dict(self._replacements)
        for one in evaluations(graphs):
            if one.tree is not tree:
                raise NotImplementedError(
                    f"{tree.name} is used in another form: use the function that SoftDecisionTree "
                    "returns."
                )
            if one.outputs not in replace:
                # A sum, not a product by BLAS: the same bits in every process.
                each = self._leaf_probabilities(one) * self._parameters.values
                replace[one.outputs] = pt.sum(each, axis=0)[:, None]
        if not replace:
            return graphs
        local = graph_replace(graphs, replace, strict=False)
        if any(v is tree for v in ancestors(local)):
            raise NotImplementedError(
                "A variable of the model depends on the encoded tree itself. Soft trees support "
                "only variables that depend on the function returned by SoftDecisionTree."
            )
        return local

    def _densities(self):
        """Log prior and log likelihood."""
        soft, parameters = self.soft, self._parameters
        drawn = [rv for rv in soft.others if not any(rv is v for v in soft.factors)]
        priors = soft.model.logp(vars=drawn, sum=False) if drawn else []
        factors = soft.model.logp(vars=soft.factors, sum=False) if soft.factors else []
        prior = parameters.log_jacobian
        prior += (self._table.shape[0] // 2) * self.op.log_density_of_direction  # tau: uniform
        settings = self._leaf_settings
        if self.has_values:
            prior += pt.sum(self.op.leaf_type.logp(parameters.values, *settings))
        likelihood = pt.constant(0.0)
        if soft.labels is not None:
            likelihood, concentrations = self._class_counts(settings[0] / self.op.n_values)
        prior = sum((pt.sum(term) for term in priors), prior)
        likelihood = sum((pt.sum(term) for term in factors), likelihood)
        if soft.labels is not None:
            [self._concentrations] = self._in_terms_of_q([concentrations])
        prior, likelihood = self._in_terms_of_q([prior, likelihood])
        return prior, likelihood

    def _class_counts(self, alpha):
        """Log of eq. 8, and the (K, L) parameters of the Dirichlet conditionals of the leaves.

        ``alpha`` is that of one class; the constant of a leaf has a factor per class too.
        """
        [evaluation] = evaluations([self.soft.labels])
        shown = pt.constant(self._classes)  # (K, n)
        reached = self._leaf_probabilities(evaluation)
        counts = pt.sum(shown[:, None, :] * reached[None, :, :], axis=2)
        total = self.op.n_values * alpha
        per_leaf = pt.gammaln(total) - pt.gammaln(counts.sum(axis=0) + total)
        per_class = pt.gammaln(counts + alpha) - pt.gammaln(alpha)
        return pt.sum(per_leaf) + pt.sum(per_class), counts + alpha

    # --------------------------------------------------------------------- compiled functions

    def _compiled(self, outputs):
        function = compile([self._q], outputs, on_unused_input="ignore")
        function.trust_input = True
        return function

    @cached_property
    def density(self) -> Density:
        """Log-density of q and its gradient."""
        joint = self._log_prior + self._log_likelihood
        return Density(self._compiled([joint, pt.grad(joint, self._q)]))

    @cached_property
    def _joint_and_prior(self):
        return self._compiled([self._log_prior + self._log_likelihood, self._log_prior])

    def log_densities(self, points: np.ndarray) -> np.ndarray:
        """(P, 2) log of the joint density and of the prior at (P, d) points."""
        out, function = np.empty((len(points), 2)), self._joint_and_prior
        with deferred_interrupts() as held:
            for row, q in zip(out, np.ascontiguousarray(points)):
                row[:] = function(q)
                held.answer()
        return out

    def is_finite(self, q: np.ndarray) -> bool:
        """Whether the log-density and its gradient at a vector are finite."""
        density = self.density._pytensor_function
        with deferred_interrupts():
            value, gradient = density(q)
        return bool(np.isfinite(value) and np.isfinite(gradient).all())

    @cached_property
    def _prior(self):
        soft, model = self.soft, self.soft.model
        outputs = []
        for rv in soft.others:
            transform = model.rvs_to_transforms[rv]
            outputs.append(rv if transform is None else transform.forward(rv, *rv.owner.inputs))
        if self.has_values:
            n_leaf = self._table.shape[0] // 2 + 1
            mean, sd = soft_tree_inputs(soft.tree).leaf
            outputs.append(pm.Normal.dist(mean, sd, shape=(n_leaf,)))
        if not outputs:
            return (lambda: []), []
        try:
            function, updates = compile([], outputs, random_seed=False, return_updates=True)
            with deferred_interrupts():
                function()
        except NotImplementedError as error:
            raise ValueError(
                "The evidence of a topology needs proper priors, but one prior of the model "
                f"cannot be drawn from ({error}): replace pm.Flat or pm.HalfFlat by a proper prior."
            ) from error
        return function, list(updates)

    def draw_prior(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """(count, d) draws of q from the prior, given the topology."""
        function, generators = self._prior
        reseed_rngs(generators, int(rng.integers(2**63)))
        n, p = n_splits(self.label), self.gate_size
        out = np.empty((count, self.dimension))
        head = self.dimension - n * p
        with deferred_interrupts() as held:
            for row in out:
                row[:head] = np.concatenate([np.ravel(v) for v in function()] or [np.empty(0)])
                held.answer()
        out[:, head:] = draw_gates(rng, count, n, p)
        return out

    def draw_start(self, rng: np.random.Generator) -> np.ndarray:
        """(d,) draw from the prior with a finite density and gradient."""
        for _ in range(START_ATTEMPTS):
            [q] = self.draw_prior(rng, 1)
            if self.is_finite(q):
                return q
        raise ValueError(
            f"None of {START_ATTEMPTS} draws from the prior of topology {self.label} has a finite "
            "log-probability: look for the term that is -inf, by model.point_logps()."
        )

    @cached_property
    def _unpack(self):
        parameters = self._parameters
        # Class probabilities of leaves are drawn given the soft counts of the classes.
        last = parameters.values if self.has_values else self._concentrations
        return self._compiled([*parameters.others, parameters.tau, parameters.delta, last])

    def point(self, q: np.ndarray, rng: np.random.Generator) -> dict[str, np.ndarray]:
        """Value of every free variable, by the names of value variables."""
        unpack = self._unpack
        with deferred_interrupts():
            *others, tau, delta, values = unpack(q)
        if not self.has_values:
            values = _draw_probabilities(rng, values.T)
        point = {v.name: np.asarray(x) for v, x in zip(self.others, others, strict=True)}
        fingerprint = fingerprint_of(self.soft.tree)
        point[self.tree_name] = encode(
            self.label, delta, tau, values, self.op.max_nodes, fingerprint
        )
        return point

    @property
    def tree_name(self) -> str:
        """Name of the tree in a point."""
        return self.soft.model.rvs_to_values[self.soft.tree].name


def draw_gates(rng: np.random.Generator, count: int, n: int, p: int) -> np.ndarray:
    """(count, n p) draws of n gates from their prior: the end of q, thresholds then weights."""
    out = np.empty((count, n * p))
    tau = rng.random((count, n))
    out[:, :n] = np.log(tau) - np.log1p(-tau)
    # Stick-breaking of a uniform simplex: the k-th piece takes a Beta(1, p - k) of the rest.
    pieces = np.arange(p - 1, 0, -1)
    log_rest = np.log1p(-rng.random((count, n, p - 1))) / pieces
    stick = np.log(-np.expm1(log_rest)) - log_rest + np.log(pieces)
    out[:, n:] = stick.reshape(count, -1)
    return out


def _draw_probabilities(rng, concentration):
    """(L, K) draws of Dirichlet distributions, in logs: a gamma of small shape would underflow."""
    shape = concentration
    log_gamma = np.log(rng.standard_gamma(shape + 1.0)) + np.log1p(-rng.random(shape.shape)) / shape
    out = np.exp(log_gamma - log_gamma.max(axis=1, keepdims=True))
    out = np.maximum(out, np.finfo(float).tiny)
    return out / out.sum(axis=1, keepdims=True)
