"""Partial dependence of a sum of trees on one column, on two, and on all but one, at its own rows.

For a leaf with value v let a_j be 1 if a row's column j leads there, else 0. The partial dependence
on the columns in S adds v prod_{j in S} a_j times the share of rows that all other columns of the
path lead there (Friedman 2001, section 8.2). A leaf with no column in S adds a constant.
"""

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.explain.paths import (
    centred,
    contains,
    paths_of,
    sides_of,
    unique_sets,
    write_sets,
)
from pymc_trees.core.value.evaluate import links_of, rules_of


@njit(cache=True, nogil=True)
def add_dependence(value, X, X_train, outputs, sizes, position, single, but_one, pairs):
    """Add the contribution of each leaf at the rows of X, up to constants.

    Parameters
    ----------
    outputs : (max_nodes, K) float64
        What each leaf, a row of the value, returns.
    position : (p,) int64
        Index of each column among the q requested ones, or -1.
    single : (n, q, K) float64
        Partial dependence on one column.
    but_one : (n, q, K) float64
        f minus the partial dependence on all columns but one.
    pairs : (n, q, q, K) float64
        Above the diagonal, partial dependence on two minus that on each.
    """
    links = links_of(value, sizes)
    rules = rules_of(value, X, X_train, sizes, links.column)
    sets = np.empty(X.shape[0], dtype=np.uint64)
    for tree in range(sizes.m):
        paths = paths_of(links, tree)
        sides = sides_of(value, X, links, rules, paths.splits)
        own_outputs = centred(outputs, paths.leaves)
        for leaf in range(paths.leaves.size):
            n_columns = write_sets(paths, leaf, sides, sets)
            unique, inverse, counts = unique_sets(sets, n_columns)
            first = paths.first_column[leaf]
            requested = position[paths.columns[first : first + n_columns]]
            output = own_outputs[leaf]
            _add_leaf(
                unique, inverse, counts / sets.size, requested, output, single, but_one, pairs
            )


@njit(cache=True)
def _add_leaf(unique, inverse, shares, requested, output, single, but_one, pairs):
    n_columns = requested.size
    first_bit = np.uint64(1)
    all_columns = (first_bit << np.uint64(n_columns)) - first_bit
    for s in range(n_columns):
        if requested[s] < 0:
            continue
        bit = first_bit << np.uint64(s)
        others, own = (
            _fraction_leading(unique, shares, all_columns ^ bit),
            _fraction_leading(unique, shares, bit),
        )
        for i in range(inverse.size):
            row = unique[inverse[i]]
            lone = others if contains(row, s) else 0.0
            rest = (1.0 if row == all_columns else 0.0) - (
                own if (row | bit) == all_columns else 0.0
            )
            for k in range(output.size):
                single[i, requested[s], k] += output[k] * lone
                but_one[i, requested[s], k] += output[k] * rest
        for t in range(n_columns):
            if t == s or requested[t] <= requested[s]:
                continue
            second = first_bit << np.uint64(t)
            both = _fraction_leading(unique, shares, all_columns ^ bit ^ second)
            others_t = _fraction_leading(unique, shares, all_columns ^ second)
            for i in range(inverse.size):
                row = unique[inverse[i]]
                a, b = contains(row, s), contains(row, t)
                excess = both if a and b else 0.0
                excess -= (others if a else 0.0) + (others_t if b else 0.0)
                for k in range(output.size):
                    pairs[i, requested[s], requested[t], k] += output[k] * excess


@njit(cache=True)
def _fraction_leading(unique, shares, wanted):
    """Share of rows whose wanted columns all lead to the leaf."""
    total = 0.0
    for k in range(unique.size):
        if unique[k] & wanted == wanted:
            total += shares[k]
    return total
