"""In what the model that made the draws of a sum of soft trees differs from the one at hand."""

import numpy as np

from pymc_trees.core.value.fields import LEAF
from pymc_trees.posterior.check.alterations import ALTERED, alteration


def differing_sizes(rv, value: np.ndarray) -> str:
    """Sizes of the encoding that a draw of another shape does not share."""
    layout = rv.owner.op.layout
    rows = layout.shape[0]
    return (
        f"m or max_nodes ({value.shape[0]} instead of {rows} rows of the value; "
        "the default of max_nodes follows alpha, beta, m and the number of rows)"
    )


def differing_settings(rv, values: list[np.ndarray]) -> str:
    """What contradicts the model in some draws of the right shape, none of which is intact."""
    altered = alteration(values)
    if altered is not None:
        return altered
    layout = rv.owner.op.layout
    kinds = np.array([value[: layout.max_nodes, 0] for value in values])
    leaves, splits = (kinds == LEAF).sum(axis=1), (kinds >= 0).sum(axis=1)
    if (leaves - splits != layout.m).any():
        return f"the model was declared with another m or max_nodes, unless {ALTERED}"
    return (
        f"{ALTERED}, or the model was declared with other training inputs X, hard columns or "
        "split_prior, which do not show in the trees"
    )
