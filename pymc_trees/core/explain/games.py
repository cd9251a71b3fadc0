"""Shapley values of a product over columns: the game of one leaf.

A leaf returns 1 if every column leads there. With the columns in S taken from the row that is
explained and the others from a background row, the product is 1 if and only if S contains all u
columns that lead there only in the row and none of the v columns that lead there only in the
background row: nu(S) = 1[U in S, V not in S]. The weights below are the Shapley values of such
games, and their Shapley interaction indices.

References
----------
Shapley (1953). A value for n-person games.
Grabisch and Roubens (1999). An axiomatic approach to the concept of interaction among players in
cooperative games. International Journal of Game Theory 28 (interaction index).
Laberge and Pequignot (2022). Understanding interventional TreeSHAP: how and why it works. arXiv
2209.15123 (the same sums by paths).
"""

import math
from typing import NamedTuple

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.compile.pointer import by_pointer
from pymc_trees.core.explain.agreement import holds
from pymc_trees.core.explain.paths import MOST_COLUMNS


@by_pointer
class Weights(NamedTuple):
    """Tables by the numbers of columns u and v."""

    single: np.ndarray
    """(u - 1)! v! / (u + v)!: of a column in U; by v and u, less, of one in V."""
    same: np.ndarray
    """(u - 2)! v! / (u + v - 1)!: of two columns in U; by v and u of two in V."""
    across: np.ndarray
    """(u - 1)! (v - 1)! / (u + v - 1)!: less that, of a column in U and one in V."""


def make_weights() -> Weights:
    """Tables for any path."""
    size = MOST_COLUMNS + 1
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
        if holds(row, s) and not holds(background, s):
            values[s] += gain
        elif holds(background, s) and not holds(row, s):
            values[s] -= loss


@njit(cache=True)
def add_pairs(row, background, share, n_columns, u, v, weights, pairs):
    """The same for the interaction indices of pairs, above the diagonal."""
    in_u, in_v = share * weights.same[u, v], share * weights.same[v, u]
    across = share * weights.across[u, v]
    only_row, only_background = row & ~background, background & ~row
    for s in range(n_columns):
        s_u, s_v = holds(only_row, s), holds(only_background, s)
        if not (s_u or s_v):
            continue
        for t in range(s + 1, n_columns):
            t_u, t_v = holds(only_row, t), holds(only_background, t)
            if s_u and t_u:
                pairs[s, t] += in_u
            elif s_v and t_v:
                pairs[s, t] += in_v
            elif t_u or t_v:
                pairs[s, t] -= across


@njit(cache=True)
def products(row, shares, without, other, n_columns, coefficients):
    """Write the coefficients of t in the product over columns of (share + t [in the row's set]).

    Two columns are left out (-1 for none). The coefficient of t^k sums the products over all S of k
    columns of what S takes from the row and the others from the shares.
    """
    coefficients[:] = 0.0
    coefficients[0] = 1.0
    degree = 0
    for s in range(n_columns):
        if s == without or s == other:
            continue
        inside = holds(row, s)
        for k in range(degree, -1, -1):
            if inside:
                coefficients[k + 1] += coefficients[k]
            coefficients[k] *= shares[s]
        degree += 1
    return degree


@njit(cache=True)
def by_share_single(row, shares, n_columns, coefficients, values):
    """Write Shapley values where columns outside S count with their shares (path-dependent)."""
    for s in range(n_columns):
        degree = products(row, shares, s, -1, n_columns, coefficients)
        values[s] = _mean(coefficients, degree) * ((1.0 if holds(row, s) else 0.0) - shares[s])


@njit(cache=True)
def by_share_pairs(row, shares, n_columns, coefficients, pairs):
    """The same for the interaction indices of pairs, above the diagonal."""
    for s in range(n_columns):
        first = (1.0 if holds(row, s) else 0.0) - shares[s]
        for t in range(s + 1, n_columns):
            degree = products(row, shares, s, t, n_columns, coefficients)
            second = (1.0 if holds(row, t) else 0.0) - shares[t]
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
