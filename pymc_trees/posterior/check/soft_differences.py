"""In what the model that made the draws of a soft tree differs from the one at hand."""

import numpy as np

from pymc_trees.core.soft.encode import SPLIT, n_fields
from pymc_trees.core.value.fields import LEAF, UNUSED
from pymc_trees.posterior.check.alterations import ALTERED, alteration


def differing_sizes(rv, value: np.ndarray) -> str:
    """Sizes of the encoding that a draw of another shape does not share."""
    op = rv.owner.op
    rows, fields = op.max_nodes, n_fields(op.p, op.n_values)
    named = []
    if value.shape[0] != rows:
        named.append(
            f"max_nodes ({value.shape[0]} instead of {rows}, where the default follows alpha and "
            f"beta: give max_nodes={value.shape[0]})"
        )
    if value.shape[1] != fields:
        named.append("columns of X, or classes")
    return ", ".join(named)


def differing_settings(rv, values: list[np.ndarray]) -> str:
    """What contradicts the model in some draws of the right shape, none of which is intact."""
    altered = alteration(values)
    if altered is not None:
        return altered
    if not all(np.isin(value[:, 0], (SPLIT, LEAF, UNUSED)).all() for value in values):
        return ALTERED
    op = rv.owner.op
    leaves = np.concatenate([value[value[:, 0] == LEAF, 1:-1] for value in values])
    used, rest = leaves[:, : op.n_values], leaves[:, op.n_values :]
    if rest.any() or not op.leaf_type.are_values(used):
        return f"the model was declared with another leaf, unless {ALTERED}"
    return (
        f"{ALTERED}, or the model was declared with other training inputs X, h or leaf, which do "
        "not show in a tree"
    )
