"""Maximal number of nodes of a soft tree."""

import numpy as np

from pymc_trees.core.soft.topology import split_probability

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
