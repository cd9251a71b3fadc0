"""Interface of a move: a NamedTuple type, what it needs of a tree, and a kernel, in one file.

========================================== ========================================================
``Needs``                                  counts of the trees that allow the move
``propose(move, rng, problem, tree,        propose, accept or not, and edit the tree; 1 accepted,
moves, node_counts, work)``                0 rejected, `FULL` accepted without room in the pool
========================================== ========================================================

``propose`` is called for a tree that allows the move, with ``work.nodes`` its nodes in preorder and
``work.stats`` the statistics of its leaves, which it keeps up to date. It is reversible with
respect to the posterior times the probability of choosing the move, by itself or together with its
reverse (screened sweeps need that): the ratio of a proposal includes `log_choice_ratio`, or the
weights of a move and its reverse (`grow_prune`).

The file of a move ends with `register`. The name is the key of ``moves={...}`` in `CGM`, that is of
its weight, and the end of its statistic ``accept_{name}``.

A sweep receives moves and an array of weights (`WeightedMoves`), and calls a move by its address
(`by_address`), so that another move compiles its own kernels alone. Its code is cached if its
module can be imported by name, which ``__main__`` cannot.
"""

from collections.abc import Callable
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
from numba import int64, types
from numba.extending import intrinsic

from pymc_trees.core.compile import dispatch
from pymc_trees.core.compile.cache import njit
from pymc_trees.core.compile.dispatch import generic
from pymc_trees.core.compile.handle import GENERATOR, HandleType, Role
from pymc_trees.core.compile.pointer import by_pointer
from pymc_trees.core.moves.problem import NodeCounts, Problem, Workspace

MOVE = Role("move")

FULL = -1
"""Outcome of a move that was accepted, but for which the pool is full."""


NO_LIMIT = 2**62
"""Larger than any count."""


class Needs(NamedTuple):
    """Bounds of the counts of a tree (`NodeCounts`) within which it allows a move."""

    splittable_leaves: int = 0
    """Minimum."""
    splits: int = 0
    """Minimum."""
    max_splittable_leaves: int = NO_LIMIT
    max_splits: int = NO_LIMIT


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
    """(K, 4) int64: `Needs` of each."""
    ids: np.ndarray
    """(K,) int64: `type_id` of each."""
    per_visit: int
    """Number of moves of a tree before its leaf values are drawn."""


def make_weighted_moves(moves: tuple, weights, per_visit: int = 1) -> WeightedMoves:
    """Moves with weights."""
    needs = np.array([_NEEDS[type(move)] for move in moves], dtype=np.int64)
    ids = np.array([type_id(type(move)) for move in moves], dtype=np.int64)
    return WeightedMoves(tuple(moves), np.asarray(weights, float), needs, ids, per_visit)


def type_id(move: type) -> int:
    """Number that stands for a type of moves in kernels, the same in each process."""
    return crc32(f"{move.__module__}.{move.__qualname__}".encode())


_NAMES: dict[type, str] = {}
_NEEDS: dict[type, Needs] = {}
_USES: dict[type, frozenset[str] | None] = {}


def register(
    name: str,
    move: type,
    *,
    needs: Needs,
    uses: tuple[Callable, ...] | None = None,
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
    uses : tuple of generic kernels, optional
        Those of `by_address.RARE` that it calls. Default: all of them.
    **kernels
        `MoveKernels`.
    """
    if any(other == name and kind is not move for kind, other in _NAMES.items()):
        raise ValueError(f"{name}: another move has this name.")
    _NAMES[move], _NEEDS[move] = name, needs
    _USES[move] = None if uses is None else frozenset(kernel.__name__ for kernel in uses)
    by_pointer(move)  # one without fields too: a handle has a block
    dispatch.registrar(MoveKernels)(move, **kernels)


def kernels_used_by(move: type) -> frozenset[str] | None:
    """Names of the rare kernels that a move calls; None for any."""
    return _USES[move]


def registered_moves() -> dict[str, type]:
    """Types of all moves by name."""
    return {name: move for move, name in _NAMES.items()}


def move_name(move) -> str:
    """Name of a move."""
    return _NAMES[type(move)]


@generic(
    "move",
    args=(MOVE, GENERATOR, Problem, int64, WeightedMoves, NodeCounts, Workspace),
    result=int64,
)
def propose(move, rng, problem, tree, moves, node_counts, work):
    """Propose a move, accept it or not."""


# ----------------------------------- Which move is tried: by weight among those that a tree allows
#
# Moves are called by their address. A tuple of them is traversed at compile time, head and tail,
# so each set of types gets its own code.


@generic("moves")
def propose_chosen(moves, kind, rng, problem, tree, weighted, node_counts, work):
    """Propose ``moves[kind]``; nothing, and outcome 0, where kind is -1."""


@njit(cache=True)
def _propose_chosen(moves, kind, rng, problem, tree, weighted, node_counts, work):
    if len(moves) == 0:
        return 0
    if kind == 0:
        return propose(moves[0], rng, problem, tree, weighted, node_counts, work)
    return propose_chosen(moves[1:], kind - 1, rng, problem, tree, weighted, node_counts, work)


@intrinsic
def _move_at(typing_context, address, examples):
    """Handle of a move whose arguments have the types of the examples."""
    places = tuple((kind.instance_class, kind) for kind in examples.types)
    handle = HandleType("move", (propose.__name__,), places)

    def generate(context, builder, signature, values):
        return builder.inttoptr(values[0], context.get_value_type(handle))

    return handle(types.int64, examples), generate


@njit(cache=True)
def _propose_at(moves, kind, rng, problem, tree, weighted, node_counts, work):
    if kind < 0:
        return 0
    move = _move_at(moves[kind], (node_counts, problem, weighted, work))
    return propose(move, rng, problem, tree, weighted, node_counts, work)


dispatch.register(tuple, propose_chosen=_propose_chosen)
dispatch.register(np.ndarray, propose_chosen=_propose_at)


@njit(cache=True)
def index_of_type(moves, move_id):
    """Index of the move whose type has an id."""
    for k in range(moves.ids.size):
        if moves.ids[k] == move_id:
            return k
    raise ValueError("a sweep with grow needs prune too, and prune needs grow")


@njit(cache=True)
def _is_available(moves, k, node_counts):
    needs = moves.needs[k]
    return (
        needs[0] <= node_counts.splittable_leaves <= needs[2]
        and needs[1] <= node_counts.splits <= needs[3]
        and moves.weights[k] > 0.0
    )


@njit(cache=True)
def available_weight(moves, node_counts):
    """Sum of the weights of the moves that a tree with these counts allows."""
    total = 0.0
    for k in range(moves.weights.size):
        if _is_available(moves, k, node_counts):
            total += moves.weights[k]
    return total


@njit(cache=True)
def choose_move(rng, moves, node_counts):
    """Index of a move drawn by weight among those available; -1 if there is none."""
    total = available_weight(moves, node_counts)
    last = -1
    if total > 0.0:
        u = rng.random() * total
        for k in range(moves.weights.size):
            if _is_available(moves, k, node_counts):
                last = k
                u -= moves.weights[k]
                if u < 0.0:
                    break
    return last


@njit(cache=True)
def log_choice_ratio(moves, before, after):
    """Log ratio of P(this move is tried) after and before a move that reverses itself."""
    return np.log(available_weight(moves, before) / available_weight(moves, after))
