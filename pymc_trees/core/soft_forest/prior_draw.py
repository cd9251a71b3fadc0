"""A whole forest of soft trees from its prior, and the stumps that chains start from."""

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.soft_forest.encode import encode
from pymc_trees.core.soft_forest.prior import (
    draw_bandwidth,
    draw_column,
    draw_cut,
    split_probability,
)
from pymc_trees.core.soft_forest.trees import make_links, make_soft_trees
from pymc_trees.core.value.fields import LEAF


@njit(cache=True)
def draw_tree(rng, trees, t, prior, mean, sd, room, links):
    """Draw a tree with leaf values; False if it has more than the maximal number of nodes."""
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
