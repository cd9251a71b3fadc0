"""Which move is tried: by weight among those that a tree allows.

The tuple of moves is traversed at compile time, head and tail, so each type gets its own code.
"""

import numpy as np
from numba.core.errors import TypingError
from numba.extending import overload

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.compile.dispatch import generic, register
from pymc_trees.core.compile.linked import LINKED
from pymc_trees.core.moves.contract import is_available, propose


@generic("moves")
def available_bits(moves, census):
    """Integer whose bit k is set if a tree allows move k."""


@generic("moves")
def propose_chosen(moves, kind, rng, problem, tree, weighted, census, work):
    """Propose ``moves[kind]``; nothing, and outcome 0, where kind is -1."""


@njit(cache=True)
def _available_bits(moves, census):
    if len(moves) == 0:
        return 0
    return int(is_available(moves[0], census)) + 2 * available_bits(moves[1:], census)


@njit(cache=True)
def _propose_chosen(moves, kind, rng, problem, tree, weighted, census, work):
    if len(moves) == 0:
        return 0
    if kind == 0:
        return propose(moves[0], rng, problem, tree, weighted, census, work)
    return propose_chosen(moves[1:], kind - 1, rng, problem, tree, weighted, census, work)


register(tuple, available_bits=_available_bits, propose_chosen=_propose_chosen)


def index_of(moves, kind):
    """Index of the move of the same type as ``kind``."""
    return [type(move) for move in moves].index(type(kind))


@overload(index_of, jit_options=LINKED)
def _index_of(moves, kind):
    found = [k for k, move in enumerate(moves.types) if move == kind]
    if not found:
        raise TypingError(f"The moves of the sweep lack {kind}.")
    index = found[0]
    return lambda moves, kind: index


@njit(cache=True)
def available_weight(moves, census):
    """Sum of the weights of the moves that a tree with these counts allows."""
    return _sum_of(moves.weights, available_bits(moves.moves, census))


@njit(cache=True)
def _sum_of(weights, bits):
    """Sum of the weights whose bit is set."""
    total = 0.0
    for k in range(weights.size):
        if bits >> k & 1:
            total += weights[k]
    return total


@njit(cache=True)
def choose_move(rng, moves, census):
    """Index of a move drawn by weight among those available; -1 if there is none."""
    weights = moves.weights
    bits = available_bits(moves.moves, census)
    total = _sum_of(weights, bits)
    last = -1
    if total > 0.0:
        u = rng.random() * total
        for k in range(weights.size):
            if weights[k] > 0.0 and bits >> k & 1:
                last = k
                u -= weights[k]
                if u < 0.0:
                    break
    return last


@njit(cache=True)
def log_choice_ratio(moves, before, after):
    """Log ratio of P(this move is tried) after and before a move that reverses itself."""
    return np.log(available_weight(moves, before) / available_weight(moves, after))
