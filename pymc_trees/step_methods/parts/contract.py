"""What a part of a step answers."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from pymc_trees.core.moves.problem import Problem
from pymc_trees.targets.forest_state import WorkingForest


class Part:
    """An update of a forest that leaves the posterior invariant; a step is a cycle of parts."""

    statistics: tuple[str, ...] = ()
    """Names of its numbers per draw."""
    shapes: Mapping[str, list[int]] = MappingProxyType({})
    """Shapes of those that are arrays."""

    def prepare(self, forest: WorkingForest) -> None:
        """Make what a forest needs, once; nothing unless overridden."""

    def update(self, rng, forest: WorkingForest, problem: Problem, tuning: bool) -> dict | None:
        """Change the trees and the residual of the leaf; the statistics.

        None when the forest outgrew its pool.
        """
        raise NotImplementedError

    @property
    def kept(self) -> dict[str, Any]:
        """By forest, what a chain knows beside its point; nothing unless overridden.

        A new chain begins with none.
        """
        return {}

    @kept.setter
    def kept(self, kept: dict[str, Any]) -> None:
        pass
