"""Partial dependence of a sum of trees on one column, on two, and on all but one, at its own rows.

For a leaf with value v let a_j be 1 if a row's column j leads there, else 0. The partial dependence
on the columns in S adds v prod_{j in S} a_j times the share of rows that all other columns of the
path lead there (Friedman 2001, section 8.2). A leaf with no column in S adds a constant.
"""

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.explain.paths import agree, centred, distinct, holds, paths_of, sides_of
from pymc_trees.core.value.evaluate import links_of, rules_of


@njit(cache=True, nogil=True)
def add_dependence(value, X, X_train, outputs, sizes, place, single, but_one, pairs):
    """Add the contribution of each leaf at the rows of X, up to constants.

    Parameters
    ----------
    outputs : (max_nodes, K) float64
        What each leaf, a row of the value, returns.
    place : (p,) int64
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
            n_columns = agree(paths, leaf, sides, sets)
            known, kind, counts = distinct(sets, n_columns)
            first = paths.first_column[leaf]
            asked = place[paths.columns[first : first + n_columns]]
            output = own_outputs[leaf]
            _add_leaf(known, kind, counts / sets.size, asked, output, single, but_one, pairs)


@njit(cache=True)
def _add_leaf(known, kind, shares, asked, output, single, but_one, pairs):
    n_columns = asked.size
    one = np.uint64(1)
    every = (one << np.uint64(n_columns)) - one
    for s in range(n_columns):
        if asked[s] < 0:
            continue
        bit = one << np.uint64(s)
        others, own = _share_of(known, shares, every ^ bit), _share_of(known, shares, bit)
        for i in range(kind.size):
            row = known[kind[i]]
            lone = others if holds(row, s) else 0.0
            rest = (1.0 if row == every else 0.0) - (own if (row | bit) == every else 0.0)
            for k in range(output.size):
                single[i, asked[s], k] += output[k] * lone
                but_one[i, asked[s], k] += output[k] * rest
        for t in range(n_columns):
            if t == s or asked[t] <= asked[s]:
                continue
            second = one << np.uint64(t)
            both = _share_of(known, shares, every ^ bit ^ second)
            others_t = _share_of(known, shares, every ^ second)
            for i in range(kind.size):
                row = known[kind[i]]
                a, b = holds(row, s), holds(row, t)
                excess = both if a and b else 0.0
                excess -= (others if a else 0.0) + (others_t if b else 0.0)
                for k in range(output.size):
                    pairs[i, asked[s], asked[t], k] += output[k] * excess


@njit(cache=True)
def _share_of(known, shares, wanted):
    """Share of rows all of whose wanted columns lead to the leaf."""
    total = 0.0
    for at in range(known.size):
        if known[at] & wanted == wanted:
            total += shares[at]
    return total
