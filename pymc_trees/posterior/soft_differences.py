"""In what the model that made the draws of a soft tree differs from the one at hand."""

import numpy as np

from pymc_trees.core.soft.encode import SPLIT, is_intact, n_fields
from pymc_trees.core.value.fields import LEAF, UNUSED
from pymc_trees.distributions.ops.soft_tree_rv import fingerprint_of
from pymc_trees.posterior.differences import ALTERED, is_rounded


def shape_of(rv) -> tuple[int, int]:
    """Shape of a draw."""
    op = rv.owner.op
    return op.max_nodes, n_fields(op.p, op.n_values)


def is_valid(rv, value: np.ndarray) -> bool:
    """Whether a value of the right shape is a tree of the model."""
    return is_intact(np.ascontiguousarray(value), fingerprint_of(rv))


def differing_sizes(rv, value: np.ndarray) -> str:
    """Sizes of the encoding that a draw of another shape does not share."""
    rows, fields = shape_of(rv)
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
    if is_rounded(values):
        return "they were altered, rounded to float32"
    if not all(np.isfinite(value).all() for value in values):
        return "they were altered, and hold NaN or infinite values"
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
