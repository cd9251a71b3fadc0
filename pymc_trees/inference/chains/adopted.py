"""Encoded trees of one declaration made those of another: other rows, the same columns."""

from typing import Any

import numpy as np

from pymc_trees.core.columns.cells import LEFT, MAX_CUT, SET
from pymc_trees.core.columns.design import make_design
from pymc_trees.core.forest.trees import Trees, make_trees, reset_tree
from pymc_trees.core.interrupts import deferred_interrupts
from pymc_trees.core.order.contract import is_ordered
from pymc_trees.core.soft_forest.encode import soft_sizes
from pymc_trees.core.value.adopt import adopt, subtree_sizes
from pymc_trees.core.value.encode import encode
from pymc_trees.core.value.fields import CHECKSUM, UNUSED, compute_checksum, sizes
from pymc_trees.distributions.data.numbers import present_numbers
from pymc_trees.distributions.forest_inputs import declared, forest_inputs
from pymc_trees.distributions.ops.forest_rv import order_of
from pymc_trees.distributions.tree_variable import ForestVariable
from pymc_trees.posterior.declarations import LEVELS
from pymc_trees.predictors.columns import ONEHOT


def adopted(
    value: np.ndarray, old: dict[str, Any], new: dict[str, Any], tree: ForestVariable, stumps
) -> np.ndarray:
    """The value of a forest whose trees are those of another value, valid under its own rows.

    Splits that its rows do not bear are left out, with the branch that fewer of them are in. Where
    the leaf values then need not be possible (those in order, and lines along the column of the
    parent), the tree is a stump.

    Parameters
    ----------
    value : (rows, fields) float64
        An intact value of the old declaration.
    old, new : dict
        The declarations (`posterior.declarations`), which have no `differences`.
    tree : ForestVariable
        The new forest.
    stumps : (rows, fields) float64
        A value of the new forest whose trees are stumps.
    """
    kinds = np.where(value[:, 0] >= 0, 1, -1).cumsum()
    n = int(np.flatnonzero(kinds == -old["trees"])[0]) + 1
    nodes = np.array(value[:n], dtype=np.float64)  # a copy, which is written to
    if tree.is_soft:
        bandwidths = value[old["nodes"] :].reshape(-1)[1 : 1 + old["trees"]]
        return _soft(nodes, bandwidths, tree, stumps)
    return _hard(nodes, old, new, tree, stumps)


# --------------------------------------------------------------------------------------- Hard trees


def _hard(nodes, old, new, tree: ForestVariable, stumps: np.ndarray) -> np.ndarray:
    op, layout, known = tree.op, tree.op.layout, declared(tree.rv)
    design = make_design(known.X, known.cuts, known.kinds)
    weights = present_numbers(forest_inputs(tree.rv).weights)
    if weights is None:  # random; the kernel of the step computes its terms at each point
        weights = np.ones(known.X.shape[1])
    else:
        design = design._replace(varies=design.varies & (weights > 0))
    _translate(nodes, old, new, known)
    prior = op.prior_type.kernel(0.5, 0.0, np.array(weights, dtype=np.float64))
    trees = make_trees(layout.m, layout.max_nodes, layout.n_values, layout.n_rows)
    rows, buffer = np.empty((2, layout.n_rows), dtype=np.uint32)
    altered, order = np.empty(layout.m, dtype=bool), order_of(op, known.constants, known.kinds)
    scratch = np.empty(layout.max_nodes, dtype=np.int32)
    with deferred_interrupts():
        size = subtree_sizes(nodes, len(nodes))
        adopt(nodes, size, design, prior, sizes(layout), trees, rows, buffer, altered)
        for t in range(layout.m):
            if not op.leaf_type.is_constant():
                is_stump = altered[t]
            else:
                is_stump = order is not None and not is_ordered(order, trees, t)
            if is_stump:
                _make_stump(trees, t, scratch, stumps[t, 1 : 1 + layout.n_values])
        return encode(trees, design, prior, sizes(layout), tree.fingerprint, scratch)


def _make_stump(trees: Trees, t: int, scratch: np.ndarray, values: np.ndarray) -> None:
    reset_tree(trees, t, scratch)
    root = trees.roots[t]
    trees.leaf_of[t] = root
    trees.values[root] = values


def _translate(nodes: np.ndarray, old, new, known) -> None:
    """Write rules as the new design has them: kinds of columns, codes of levels, cuts of a grid."""
    p, is_mixed = known.X.shape[1], len(known.kinds) > 0
    split = np.flatnonzero(nodes[:, 0] >= 0)
    columns, kinds = nodes[split, 0].astype(np.int64) % p, nodes[split, 0].astype(np.int64) // p
    cuts = nodes[split, 1]
    for j in np.unique(columns):
        mine = np.flatnonzero(columns == j)
        before, now = (one["columns"][j] for one in (old, new))
        if is_mixed and known.kinds[j] != 0:
            n_levels = abs(int(known.kinds[j]))
            for k in mine:
                side = bool(kinds[k] & LEFT) and now["rule"] != ONEHOT
                cuts[k] = _levels(int(cuts[k]), before[LEVELS], now[LEVELS], n_levels, side)
        elif (kinds[mine] >= SET).any():  # a column that is excluded now
            kinds[mine], cuts[mine] = 0, MAX_CUT
        elif known.cuts is not None and len(known.cuts[j]):
            inside = mine[np.abs(cuts[mine]) < MAX_CUT]
            cuts[inside] = _nearest(known.cuts[j], cuts[inside])
    nodes[split, 0] = columns + p * kinds * is_mixed
    nodes[split, 1] = cuts


def _levels(levels: int, before, now, n_levels: int, new_ones_left: bool) -> float:
    """A set of levels by their new codes; a new level is where missing cells are."""
    known = {level: code for code, level in enumerate(before or range(n_levels))}
    names = now or range(n_levels)
    bits = 0
    for code in range(n_levels):
        at = known.get(names[code]) if code < len(names) else None
        is_left = new_ones_left if at is None else bool(levels >> at & 1)
        bits |= int(is_left) << code
    return float(bits)


def _nearest(grid: np.ndarray, cuts: np.ndarray) -> np.ndarray:
    above = np.searchsorted(grid, cuts).clip(0, len(grid) - 1)
    below = (above - 1).clip(0)
    return np.where(
        np.abs(grid[below] - cuts) < np.abs(grid[above] - cuts), grid[below], grid[above]
    )


# --------------------------------------------------------------------------------------- Soft trees


def _soft(nodes, bandwidths, tree: ForestVariable, stumps: np.ndarray) -> np.ndarray:
    """Every soft tree is possible whatever the rows; cuts are on the scale of their quantiles."""
    numbers = soft_sizes(tree.op.layout)
    weights = present_numbers(forest_inputs(tree.rv).weights)
    excluded = np.zeros(0) if weights is None else np.flatnonzero(weights == 0)
    ends = np.flatnonzero(np.diff(np.minimum.accumulate(_depths(nodes)), prepend=0) < 0) + 1
    value, row = np.zeros_like(stumps), 0
    for t, trunk in enumerate(np.split(nodes, ends[:-1])):
        room = numbers.max_nodes - row - (numbers.m - 1 - t)
        if len(trunk) > room or np.isin(trunk[:, 0], excluded).any():
            trunk = stumps[t : t + 1]
        value[row : row + len(trunk)] = trunk
        row += len(trunk)
    value[row : numbers.max_nodes, 0] = UNUSED
    rest = value[numbers.max_nodes :].reshape(-1)
    rest[1 : 1 + numbers.m] = bandwidths
    rest[CHECKSUM] = compute_checksum(value, numbers.max_nodes, tree.fingerprint)
    return value


def _depths(nodes: np.ndarray) -> np.ndarray:
    """Open branches after each node row, minus one for each tree that has ended."""
    return np.where(nodes[:, 0] >= 0, 1, -1).cumsum()
