"""In what the model that made some draws differs from the one at hand: an error's reason."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from pymc_trees.core.soft.encode import SPLIT, n_fields
from pymc_trees.core.value.fields import LEAF, UNUSED
from pymc_trees.core.value.text import tree_starts
from pymc_trees.core.value.walk import Encoded, Node, expect, sent_left, walk
from pymc_trees.distributions.forest_inputs import declared, forest_inputs

# ---------------------------------- Traces that saving or editing leaves in the draws of any trees


ALTERED = "the draws were altered (for example rounded, or saved in another precision)"


def alteration(values: list[np.ndarray]) -> str | None:
    """What was done to draws of the right shape, none of which is intact, as far as they show."""
    if is_rounded(values):
        return "they were altered, rounded to float32"
    if not all(np.isfinite(value).all() for value in values):
        return "they were altered, and hold NaN or infinite values"
    return None


def is_rounded(values: list[np.ndarray]) -> bool:
    """Whether draws were in single precision once, and are not all zero."""
    with np.errstate(over="ignore", invalid="ignore"):
        return all(value.any() for value in values) and all(
            np.array_equal(value.astype(np.float32), value) for value in values
        )


# ------------------ In what the model that made the draws of a forest differs from the one at hand
#
# A checksum says that a draw is none of this model's forests, and not why. The rest of the draw
# does, as far as the model's training rows contradict it.


LARGEST_KIND = 2.0**32
"""More than any split column; a checksum of 52 bits is below it once in a million draws."""


def sizes_of_forest(rv, value: np.ndarray) -> str:
    """Sizes of the encoding that a draw of another shape does not share."""
    layout = rv.owner.op.layout
    any_of = "m, max_nodes, leaf or tree_prior"
    if value.ndim != 2 or value.shape[1] != layout.fields:
        return f"leaves or tree_prior ({value.shape[-1]} instead of {layout.fields} numbers a node)"
    found = _sizes_of(value)
    if found is None:
        return any_of
    m, max_nodes = found
    named = []
    if m != layout.m:
        named.append(f"m ({m} instead of {layout.m})")
    if max_nodes != layout.max_nodes:
        named.append(
            f"max_nodes ({max_nodes} instead of {layout.max_nodes}, where the default follows "
            f"alpha, beta, m and the number of rows: give max_nodes={max_nodes})"
        )
    return ", ".join(named) or any_of


def _sizes_of(value) -> tuple[int, int] | None:
    """Trees, and rows for nodes, of an encoded forest; None where it is none."""
    kinds = value[:, 0]
    after = np.flatnonzero(kinds >= LARGEST_KIND)
    max_nodes = int(after[0]) if after.size else 0
    nodes = kinds[:max_nodes]
    leaves, splits = int((nodes == LEAF).sum()), int((nodes >= 0).sum())
    if leaves <= splits or leaves + splits + (nodes == UNUSED).sum() != max_nodes:
        return None
    return leaves - splits, max_nodes


def settings_of_forest(rv, values: list[np.ndarray]) -> str:
    """What contradicts the model in some draws of the right shape, none of which is intact."""
    altered = alteration(values)
    if altered is not None:
        return altered
    layout = rv.owner.op.layout
    if _sizes_of(values[0]) not in (None, (layout.m, layout.max_nodes)):
        return f"the model was declared with other {sizes_of_forest(rv, values[0])}"
    try:
        for value in values:
            tree_starts(value, layout)
    except ValueError:
        return ALTERED
    found = [_contradiction(_encoded(rv, value), rv) for value in values]
    for rank, setting in enumerate(SETTINGS):
        if rank in found:
            return f"the model was declared with other {setting}, unless {ALTERED}"
    return (
        f"{ALTERED}, or the model was declared with another kind of leaf, split_prior, or other "
        "training inputs, in a way that these trees do not show"
    )


SETTINGS = (
    "split rules or kinds of columns (split_rules, missing cells)",
    "training inputs X (their values, or the order of rows or columns)",
    "cuts (n_cuts) or training inputs X",
    "split weights (split_prior)",
    "leaves (leaf)",
)
"""What `_contradiction` ranks: what comes first is said, since it explains what comes after."""


def _encoded(rv, value) -> Encoded:
    X, _, _, fingerprint, kinds, _ = known = declared(rv)
    weights = getattr(forest_inputs(rv).weights, "data", None)
    kinds = np.zeros(X.shape[1], dtype=int) if len(kinds) == 0 else kinds
    weights = np.full(X.shape[1], np.nan) if weights is None else weights
    return Encoded(value, X, rv.owner.op.layout, fingerprint, known.cuts, weights, kinds)


def _contradiction(encoded: Encoded, rv) -> int | None:
    """Rank among `SETTINGS` of what a draw contradicts; None when it contradicts nothing."""
    layout, p, leaf = encoded.layout, encoded.X.shape[1], rv.owner.op.leaf_type
    splits = _kinds_of(encoded)
    if (splits >= p * (4 if layout.mixed else 1)).any() or (
        (splits // p >= 2) != (encoded.kinds[splits % p] != 0)
    ).any():
        return 0
    nodes = walk(encoded)
    if any(len(node.rows) == 0 for node in nodes):
        return 1
    log_cuts, log_columns = _log_terms(encoded, nodes)
    if not np.isclose(encoded.certificate[1], log_cuts, rtol=1e-9, atol=1e-9):
        return 2
    known = not np.isnan(encoded.weights).any()
    if known and not np.isclose(encoded.certificate[2], log_columns, rtol=1e-9, atol=1e-9):
        return 3
    values = np.array([node.leaf_values for node in nodes if node.column < 0])
    return None if leaf.are_values(values) else 4


def _kinds_of(encoded) -> np.ndarray:
    """Column and way of every split."""
    stop = tree_starts(encoded.value, encoded.layout)[-1]
    kinds = encoded.value[:stop, 0]
    return kinds[kinds != LEAF].astype(np.int64)


def _log_terms(encoded: Encoded, nodes: list[Node]) -> tuple[float, float]:
    """What the certificate should hold; log cuts -inf when the rows of a node allow no cut."""
    log_cuts = log_columns = 0.0
    for node in nodes:
        if node.column < 0:
            continue
        left = sent_left(encoded.X[node.rows, node.column], node.rule_kind, node.cut)
        if not left.any() or left.all():
            return -np.inf, 0.0
        try:
            with np.errstate(divide="ignore", invalid="ignore"):
                terms = expect(encoded, node.rows, node)
        except ZeroDivisionError:  # no cut of the grid lies between the rows
            return -np.inf, 0.0
        log_cuts, log_columns = log_cuts + terms.log_cut, log_columns + terms.log_column
    return log_cuts, log_columns


# --------------- In what the model that made the draws of a soft tree differs from the one at hand


def sizes_of_soft_tree(rv, value: np.ndarray) -> str:
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


def settings_of_soft_tree(rv, values: list[np.ndarray]) -> str:
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


# ------- In what the model that made the draws of a sum of soft trees differs from the one at hand


def sizes_of_soft_forest(rv, value: np.ndarray) -> str:
    """Sizes of the encoding that a draw of another shape does not share."""
    layout = rv.owner.op.layout
    rows = layout.shape[0]
    return (
        f"m or max_nodes ({value.shape[0]} instead of {rows} rows of the value; "
        "the default of max_nodes follows alpha, beta, m and the number of rows)"
    )


def settings_of_soft_forest(rv, values: list[np.ndarray]) -> str:
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


class Differences(NamedTuple):
    """What is said of draws of a kind of variable that are not those of a model."""

    differing_sizes: Callable
    """Of a variable and one value: which sizes differ."""
    differing_settings: Callable
    """Of a variable and some values: which settings differ."""


FOREST = Differences(sizes_of_forest, settings_of_forest)
SOFT_TREE = Differences(sizes_of_soft_tree, settings_of_soft_tree)
SOFT_FOREST = Differences(sizes_of_soft_forest, settings_of_soft_forest)
