"""One Metropolis-Hastings move on one tree."""

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.moves.census import CHANGE, GROW, PRUNE, choose_move
from pymc_trees.core.moves.change import change
from pymc_trees.core.moves.grow_prune import grow, prune
from pymc_trees.core.moves.swap import swap


@njit(cache=True, inline="always")
def metropolis_move(rng, trees, tree, design, prior, leaf, weights, census, work):
    """Choose a kind of move by ``weights``, propose, accept or not.

    Returns
    -------
    kind, outcome : int
        The move of `census.MOVES` (-1: none was possible); 1 accepted, 0 refused, or
        `grow_prune.FULL`.
    """
    kind = choose_move(rng, weights, census)
    outcome = 0
    if kind == GROW:
        outcome = grow(rng, trees, tree, design, prior, leaf, weights, census, work)
    elif kind == PRUNE:
        outcome = prune(rng, trees, tree, prior, leaf, weights, census, work)
    elif kind == CHANGE:
        outcome = change(rng, trees, tree, design, prior, leaf, weights, census, work)
    elif kind >= 0:
        outcome = swap(rng, trees, tree, design, prior, leaf, weights, census, work)
    return kind, outcome
