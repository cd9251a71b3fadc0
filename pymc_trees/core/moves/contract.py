"""Interface of a move: a NamedTuple type and two kernels, dispatched on it, in one file.

========================================== ========================================================
``is_available(move, census)``             whether a tree with these counts allows the move
``propose(move, rng, problem, tree,        propose, accept or not, and edit the tree; 1 accepted,
moves, census, work)``                     0 refused, `FULL` accepted without room in the pool
========================================== ========================================================

``propose`` is called for a tree that allows the move, with ``work.nodes`` its nodes in preorder and
``work.stats`` the statistics of its leaves, which it keeps up to date. It is reversible with
respect to the posterior times the probability of its being chosen, by itself or together with its
reverse (screened sweeps rest on that): the ratio of a proposal counts `choice.log_choice_ratio`, or
the weights of a move and its reverse (`grow_prune`).

The file of a move ends with `register`. The name is the key of ``moves={...}`` in `CGM`, so that of
its weight, and of its statistic ``accept_{name}``.

A sweep receives a tuple of moves and an array of weights (`WeightedMoves`): its compiled code
belongs to the types in the tuple and is kept on disk. A move of a user belongs in a module that can
be imported by its name, not in ``__main__``.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from pymc_trees.core.compile import dispatch
from pymc_trees.core.compile.dispatch import generic
from pymc_trees.core.compile.pointer import by_pointer

FULL = -1
"""Outcome of a move that was accepted, but for which the pool is full."""


class MoveKernels(NamedTuple):
    """Kernels that the file of a move registers."""

    is_available: Callable
    """Kernel, see the module."""
    propose: Callable
    """Kernel, see the module."""


@by_pointer
class WeightedMoves(NamedTuple):
    """The moves of a sweep."""

    moves: tuple[Any, ...]
    """An instance of each."""
    weights: np.ndarray
    """(K,) float64: their weights; normalised over the moves that a tree allows."""
    per_visit: int = 1
    """Moves of a tree one after the other, before its leaf values are drawn."""


_NAMES: dict[type, str] = {}


def register(name: str, move: type, *, trees_opened: int = 1, **kernels: Callable) -> None:
    """Register a move.

    Parameters
    ----------
    name : str
        Key of its weight and end of its statistic's name.
    move : type
        NamedTuple type that can be made without arguments.
    trees_opened : int
        Trees taken out of the sum of trees while it is tried; a sweep opens one.
    **kernels
        `MoveKernels`.
    """
    if trees_opened != 1:
        raise NotImplementedError(
            f"{name}: opens {trees_opened} trees, but a sweep opens one at a time."
        )
    if any(other == name and kind is not move for kind, other in _NAMES.items()):
        raise ValueError(f"{name}: another move has this name.")
    _NAMES[move] = name
    dispatch.registrar(MoveKernels)(move, **kernels)


def registered() -> dict[str, type]:
    """Types of all moves by name."""
    return {name: move for move, name in _NAMES.items()}


def name_of(move) -> str:
    """Name of a move."""
    return _NAMES[type(move)]


@generic("move")
def is_available(move, census):
    """Whether a tree allows a move."""


@generic("move")
def propose(move, rng, problem, tree, moves, census, work):
    """Propose a move, accept it or not."""
