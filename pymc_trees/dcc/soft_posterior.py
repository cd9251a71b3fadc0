"""Compiled functions of a model with a soft tree: one set of them serves every topology."""

from functools import cached_property

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.pytensorf import compile, reseed_rngs

from pymc_trees.core.interrupts import deferred_interrupts
from pymc_trees.core.soft.encode import encode
from pymc_trees.core.soft.topology import STUMP, n_splits, node_table
from pymc_trees.dcc.nuts import Density
from pymc_trees.dcc.soft_graph import (
    SoftGraph,
    SoftModel,
    check_inputs,
    observed_classes,
    read_model,
)
from pymc_trees.distributions.forest_inputs import soft_tree_inputs
from pymc_trees.distributions.ops.soft_tree_rv import fingerprint_of

TRIES = 1000
"""Prior draws looked at for a start with a finite log-density."""


class SoftPosterior:
    """Densities, prior draws and values of one topology at a time.

    Parameters
    ----------
    model : pymc.Model
        With one `SoftDecisionTree`.
    soft : SoftModel, optional
        The same model taken apart; by default as DCC-Tree does.
    """

    def __init__(self, model: pm.Model, soft: SoftModel | None = None):
        self.soft = read_model(model) if soft is None else soft
        check_inputs(self.soft)
        self.op = self.soft.tree.owner.op
        self.graph = SoftGraph(self.soft)
        self.label = STUMP
        self.n_others = sum(int(np.prod(shape)) for shape in self.graph.shapes)

    def is_current(self) -> bool:
        """Whether the observed classes, which the functions hold as numbers, are still the same.

        Everything else of the model's data they read anew at every call, but for the inputs.
        """
        known = self.graph.classes
        return known is None or np.array_equal(known, observed_classes(self.soft))

    def bind(self, label: str, h: float | None = None) -> None:
        """Make all functions those of a topology, at the model's sharpness by default."""
        self.label = label
        self.graph.table.set_value(node_table(label))
        self.set_sharpness(self.op.h[1] if h is None else h)

    def set_sharpness(self, h: float) -> None:
        """Change h."""
        self.graph.h.set_value(h)

    @property
    def gate_size(self) -> int:
        """Parameters of a split: its threshold, and its weights unless these are an index."""
        return 1 if self.op.by_index else self.op.p

    @property
    def dimension(self) -> int:
        """Length of q for the topology."""
        n = n_splits(self.label)
        leaves = (n + 1) * self.op.leaf_type.sampled_in_soft_trees
        return self.n_others + leaves + n * self.gate_size

    def _compiled(self, outputs):
        function = compile([self.graph.q], outputs, on_unused_input="ignore")
        function.trust_input = True
        return function

    @cached_property
    def density(self) -> Density:
        """Log-density of q and its gradient."""
        graph = self.graph
        joint = graph.log_prior + graph.log_likelihood
        return Density(self._compiled([joint, pt.grad(joint, graph.q)]))

    @cached_property
    def _pair(self):
        graph = self.graph
        return self._compiled([graph.log_prior + graph.log_likelihood, graph.log_prior])

    def log_densities(self, points: np.ndarray) -> np.ndarray:
        """(P, 2) log of the joint density and of the prior at (P, d) points."""
        found, pair = np.empty((len(points), 2)), self._pair
        with deferred_interrupts() as held:
            for out, q in zip(found, np.ascontiguousarray(points)):
                out[:] = pair(q)
                held.answer()
        return found

    @cached_property
    def _prior(self):
        soft, model = self.soft, self.soft.model
        outputs = []
        for rv in soft.others:
            transform = model.rvs_to_transforms[rv]
            outputs.append(rv if transform is None else transform.forward(rv, *rv.owner.inputs))
        if self.op.leaf_type.sampled_in_soft_trees:
            n_leaf = self.graph.table.shape[0] // 2 + 1
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
        for _ in range(TRIES):
            [q] = self.draw_prior(rng, 1)
            if self.is_finite(q):
                return q
        raise ValueError(
            f"None of {TRIES} draws from the prior of topology {self.label} has a finite "
            "log-probability: look for the term that is -inf, by model.point_logps()."
        )

    def is_finite(self, q: np.ndarray) -> bool:
        """Whether the log-density and its gradient at a vector are finite."""
        density = self.density._pytensor_function
        with deferred_interrupts():
            value, gradient = density(q)
        return bool(np.isfinite(value) and np.isfinite(gradient).all())

    @cached_property
    def _unpack(self):
        graph = self.graph
        _, values, tau, delta, _ = graph.parameters
        # Leaf probabilities follow from the soft counts of the classes.
        last = graph.concentrations if values is None else values
        return self._compiled([*graph.parameters.others, tau, delta, last])

    def point(self, q: np.ndarray, rng: np.random.Generator) -> dict[str, np.ndarray]:
        """Value of every free variable, by the names of value variables."""
        unpack = self._unpack
        with deferred_interrupts():
            *others, tau, delta, values = unpack(q)
        if not self.op.leaf_type.sampled_in_soft_trees:
            values = _draw_probabilities(rng, values.T)
        point = {v.name: np.asarray(x) for v, x in zip(self.graph.values, others, strict=True)}
        tree = self.soft.tree
        name = self.soft.model.rvs_to_values[tree].name
        room, fingerprint = self.op.max_nodes, fingerprint_of(tree)
        point[name] = encode(self.label, delta, tau, values, room, fingerprint)
        return point


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
