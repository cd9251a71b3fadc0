"""Normal leaf values of trees that are monotone in some columns."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import pymc_trees.core.order.monotone  # noqa: F401, registers the steps under an order
from pymc_trees.core.order.directions import monotone_directions
from pymc_trees.distributions.data.schema import column_index
from pymc_trees.distributions.leaves.contract import LeafPrior, register_leaf
from pymc_trees.distributions.leaves.normal import NormalLeaf
from pymc_trees.predictors.columns import CONTINUOUS


@register_leaf
@dataclass(frozen=True, eq=False)
class MonotoneLeaf(NormalLeaf):
    """`NormalLeaf` of trees each of which is monotone; made by front-ends from ``monotone``.

    Parameters
    ----------
    mean, sd
        Of the leaf values before they are ordered, as for a `NormalLeaf`.
    monotone : dict
        By name or number of a column, 1 where the trees rise in it and -1 where they fall.
    """

    monotone: Any = None
    directions: np.ndarray = field(default_factory=lambda: np.empty(0), init=False, repr=False)
    """(p,) float64: 1, -1 or 0."""

    name = "monotone"
    order = staticmethod(monotone_directions)

    @property
    def constants(self) -> np.ndarray:
        """The directions."""
        return self.directions

    def for_inputs(self, table, kinds) -> "MonotoneLeaf":
        """With the direction of each column."""
        labels = table.schema.labels
        # also without columns of too many levels, which are left out of splits
        numeric = np.array([rule == CONTINUOUS for rule in table.schema.rules])
        directions = np.zeros(len(labels))
        for column, direction in self.monotone.items():
            j = column_index(column, labels)
            if j is None:
                raise ValueError(
                    f"monotone: X has no column {column!r}; choose from {labels}, with 1 or -1 for "
                    "each."
                )
            if not numeric[j]:
                raise ValueError(
                    f"monotone: {column!r} has levels, which have no order: leave it out, or make "
                    "it an ordered category or a number."
                )
            if directions[j]:
                raise ValueError(f"monotone={self.monotone} names a column twice: give each once.")
            directions[j] = float(direction)
        bound = MonotoneLeaf(self.mean, self.sd, self.monotone)
        object.__setattr__(bound, "directions", directions)
        return bound

    def of_output(self, k: int) -> "MonotoneLeaf":
        """Prior of output k alone."""
        leaf = super().of_output(k)
        return MonotoneLeaf(leaf.mean, leaf.sd, self.monotone)

    def of_outputs(self, n_outputs: int):
        """Raise an error."""
        raise NotImplementedError(
            "monotone: trees shared by several outputs cannot be monotone; give each output its "
            "own trees with separate_trees=True."
        )


def with_monotone(leaf: LeafPrior, monotone) -> LeafPrior:
    """Leaf of trees that are monotone in the columns of ``monotone``, if any."""
    if monotone is None:
        return leaf
    if not isinstance(monotone, Mapping):
        raise TypeError(
            f"monotone={monotone!r}: must be a dict from column to direction, 1 for an increasing "
            'and -1 for a decreasing function; {"income": 1, "price": -1}, for example.'
        )
    for column, direction in monotone.items():
        if isinstance(direction, bool) or direction not in (1, -1):
            raise ValueError(
                f"monotone: the direction of {column!r} is {direction!r}; it must be 1 for an "
                "increasing or -1 for a decreasing function. Leave out columns without a "
                "direction."
            )
    if not monotone:
        return leaf
    if type(leaf) is not NormalLeaf:
        raise ValueError(
            f"monotone needs constant leaf values, but leaf={leaf!r}: give a NormalLeaf, or leave "
            "monotone out."
        )
    return MonotoneLeaf(leaf.mean, leaf.sd, dict(monotone))
