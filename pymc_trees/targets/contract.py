"""What every target answers: the likelihood of one forest, given the model's other variables.

A target is read off the model once, when a step is made, and asked for its numbers once a sweep.
`choose.TARGETS` lists the kinds there are.
"""

from typing import Any, NamedTuple, Protocol, Self, runtime_checkable

import numpy as np
import pymc as pm
from pytensor.graph.basic import Variable

from pymc_trees.core.value.fields import Layout
from pymc_trees.targets.errors import LeafNotProposedError
from pymc_trees.targets.settings import Settings


class Refusal(NamedTuple):
    """Why a kind of target does not take a model."""

    error: Exception
    """Raised when no other kind takes it either."""


@runtime_checkable
class Target(Protocol):
    """Prior settings and likelihood of one forest, as functions of the other variables."""

    kind: str
    """Its name, for people: nothing is decided by it."""
    needs_surrogate: bool
    """Whether leaf values do not integrate out, so that trees grow under a surrogate."""
    is_joint: bool
    """Whether the likelihood can only be evaluated for all rows together."""
    layout: Layout

    @classmethod
    def read(cls, model: pm.Model, forest: Variable) -> Self | Refusal:
        """The target of a forest of a model, or why this kind does not take it.

        Raises
        ------
        ForestUseError
            When the forest is not used through its function at the training inputs, so that no
            kind of target can take it.
        """

    @property
    def n_stats(self) -> int:
        """Statistics of a leaf (`core.leaves.contract.n_stats`)."""

    def at(self, point: dict) -> tuple[Settings, Any]:
        """Prior settings at a point, and the numbers that `leaf_data` takes."""

    def leaf_data(self, settings: Settings, seen: Any, fit: np.ndarray, rng=None):
        """Leaf model of `core.leaves` at a point, where the trees' outputs are ``fit``, (n, K).

        Returns
        -------
        leaf : NamedTuple
            Its type chooses the kernels; it may hold a working residual of the outputs.
        target : (n,) array or None
            What the outputs were subtracted from to give that residual, to read new outputs off
            it; None without a residual, or where rounding would lose the outputs.
        """

    def log_scale(self, seen: Any) -> float:
        """Log-likelihood of the model less what the leaf model takes for it."""


def refuse_leaf(forest: Variable) -> Refusal | None:
    """Refusal of a leaf whose values can only be integrated out."""
    leaf = forest.owner.op.leaf_type
    if leaf.any_likelihood and leaf.is_constant():
        return None
    return Refusal(LeafNotProposedError(f"Nothing proposes the values of a {leaf.__name__}."))
