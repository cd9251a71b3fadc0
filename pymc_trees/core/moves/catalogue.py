"""The moves of this package, in the order in which their weights are summed and reported."""

from pymc_trees.core.moves.change import Change
from pymc_trees.core.moves.contract import WeightedMoves, make_weighted_moves
from pymc_trees.core.moves.grow_prune import Grow, Prune
from pymc_trees.core.moves.perturb import Perturb
from pymc_trees.core.moves.restructure import Restructure
from pymc_trees.core.moves.rotate import Rotate
from pymc_trees.core.moves.swap import Swap

MOVES = (Grow(), Prune(), Change(), Swap())
"""Part of every sweep, whatever their weights: one compilation serves all."""

OPTIONAL_MOVES = (Perturb(), Rotate(), Restructure())
"""Part of sweeps in which they have a weight."""


def standard_moves(weights) -> WeightedMoves:
    """Moves of this package with weights, without those of `OPTIONAL_MOVES` whose weight is 0."""
    return make_weighted_moves((*MOVES, *OPTIONAL_MOVES)[: len(weights)], weights)
