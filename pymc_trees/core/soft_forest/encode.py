"""Working arrays to the encoded value of `fields` and back, and functions of a value."""

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.soft_forest.fields import BANDWIDTHS
from pymc_trees.core.soft_forest.gates import add_up
from pymc_trees.core.soft_forest.prior import log_cuts
from pymc_trees.core.soft_forest.trees import SoftTrees, make_links, read_links
from pymc_trees.core.soft_forest.unit import to_unit
from pymc_trees.core.value.checksum import compute_checksum, is_intact
from pymc_trees.core.value.fields import CHECKSUM, LEAF, UNUSED


@njit(cache=True)
def encode(trees, sizes, fingerprint):
    """Encoded value of a forest."""
    value = np.zeros((sizes.rows, 2))
    rest = value[sizes.max_nodes :].reshape(-1)
    row = 0
    for t in range(sizes.m):
        for k in range(trees.size[t]):
            value[row, 0], value[row, 1] = trees.column[t, k], trees.number[t, k]
            row += 1
        rest[BANDWIDTHS + t] = trees.bandwidth[t]
    value[row : sizes.max_nodes, 0] = UNUSED
    rest[CHECKSUM] = compute_checksum(value, sizes.max_nodes, fingerprint)
    return value


@njit(cache=True)
def decode(value, sizes, p):
    """Forest of a value, and whether its node rows are valid: integer columns, cuts in bounds.

    Parameters
    ----------
    p : int
        Columns.
    """
    m, room = sizes.m, sizes.max_nodes - sizes.m + 1
    trees = SoftTrees(
        np.ones(m, dtype=np.int64),
        np.full((m, room), np.int32(LEAF)),
        np.zeros((m, room)),
        np.ones(m),
    )
    rest, links, row = value[sizes.max_nodes :].reshape(-1), make_links(room + 2), 0
    for t in range(m):
        open_nodes, size = 1, 0
        while open_nodes > 0:
            if row >= sizes.max_nodes or size >= room:
                return trees, False
            kind, number = value[row, 0], value[row, 1]
            is_column = kind >= 0 and kind < p and kind == np.floor(kind)
            if not np.isfinite(number) or not (is_column or kind == LEAF):
                return trees, False
            trees.column[t, size], trees.number[t, size] = int(kind), number
            open_nodes += 1 if is_column else -1
            row, size = row + 1, size + 1
        trees.size[t], trees.bandwidth[t] = size, rest[BANDWIDTHS + t]
        read_links(trees.column[t], size, links)
        inside = log_cuts(trees.column[t], trees.number[t], links.parent, 0, size) > -np.inf
        if not inside or not 0.0 < trees.bandwidth[t] < np.inf:
            return trees, False
    for k in range(row, sizes.max_nodes):
        if value[k, 0] != UNUSED:
            return trees, False
    return trees, True


@njit(cache=True, nogil=True)
def evaluate(value, X, knots, heights, offsets, hard, sizes, fingerprint):
    """The function at the rows of X, (rows of X, 1).

    NaN everywhere when the value is not an intact forest of this declaration.
    """
    out = np.empty((X.shape[0], 1))
    if not is_intact(value, sizes.max_nodes, fingerprint):
        out[:] = np.nan
        return out
    unit = to_unit(X, knots, heights, offsets)
    trees, _ = decode(value, sizes, X.shape[1])
    total = add_up(trees, unit, hard)
    for i in range(total.size):
        out[i, 0] = total[i]
    return out


@njit(cache=True)
def summarise(value, p, sizes, fingerprint):
    """Statistics of a value for its prior density.

    Returns
    -------
    splits, leaves : (D,) float64
        Split nodes and leaves at each depth; empty when the value is not intact.
    values : (L, 1) float64
        Leaf values.
    columns : (p,) float64
        Split nodes on each column.
    bandwidths : (m,) float64
        Empty likewise.
    log_cuts : float
        Log density of the cuts; -inf when the value is not intact.
    """
    nothing = np.empty(0)
    columns = np.zeros(p)
    if not is_intact(value, sizes.max_nodes, fingerprint):
        return nothing, nothing, np.empty((0, 1)), columns, nothing, -np.inf
    trees, _ = decode(value, sizes, p)
    splits, leaves = np.zeros(sizes.max_nodes + 1), np.zeros(sizes.max_nodes + 1)
    values = np.empty((sizes.max_nodes, 1))
    links = make_links(trees.column.shape[1] + 2)
    total, n_leaves, deepest = 0.0, 0, 0
    for t in range(sizes.m):
        column, size = trees.column[t], trees.size[t]
        read_links(column, size, links)
        total += log_cuts(column, trees.number[t], links.parent, 0, size)
        for k in range(size):
            deepest = max(deepest, links.depth[k])
            if column[k] >= 0:
                splits[links.depth[k]] += 1.0
                columns[column[k]] += 1.0
            else:
                leaves[links.depth[k]] += 1.0
                values[n_leaves, 0] = trees.number[t, k]
                n_leaves += 1
    splits, leaves = splits[: deepest + 1], leaves[: deepest + 1]
    return splits, leaves, values[:n_leaves], columns, trees.bandwidth, total
