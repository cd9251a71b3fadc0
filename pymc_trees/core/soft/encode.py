"""The value of a soft tree: one float64 array (max_nodes, 2 + max(p + 1, K)), nodes in preorder.

====== =============================== =========================== ==================
field  split                           leaf                        unused row
====== =============================== =========================== ==================
0      `SPLIT` = 0                     `LEAF` = -1                 `UNUSED` = -2
1      threshold tau in [0, 1]         first leaf value            0
2 ..   weights Delta of the p inputs   further leaf values         0
last   the declaration's stamp in row 0, 0 in every other row
====== =============================== =========================== ==================

Fields that a row does not use hold 0. K is 1 for a normal leaf and the number of classes for a
Dirichlet leaf. The stamp is a number made of the training range, the sharpness and the leaf, so
that a tree is not read with another scaling. Whatever breaks a rule evaluates to NaN and has
log-probability -inf.
"""

import numpy as np

from pymc_trees.core.forest.fields import LEAF, UNUSED
from pymc_trees.core.kernel_cache import njit
from pymc_trees.core.soft.gates import leaf_probabilities

SPLIT = 0
TOLERANCE = 1e-6
"""How far the weights of a split may sum from one."""


def n_fields(p: int, n_values: int) -> int:
    """Entries of a row."""
    return 2 + max(p + 1, n_values)


def encode(label: str, delta, tau, values, max_nodes: int, stamp: float) -> np.ndarray:
    """Value of a tree.

    Parameters
    ----------
    label : str
        Topology.
    delta : (S, p) array
    tau : (S,) array
    values : (L, K) array
    max_nodes : int
    stamp : float
        Of the declaration.
    """
    p, n_values = delta.shape[1], values.shape[1]
    value = np.zeros((max_nodes, n_fields(p, n_values)))
    value[len(label) :, 0] = UNUSED
    value[0, -1] = stamp
    split = np.array([node == "S" for node in label])
    at = np.flatnonzero(split)
    value[at, 1] = tau
    value[at, 2 : 2 + p] = delta
    at = np.flatnonzero(~split)
    value[at, 0] = LEAF
    value[at, 1 : 1 + n_values] = values
    return value


def label_of(value: np.ndarray) -> str:
    """Topology of a valid value."""
    return "".join("S" if kind == SPLIT else "L" for kind in value[:, 0] if kind != UNUSED)


@njit(cache=True)
def parse(value, p, n_values, stamp, table, depths):
    """Write the node table and depths of a value; its number of nodes, 0 when it breaks a rule."""
    rows, fields = value.shape
    if value[0, fields - 1] != stamp:
        return 0
    waiting = np.empty(rows + 1, dtype=np.int64)  # splits whose right subtree has yet to come
    height, n_split, n_leaf, nodes, depth = 0, 0, 0, 0, 0
    for at in range(rows):
        kind = value[at, 0]
        if not (kind == SPLIT or kind == LEAF):
            return 0
        used = 1 + n_values
        depths[at] = depth
        nodes = at + 1
        if kind == SPLIT:
            used = 2 + p
            total = 0.0
            for j in range(p):
                weight = value[at, 2 + j]
                if not weight >= 0.0:
                    return 0
                total += weight
            if not (abs(total - 1.0) <= TOLERANCE and value[at, 1] >= 0.0 and value[at, 1] <= 1.0):
                return 0
            table[at, 1] = n_split
            n_split += 1
            waiting[height] = at
            height += 1
            depth += 1
        else:
            for k in range(n_values):
                if not np.isfinite(value[at, 1 + k]):
                    return 0
            table[at, 0], table[at, 1] = -1, n_leaf
            n_leaf += 1
        for k in range(used, fields - (at == 0)):
            if value[at, k] != 0.0:
                return 0
        if kind == LEAF:
            if height == 0:
                break
            height -= 1
            table[waiting[height], 0] = nodes
            depth = depths[waiting[height]] + 1
    if n_leaf != n_split + 1:
        return 0
    for at in range(nodes, rows):
        if value[at, 0] != UNUSED:
            return 0
        for k in range(1, fields):
            if value[at, k] != 0.0:
                return 0
    return nodes


@njit(cache=True)
def summarise(value, p, n_values, stamp):
    """Splits per depth, leaves per depth, (L, K) leaf values; no leaves when a rule is broken."""
    table = np.empty((value.shape[0], 2), dtype=np.int64)
    depths = np.empty(value.shape[0], dtype=np.int64)
    nodes = parse(value, p, n_values, stamp, table, depths)
    splits, leaves = np.zeros(nodes), np.zeros(nodes)
    values = np.empty((0 if nodes == 0 else nodes // 2 + 1, n_values))
    for at in range(nodes):
        if value[at, 0] == SPLIT:
            splits[depths[at]] += 1.0
        else:
            leaves[depths[at]] += 1.0
            values[table[at, 1]] = value[at, 1 : 1 + n_values]
    return splits, leaves, values


@njit(cache=True)
def evaluate(value, X, low, span, h, n_values, stamp):
    """Outputs of a tree at rows of unscaled inputs, (n, K); NaN when the value breaks a rule."""
    n, p = X.shape
    if p != low.size:
        raise ValueError(
            "X has another number of columns than the X the tree was declared with: give it the "
            "same columns in the same order."
        )
    table = np.empty((value.shape[0], 2), dtype=np.int64)
    depths = np.empty(value.shape[0], dtype=np.int64)
    nodes = parse(value, p, n_values, stamp, table, depths)
    if nodes == 0:
        return np.full((n, n_values), np.nan)
    n_split = nodes // 2
    tau, delta = np.empty(n_split), np.empty((n_split, p))
    values = np.empty((n_split + 1, n_values))
    for at in range(nodes):
        number = table[at, 1]
        if value[at, 0] == SPLIT:
            tau[number] = value[at, 1]
            delta[number] = value[at, 2 : 2 + p]
        else:
            values[number] = value[at, 1 : 1 + n_values]
    phi, gates = np.empty((n, n_split + 1)), np.empty((n, n_split))
    leaf_probabilities((X - low) / span, delta, tau, h, table[:nodes], phi, gates)
    return phi @ values
