"""One Metropolis-Hastings move on one tree."""

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.moves.choice import choose_move, propose_chosen


@njit(cache=True)
def metropolis_move(rng, problem, tree, moves, census, work):
    """Choose a move by weight among those the tree allows, propose it, accept or refuse.

    Returns
    -------
    kind, outcome : int
        Index of the move in ``moves`` (-1: none was possible); 1 accepted, 0 refused, or
        `contract.FULL`.
    """
    kind = choose_move(rng, moves, census)
    outcome = propose_chosen(moves.moves, kind, rng, problem, tree, moves, census, work)
    return kind, outcome
