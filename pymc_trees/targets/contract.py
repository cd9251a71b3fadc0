"""Interface of a target: the likelihood of one forest, given the model's other variables.

A target is made from the model's graph once, when a step method is created, and evaluated once per
sweep. `choose.TARGETS` lists all kinds.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from pymc_trees.core.value.fields import Layout
from pymc_trees.targets.graph import ForestGraph, LeafNotProposedError
from pymc_trees.targets.settings import Settings


class Target:
    """Prior settings and likelihood of one forest, as functions of the other variables.

    What stands below with a value need not be given by a kind.
    """

    kind: str
    """Its name, for messages only."""
    needs_surrogate: bool = False
    """Whether leaf values do not integrate out, and trees grow under a surrogate."""
    is_joint: bool = False
    """Whether the likelihood can only be evaluated for all rows together."""
    layout: Layout
    free_level: list | None = None
    """Shared data that say that a number may be added to f at all rows; None where it may not."""
    statistic: str | None = None
    """Name of a number that is recorded with each draw."""

    def __init__(self, graph: ForestGraph):
        """Target of the forest of a graph.

        Raises
        ------
        UnsupportedModelError
            When this kind does not support its likelihood, for this reason.
        ForestUseError
            When no kind does, since the forest is not used through its function at the training
            inputs.
        """

    @property
    def n_stats(self) -> int:
        """Statistics of a leaf (`core.leaves.contract.n_stats`)."""
        raise NotImplementedError

    def at(self, point: dict) -> tuple[Settings, Any]:
        """Prior settings at a point, and the numbers that `leaf_data` takes."""
        raise NotImplementedError

    def leaf_data(self, settings: Settings, seen: Any, fit: np.ndarray, rng=None):
        """Leaf model of `core.leaves` at a point, where the trees' outputs are ``fit``, (n, K).

        Returns
        -------
        leaf : NamedTuple
            Its type selects the kernels; it may have a working residual of the outputs.
        target : (n,) array or None
            The residual plus the outputs, from which new outputs are computed; None without a
            residual, or if rounding would lose the outputs.
        """
        raise NotImplementedError

    def log_scale(self, seen: Any) -> float:
        """Log-likelihood of the model minus that of the leaf model."""
        raise NotImplementedError

    def level(self, leaf: Any) -> float:
        """What f rises with at all rows, other than variables of the model."""
        return 0.0

    def value_of_statistic(self, leaf: Any) -> float:
        """Value of ``statistic``."""
        raise NotImplementedError

    def log_likelihood(self, leaf: Any, seen: Any, trees: Callable[[], np.ndarray]) -> float | None:
        """Log-likelihood at the outputs ``trees()``; None: that of the leaf model counts."""
        return None


def check_proposals(graph: ForestGraph) -> None:
    """Raise an error for a forest whose leaf values nothing proposes in a likelihood of all rows.

    Coefficients are proposed under likelihoods of rows alone (`leaf_rows`).
    """
    leaf = graph.rv.owner.op.leaf_type
    if not (leaf.any_likelihood and leaf.is_constant()):
        raise LeafNotProposedError(f"Nothing proposes the values of a {leaf.__name__}.")
