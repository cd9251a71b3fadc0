"""Exact Shapley values of the function of an encoded forest."""

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.compile.lanes import popcount
from pymc_trees.core.explain.games import (
    add_pairs,
    add_single,
    by_subset,
    integrate,
    mean_product,
    path_dependent_pairs,
    path_dependent_single,
    prefers_subsets,
    sum_subsets,
)
from pymc_trees.core.explain.paths import paths_of, sides_of, unique_sets, write_sets
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
        Whether columns outside S follow both branches, in proportion to the rows ``X[n:]`` at the
        node (Lundberg, Erion and Lee 2018, algorithm 1). Otherwise they take the values of each of
        these rows in turn, and the mean is explained.
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
            n_columns = write_sets(paths, leaf, sides, sets)
            output = outputs[paths.leaves[leaf]]
            columns = paths.columns[paths.first_column[leaf] : paths.first_column[leaf + 1]]
            unique, inverse, _ = unique_sets(sets[:n], n_columns)
            of_single = np.zeros((unique.size, n_columns))
            of_pairs = np.zeros((unique.size if pairs.shape[0] else 0, n_columns, n_columns))
            if by_path:
                mean = _path_dependent(paths, leaf, sides[:, n:], unique, of_single, of_pairs)
            else:
                mean = _interventional(sets[n:], unique, weights, of_single, of_pairs)
            for k in range(output.size):
                base[k] += mean * output[k]
            for i in range(n):
                add_leaf(values, i, columns, output, of_single[inverse[i]])
            for i in range(pairs.shape[0]):
                add_leaf_pairs(pairs, i, columns, output, of_pairs[inverse[i]])


@njit(cache=True)
def _interventional(background, unique, weights, of_single, of_pairs):
    """Write the values of the sets of rows against all sets of the background.

    Returns the share of background rows that reach the leaf.
    """
    n_columns = of_single.shape[1]
    all_columns = (np.uint64(1) << np.uint64(n_columns)) - np.uint64(1)
    background_sets, _, counts = unique_sets(background, n_columns)
    mean = 0.0
    for b in range(background_sets.size):
        share = counts[b] / background.size
        if background_sets[b] == all_columns:
            mean += share
        for k in range(unique.size):
            if (unique[k] | background_sets[b]) != all_columns:
                continue  # a column leads neither row to the leaf
            u = popcount(unique[k] & ~background_sets[b])
            v = popcount(background_sets[b] & ~unique[k])
            if u + v == 0:
                continue
            game = (unique[k], background_sets[b], share, n_columns, u, v, weights)
            add_single(*game, of_single[k])
            if of_pairs.shape[0]:
                add_pairs(*game, of_pairs[k])
    return mean


@njit(cache=True)
def _path_dependent(paths, leaf, sides, unique, of_single, of_pairs):
    """Write the values of the sets of rows where other columns follow both branches.

    Returns the share of background rows that reach the leaf.
    """
    n_columns = of_single.shape[1]
    shares, coefficients = np.empty(n_columns), np.empty(n_columns + 1)
    mean = _shares(paths, leaf, sides, shares)
    for k in range(unique.size):
        path_dependent_single(unique[k], shares, n_columns, coefficients, of_single[k])
        if of_pairs.shape[0]:
            path_dependent_pairs(unique[k], shares, n_columns, coefficients, of_pairs[k])
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
    """Write the share of rows that follow a path at the splits of each column; return the product.

    The share at a node is among the rows that reach it.
    """
    shares[:] = 1.0
    reach = np.ones(sides.shape[1], dtype=np.bool_)
    n_reach = sides.shape[1]
    product = 1.0
    for entry in range(paths.start[leaf], paths.start[leaf + 1]):
        sent_left, left, n_below = sides[paths.split[entry]], paths.left[entry], 0
        for i in range(reach.size):
            if reach[i]:
                reach[i] = sent_left[i] == left
                n_below += reach[i]
        share = n_below / n_reach if n_reach > 0 else 0.5
        shares[paths.slot[entry]] *= share
        product *= share
        n_reach = n_below
    return product


# --------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def soft_shapley(value, X, n, declared, outputs, sizes, weights, quadrature, values, pairs, base):
    """Add the Shapley values of the rows ``X[:n]`` against each of the rows ``X[n:]``.

    As in f, a gate that sends less than `core.soft_forest.trees.TINY` to a side sends nothing. Only
    f truncates products of several gates, within the error bound given there.

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
            explained, background = factors[:n], factors[n:]
            game = (explained, columns, output, weights, quadrature, values, pairs)
            mean = _add_values(background, *game)
            for k in range(output.size):
                base[k] += mean * output[k]


@njit(cache=True)
def _gates(value, unit, hard, bandwidth, splits):
    """(S, rows) gates of each split node: the weights to the left and to the right."""
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
def _add_values(background, explained, columns, output, weights, quadrature, values, pairs):
    """Add the contribution of a leaf to all rows; return its mean weight over the background."""
    d, with_pairs = columns.size, pairs.shape[0] > 0
    single, both = np.empty(d), np.empty((d, d))
    if prefers_subsets(d, background.shape[0]):
        of_single = np.zeros((1 << d, d))
        of_pairs = np.zeros((1 << d if with_pairs else 0, d, d))
        products = np.empty(1 << d)
        mean = by_subset(background, weights, of_single, of_pairs)
        for i in range(explained.shape[0]):
            sum_subsets(explained[i], of_single, of_pairs, products, single, both)
            _add(values, pairs, i, columns, output, single, both)
        return mean
    mixed, after = np.empty(d), np.empty(d + 1)
    for i in range(explained.shape[0]):
        integrate(explained[i], background, quadrature, with_pairs, mixed, after, single, both)
        _add(values, pairs, i, columns, output, single, both)
    return mean_product(background)


@njit(cache=True)
def _add(values, pairs, i, columns, output, single, both):
    """Add a leaf's values to those of a row."""
    add_leaf(values, i, columns, output, single)
    if pairs.shape[0]:
        add_leaf_pairs(pairs, i, columns, output, both)
