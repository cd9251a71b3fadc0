"""The encoded value of a forest of soft trees, from and to working arrays."""

from typing import NamedTuple

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.soft_forest.prior import (
    draw_bandwidth,
    draw_column,
    draw_cut,
    log_cuts,
    split_probability,
)
from pymc_trees.core.soft_forest.trees import (
    SoftTrees,
    make_links,
    make_soft_trees,
    read_links,
    sum_trees,
    to_unit,
)
from pymc_trees.core.value.fields import CHECKSUM, LEAF, UNUSED, compute_checksum, is_intact

# ------------------------------------------------------- Specification, for the value of a variable
#
# A forest of ``m`` trees is a C-contiguous float64 array of shape ``(rows, 2)``. Its node rows, 0
# to ``max_nodes - 1``, hold all trees in preorder (node, left subtree, right subtree), one after
# another:
#
# ===== ==================== ============== ===================
# field split node           leaf           unused row
# ===== ==================== ============== ===================
# 0     column, 0 .. p - 1   ``LEAF`` = -1  ``UNUSED`` = -2
# 1     cut in [0, 1]        leaf value     0
# ===== ==================== ============== ===================
#
# Cuts are on the scale of `unit`. The rows after them, read as one flat vector and padded with 0:
#
# ============================ ===============================================================
# entries                      meaning
# ============================ ===============================================================
# 0                            checksum of the declaration's fingerprint and every other entry
# 1 .. m                       bandwidths of the trees, on the scale of `unit`
# ============================ ===============================================================
#
# A value whose checksum does not match evaluates to NaN and has log-probability -inf.


BANDWIDTHS = 1


class SoftLayout(NamedTuple):
    """Sizes of one encoded forest; hashable, so that a PyTensor Op can hold it."""

    m: int
    """Number of trees."""
    max_nodes: int
    """Node rows, over all trees."""
    n_rows: int
    """Training rows n."""

    @property
    def n_values(self) -> int:
        """Values per leaf."""
        return 1

    @property
    def n_outputs(self) -> int:
        """Outputs per row."""
        return 1

    @property
    def fields(self) -> int:
        """Entries of a row."""
        return 2

    @property
    def stamp(self) -> tuple:
        """Fields that identify the layout."""
        return ("soft", *self)

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the encoded value."""
        return self.max_nodes + -(-(BANDWIDTHS + self.m) // 2), 2


class SoftSizes(NamedTuple):
    """Numbers of a `SoftLayout` for kernels."""

    m: int
    max_nodes: int
    n_rows: int
    rows: int


def soft_sizes(layout: SoftLayout) -> SoftSizes:
    """Numbers of a layout for the kernels."""
    return SoftSizes(*layout, layout.shape[0])


# --------------------------------------------------------------------------------------------------


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
    total = sum_trees(trees, unit, hard)
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


# ------------------------------------- Draws from the prior, and the stumps from which chains start


@njit(cache=True)
def draw_tree(rng, trees, t, prior, mean, sd, room, links):
    """Draw a tree with leaf values; return False if it has more than ``room`` nodes."""
    column, number = trees.column[t], trees.number[t]
    parent, right, depth = links.parent, links.right, links.depth
    parent[0], depth[0] = -1, 0
    k, open_nodes = 0, 1
    while open_nodes > 0:
        if k + open_nodes > room:
            return False
        if rng.random() < split_probability(prior, depth[k]):
            j = draw_column(rng, prior)
            number[k] = draw_cut(rng, column, number, parent, k, j)
            column[k], right[k] = j, -1
            parent[k + 1], depth[k + 1] = k, depth[k] + 1
            open_nodes += 1
        else:
            column[k], number[k] = LEAF, mean + sd * rng.standard_normal()
            open_nodes -= 1
            if open_nodes > 0:
                q = parent[k]
                while right[q] >= 0:
                    q = parent[q]
                right[q] = k + 1
                parent[k + 1], depth[k + 1] = q, depth[q] + 1
        k += 1
    trees.size[t], trees.bandwidth[t] = k, draw_bandwidth(rng, prior)
    return True


@njit(cache=True)
def draw_soft_value(rng, prior, mean, sd, sizes, fingerprint):
    """Encoded forest from the prior.

    Raises
    ------
    ValueError
        When it does not fit.
    """
    trees, used = make_soft_trees(sizes.m, sizes.max_nodes), 0
    links = make_links(trees.column.shape[1] + 2)
    for t in range(sizes.m):
        room = sizes.max_nodes - used - (sizes.m - t - 1)
        if not draw_tree(rng, trees, t, prior, mean, sd, room, links):
            raise ValueError(
                "A forest drawn from the prior has more nodes than max_nodes: declare it with a "
                "larger one."
            )
        used += trees.size[t]
    return encode(trees, sizes, fingerprint)


@njit(cache=True)
def stumps_value(mean, spread, bandwidth, sizes, fingerprint):
    """Encoded forest of stumps: leaf values ``mean`` plus and minus ``spread``, one bandwidth."""
    trees = make_soft_trees(sizes.m, sizes.max_nodes)
    trees.number[:, 0] = mean + np.resize([1.0, -1.0], sizes.m) * spread
    trees.bandwidth[:] = bandwidth
    return encode(trees, sizes, fingerprint)
