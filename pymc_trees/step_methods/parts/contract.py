"""Interface of a part of a step."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from pymc_trees.core.moves.problem import Problem
from pymc_trees.targets.forest_state import WorkingForest


class Part:
    """An update of a forest that leaves the posterior invariant; a step is a cycle of parts."""

    statistics: tuple[str, ...] = ()
    """Names of its statistics per draw."""
    shapes: Mapping[str, list[int]] = MappingProxyType({})
    """Shapes of those that are arrays."""

    def prepare(self, forest: WorkingForest) -> None:
        """Create the data that a forest needs, once; by default nothing."""

    def update(self, rng, forest: WorkingForest, problem: Problem, tuning: bool) -> dict | None:
        """Change the trees and the residual of the leaf; the statistics.

        With them, under the keys ``parts.moves.VISITS`` and ``CHANGES``, how many visits of a tree
        it made and how many changed one, if it counts them. None if the forest outgrew its pool.
        """
        raise NotImplementedError

    def compilation(
        self, rng, forest: WorkingForest, problem: Problem
    ) -> list[Callable[[], object]]:
        """Jobs that compile what `update` calls, which processes share; by default none."""
        return []

    @property
    def kept(self) -> dict[str, Any]:
        """State of a chain by forest, in addition to its point; by default none.

        A new chain starts without it.
        """
        return {}

    @kept.setter
    def kept(self, kept: dict[str, Any]) -> None:
        pass
