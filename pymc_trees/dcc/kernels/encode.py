"""The value of a soft tree: one float64 array (max_nodes, 2 + max(p + 1, K)), nodes in preorder.

====== =============================== =========================== ==================
field  split                           leaf                        unused row
====== =============================== =========================== ==================
0      `SPLIT` = 0                     `LEAF` = -1                 `UNUSED` = -2
1      threshold tau in [0, 1]         first leaf value            0
2 ..   weights Delta of the p inputs   further leaf values         0
last   checksum in row 0, 0 in every other row
====== =============================== =========================== ==================

Fields that a row does not use hold 0. K is 1 for a normal leaf and the number of classes for a
Dirichlet leaf. The checksum, of 52 bits, is that (`core.value.fields`) of every other entry and
of the declaration's fingerprint: training inputs, sharpness and leaf. A value whose checksum does
not match evaluates to NaN and has log-probability -inf. Only `encode` and `prior_draw` write it.
"""

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.leaves.contract import draw_values, n_stats
from pymc_trees.core.random import pick
from pymc_trees.core.soft_forest.trees import check_cells
from pymc_trees.core.value.fields import LEAF, UNUSED, checksum
from pymc_trees.dcc.kernels.gates import leaf_probabilities

# ----------------------------------------- Topologies of binary trees: their labels and their prior
#
# A topology is named by its nodes in preorder, ``S`` for a split and ``L`` for a leaf: ``"L"`` is
# the stump, ``"SLL"`` one split, ``"SSLLL"`` has its left child split and ``"SLSLL"`` its right
# one.


STUMP = "L"


def n_splits(label: str) -> int:
    """Number of split nodes."""
    return len(label) // 2


def node_table(label: str) -> np.ndarray:
    """(nodes, 2) int64: right child (-1 for a leaf), and place among the splits or the leaves.

    The left child of a split is the next node.
    """
    table = np.empty((len(label), 2), dtype=np.int64)
    waiting: list[int] = []  # splits whose left subtree is not finished
    counts = {"S": 0, "L": 0}
    for at, node in enumerate(label):
        table[at] = -1, counts[node]
        counts[node] += 1
        if node == "S":
            waiting.append(at)
        elif waiting and at + 1 < len(label):
            table[waiting.pop(), 0] = at + 1
    return table


def node_depths(label: str) -> np.ndarray:
    """(nodes,) int64 depths, 0 for the root."""
    depths, waiting = np.empty(len(label), dtype=np.int64), [0]
    for at, node in enumerate(label):
        depths[at] = waiting.pop()
        if node == "S":
            waiting += [depths[at] + 1] * 2
    return depths


def split_probability(depth, alpha: float, beta: float):
    """Prior probability that a node splits (below eq. 6)."""
    return alpha * (1.0 + depth) ** -beta


def log_prior(label: str, alpha: float, beta: float) -> float:
    """Log of p(m), eq. 6; the probabilities of all topologies sum to one.

    There is no factor for valid splits: a soft gate can always be placed.
    """
    p = split_probability(node_depths(label), alpha, beta)
    is_split = np.array([node == "S" for node in label])
    return float(np.log(np.where(is_split, p, 1.0 - p)).sum())


@njit(cache=True)
def draw_kinds(rng, alpha, beta, max_nodes):
    """Whether each node splits, in preorder, of a topology drawn from eq. 6."""
    kinds = np.zeros(max_nodes, dtype=np.bool_)
    waiting = np.zeros(max_nodes + 1, dtype=np.int64)  # depths of nodes to come
    nodes, height = 0, 1
    while height > 0:
        height -= 1
        depth = waiting[height]
        if nodes + height + 1 > max_nodes:
            raise ValueError(
                "A soft tree drawn from the prior has more nodes than max_nodes: declare it with "
                "a larger max_nodes, or with a smaller alpha or larger beta."
            )
        if rng.random() < alpha * (1.0 + depth) ** -beta:
            kinds[nodes] = True
            waiting[height] = waiting[height + 1] = depth + 1
            height += 2
        nodes += 1
    return kinds[:nodes]


def draw_topology(rng: np.random.Generator, alpha: float, beta: float, max_nodes: int) -> str:
    """Topology from the prior of eq. 6; ValueError when it has more than ``max_nodes`` nodes."""
    return "".join("S" if split else "L" for split in draw_kinds(rng, alpha, beta, max_nodes))


# ---------------------------------------------------------- Maximal number of nodes of a soft tree


TAIL = 1e-9
"""Prior probability of a tree that does not fit."""
LEAST, MOST = 32, 256
"""Minimal and maximal default number of leaves."""


def leaf_count_law(alpha: float, beta: float, depths: int = 64) -> np.ndarray:
    """Prior probability of 0, 1, .. `MOST` leaves; the remaining probability is that of more."""
    law = np.zeros(MOST + 1)
    law[1] = 1.0
    for depth in range(depths, -1, -1):
        p = split_probability(depth, alpha, beta)
        law = p * np.convolve(law, law)[: MOST + 1]
        law[1] += 1.0 - p
    return law


def default_max_nodes(alpha: float, beta: float) -> int:
    """Nodes of the largest tree that the prior draws more often than once in 1e9."""
    tail = 1.0 - np.cumsum(leaf_count_law(alpha, beta))
    enough = np.flatnonzero(tail < TAIL)
    if len(enough) == 0:
        raise ValueError(
            f"alpha={alpha}, beta={beta}: the prior draws trees of more than {MOST} leaves; give a "
            "larger beta, or max_nodes."
        )
    return 2 * max(LEAST, int(enough[0])) - 1


# -------------------------------------------------------------------------------------------------


SPLIT = 0
LARGEST = np.finfo(np.float64).max


def n_fields(p: int, n_values: int) -> int:
    """Entries of a row."""
    return 2 + max(p + 1, n_values)


@njit(cache=True)
def compute_checksum(value, fingerprint):
    """Checksum of a C-contiguous value; the checksum entry itself is left out."""
    return checksum(value, value.shape[1] - 1, fingerprint)


@njit(cache=True)
def is_intact(value, fingerprint):
    """Whether nothing was written into the value since it was made for this declaration."""
    return value[0, -1] == compute_checksum(value, fingerprint)


def encode(label: str, delta, tau, values, max_nodes: int, fingerprint: float) -> np.ndarray:
    """Value of a tree.

    Parameters
    ----------
    label : str
        Topology.
    delta : (S, p) array
    tau : (S,) array
    values : (L, K) array
    max_nodes : int
    fingerprint : float
        Of the declaration.
    """
    p, n_values = delta.shape[1], values.shape[1]
    value = np.zeros((max_nodes, n_fields(p, n_values)))
    value[len(label) :, 0] = UNUSED
    split = np.array([node == "S" for node in label])
    at = np.flatnonzero(split)
    value[at, 1] = tau
    value[at, 2 : 2 + p] = delta
    at = np.flatnonzero(~split)
    value[at, 0] = LEAF
    value[at, 1 : 1 + n_values] = values
    value[0, -1] = compute_checksum(value, fingerprint)
    return value


def label_of(value: np.ndarray) -> str:
    """Topology of an intact value."""
    return "".join("S" if kind == SPLIT else "L" for kind in value[:, 0] if kind != UNUSED)


@njit(cache=True)
def parse(value, fingerprint):
    """Node table and depths of a value; its number of nodes, 0 when it is not intact."""
    table = np.empty((value.shape[0], 2), dtype=np.int64)
    depths = np.empty(value.shape[0], dtype=np.int64)
    if not is_intact(value, fingerprint):
        return table, depths, 0
    waiting = np.empty(value.shape[0], dtype=np.int64)  # splits whose right subtree has yet to come
    height, n_split, n_leaf, depth = 0, 0, 0, 0
    for at in range(value.shape[0]):
        depths[at] = depth
        if value[at, 0] == SPLIT:
            table[at, 1] = n_split
            n_split += 1
            waiting[height] = at
            height += 1
            depth += 1
        else:
            table[at, 0], table[at, 1] = -1, n_leaf
            n_leaf += 1
            if height == 0:
                return table, depths, at + 1
            height -= 1
            table[waiting[height], 0] = at + 1
            depth = depths[waiting[height]] + 1
    return table, depths, 0


@njit(cache=True)
def summarise(value, n_values, fingerprint):
    """Splits per depth, leaves per depth, (L, K) leaf values; no leaves when it is not intact."""
    table, depths, nodes = parse(value, fingerprint)
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
def evaluate(value, X, low, span, h, n_values, fingerprint):
    """Outputs of a tree at rows of unscaled inputs, (n, K); NaN when it is not intact."""
    n, p = X.shape
    if p != low.size:
        raise ValueError(
            "X has another number of columns than the X the tree was declared with: give it the "
            "same columns in the same order."
        )
    check_cells(X)
    table, _, nodes = parse(value, fingerprint)
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
    phi, gates = np.empty((n_split + 1, n)), np.empty((n_split, n))
    scaled = np.ascontiguousarray(((X - low) / span).T)
    scaled = np.clip(scaled, -LARGEST, LARGEST)  # infinity times a weight of 0 is no number
    leaf_probabilities(scaled, delta, tau, h, table[:nodes], phi, gates)
    return np.ascontiguousarray(phi.T) @ values


# ----------------------------------------- A whole soft tree, leaf values included, from its prior


@njit(cache=True)
def draw_value(rng, alpha, beta, leaf, p, n_values, max_nodes, fingerprint, by_index):
    """Encoded tree (`encode`): topology by eq. 6, tau uniform on [0, 1].

    Delta is uniform on the simplex or, by index, on its corners.
    """
    value = np.zeros((max_nodes, 2 + max(p + 1, n_values)))
    nothing = np.zeros(n_stats(leaf))
    kinds = draw_kinds(rng, alpha, beta, max_nodes)
    for at in range(kinds.size):
        if kinds[at]:
            value[at, 1] = rng.random()
            if by_index:
                value[at, 2 + pick(rng, p)] = 1.0
                continue
            total = 0.0
            for j in range(p):
                value[at, 2 + j] = rng.standard_exponential()
                total += value[at, 2 + j]
            for j in range(p):
                value[at, 2 + j] /= total
        else:
            value[at, 0] = LEAF
            draw_values(leaf, rng, nothing, value[at, 1 : 1 + n_values])
    value[kinds.size :, 0] = UNUSED
    value[0, -1] = compute_checksum(value, fingerprint)
    return value
