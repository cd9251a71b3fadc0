"""The model of a chain that jumps between topologies: its states and its densities."""

from functools import cached_property
from typing import NamedTuple

import numpy as np
import pytensor.tensor as pt
from scipy.special import logit

from pymc_trees.dcc.kernels.encode import LEAF, SPLIT, label_of, n_splits, node_table
from pymc_trees.dcc.read_model import SoftModel
from pymc_trees.dcc.topology_model import TopologyModel, draw_gates

SMALLEST = np.finfo(float).tiny
"""Smallest weight of an input, and smallest distance of a threshold to 0, that q can express."""


class State(NamedTuple):
    """Current state of a chain, except the variables that other steps move."""

    label: str
    inputs: np.ndarray
    """(S,) int inputs of the splits if each split uses one input, else (0,)."""
    q: np.ndarray
    """(d,) unconstrained vector of `topology_model`."""


class Terms(NamedTuple):
    """Log prior and log likelihood at a vector, and their gradients."""

    prior: float
    likelihood: float
    d_prior: np.ndarray
    d_likelihood: np.ndarray


class JumpModel(TopologyModel):
    """Functions of one topology at a time, given the values of variables that other steps move.

    Here the prior is that of the tree's parameters and of the variables that move with the tree
    and do not depend on it; all other factors of the model belong to the likelihood.

    Parameters
    ----------
    soft : SoftModel
    """

    def __init__(self, soft: SoftModel):
        super().__init__(soft.model, soft)
        self.inputs = np.zeros(0, dtype=np.int64)
        self._tables: dict[str, np.ndarray] = {}
        self.other_values = np.zeros(self.n_others)
        """Values of the variables that move with the tree, which `draw_prior` does not draw."""

    def set_topology(self, label: str, h: float | None = None) -> None:
        """Choose the topology; the inputs of its splits, if each uses one, stay as they are."""
        super().set_topology(label, h)
        if self.op.by_index:
            self._one_hot.set_value(self._input_weights())

    def set_state(self, label: str, inputs: np.ndarray) -> None:
        """Choose the topology and the inputs of its splits; the sharpness stays as it is."""
        if label != self.label:
            if label not in self._tables:
                self._tables[label] = node_table(label)
            self._table.set_value(self._tables[label], borrow=True)
            self.label = label
        if self.op.by_index:
            self.inputs = inputs
            self._one_hot.set_value(self._input_weights(), borrow=True)

    def _input_weights(self) -> np.ndarray:
        """(S, p) weights of splits that use one input each."""
        weights = np.zeros((len(self.inputs), self.op.p))
        weights[np.arange(len(self.inputs)), self.inputs] = 1.0
        return weights

    def set_fixed(self, point: dict) -> None:
        """Set the values of variables that other steps move."""
        for value, shared in self._fixed.items():
            shared.set_value(np.asarray(point[value.name], dtype=shared.type.dtype))

    def fixed_values(self) -> dict[str, np.ndarray]:
        """Current values of the variables that other steps move."""
        return {value.name: shared.get_value() for value, shared in self._fixed.items()}

    def draw_inputs(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """(count,) inputs of splits from their prior; (0,) if splits weigh all inputs."""
        return rng.integers(self.op.p, size=count if self.op.by_index else 0)

    @cached_property
    def _terms(self):
        terms = [self._log_prior, self._log_likelihood]
        gradients = [pt.grad(term, self._q, disconnected_inputs="ignore") for term in terms]
        return self._compiled([*terms, *gradients])

    def terms(self, q: np.ndarray) -> Terms:
        """Prior and likelihood at a vector of the current topology."""
        prior, likelihood, d_prior, d_likelihood = self._terms(q)
        return Terms(float(prior), float(likelihood), d_prior, d_likelihood)

    @cached_property
    def _leaf_prior(self):
        return self._compiled(self._in_terms_of_q(self._leaf_settings))

    def draw_values(self, rng: np.random.Generator, q: np.ndarray, count: int) -> np.ndarray:
        """(count,) leaf values from their prior given the other variables in q; or (0,)."""
        if not self.has_values:
            return np.empty(0)
        mean, sd = self._leaf_prior(q)
        return rng.normal(float(mean), float(sd), count)

    def draw_prior(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """(count, d) draws of the tree's parameters from their prior; other variables are kept."""
        n = n_splits(self.label)
        gates = draw_gates(rng, count, n, self.gate_size)
        head = np.append(self.other_values, np.zeros(self.dimension - self.n_others))
        values = [self.draw_values(rng, head, n + 1) for _ in range(count)]
        return np.concatenate([np.tile(self.other_values, (count, 1)), values, gates], axis=1)

    def state_at(self, point: dict) -> State:
        """State of a chain at a point of the model."""
        value = point[self.tree_name]
        label, p = label_of(value), self.op.p
        splits = value[value[:, 0] == SPLIT]
        tau, delta = splits[:, 1], splits[:, 2 : 2 + p]
        inputs = np.zeros(0, dtype=np.int64)
        gates = [logit(np.clip(tau, SMALLEST, 1.0 - np.finfo(float).epsneg))]
        if self.op.by_index:
            inputs = delta.argmax(axis=1)
        else:
            # the fraction that each input takes of what the inputs before it leave
            parts = np.maximum(delta, SMALLEST)
            rest = np.cumsum(parts[:, ::-1], axis=1)[:, ::-1]
            stick = np.log(parts[:, :-1]) - np.log(rest[:, 1:])
            gates.append((stick + np.log(np.arange(p - 1, 0, -1))).ravel())
        values = np.zeros(0)
        if self.has_values:
            values = value[value[:, 0] == LEAF, 1]
        return State(label, inputs, np.concatenate([self.others_at(point), values, *gates]))

    def others_at(self, point: dict) -> np.ndarray:
        """(o,) first part of q: the variables that move with the tree."""
        pieces = [np.ravel(point[v.name]) for v in self.others]
        return np.concatenate([*pieces, np.zeros(0)])
