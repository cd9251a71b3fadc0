"""Exact Shapley values of the function of an encoded forest."""

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.explain.games import (
    add_pairs,
    add_single,
    by_share_pairs,
    by_share_single,
    by_subset,
    integrate,
    mean_product,
    sum_subsets,
    takes_subsets,
)
from pymc_trees.core.explain.paths import agree, distinct, paths_of, sides_of, size_of
from pymc_trees.core.soft_forest.encode import BANDWIDTHS
from pymc_trees.core.soft_forest.trees import share_weight
from pymc_trees.core.soft_forest.unit import to_unit
from pymc_trees.core.value.evaluate import links_of, rules_of


@njit(cache=True, nogil=True)
def shapley(value, X, n, X_train, by_path, outputs, sizes, weights, values, pairs, base):
    """Add the Shapley values of the rows ``X[:n]`` against the rows ``X[n:]``.

    Parameters
    ----------
    by_path : bool
        Whether columns that are not taken from the explained row follow both branches, by the
        shares of the rows ``X[n:]`` that do at that node (Lundberg, Erion and Lee 2018, algorithm
        1). Otherwise they are taken from each of these rows in turn, and the mean is explained.
    outputs : (max_nodes, K) float64
        What each leaf, a row of the value, returns.
    weights : Weights
    values : (n, p, K) float64
        Of single columns.
    pairs : (n, p, p, K) or (0, p, p, K) float64
        Interaction indices above the diagonal; none if there are no rows.
    base : (K,) float64
        Value of the game if no column is taken from the row.
    """
    links = links_of(value, sizes)
    rules = rules_of(value, X, X_train, sizes, links.column)
    sets = np.empty(X.shape[0], dtype=np.uint64)
    for tree in range(sizes.m):
        paths = paths_of(links, tree)
        sides = sides_of(value, X, links, rules, paths.splits)
        for leaf in range(paths.leaves.size):
            n_columns = agree(paths, leaf, sides, sets)
            output = outputs[paths.leaves[leaf]]
            columns = paths.columns[paths.first_column[leaf] : paths.first_column[leaf + 1]]
            known, kind, _ = distinct(sets[:n], n_columns)
            of_single = np.zeros((known.size, n_columns))
            of_pairs = np.zeros((known.size if pairs.shape[0] else 0, n_columns, n_columns))
            if by_path:
                mean = _by_shares(paths, leaf, sides[:, n:], known, of_single, of_pairs)
            else:
                mean = _against(sets[n:], known, weights, of_single, of_pairs)
            for k in range(output.size):
                base[k] += mean * output[k]
            for i in range(n):
                add_leaf(values, i, columns, output, of_single[kind[i]])
            for i in range(pairs.shape[0]):
                add_leaf_pairs(pairs, i, columns, output, of_pairs[kind[i]])


@njit(cache=True)
def _against(background, known, weights, of_single, of_pairs):
    """Write the values of the sets of rows against all sets of the background.

    Returns the share of background rows that come to the leaf.
    """
    n_columns = of_single.shape[1]
    every = (np.uint64(1) << np.uint64(n_columns)) - np.uint64(1)
    others, _, counts = distinct(background, n_columns)
    mean = 0.0
    for other in range(others.size):
        share = counts[other] / background.size
        if others[other] == every:
            mean += share
        for at in range(known.size):
            if (known[at] | others[other]) != every:  # a column of neither leads to the leaf
                continue
            u = size_of(known[at] & ~others[other])
            v = size_of(others[other] & ~known[at])
            if u + v == 0:
                continue
            given = (known[at], others[other], share, n_columns, u, v, weights)
            add_single(*given, of_single[at])
            if of_pairs.shape[0]:
                add_pairs(*given, of_pairs[at])
    return mean


@njit(cache=True)
def _by_shares(paths, leaf, sides, known, of_single, of_pairs):
    """Write the values of the sets of rows if other columns follow both branches.

    Returns the share of background rows that come to the leaf.
    """
    n_columns = of_single.shape[1]
    shares, coefficients = np.empty(n_columns), np.empty(n_columns + 1)
    mean = _shares(paths, leaf, sides, shares)
    for at in range(known.size):
        by_share_single(known[at], shares, n_columns, coefficients, of_single[at])
        if of_pairs.shape[0]:
            by_share_pairs(known[at], shares, n_columns, coefficients, of_pairs[at])
    return mean


@njit(cache=True)
def add_leaf(values, i, columns, output, of_single):
    """Add a leaf's share to a row."""
    for s in range(columns.size):
        for k in range(output.size):
            values[i, columns[s], k] += of_single[s] * output[k]


@njit(cache=True)
def add_leaf_pairs(pairs, i, columns, output, of_pairs):
    """Add a leaf's share to the pairs of a row."""
    for s in range(columns.size):
        for t in range(s + 1, columns.size):
            low, high = min(columns[s], columns[t]), max(columns[s], columns[t])
            for k in range(output.size):
                pairs[i, low, high, k] += of_pairs[s, t] * output[k]


@njit(cache=True)
def _shares(paths, leaf, sides, shares):
    """Write the share of rows that go on where each column of a path splits; return their product.

    The share at a node is that of the rows that reach it.
    """
    shares[:] = 1.0
    reach = np.ones(sides.shape[1], dtype=np.bool_)
    n_reach = sides.shape[1]
    product = 1.0
    for entry in range(paths.start[leaf], paths.start[leaf + 1]):
        way, left, n_on = sides[paths.split[entry]], paths.left[entry], 0
        for i in range(reach.size):
            if reach[i]:
                reach[i] = way[i] == left
                n_on += reach[i]
        share = n_on / n_reach if n_reach > 0 else 0.5
        shares[paths.slot[entry]] *= share
        product *= share
        n_reach = n_on
    return product


# --------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def soft_shapley(value, X, n, declared, outputs, sizes, weights, quadrature, values, pairs, base):
    """Add the Shapley values of the rows ``X[:n]`` against the rows ``X[n:]``, each in turn.

    A gate that sends less than `core.soft_forest.trees.TINY` to a side sends nothing there, as in
    f; f also truncates products of several gates below it, with an error within the bound given
    there.

    Parameters
    ----------
    declared : tuple
        Knots, heights and offsets of the map of the columns, and which columns are hard.
    outputs : (max_nodes, K) float64
        Contribution of each leaf, a row of the value, at full weight.
    sizes : SoftSizes
    weights : Weights
    quadrature : Quadrature
    values, pairs, base
        As of `core.explain.shapley.shapley`.
    """
    knots, heights, offsets, hard = declared
    unit = to_unit(X, knots, heights, offsets)
    bandwidths = value[sizes.max_nodes :].copy().reshape(-1)[BANDWIDTHS:]
    links = links_of(value, sizes)
    for tree in range(sizes.m):
        paths = paths_of(links, tree)
        left, right = _gates(value, unit, hard, bandwidths[tree], paths.splits)
        for leaf in range(paths.leaves.size):
            factors = _factors(paths, leaf, left, right)
            output = outputs[paths.leaves[leaf]]
            columns = paths.columns[paths.first_column[leaf] : paths.first_column[leaf + 1]]
            known, others = factors[:n], factors[n:]
            given = (known, columns, output, weights, quadrature, values, pairs)
            mean = _add_values(others, *given)
            for k in range(output.size):
                base[k] += mean * output[k]


@njit(cache=True)
def _gates(value, unit, hard, bandwidth, splits):
    """(S, rows) weights that each split node sends left and right, given the row is there."""
    n = unit.shape[1]
    left, right = np.empty((splits.size, n)), np.empty((splits.size, n))
    whole, tail = np.ones(n), np.empty(n)
    for s in range(splits.size):
        column, cut = int(value[splits[s], 0]), value[splits[s], 1]
        share_weight(unit[column], cut, bandwidth, hard[column], whole, left[s], right[s], tail)
    return left, right


@njit(cache=True)
def _factors(paths, leaf, left, right):
    """(rows, D) product of the gates on each column of the path of a leaf."""
    n_columns = paths.first_column[leaf + 1] - paths.first_column[leaf]
    factors = np.ones((left.shape[1], n_columns))
    for entry in range(paths.start[leaf], paths.start[leaf + 1]):
        split, slot = paths.split[entry], paths.slot[entry]
        gate = left[split] if paths.left[entry] else right[split]
        for i in range(gate.size):
            factors[i, slot] *= gate[i]
    return factors


@njit(cache=True)
def _add_values(others, known, columns, output, weights, quadrature, values, pairs):
    """Add the contribution of a leaf to all rows; return its mean weight over the background."""
    d, with_pairs = columns.size, pairs.shape[0] > 0
    single, both = np.empty(d), np.empty((d, d))
    if takes_subsets(d, others.shape[0]):
        of_single = np.zeros((1 << d, d))
        of_pairs = np.zeros((1 << d if with_pairs else 0, d, d))
        products = np.empty(1 << d)
        mean = by_subset(others, weights, of_single, of_pairs)
        for i in range(known.shape[0]):
            sum_subsets(known[i], of_single, of_pairs, products, single, both)
            _add(values, pairs, i, columns, output, single, both)
        return mean
    mixed, after = np.empty(d), np.empty(d + 1)
    for i in range(known.shape[0]):
        integrate(known[i], others, quadrature, with_pairs, mixed, after, single, both)
        _add(values, pairs, i, columns, output, single, both)
    return mean_product(others)


@njit(cache=True)
def _add(values, pairs, i, columns, output, single, both):
    """Add a leaf's values to those of a row."""
    add_leaf(values, i, columns, output, single)
    if pairs.shape[0]:
        add_leaf_pairs(pairs, i, columns, output, both)
