"""Exact Shapley values of the function of an encoded forest of soft trees."""

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.explain.gated import (
    by_subset,
    integrate,
    mean_product,
    sum_subsets,
    takes_subsets,
)
from pymc_trees.core.explain.paths import paths_of
from pymc_trees.core.explain.shapley import add_leaf, add_leaf_pairs
from pymc_trees.core.soft_forest.fields import BANDWIDTHS
from pymc_trees.core.soft_forest.gates import share_weight
from pymc_trees.core.soft_forest.unit import to_unit
from pymc_trees.core.value.evaluate import links_of


@njit(cache=True, nogil=True)
def soft_shapley(value, X, n, declared, outputs, sizes, weights, quadrature, values, pairs, base):
    """Add the Shapley values of the rows ``X[:n]`` against the rows ``X[n:]``, each in turn.

    A gate that sends less than `core.soft_forest.gates.TINY` to a side sends nothing there, as in
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
