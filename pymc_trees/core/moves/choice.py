"""Which move is tried: by weight among those that a tree allows.

Moves are called by their address. A tuple of them is traversed at compile time, head and tail, so
each set of types gets its own code.
"""

import numpy as np
from numba import types
from numba.extending import intrinsic

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.compile.dispatch import generic, register
from pymc_trees.core.compile.handle import HandleType
from pymc_trees.core.moves.contract import propose


@generic("moves")
def propose_chosen(moves, kind, rng, problem, tree, weighted, census, work):
    """Propose ``moves[kind]``; nothing, and outcome 0, where kind is -1."""


@njit(cache=True)
def _propose_chosen(moves, kind, rng, problem, tree, weighted, census, work):
    if len(moves) == 0:
        return 0
    if kind == 0:
        return propose(moves[0], rng, problem, tree, weighted, census, work)
    return propose_chosen(moves[1:], kind - 1, rng, problem, tree, weighted, census, work)


@intrinsic
def _move_at(typing_context, address, examples):
    """Handle of a move; the types of what it is given are those of the examples."""
    places = tuple((kind.instance_class, kind) for kind in examples.types)
    handle = HandleType("move", (propose.__name__,), places)

    def generate(context, builder, signature, values):
        return builder.inttoptr(values[0], context.get_value_type(handle))

    return handle(types.int64, examples), generate


@njit(cache=True)
def _propose_at(moves, kind, rng, problem, tree, weighted, census, work):
    if kind < 0:
        return 0
    move = _move_at(moves[kind], (census, problem, weighted, work))
    return propose(move, rng, problem, tree, weighted, census, work)


register(tuple, propose_chosen=_propose_chosen)
register(np.ndarray, propose_chosen=_propose_at)


@njit(cache=True)
def index_of(moves, number):
    """Index of the move whose type has a number."""
    for k in range(moves.numbers.size):
        if moves.numbers[k] == number:
            return k
    raise ValueError("the moves of the sweep lack one that they rest on")


@njit(cache=True)
def _is_available(moves, k, census):
    needs = moves.needs[k]
    return (
        needs[0] <= census.splittable_leaves <= needs[2]
        and needs[1] <= census.splits <= needs[3]
        and moves.weights[k] > 0.0
    )


@njit(cache=True)
def available_weight(moves, census):
    """Sum of the weights of the moves that a tree with these counts allows."""
    total = 0.0
    for k in range(moves.weights.size):
        if _is_available(moves, k, census):
            total += moves.weights[k]
    return total


@njit(cache=True)
def choose_move(rng, moves, census):
    """Index of a move drawn by weight among those available; -1 if there is none."""
    total = available_weight(moves, census)
    last = -1
    if total > 0.0:
        u = rng.random() * total
        for k in range(moves.weights.size):
            if _is_available(moves, k, census):
                last = k
                u -= moves.weights[k]
                if u < 0.0:
                    break
    return last


@njit(cache=True)
def log_choice_ratio(moves, before, after):
    """Log ratio of P(this move is tried) after and before a move that reverses itself."""
    return np.log(available_weight(moves, before) / available_weight(moves, after))
