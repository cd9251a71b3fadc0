"""Where the chains of a new topology start: at draws of the prior, or from a neighbour.

A chain from the prior rarely finds the good mode of a topology of several splits. A visited
topology that differs by one split has found all but that split. The starting points of chains
change neither their target nor the weights of draws.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from pymc_trees.core.interrupts import deferred_interrupts
from pymc_trees.core.soft.neighbours import (
    Parameters,
    grow,
    neighbours,
    prune,
    put_together,
    take_apart,
)
from pymc_trees.core.soft.topology import n_splits
from pymc_trees.inference.dcc.soft_posterior import SoftPosterior

CANDIDATES = 100
"""Starts that one is chosen from: the density is that of the rest too, so that the best is good."""
REDRAWN = 0.5
"""Share of them with another gate from the prior: one that is best alone may bar a better pair."""
PROBE = 1e-3
"""Change of a leaf value that shows the curvature."""


class Start(NamedTuple):
    """What the first state of a chain follows from."""

    seed: list[int]
    donors: list[tuple[str, np.ndarray]]
    """Neighbours and (chains, d) last states of theirs; empty for a start from the prior."""


def plan_starts(
    label: str, seeds: Sequence[list[int]], states: Mapping[str, np.ndarray]
) -> list[Start]:
    """Starts of the chains of a topology: every other one from neighbours, where there are any.

    States that the topology has already are among them. The others keep to the prior: neighbours
    may all be in modes that lead nowhere.

    Parameters
    ----------
    label : str
    seeds : sequence of list of int
        One a chain.
    states : mapping of str to (chains, d) array
        Last states of the chains of each topology there is.
    """
    near = [label, *neighbours(label)]
    donors = [(other, states[other]) for other in near if other in states]
    return [Start(seed, donors if k % 2 else []) for k, seed in enumerate(seeds)]


def neighbour_start(
    posterior: SoftPosterior,
    label: str,
    donors: Sequence[tuple[str, np.ndarray]],
    rng: np.random.Generator,
) -> np.ndarray | None:
    """(d,) best of some starts that each take over a state of a neighbour.

    A new split has a gate from the prior. Its two leaves start with the same value, so all gates
    would be equally good: leaf values are moved to where the density is highest given gates.

    Returns
    -------
    (d,) array or None
        None where no density is finite.
    """
    posterior.bind(label)
    p, splits = posterior.op.p, n_splits(label)
    has_values = posterior.op.leaf_type.sampled_in_soft_trees
    near = neighbours(label)
    best, highest = None, -np.inf
    for fresh in posterior.draw_prior(rng, CANDIDATES):
        other, states = donors[int(rng.integers(len(donors)))]
        state = states[rng.integers(len(states))]
        parts = take_apart(state, n_splits(other), p, has_values)
        gates: Parameters = take_apart(fresh, splits, p, has_values)
        nog = near.get(other)
        if nog is not None and nog.larger == label:
            parts = grow(parts, nog, gates.tau[nog.split], gates.weights[nog.split])
        elif nog is not None:
            parts = prune(parts, nog)
        if splits and rng.random() < REDRAWN:
            k = rng.integers(splits)
            parts.tau[k], parts.weights[k] = gates.tau[k], gates.weights[k]
        places = len(parts.others) + np.arange(len(parts.values))
        q, value = _settle(posterior, put_together(parts), places)
        if value > highest:
            best, highest = q, value
    return best


def _settle(posterior: SoftPosterior, q: np.ndarray, places: np.ndarray):
    """A Newton step of some coordinates, where it helps; the vector and its log-density."""

    def at(point):
        with np.errstate(over="ignore", invalid="ignore"), deferred_interrupts():
            value, gradient = posterior.density._pytensor_function(point)
        finite = np.isfinite(value) and np.isfinite(gradient).all()
        return (float(value) if finite else -np.inf), gradient[places]

    value, gradient = at(q)
    if len(places) == 0 or value == -np.inf:
        return q, value
    unit = np.eye(len(q))[places]
    curvature = [(gradient - at(q + PROBE * e)[1]) / PROBE for e in unit]
    curvature = 0.5 * (np.array(curvature) + np.array(curvature).T)
    if not np.isfinite(curvature).all() or np.linalg.eigvalsh(curvature)[0] <= 0:
        return q, value
    moved = q + np.linalg.solve(curvature, gradient) @ unit
    improved, _ = at(moved)
    return (moved, improved) if improved > value else (q, value)
