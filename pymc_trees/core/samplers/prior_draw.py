"""A whole forest, leaf values included, from its prior."""

import numpy as np

from pymc_trees.core.columns.design import float_design
from pymc_trees.core.compile.cache import njit
from pymc_trees.core.forest.edit import reset_tree
from pymc_trees.core.forest.trees import make_trees, plant_stumps, preorder
from pymc_trees.core.leaves.contract import draw_values, n_stats, prior_at
from pymc_trees.core.leaves.path import write_path
from pymc_trees.core.order.contract import is_ordered
from pymc_trees.core.priors.contract import node_summary
from pymc_trees.core.priors.draw import draw_tree
from pymc_trees.core.priors.mondrian import make_mondrian
from pymc_trees.core.value.encode import encode

MOST = 100_000
"""Maximal number of draws of a tree until its leaf values are in order."""


@njit(cache=True)
def draw_forest(rng, trees, design, prior, leaf, nodes, rows, spare, order=None):
    """Grow every stump of ``trees`` from the prior and draw all leaf values; False if too large.

    A tree whose leaf values are not in ``order`` is drawn again, with them (`order.contract`).
    """
    nothing = np.zeros(n_stats(leaf))
    for t in range(trees.roots.size):
        for trial in range(MOST):
            if not draw_tree(rng, trees, t, design, prior, rows, spare):
                return False
            for k in range(preorder(trees, trees.roots[t], nodes)):
                if trees.column[nodes[k]] < 0:
                    write_path(leaf, design, trees, nodes[k], nothing)
                    draw_values(leaf, rng, nothing, trees.values[nodes[k]])
            if is_ordered(order, trees, t):
                break
            if trial == MOST - 1:
                raise ValueError(
                    "None of 100,000 trees drawn from the prior had leaf values in the order that "
                    "monotone asks for: declare a prior of smaller trees, by a smaller alpha or "
                    "larger beta, or a shorter lifetime."
                )
            reset_tree(trees, t, nodes)
    return True


@njit(cache=True)
def draw_value(rng, design, prior, leaf, outputs, sizes, fingerprint, order=None):
    """Encoded forest drawn from the prior; ValueError if it does not fit ``max_nodes``.

    Parameters
    ----------
    leaf : leaf model
        Leaf values are drawn from its prior.
    outputs : leaf model
        Leaf model of the outputs at the training rows; may be the same.
    order : order, optional
        Constraint on leaf values.
    """
    leaf_of = np.empty((sizes.m, sizes.n_rows), dtype=np.uint32)
    trees = plant_stumps(sizes.max_nodes, sizes.n_values, leaf_of)
    nodes = np.empty(sizes.max_nodes, dtype=np.int32)
    rows = np.empty(sizes.n_rows, dtype=np.uint32)
    spare = np.empty(sizes.n_rows, dtype=np.uint32)
    complete = prior_at(leaf, outputs)
    if not draw_forest(rng, trees, design, prior, complete, nodes, rows, spare, order):
        raise ValueError(
            "A forest drawn from the prior has more nodes than max_nodes: declare it with a larger "
            "max_nodes, or a prior of smaller trees: a smaller alpha or larger beta, a shorter "
            "lifetime."
        )
    return encode(trees, design, prior, sizes, fingerprint, nodes)


def stumps_value(design, prior, centre, spread, sizes, fingerprint):
    """Encoded forest of stumps whose leaves have (V,) values, ``centre`` plus and minus ``spread``.

    Uses only kernels that a step needs anyway, since chains start here: less to compile.
    """
    design = design._replace(varies=design.varies & (prior.weights > 0))
    trees = make_trees(sizes.m, sizes.max_nodes, sizes.n_values, sizes.n_rows)
    rows = np.arange(sizes.n_rows, dtype=np.uint32)
    unsplittable, rate = node_summary(prior, design, rows, 0, sizes.n_rows)
    trees.values[trees.roots] = centre + np.resize([[1.0], [-1.0]], (sizes.m, 1)) * spread
    trees.unsplittable[trees.roots] = unsplittable
    trees.rate[trees.roots] = rate
    nodes = np.empty(sizes.max_nodes, dtype=np.int32)
    return encode(trees, design, prior, sizes, fingerprint, nodes)


@njit(cache=True)
def mean_nodes(rng, X, lifetimes):
    """Mean number of nodes of trees of Mondrian processes, one of each lifetime."""
    n, p = X.shape
    design = float_design(X, np.empty(0), np.empty(0, dtype=np.int64), np.ones(p))
    rows, spare = np.empty(n, dtype=np.uint32), np.empty(n, dtype=np.uint32)
    nodes = np.empty(2 * n - 1, dtype=np.int32)
    total = 0
    for lifetime in lifetimes:
        trees = plant_stumps(2 * n - 1, 1, np.empty((1, n), dtype=np.uint32))
        draw_tree(rng, trees, 0, design, make_mondrian(lifetime, 0.0, np.ones(p)), rows, spare)
        total += preorder(trees, 0, nodes)
    return total / lifetimes.size
