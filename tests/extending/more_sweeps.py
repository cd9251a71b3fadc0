"""A step method: as many sweeps of local moves between two draws as the forest has trees."""

from pymc_trees.step_methods.kernels.contract import Kernel
from pymc_trees.step_methods.kernels.local_moves import LocalMoves
from pymc_trees.step_methods.sweep import SweepStep


class SweepsByTrees(Kernel):
    """Sweeps of local moves, one for each tree.

    A cycle of kernels that leave the posterior invariant leaves it invariant, and so does a number
    of them that does not depend on where the chain is.
    """

    def __init__(self, moves=None):
        self.local = LocalMoves(moves)

    def statistics(self, forest):
        """Those of a sweep, and the number of sweeps."""
        return self.local.statistics(forest) | {"sweeps": ()}

    def update(self, rng, state, data):
        """Sweep; statistics of the last sweep."""
        m = data.forest.layout.m
        for _ in range(m):
            state, stats = self.local.update(rng, state, data)
        return state, stats | {"sweeps": float(m)}


class MoreSweeps(SweepStep):
    """One step is m sweeps of local moves for a forest of m trees."""

    name = "more_sweeps"

    def __init__(self, vars=None, moves=None, **options):
        super().__init__(vars, SweepsByTrees(moves), **options)
