"""A whole soft tree, leaf values included, from its prior."""

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.leaves.contract import draw_values, n_stats
from pymc_trees.core.random import pick
from pymc_trees.core.soft.encode import compute_checksum
from pymc_trees.core.soft.topology import draw_kinds
from pymc_trees.core.value.fields import LEAF, UNUSED


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
