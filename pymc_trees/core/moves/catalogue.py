"""The moves of this package, in the order in which their weights are summed and reported."""

from pymc_trees.core.moves.change import Change
from pymc_trees.core.moves.contract import WeightedMoves, weigh
from pymc_trees.core.moves.grow_prune import Grow, Prune
from pymc_trees.core.moves.perturb import Perturb
from pymc_trees.core.moves.restructure import Restructure
from pymc_trees.core.moves.rotate import Rotate
from pymc_trees.core.moves.swap import Swap

MOVES = (Grow(), Prune(), Change(), Swap())
"""Part of every sweep, whatever their weights: one compilation serves all."""

FURTHER = (Perturb(), Rotate(), Restructure())
"""Part of sweeps in which they have a weight."""


def weighted(weights) -> WeightedMoves:
    """Moves of this package with weights, without those of `FURTHER` whose weight is 0."""
    return weigh((*MOVES, *FURTHER)[: len(weights)], weights)
