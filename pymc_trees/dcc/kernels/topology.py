"""Topologies of binary trees: their labels and their prior.

A topology is named by its nodes in preorder, ``S`` for a split and ``L`` for a leaf: ``"L"`` is the
stump, ``"SLL"`` one split, ``"SSLLL"`` has its left child split and ``"SLSLL"`` its right one.
"""

import numpy as np

from pymc_trees.core.compile.cache import njit

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
