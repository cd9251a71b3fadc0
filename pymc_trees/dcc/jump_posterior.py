"""Densities of a chain that jumps between topologies, its states, and what is refused."""

from functools import cached_property
from typing import NamedTuple

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.step_methods.compound import Competence
from pytensor.graph.basic import Variable
from pytensor.tensor.type import discrete_dtypes
from scipy.special import logit

from pymc_trees.arguments import check_choice
from pymc_trees.core.soft.encode import LEAF, SPLIT, label_of
from pymc_trees.core.soft.topology import n_splits, node_table
from pymc_trees.dcc.soft_graph import SoftModel, separate, the_soft_tree
from pymc_trees.dcc.soft_posterior import SoftPosterior, draw_gates
from pymc_trees.distributions.forest_inputs import soft_tree_inputs
from pymc_trees.distributions.ops.soft_tree_rv import is_soft_tree
from pymc_trees.distributions.tree_variable import is_tree_variable
from pymc_trees.distributions.without_dims import counterpart, without_dims

# ----------------------------------------------- What RJHMC reads off a model, and what it refuses


VARIANTS = {"DF": "index", "DFI": "dirichlet"}
"""Names of the paper, and the directions that a tree of theirs is declared with."""


def is_continuous(rv: Variable) -> bool:
    """Whether HMC can move a free variable."""
    return rv.dtype not in discrete_dtypes and not is_tree_variable(rv)


def read_jump_model(model: pm.Model, chosen: list[Variable] | None) -> SoftModel:
    """A model with one soft tree, which moves together with continuous variables.

    Parameters
    ----------
    chosen : list of random variables, optional
        The tree and what moves with it; by default the tree and all continuous variables.

    Raises
    ------
    ValueError, NotImplementedError
        For a model without exactly one soft tree, with other trees, or other variables than these.
    """
    if chosen is not None:
        chosen = [counterpart(model, rv) for rv in chosen]
    model = without_dims(model)
    tree = the_soft_tree(model, "RJHMC")
    rest = [rv for rv in model.free_RVs if rv is not tree]
    forests = [rv.name for rv in rest if is_tree_variable(rv)]
    if forests:
        raise NotImplementedError(
            f"RJHMC moves the tree of a model with one SoftDecisionTree, but {forests} are trees "
            "too: leave them out of the model."
        )
    if chosen is None:
        return separate(model, tree, [rv for rv in rest if is_continuous(rv)])
    if not any(rv is tree for rv in chosen):
        names = [rv.name for rv in chosen]
        raise ValueError(
            f"vars: RJHMC needs the tree among the variables it moves: add {tree.name}. If another "
            f"step has the tree, let it move {names} too, or give them a step of their own, for "
            "example step=[pymc_trees.RJHMC([mu]), pm.NUTS([sigma])]."
        )
    discrete = [rv.name for rv in chosen if rv is not tree and not is_continuous(rv)]
    if discrete:
        raise ValueError(
            f"vars: RJHMC moves continuous variables with the tree, but {discrete} are discrete: "
            "leave them to another step."
        )
    return separate(model, tree, [rv for rv in rest if any(rv is c for c in chosen)])


def check_variant(variant: str | None, tree: Variable) -> None:
    """Refuse a variant whose directions are not those that the tree is declared with."""
    if variant is None:
        return
    variant = check_choice("variant", variant, VARIANTS)
    op = tree.owner.op
    if op.p > 1 and op.direction != VARIANTS[variant]:
        raise ValueError(
            f"variant={variant!r} is for a SoftDecisionTree with direction={VARIANTS[variant]!r}, "
            f"but {tree.name} has direction={op.direction!r}, another posterior: declare it with "
            "the other direction, or leave variant out."
        )


# ------------------------------ Densities of a chain that jumps between topologies, and its states


LEAST = np.finfo(float).tiny
"""Least weight of an input, and least distance of a threshold to 0, that a vector is made from."""


class State(NamedTuple):
    """Where a chain is; with what it is given, all of its distribution."""

    label: str
    inputs: np.ndarray
    """(S,) int inputs of the splits when these are drawn by index, else (0,)."""
    q: np.ndarray
    """(d,) `soft_graph`."""


class Terms(NamedTuple):
    """Log prior and log likelihood at a vector, and their gradients."""

    prior: float
    likelihood: float
    d_prior: np.ndarray
    d_likelihood: np.ndarray


class JumpPosterior(SoftPosterior):
    """Functions of one topology at a time, given the values of variables that others move.

    "Prior" is that of the tree's parameters, and of variables that do not depend on the tree;
    "likelihood" everything else that the model says.

    Parameters
    ----------
    soft : SoftModel
    """

    def __init__(self, soft: SoftModel):
        super().__init__(soft.model, soft)
        self.inputs = np.zeros(0, dtype=np.int64)
        self._tables: dict[str, np.ndarray] = {}
        self.others = np.zeros(self.n_others)
        """Values of the variables that move with the tree, for `draw_start`."""

    def bind(self, label: str, h: float | None = None) -> None:
        """Make all functions those of a topology, and of the present index where it has one."""
        super().bind(label, h)
        if self.op.by_index:
            self.graph.corners.set_value(self._corners())

    def place(self, label: str, inputs: np.ndarray) -> None:
        """Make all functions those of a topology and of the inputs of its splits, at once.

        The sharpness is the model's unless a warm-up, which ends with it, is on its way.
        """
        if label != self.label:
            if label not in self._tables:
                self._tables[label] = node_table(label)
            self.graph.table.set_value(self._tables[label], borrow=True)
            self.label = label
        if self.op.by_index:
            self.inputs = inputs
            self.graph.corners.set_value(self._corners(), borrow=True)

    def _corners(self) -> np.ndarray:
        """(S, p) weights of splits that have one input each."""
        corners = np.zeros((len(self.inputs), self.op.p))
        corners[np.arange(len(self.inputs)), self.inputs] = 1.0
        return corners

    def set_given(self, point: dict) -> None:
        """Take over the values of variables that other steps move."""
        for value, shared in self.graph.given.items():
            shared.set_value(np.asarray(point[value.name], dtype=shared.type.dtype))

    def given(self) -> dict[str, np.ndarray]:
        """Present values of these variables."""
        return {value.name: shared.get_value() for value, shared in self.graph.given.items()}

    def draw_inputs(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """(count,) inputs of splits from their prior; (0,) where splits weigh all inputs."""
        return rng.integers(self.op.p, size=count if self.op.by_index else 0)

    @cached_property
    def _terms(self):
        graph = self.graph
        gradients = [
            pt.grad(term, graph.q, disconnected_inputs="ignore")
            for term in (graph.log_prior, graph.log_likelihood)
        ]
        return self._compiled([graph.log_prior, graph.log_likelihood, *gradients])

    def terms(self, q: np.ndarray) -> Terms:
        """Prior and likelihood at a vector of the present topology."""
        prior, likelihood, d_prior, d_likelihood = self._terms(q)
        return Terms(float(prior), float(likelihood), d_prior, d_likelihood)

    @cached_property
    def _leaf_prior(self):
        graph, model = self.graph, self.soft.model
        replace = [
            *zip(graph.values, graph.parameters.others, strict=True),
            *graph.given.items(),
        ]
        settings = model.replace_rvs_by_values(list(soft_tree_inputs(self.soft.tree).leaf))
        tree = model.rvs_to_values[self.soft.tree]
        return self._compiled(graph.localise(settings, tree, replace))

    def draw_values(self, rng: np.random.Generator, q: np.ndarray, count: int) -> np.ndarray:
        """(count,) leaf values from their prior given the other variables in q; or (0,)."""
        if not self.op.leaf_type.sampled_in_soft_trees:
            return np.empty(0)
        mean, sd = self._leaf_prior(q)
        return rng.normal(float(mean), float(sd), count)

    def draw_prior(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """(count, d) draws of the tree's parameters from their prior, others as they are."""
        n = n_splits(self.label)
        gates = draw_gates(rng, count, n, self.gate_size)
        head = np.append(self.others, np.zeros(self.dimension - self.n_others))
        values = [self.draw_values(rng, head, n + 1) for _ in range(count)]
        return np.concatenate([np.tile(self.others, (count, 1)), values, gates], axis=1)

    @property
    def tree_name(self) -> str:
        """Name of the tree in a point."""
        return self.soft.model.rvs_to_values[self.soft.tree].name

    def state_at(self, point: dict) -> State:
        """State that a point of the model stands for."""
        value = point[self.tree_name]
        label, p = label_of(value), self.op.p
        splits = value[value[:, 0] == SPLIT]
        tau, delta = splits[:, 1], splits[:, 2 : 2 + p]
        index = np.zeros(0, dtype=np.int64)
        gates = [logit(np.clip(tau, LEAST, 1.0 - np.finfo(float).epsneg))]
        if self.op.by_index:
            index = delta.argmax(axis=1)
        else:
            # what an input takes of what those before it leave
            parts = np.maximum(delta, LEAST)
            rest = np.cumsum(parts[:, ::-1], axis=1)[:, ::-1]
            stick = np.log(parts[:, :-1]) - np.log(rest[:, 1:])
            gates.append((stick + np.log(np.arange(p - 1, 0, -1))).ravel())
        values = np.zeros(0)
        if self.op.leaf_type.sampled_in_soft_trees:
            values = value[value[:, 0] == LEAF, 1]
        return State(label, index, np.concatenate([self.others_at(point), values, *gates]))

    def others_at(self, point: dict) -> np.ndarray:
        """(o,) beginning of q: the variables that move with the tree."""
        pieces = [np.ravel(point[v.name]) for v in self.graph.values]
        return np.concatenate([*pieces, np.zeros(0)])


# ------ Steps that move a soft tree and what is continuous beside it: which variables they are for


def model_on_stack() -> pm.Model | None:
    """The model that is being sampled, if it is known."""
    return pm.Model.get_context(error_if_none=False)


def joint_competence(var, by_index: bool) -> Competence:
    """Ideal for a soft tree whose directions are of a kind, and for what moves with it.

    PyMC asks for each variable alone: the others are recognised by the model on the stack.
    """
    model = model_on_stack()
    free = [] if model is None else model.free_RVs
    trees = [var] if is_soft_tree(var) else [rv for rv in free if is_soft_tree(rv)]
    beside = any(var is rv for rv in free) and is_continuous(var)
    if (is_soft_tree(var) or beside) and any(rv.owner.op.by_index == by_index for rv in trees):
        return Competence.IDEAL
    return Competence.INCOMPATIBLE
