"""Interface of a target: the likelihood of one forest, given the model's other variables.

A target is read from the model once, when a step method is created, and evaluated once per sweep.
`choose.TARGETS` lists all kinds.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, Self, runtime_checkable

import numpy as np
import pymc as pm
from pytensor.graph.basic import Variable

from pymc_trees.core.value.fields import Layout
from pymc_trees.targets.errors import LeafNotProposedError
from pymc_trees.targets.settings import Settings


class Refusal(NamedTuple):
    """Reason why a kind of target does not support a model."""

    error: Exception
    """Raised if no other kind supports it either."""


@runtime_checkable
class Target(Protocol):
    """Prior settings and likelihood of one forest, as functions of the other variables."""

    kind: str
    """Its name, for messages only."""
    needs_surrogate: bool
    """Whether leaf values do not integrate out, and trees grow under a surrogate."""
    is_joint: bool
    """Whether the likelihood can only be evaluated for all rows together."""
    layout: Layout

    @classmethod
    def read(cls, model: pm.Model, forest: Variable) -> Self | Refusal:
        """The target of a forest of a model, or the reason why this kind does not support it.

        Raises
        ------
        ForestUseError
            If the forest is not used through its function at the training inputs; no kind of target
            supports this.
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
            Its type selects the kernels; it may have a working residual of the outputs.
        target : (n,) array or None
            The residual plus the outputs, from which new outputs are computed; None without a
            residual, or if rounding would lose the outputs.
        """

    def log_scale(self, seen: Any) -> float:
        """Log-likelihood of the model minus that of the leaf model."""


def made_or_refused[T](
    kind: Callable[[pm.Model, Variable], T],
    model: pm.Model,
    forest: Variable,
    *unsupported: type[Exception],
) -> T | Refusal:
    """A target of a kind that draws leaf values, or the reason why it does not support a model.

    Parameters
    ----------
    *unsupported
        What the kind raises for likelihoods that it does not support.
    """
    leaf = forest.owner.op.leaf_type
    if not (leaf.any_likelihood and leaf.is_constant()):
        return Refusal(LeafNotProposedError(f"Nothing proposes the values of a {leaf.__name__}."))
    try:
        return kind(model, forest)
    except unsupported as error:
        return Refusal(error)
