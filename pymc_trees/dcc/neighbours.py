"""Topologies that differ by one split, and which of their parameters correspond.

If a leaf of one topology grows into a split of two leaves, all other splits and leaves keep their
order: parameters of one become those of the other by an insertion or a deletion.
"""

from typing import NamedTuple

import numpy as np

from pymc_trees.dcc.kernels.encode import STUMP

GROW, PRUNE, STAY = 0.6, 0.3, 0.1
"""Probabilities of the proposals in the authors' program; see `propose`."""


class LeafSplit(NamedTuple):
    """The split of two leaves by which two topologies differ."""

    smaller: str
    """The topology without it."""
    larger: str
    """The topology with it."""
    split_index: int
    """Its index among the splits of the larger topology."""
    leaf_index: int
    """Index of its left leaf there, and of the leaf that it replaces in the smaller topology."""


class Parameters(NamedTuple):
    """Pieces of the parameter vector of a topology with S splits and S + 1 leaves."""

    others: np.ndarray
    """Other variables of the model."""
    values: np.ndarray
    """(S + 1,) leaf values, or (0,) where these are integrated out."""
    tau: np.ndarray
    """(S,) thresholds."""
    weights: np.ndarray
    """(S, p - 1)"""


def prunable(label: str) -> list[LeafSplit]:
    """Splits of two leaves: without one of them a topology is a neighbour."""
    return [
        _split_at(f"{label[:at]}L{label[at + 3 :]}", at)
        for at in range(len(label))
        if label.startswith("SLL", at)
    ]


def growable(label: str) -> list[LeafSplit]:
    """Splits that its leaves can grow into: with one of them a topology is a neighbour."""
    return [_split_at(label, at) for at, node in enumerate(label) if node == "L"]


def neighbours(label: str) -> dict[str, LeafSplit]:
    """Topologies that differ by one split, and this split."""
    near = {change.smaller: change for change in prunable(label)}
    return near | {change.larger: change for change in growable(label)}


def propose(rng: np.random.Generator, label: str) -> str:
    """Topology to propose next (section 3.2): grow a leaf, prune a split of two leaves, or stay.

    The stump has nothing to prune and grows instead. This is not a Metropolis step: the proposals
    do not affect the weights of topologies.
    """
    move = rng.random()
    if move < STAY:
        return label
    if move < STAY + GROW or label == STUMP:
        grown = growable(label)
        return grown[rng.integers(len(grown))].larger
    pruned = prunable(label)
    return pruned[rng.integers(len(pruned))].smaller


def _split_at(smaller: str, at: int) -> LeafSplit:
    larger = f"{smaller[:at]}SLL{smaller[at + 1 :]}"
    return LeafSplit(smaller, larger, smaller[:at].count("S"), smaller[:at].count("L"))


def unpack(q: np.ndarray, splits: int, p: int, has_values: bool) -> Parameters:
    """Pieces of a vector with some number of splits over p inputs."""
    leaves = (splits + 1) * has_values
    head = len(q) - splits * p - leaves
    others, values, tau, weights = np.split(q, [head, head + leaves, head + leaves + splits])
    return Parameters(others, values, tau, weights.reshape(splits, p - 1))


def pack(parts: Parameters) -> np.ndarray:
    """The vector that these pieces make up."""
    return np.concatenate([np.ravel(piece) for piece in parts])


def grow(parts: Parameters, change: LeafSplit, tau: float, weights: np.ndarray) -> Parameters:
    """Parameters of the larger topology: both leaves take the value of the one they replace."""
    values = parts.values
    if len(values):
        values = np.insert(values, change.leaf_index, values[change.leaf_index])
    return Parameters(
        parts.others,
        values,
        np.insert(parts.tau, change.split_index, tau),
        np.insert(parts.weights, change.split_index, weights, axis=0),
    )


def prune(parts: Parameters, change: LeafSplit) -> Parameters:
    """Parameters of the smaller topology: the leaf takes the mean of the two it replaces."""
    values = parts.values.copy()
    if len(values):
        values[change.leaf_index] = values[change.leaf_index : change.leaf_index + 2].mean()
        values = np.delete(values, change.leaf_index + 1)
    return Parameters(
        parts.others,
        values,
        np.delete(parts.tau, change.split_index),
        np.delete(parts.weights, change.split_index, axis=0),
    )
