"""Interface of a kernel: an update of one forest that leaves its posterior invariant.

A step is a cycle of kernels (Tierney 1994). Each is called as

    state, statistics = kernel.update(rng, state, data)

where ``state`` is what the kernel has adapted for this forest in this chain: a value, such as a
named tuple of numbers and arrays, that `SweepStep` keeps between steps, and stores for resuming.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from pymc_trees.core.moves.problem import Problem, Workspace
from pymc_trees.targets.forest_state import ForestData
from pymc_trees.targets.soft_forest_state import SoftForestData, SoftPosterior

VISITS, CHANGES = "visits", "changes"
"""Keys under which kernels report, besides their statistics, how many visits of a tree they made
and how many of these changed it."""


class SweepData(NamedTuple):
    """What a kernel is given for an update of a forest."""

    forest: ForestData | SoftForestData
    problem: Problem | SoftPosterior
    """The trees and their posterior; trees and the residual of the leaf are changed in place."""
    work: Workspace | None
    """Of the trees."""
    target: np.ndarray | None
    """(n,) residual of the leaf plus the outputs of the forest; None where the leaf has no
    residual, or where rounding would lose the outputs."""
    tuning: bool
    """Whether kernels may adapt."""
    states: Mapping["Kernel", Any]
    """States of all kernels of the step for this forest."""
    n_sweeps: int | None = None
    """Number of sweeps, where draws of other parameters come between them."""
    n_temperatures: int = 1
    """Number of posteriors among which the default number of sweeps is divided."""
    level: float = 0.0
    """What f rises with, a function of other variables: along a ridge f less this stays."""


class Kernel:
    """An update of a forest that leaves its posterior invariant; a step is a cycle of kernels."""

    def statistics(self, forest) -> Mapping[str, tuple[int, ...]]:
        """Names of the statistics per draw, and their shapes; by default none."""
        return {}

    def check(self, forest) -> None:
        """Raise an error for a forest that it cannot update; by default for none."""

    def update(self, rng, state, data: SweepData) -> tuple[Any, dict]:
        """Change the trees of the data, and the residual of their leaf.

        Parameters
        ----------
        rng : numpy.random.Generator
            Source of randomness.
        state
            What the last update returned; None in a new chain.
        data : SweepData
            The forest and its posterior.

        Returns
        -------
        state
            Differs from the state before only while ``data.tuning``, unless it holds more than
            what is adapted.
        statistics : dict
            May also have numbers under `VISITS` and `CHANGES`.

        Raises
        ------
        ForestTooLargeError
            If the forest outgrew its capacity.
        """
        raise NotImplementedError

    def compilation(self, rng, data: SweepData) -> list[Callable[[], object]]:
        """Jobs that compile what `update` calls, which processes share; by default none."""
        return []

    def n_temperatures(self, forest, state) -> int:
        """Number of posteriors among which the default number of sweeps of a step is divided."""
        return 1

    def stored(self, state):
        """What of a state is stored for resuming; by default all of it."""
        return state

    def interrupted(self, state):
        """State after an update that ended with an error; by default that before the update."""
        return state
