"""Jumps between topologies that differ by one split: their probabilities, and who is who.

A jump is a twig and a side. In the larger topology the twig's split has two leaves; the leaf of the
smaller one has the value of the leaf on that side, and the value of the other leaf, the threshold
and the weights of the split are what the smaller one lacks. All else is the same on both sides, so
that the Jacobian of the correspondence is one.
"""

from typing import NamedTuple

import numpy as np

from pymc_trees.core.soft.neighbours import (
    Parameters,
    Twig,
    buds,
    nogs,
    prune,
    put_together,
    take_apart,
)
from pymc_trees.core.soft.topology import STUMP, n_splits

GROW, PRUNE = 0.2, 0.2
"""Probabilities of proposals after tuning, those of the program of Cochrane et al. (2023); the rest
of the steps stay at their topology."""


class Jump(NamedTuple):
    """A proposal."""

    twig: Twig
    side: int
    """0 when the leaf of the smaller topology is the left one of the larger, 1 for the right."""
    grows: bool


def grow_probability(label: str, grow: float, prune: float) -> float:
    """Probability that a leaf is to grow: a stump has nothing to prune, and grows then too."""
    return grow + prune if label == STUMP else grow


def propose_jump(
    rng: np.random.Generator, label: str, grow: float = GROW, prune: float = PRUNE
) -> Jump | None:
    """Grow a leaf, prune a twig, all equally likely, or stay: None."""
    move = rng.random()
    if move >= grow + prune:
        return None
    grows = move < grow_probability(label, grow, prune)
    twigs = buds(label) if grows else nogs(label)
    return Jump(twigs[rng.integers(len(twigs))], int(rng.integers(2)), grows)


def log_proposal_ratio(twig: Twig, grow: float = GROW, prune: float = PRUNE) -> float:
    """Log of the probability of pruning a twig over that of growing it."""
    pruning = prune / len(nogs(twig.larger))
    growing = grow_probability(twig.smaller, grow, prune) / len(buds(twig.smaller))
    return float(np.log(pruning) - np.log(growing))


def shared_places(twig: Twig, side: int, d: int, p: int, has_values: bool) -> np.ndarray:
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
