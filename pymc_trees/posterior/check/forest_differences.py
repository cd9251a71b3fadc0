"""In what the model that made the draws of a forest differs from the one at hand.

A checksum says that a draw is none of this model's forests, and not why. The rest of the draw does,
as far as the model's training rows contradict it.
"""

import numpy as np

from pymc_trees.core.value.fields import LEAF, UNUSED
from pymc_trees.core.value.text import tree_starts
from pymc_trees.core.value.walk import Encoded, Node, expect, sent_left, walk
from pymc_trees.distributions.forest_inputs import declared, forest_inputs
from pymc_trees.posterior.check.alterations import ALTERED, alteration

LARGEST_KIND = 2.0**32
"""More than any split column; a checksum of 52 bits is below it once in a million draws."""


def differing_sizes(rv, value: np.ndarray) -> str:
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


def differing_settings(rv, values: list[np.ndarray]) -> str:
    """What contradicts the model in some draws of the right shape, none of which is intact."""
    altered = alteration(values)
    if altered is not None:
        return altered
    layout = rv.owner.op.layout
    if _sizes_of(values[0]) not in (None, (layout.m, layout.max_nodes)):
        return f"the model was declared with other {differing_sizes(rv, values[0])}"
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
        left = sent_left(encoded.X[node.rows, node.column], node.way, node.cut)
        if not left.any() or left.all():
            return -np.inf, 0.0
        try:
            with np.errstate(divide="ignore", invalid="ignore"):
                terms = expect(encoded, node.rows, node)
        except ZeroDivisionError:  # no cut of the grid lies between the rows
            return -np.inf, 0.0
        log_cuts, log_columns = log_cuts + terms.log_cut, log_columns + terms.log_column
    return log_cuts, log_columns
