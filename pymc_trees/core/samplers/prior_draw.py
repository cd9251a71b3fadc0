"""A whole forest, leaf values included, from its prior."""

import numpy as np
from numba import njit

from pymc_trees.core.forest.design import any_column_varies, design_of
from pymc_trees.core.forest.encode import encode, fit_of
from pymc_trees.core.forest.trees import make_trees, preorder
from pymc_trees.core.leaves.contract import draw_values, n_stats
from pymc_trees.core.priors.cgm import make_prior
from pymc_trees.core.priors.draw import draw_tree


@njit(cache=True)
def draw_forest(rng, trees, design, prior, leaf, nodes, rows, spare):
    """Grow every stump of ``trees`` by the prior and draw all leaf values; False when too large."""
    nothing = np.zeros(n_stats(leaf))
    for t in range(trees.roots.size):
        if not draw_tree(rng, trees, t, design, prior, rows, spare):
            return False
        for k in range(preorder(trees, trees.roots[t], nodes)):
            if trees.column[nodes[k]] < 0:
                draw_values(leaf, rng, nothing, trees.values[nodes[k]])
    return True


@njit(cache=True)
def draw_value(rng, X, grid, offsets, fingerprint, kinds, alpha, beta, weights, leaf, sizes):
    """Encoded forest drawn from the prior; ValueError when it does not fit ``max_nodes``."""
    design = design_of(X, grid, offsets, kinds, weights)
    prior = make_prior(alpha, beta, weights)
    trees = make_trees(sizes.m, sizes.max_nodes, sizes.n_values, sizes.n_rows)
    nodes = np.empty(sizes.max_nodes, dtype=np.int32)
    rows = np.empty(sizes.n_rows, dtype=np.uint32)
    spare = np.empty(sizes.n_rows, dtype=np.uint32)
    if not draw_forest(rng, trees, design, prior, leaf, nodes, rows, spare):
        raise ValueError(
            "A forest drawn from the prior has more nodes than max_nodes: declare it with a larger "
            "max_nodes, or with a smaller alpha or larger beta."
        )
    fit = np.empty((sizes.n_rows, sizes.n_values))
    fit_of(trees, fit)
    return encode(trees, design, sizes, fingerprint, fit, nodes)


@njit(cache=True)
def stumps_value(X, grid, offsets, fingerprint, kinds, weights, centre, sizes):
    """Encoded forest of stumps whose leaves all have the (K,) value ``centre``."""
    design = design_of(X, grid, offsets, kinds, weights)
    trees = make_trees(sizes.m, sizes.max_nodes, sizes.n_values, sizes.n_rows)
    rows = np.arange(sizes.n_rows).astype(np.uint32)
    closed = not any_column_varies(design, rows, 0, sizes.n_rows)
    for t in range(sizes.m):
        trees.values[trees.roots[t]] = centre
        trees.closed[trees.roots[t]] = closed
    fit = np.empty((sizes.n_rows, sizes.n_values))
    fit_of(trees, fit)
    return encode(trees, design, sizes, fingerprint, fit, np.empty(sizes.max_nodes, dtype=np.int32))
