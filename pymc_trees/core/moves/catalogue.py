"""The moves of this package, in the order in which their weights are summed and reported."""

from pymc_trees.core.moves.change import Change
from pymc_trees.core.moves.contract import WeightedMoves
from pymc_trees.core.moves.grow_prune import Grow, Prune
from pymc_trees.core.moves.swap import Swap

MOVES = (Grow(), Prune(), Change(), Swap())


def weighted(weights) -> WeightedMoves:
    """The moves of this package with weights."""
    return WeightedMoves(MOVES, weights)
