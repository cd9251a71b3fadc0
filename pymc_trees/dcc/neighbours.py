"""Topologies that differ by one split, and which of their parameters correspond.

Where a leaf of one topology grows into a split of two leaves, all other splits and leaves keep
their order: parameters of one become those of the other by an insertion or a deletion.
"""

from typing import NamedTuple

import numpy as np

from pymc_trees.core.soft.topology import STUMP, n_splits

GROW, PRUNE, STAY = 0.6, 0.3, 0.1
"""Probabilities of the proposals, those of the authors' program; see `propose`."""


class LeafSplit(NamedTuple):
    """The split of two leaves by which two topologies differ."""

    smaller: str
    """Without it."""
    larger: str
    """With it."""
    split: int
    """Its index among the splits of the larger one."""
    leaf: int
    """Place of its left leaf there; the smaller one has the leaf it grew from at this place."""


class Parameters(NamedTuple):
    """Pieces of the parameter vector of a topology with S splits and S + 1 leaves."""

    others: np.ndarray
    """Of the model, not of the tree."""
    values: np.ndarray
    """(S + 1,) leaf values, or (0,) where these are integrated out."""
    tau: np.ndarray
    """(S,) thresholds."""
    weights: np.ndarray
    """(S, p - 1)"""


def nogs(label: str) -> list[LeafSplit]:
    """Twigs of a topology: without one of them it is a neighbour."""
    return [
        _twig(f"{label[:at]}L{label[at + 3 :]}", at)
        for at in range(len(label))
        if label.startswith("SLL", at)
    ]


def buds(label: str) -> list[LeafSplit]:
    """Twigs a topology can grow: with one of them it is a neighbour."""
    return [_twig(label, at) for at, node in enumerate(label) if node == "L"]


def neighbours(label: str) -> dict[str, LeafSplit]:
    """Topologies that differ by one split, and the nog that makes the difference."""
    near = {nog.smaller: nog for nog in nogs(label)}
    return near | {nog.larger: nog for nog in buds(label)}


def propose(rng: np.random.Generator, label: str) -> str:
    """Topology to propose next (section 3.2): grow a leaf, prune a nog, or stay.

    The stump has nothing to prune and grows instead. This is not a Metropolis step: the proposals
    do not affect the weights of topologies.
    """
    move = rng.random()
    if move < STAY:
        return label
    if move < STAY + GROW or label == STUMP:
        grown = buds(label)
        return grown[rng.integers(len(grown))].larger
    pruned = nogs(label)
    return pruned[rng.integers(len(pruned))].smaller


def _twig(smaller: str, at: int) -> LeafSplit:
    larger = f"{smaller[:at]}SLL{smaller[at + 1 :]}"
    return LeafSplit(smaller, larger, smaller[:at].count("S"), smaller[:at].count("L"))


def take_apart(q: np.ndarray, splits: int, p: int, has_values: bool) -> Parameters:
    """Pieces of a vector with so many splits over p inputs."""
    leaves = (splits + 1) * has_values
    head = len(q) - splits * p - leaves
    others, values, tau, weights = np.split(q, [head, head + leaves, head + leaves + splits])
    return Parameters(others, values, tau, weights.reshape(splits, p - 1))


def put_together(parts: Parameters) -> np.ndarray:
    """The vector of these pieces."""
    return np.concatenate([np.ravel(piece) for piece in parts])


def grow(parts: Parameters, nog: LeafSplit, tau: float, weights: np.ndarray) -> Parameters:
    """Parameters of the larger topology: both leaves take the value of the one they grow from."""
    values = parts.values
    if len(values):
        values = np.insert(values, nog.leaf, values[nog.leaf])
    return Parameters(
        parts.others,
        values,
        np.insert(parts.tau, nog.split, tau),
        np.insert(parts.weights, nog.split, weights, axis=0),
    )


def prune(parts: Parameters, nog: LeafSplit) -> Parameters:
    """Parameters of the smaller topology: the leaf takes the mean of the two it replaces."""
    values = parts.values.copy()
    if len(values):
        values[nog.leaf] = values[nog.leaf : nog.leaf + 2].mean()
        values = np.delete(values, nog.leaf + 1)
    return Parameters(
        parts.others,
        values,
        np.delete(parts.tau, nog.split),
        np.delete(parts.weights, nog.split, axis=0),
    )


# ---------- Jumps between topologies that differ by one split: their probabilities, and who is who
#
# A jump is a twig and a side. In the larger topology the twig's split has two leaves; the leaf of
# the smaller one has the value of the leaf on that side, and the value of the other leaf, the
# threshold and the weights of the split are what the smaller one lacks. All else is the same on
# both sides, so that the Jacobian of the correspondence is one.


JUMP_GROW, JUMP_PRUNE = 0.2, 0.2
"""Probabilities of proposals after tuning, those of the program of Cochrane et al. (2023); the rest
of the steps stay at their topology."""


class Jump(NamedTuple):
    """A proposal."""

    twig: LeafSplit
    side: int
    """0 when the leaf of the smaller topology is the left one of the larger, 1 for the right."""
    grows: bool


def grow_probability(label: str, grow: float, prune: float) -> float:
    """Probability that a leaf is to grow: a stump has nothing to prune, and grows then too."""
    return grow + prune if label == STUMP else grow


def propose_jump(
    rng: np.random.Generator, label: str, grow: float = JUMP_GROW, prune: float = JUMP_PRUNE
) -> Jump | None:
    """Grow a leaf, prune a twig, all equally likely, or stay: None."""
    move = rng.random()
    if move >= grow + prune:
        return None
    grows = move < grow_probability(label, grow, prune)
    twigs = buds(label) if grows else nogs(label)
    return Jump(twigs[rng.integers(len(twigs))], int(rng.integers(2)), grows)


def log_proposal_ratio(
    twig: LeafSplit, grow: float = JUMP_GROW, prune: float = JUMP_PRUNE
) -> float:
    """Log of the probability of pruning a twig over that of growing it."""
    pruning = prune / len(nogs(twig.larger))
    growing = grow_probability(twig.smaller, grow, prune) / len(buds(twig.smaller))
    return float(np.log(pruning) - np.log(growing))


def shared_places(twig: LeafSplit, side: int, d: int, p: int, has_values: bool) -> np.ndarray:
    """Places in the vector of the larger topology that make up that of the smaller one.

    Parameters
    ----------
    d : int
        Length of the larger vector, that of `neighbours.Parameters` put together.
    p : int
        Inputs that a split weighs.
    has_values : bool
        Whether leaf values are parameters.
    """
    places = take_apart(np.arange(d), n_splits(twig.larger), p, has_values)
    smaller = prune(places, twig)  # but for the leaf's value
    values = places.values
    if has_values:
        values = np.delete(values, twig.leaf + 1 - side)
    return put_together(Parameters(smaller.others, values, smaller.tau, smaller.weights))
