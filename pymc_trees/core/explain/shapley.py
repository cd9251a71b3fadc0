"""Exact Shapley values of the function of an encoded forest."""

import math
from typing import NamedTuple

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.compile.lanes import popcount
from pymc_trees.core.compile.pointer import by_pointer
from pymc_trees.core.explain.paths import (
    MAX_COLUMNS,
    TABLE,
    contains,
    paths_of,
    sides_of,
    unique_sets,
    write_sets,
)
from pymc_trees.core.soft_forest.encode import BANDWIDTHS
from pymc_trees.core.soft_forest.trees import share_weight, to_unit
from pymc_trees.core.value.evaluate import links_of, rules_of

# ----------------------------------- Shapley values of a product over columns: the game of one leaf
#
# A leaf returns 1 if every column leads there. With the columns in S taken from the row that is
# explained and the others from a background row, the product is 1 if and only if S contains all u
# columns that lead there only in the row and none of the v columns that lead there only in the
# background row: nu(S) = 1[U in S, V not in S]. The weights below are the Shapley values of such
# games, and their Shapley interaction indices.
#
# References
# ----------
# Shapley (1953). A value for n-person games.
# Owen (1972). Multilinear extensions of games. Management Science 18(5).
# Grabisch and Roubens (1999). An axiomatic approach to the concept of interaction among players in
# cooperative games. International Journal of Game Theory 28 (interaction index).
# Laberge and Pequignot (2022). Understanding interventional TreeSHAP: how and why it works. arXiv
# 2209.15123 (the same sums by paths).


@by_pointer
class Weights(NamedTuple):
    """Weights of a game, by its numbers of columns u and v."""

    single: np.ndarray
    """(u - 1)! v! / (u + v)!, of a column in U; its negative by v and u, of a column in V."""
    same: np.ndarray
    """(u - 2)! v! / (u + v - 1)!, of two columns in U; by v and u, of two in V."""
    across: np.ndarray
    """(u - 1)! (v - 1)! / (u + v - 1)!; its negative, of a column in U and one in V."""


def make_weights() -> Weights:
    """Tables for any path."""
    size = MAX_COLUMNS + 1
    tables = np.zeros((3, size, size))
    for u in range(1, size):
        for v in range(size - u):
            tables[0, u, v] = 1 / (u * math.comb(u + v, u))
            if u > 1:
                tables[1, u, v] = 1 / ((u - 1) * math.comb(u + v - 1, v))
            if v > 0:
                tables[2, u, v] = 1 / (u * math.comb(u + v - 1, u))
    return Weights(*tables)


@njit(cache=True)
def add_single(row, background, share, n_columns, u, v, weights, values):
    """Add the Shapley values of the game of a row's set and a background row's to ``values``."""
    gain, loss = share * weights.single[u, v], share * weights.single[v, u]
    for s in range(n_columns):
        if contains(row, s) and not contains(background, s):
            values[s] += gain
        elif contains(background, s) and not contains(row, s):
            values[s] -= loss


@njit(cache=True)
def add_pairs(row, background, share, n_columns, u, v, weights, pairs):
    """Add the interaction indices of pairs, above the diagonal."""
    in_u, in_v = share * weights.same[u, v], share * weights.same[v, u]
    across = share * weights.across[u, v]
    only_row, only_background = row & ~background, background & ~row
    for s in range(n_columns):
        s_u, s_v = contains(only_row, s), contains(only_background, s)
        if not (s_u or s_v):
            continue
        for t in range(s + 1, n_columns):
            t_u, t_v = contains(only_row, t), contains(only_background, t)
            if s_u and t_u:
                pairs[s, t] += in_u
            elif s_v and t_v:
                pairs[s, t] += in_v
            elif t_u or t_v:
                pairs[s, t] -= across


@njit(cache=True)
def products(row, shares, without, other, n_columns, coefficients):
    """Write the coefficients of t in the product over columns of (share + t [in the row's set]).

    Two columns are left out (-1 for none). The coefficient of t^k is the sum, over all S of k
    columns, of the product with the columns in S from the row and the others from the shares.
    """
    coefficients[:] = 0.0
    coefficients[0] = 1.0
    degree = 0
    for s in range(n_columns):
        if s == without or s == other:
            continue
        inside = contains(row, s)
        for k in range(degree, -1, -1):
            if inside:
                coefficients[k + 1] += coefficients[k]
            coefficients[k] *= shares[s]
        degree += 1
    return degree


@njit(cache=True)
def path_dependent_single(row, shares, n_columns, coefficients, values):
    """Write path-dependent Shapley values: columns outside S count with their shares."""
    for s in range(n_columns):
        degree = products(row, shares, s, -1, n_columns, coefficients)
        values[s] = _mean(coefficients, degree) * ((1.0 if contains(row, s) else 0.0) - shares[s])


@njit(cache=True)
def path_dependent_pairs(row, shares, n_columns, coefficients, pairs):
    """Write the interaction indices of pairs, above the diagonal."""
    for s in range(n_columns):
        first = (1.0 if contains(row, s) else 0.0) - shares[s]
        for t in range(s + 1, n_columns):
            degree = products(row, shares, s, t, n_columns, coefficients)
            second = (1.0 if contains(row, t) else 0.0) - shares[t]
            pairs[s, t] = _mean(coefficients, degree) * first * second


@njit(cache=True)
def _mean(coefficients, degree):
    """Sum over k of the coefficients times k! (degree - k)! / (degree + 1)!."""
    total, weight = 0.0, 1.0 / (degree + 1)
    for k in range(degree + 1):
        total += weight * coefficients[k]
        if k < degree:
            weight *= (k + 1) / (degree - k)
    return total


# -------------------------------------------------------------------------- The leaf of a soft tree
#
# The weight of a leaf is the product of the gates on its path. Let a_j be the product of those on
# column j at the row that is explained, b_j the same at a background row. With the columns in S
# taken from the row and the others from the background row the leaf counts
#
#     nu(S) = prod_{j in S} a_j  prod_{j not in S} b_j.
#
# By subsets. The mean of nu(S) over background rows is A(S) M(not S), where A(S) is the product
# of a_j over S and M(T) the mean product of b_j over T. A game is the sum over all S of nu(S)
# times the game that is 1 at S and 0 elsewhere, that of a hard leaf with U = S and V = not S
# (`games`). So
#
#     phi_i = sum_S A(S) c_i(S),    c_i(S) = M(not S) phi_i(U = S, V = not S),             (1)
#
# and c is computed once for all explained rows. There are 2^D terms for D columns.
#
# By quadrature, if these are too many. Shapley values are integrals of the derivatives of the
# multilinear extension along its diagonal (Owen 1972); that of nu is F(q) = prod_j (q_j a_j + (1
# - q_j) b_j), so that for each background row
#
#     phi_i = (a_i - b_i) int_0^1 prod_{j != i} (t a_j + (1 - t) b_j) dt,                  (2)
#
# and interaction indices those of its second derivatives (Grabisch and Roubens 1999),
#
#     I_ik = (a_i - b_i) (a_k - b_k) int_0^1 prod_{j != i, k} (t a_j + (1 - t) b_j) dt.    (3)
#
# The integrands are polynomials of degree D - 1 and D - 2, for which Gauss-Legendre quadrature
# with ceil(D / 2) points is exact.


@by_pointer
class Quadrature(NamedTuple):
    """Gauss-Legendre rules on [0, 1], by the number of columns D."""

    points: np.ndarray
    """(D, ceil(D / 2) and unused)."""
    shares: np.ndarray
    """The same shape: weights of the points."""


def make_quadrature() -> Quadrature:
    """Rules for any path."""
    points, shares = np.zeros((2, MAX_COLUMNS + 1, (MAX_COLUMNS + 1) // 2))
    for d in range(1, MAX_COLUMNS + 1):
        order = (d + 1) // 2
        x, w = np.polynomial.legendre.leggauss(order)
        points[d, :order], shares[d, :order] = (x + 1) / 2, w / 2
    return Quadrature(points, shares)


@njit(cache=True)
def prefers_subsets(n_columns, n_background):
    """Whether the terms of eq. 1 fit a table and are fewer than those of eq. 2."""
    return n_columns <= TABLE and 1 << n_columns <= 4 * n_background


@njit(cache=True)
def products_of(factors, out):
    """Write the product of (D,) factors over each set of columns, ``prod_{s in S} f_s``."""
    out[0] = 1.0
    for s in range(factors.size):
        half = 1 << s
        for subset in range(half):
            out[half + subset] = out[subset] * factors[s]


@njit(cache=True)
def by_subset(background, weights, of_single, of_pairs):
    """Write c of eq. 1 for all sets of columns; return the mean weight of the background rows.

    Parameters
    ----------
    background : (B, D) float64
        b_j of each background row.
    of_single : (2^D, D) float64
        Zeros.
    of_pairs : (2^D, D, D) or (0, D, D) float64
        Zeros; written above the diagonal.
    """
    n_columns, n_sets = background.shape[1], of_single.shape[0]
    all_columns = np.uint64(n_sets - 1)
    means, products = np.zeros(n_sets), np.empty(n_sets)
    for z in range(background.shape[0]):
        products_of(background[z], products)
        means += products
    means /= background.shape[0]
    for k in range(n_sets):
        inside = np.uint64(k)
        u = popcount(inside)
        share = means[n_sets - 1 - k]
        game = (inside, all_columns ^ inside, share, n_columns, u, n_columns - u, weights)
        add_single(*game, of_single[k])
        if of_pairs.shape[0]:
            add_pairs(*game, of_pairs[k])
    return means[n_sets - 1]


@njit(cache=True)
def sum_subsets(row, of_single, of_pairs, products, single, pairs):
    """Write the values of a row, eq. 1, and its interaction indices above the diagonal."""
    products_of(row, products)
    single[:] = 0.0
    pairs[:] = 0.0
    for k in range(products.size):
        for s in range(row.size):
            single[s] += products[k] * of_single[k, s]
        if of_pairs.shape[0]:
            for s in range(row.size):
                for t in range(s + 1, row.size):
                    pairs[s, t] += products[k] * of_pairs[k, s, t]


@njit(cache=True)
def mean_product(background):
    """Mean weight of the background rows, (B, D) factors."""
    total = 0.0
    for z in range(background.shape[0]):
        total += background[z].prod()
    return total / background.shape[0]


@njit(cache=True)
def integrate(row, background, quadrature, with_pairs, mixed, after, single, pairs):
    """Write the means over background rows of eq. 2 and, above the diagonal, of eq. 3.

    Parameters
    ----------
    mixed : (D,) float64
        Overwritten: the factors of the integrand.
    after : (D + 1,) float64
        Overwritten: their products over the slots s, s + 1, ...
    """
    d = row.size
    single[:] = 0.0
    pairs[:] = 0.0
    for z in range(background.shape[0]):
        for q in range((d + 1) // 2):
            t = quadrature.points[d, q]
            share = quadrature.shares[d, q] / background.shape[0]
            after[d] = 1.0
            for s in range(d - 1, -1, -1):
                mixed[s] = t * row[s] + (1.0 - t) * background[z, s]
                after[s] = after[s + 1] * mixed[s]
            before = share
            for s in range(d):
                gain = before * (row[s] - background[z, s])
                single[s] += gain * after[s + 1]  # eq. 2
                if with_pairs:
                    for k in range(s + 1, d):
                        pairs[s, k] += gain * (row[k] - background[z, k]) * after[k + 1]  # eq. 3
                        gain *= mixed[k]
                before *= mixed[s]


# -------------------------------------------------------------------------------------------------


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
