"""Statistics of a value for the log-probability of a forest."""

import numpy as np

from pymc_trees.core.columns.design import column_varies, design_of
from pymc_trees.core.columns.mixed import column_of
from pymc_trees.core.compile.cache import njit
from pymc_trees.core.forest.trees import make_stumps, preorder
from pymc_trees.core.priors.cgm import make_prior
from pymc_trees.core.value.encode import decode
from pymc_trees.core.value.fields import (
    BITS,
    LOG_COLUMNS,
    LOG_CUTS,
    TIME_TERMS,
    UNSPLITTABLE,
    is_intact,
)


@njit(cache=True)
def summarise(value, sizes, fingerprint):
    """Counts and terms of the tree prior, and the leaf values, from an intact value.

    Returns
    -------
    split_counts, splittable_counts : (D,) float64
        Split nodes, and leaves that could have split, at each depth.
    leaf_values : (L, K) float64
        Values of all leaves, in preorder.
    log_cuts, log_columns : float
        The certificate's sums; ``log_cuts`` is -inf when the value is not an intact forest.
    time_terms : (3,) float64
        Those of `fields`; zeros for trees without times.
    """
    time_terms = np.zeros(TIME_TERMS)
    if not is_intact(value, sizes.max_nodes, fingerprint):
        return np.zeros(1), np.zeros(1), np.empty((0, sizes.n_values)), -np.inf, 0.0, time_terms
    certificate = value[sizes.max_nodes :].reshape(-1)
    if sizes.timed:
        for k in range(TIME_TERMS):
            time_terms[k] = certificate[sizes.stop - TIME_TERMS + k]
    depth_of = np.empty(sizes.max_nodes, dtype=np.int32)  # a stack of open branches
    leaf_values = np.empty((sizes.max_nodes, sizes.n_values))
    split_counts = np.zeros(sizes.max_nodes + 1)
    splittable_counts = np.zeros(sizes.max_nodes + 1)
    row, leaf, deepest = 0, 0, 0
    for _ in range(sizes.m):
        depth_of[0] = 0
        height = 1
        while height > 0:
            height -= 1
            depth = depth_of[height]
            deepest = max(deepest, depth)
            if value[row, 0] >= 0:
                split_counts[depth] += 1
                depth_of[height] = depth + 1
                depth_of[height + 1] = depth + 1
                height += 2
            else:
                for v in range(sizes.n_values):
                    leaf_values[leaf, v] = value[row, 1 + v]
                word = int(certificate[UNSPLITTABLE + leaf // BITS])
                if (word >> (leaf % BITS)) & 1 == 0:
                    splittable_counts[depth] += 1
                leaf += 1
            row += 1
    deepest += 1
    return (
        split_counts[:deepest].copy(),
        splittable_counts[:deepest].copy(),
        leaf_values[:leaf].copy(),
        certificate[LOG_CUTS],
        certificate[LOG_COLUMNS],
        time_terms,
    )


@njit(cache=True)
def column_choices_of(value, X, grid, offsets, fingerprint, sizes, kinds=None):
    """Chosen columns and the sets they were chosen from, for random split weights.

    Returns
    -------
    chosen : (p,) float64
        Split nodes of each column.
    sets : (s, p) float64
        One row per set: 1 for the columns that vary in a split node; distinct sets.
    set_counts : (s,) float64
        Split nodes with that set.
    """
    p = X.shape[1]
    design = design_of(X, grid, offsets, kinds, np.ones(p))
    trees = make_stumps(
        sizes.max_nodes, sizes.n_values, np.empty((sizes.m, sizes.n_rows), dtype=np.uint32)
    )
    nodes = np.empty(sizes.max_nodes, dtype=np.int32)
    rows = np.empty(sizes.n_rows, dtype=np.uint32)
    buffer = np.empty(sizes.n_rows, dtype=np.uint32)
    chosen = np.zeros(p)
    if not is_intact(value, sizes.max_nodes, fingerprint) or not decode(
        value, design, make_prior(0.5, 0.0, np.ones(p)), sizes, trees, rows, buffer
    ):
        return chosen, np.ones((1, p)), np.zeros(1)
    sets = np.zeros((sizes.max_nodes, p))
    counts = np.zeros(sizes.max_nodes)
    n_sets = 0
    varies = np.zeros(p)
    for t in range(sizes.m):
        for k in range(preorder(trees, trees.roots[t], nodes)):
            top = nodes[k]
            if trees.column[top] < 0:
                continue
            chosen[column_of(design, trees.column[top])] += 1
            _columns_that_vary(trees, design, t, top, rows, buffer, varies)
            index = 0
            while index < n_sets and not np.array_equal(sets[index], varies):
                index += 1
            if index == n_sets:
                sets[index] = varies
                n_sets += 1
            counts[index] += 1
    if n_sets == 0:  # no split nodes: any set of positive weight, counted 0 times
        sets[0] = 1.0
        n_sets = 1
    return chosen, sets[:n_sets].copy(), counts[:n_sets].copy()


@njit(cache=True)
def _columns_that_vary(trees, design, tree, top, rows, buffer, varies):
    n = 0
    for i in range(trees.leaf_of.shape[1]):
        node = trees.leaf_of[tree, i]
        while node != top and trees.parent[node] >= 0:
            node = trees.parent[node]
        if node == top:
            rows[n] = i
            n += 1
    for j in range(varies.size):
        varies[j] = column_varies(design, j, rows, 0, n)
