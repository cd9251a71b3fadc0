"""Interface of a move: a NamedTuple type, what it needs of a tree, and a kernel, in one file.

========================================== ========================================================
``Needs``                                  counts of the trees that allow the move
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

A sweep receives moves and an array of weights (`WeightedMoves`), and calls a move by its address
(`by_address`): a further one compiles its own kernels alone. Its code is kept on disk if it is in a
module that can be imported by its name, not in ``__main__``.
"""

from collections.abc import Callable
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
from numba import int64

from pymc_trees.core.compile import dispatch
from pymc_trees.core.compile.dispatch import generic
from pymc_trees.core.compile.handle import GENERATOR, Role
from pymc_trees.core.compile.pointer import by_pointer
from pymc_trees.core.moves.census import NodeCounts
from pymc_trees.core.moves.problem import Problem, Workspace

MOVE = Role("move")

FULL = -1
"""Outcome of a move that was accepted, but for which the pool is full."""


MOST = 2**62
"""Larger than any count."""


class Needs(NamedTuple):
    """Bounds of the counts of a tree (`census`) within which it allows a move."""

    splittable_leaves: int = 0
    """The least."""
    splits: int = 0
    """The least."""
    most_open_leaves: int = MOST
    most_splits: int = MOST


class MoveKernels(NamedTuple):
    """Kernels that the file of a move registers."""

    propose: Callable
    """Kernel, see the module."""


@by_pointer
class WeightedMoves(NamedTuple):
    """The moves of a sweep."""

    moves: Any
    """A tuple with an instance of each, or (K,) int64: addresses of handles (`by_address`)."""
    weights: np.ndarray
    """(K,) float64: their weights; normalised over the moves that a tree allows."""
    needs: np.ndarray
    """(K, 4) int64: the `Needs` of each."""
    numbers: np.ndarray
    """(K,) int64: `number_of` the type of each."""
    per_visit: int
    """Moves of a tree one after the other, before its leaf values are drawn."""


def weigh(moves: tuple, weights, per_visit: int = 1) -> WeightedMoves:
    """Moves with weights."""
    needs = np.array([_NEEDS[type(move)] for move in moves], dtype=np.int64)
    numbers = np.array([number_of(type(move)) for move in moves], dtype=np.int64)
    return WeightedMoves(tuple(moves), np.asarray(weights, float), needs, numbers, per_visit)


def number_of(move: type) -> int:
    """Number that stands for a type of moves in kernels, the same in each process."""
    return crc32(f"{move.__module__}.{move.__qualname__}".encode())


_NAMES: dict[type, str] = {}
_NEEDS: dict[type, Needs] = {}
_ASKS: dict[type, frozenset[str] | None] = {}


def register(
    name: str,
    move: type,
    *,
    needs: Needs,
    asks: tuple[Callable, ...] | None = None,
    trees_opened: int = 1,
    **kernels: Callable,
) -> None:
    """Register a move.

    Parameters
    ----------
    name : str
        Key of its weight and end of its statistic's name.
    move : type
        NamedTuple type that can be made without arguments.
    needs : Needs
        Of a tree.
    asks : tuple of generic kernels, optional
        Those of `by_address.RARE` that it calls; any unless given.
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
    _NAMES[move], _NEEDS[move] = name, needs
    _ASKS[move] = None if asks is None else frozenset(kernel.__name__ for kernel in asks)
    by_pointer(move)  # one without fields too: a handle has a block
    dispatch.registrar(MoveKernels)(move, **kernels)


def asked_by(move: type) -> frozenset[str] | None:
    """Names of the rare kernels that a move calls; None for any."""
    return _ASKS[move]


def registered() -> dict[str, type]:
    """Types of all moves by name."""
    return {name: move for move, name in _NAMES.items()}


def name_of(move) -> str:
    """Name of a move."""
    return _NAMES[type(move)]


@generic(
    "move",
    args=(MOVE, GENERATOR, Problem, int64, WeightedMoves, NodeCounts, Workspace),
    result=int64,
)
def propose(move, rng, problem, tree, moves, census, work):
    """Propose a move, accept it or not."""
