"""A step method: as many sweeps of local moves between two draws as the forest has trees."""

from pymc_trees.step_methods.parts.contract import Part
from pymc_trees.step_methods.parts.local_moves import LocalMoves
from pymc_trees.step_methods.sweep import SweepStep


class SweepsByTrees(Part):
    """Part of a step: sweeps of local moves, one for each tree.

    A cycle of kernels that leave the posterior invariant leaves it invariant, and so does a number
    of them that does not depend on where the chain is.
    """

    def __init__(self, moves=None):
        self.local = LocalMoves(moves)
        self.statistics = (*self.local.statistics, "sweeps")

    def update(self, rng, forest, problem, tuning):
        """Sweep; statistics of the last one, or None when the forest outgrew its room."""
        for _ in range(forest.layout.m):
            stats = self.local.update(rng, forest, problem, tuning)
            if stats is None:
                return None
        return stats | {"sweeps": float(forest.layout.m)}


class MoreSweeps(SweepStep):
    """One step is m sweeps of local moves for a forest of m trees."""

    name = "more_sweeps"

    def __init__(self, vars=None, moves=None, **options):
        super().__init__(vars, SweepsByTrees(moves), **options)
