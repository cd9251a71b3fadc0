"""From a particle to a tree of the forest."""

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.forest.edit import fell_tree, split_leaf


@njit(cache=True)
def plant(trees, tree, particles, c, stats, nodes):
    """Make particle ``c`` the tree; False, with an invalid tree, if the pool is full."""
    root = trees.roots[tree]
    fell_tree(trees, tree, nodes)
    nodes[0] = root
    rows, leaf_of = particles.rows, trees.leaf_of
    for k in range(particles.n_nodes[c]):
        node = nodes[k]
        start, stop = particles.start[c, k], particles.stop[c, k]
        trees.count[node] = stop - start
        trees.unsplittable[node] = particles.unsplittable[c, k]
        trees.rate[node] = particles.rate[c, k]
        for d in range(stats.shape[1]):
            stats[node, d] = particles.stats[c, k, d]
        column = particles.column[c, k]
        if column < 0:
            for i in range(start, stop):
                leaf_of[tree, rows[c, i]] = node
            continue
        if not split_leaf(trees, node, column, particles.cut[c, k]):
            return False
        trees.log_cut[node] = particles.log_cut[c, k]
        trees.log_column[node] = particles.log_column[c, k]
        left = particles.left[c, k]
        trees.time[node] = particles.begin[c, left]
        nodes[left] = trees.left[node]
        nodes[left + 1] = trees.right[node]
    return True
