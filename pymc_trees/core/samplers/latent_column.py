"""A random column of X given the trees: the function at all cells of it, and a draw of each row.

Given all else, row i of column z has the density

    p(z) ~ b_i(z) L_i(f(c(z)), z),

with b_i a density whose intervals have known probabilities, c(z) the cell of the cuts in which z
lies, and L_i the likelihood of the row. Where L_i sees z through f alone it is constant in a cell,
so a cell drawn with weights ``b_i(cell) L_i(f(cell))``, and z from b_i within it, are a draw from
p. Otherwise the pair is a proposal with weights ``b_i(cell) L_i(f(cell), z~)``, z~ a point of the
cell that does not depend on the present z, and is accepted with probability

    min(1, (L_i(f', z') / L_i(f', z~')) / (L_i(f, z) / L_i(f, z~))).
"""

import math

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.leaves.latent.augmentations import draw_truncated, log_between
from pymc_trees.core.random import draw_by_weight
from pymc_trees.core.value.evaluate import goes_left, links_of, rules_of

ROOT_HALF = math.sqrt(0.5)
LEAST_MASS = 1e-6
"""Probability of an interval from which on a difference of two numbers near 1 will do."""


@njit(cache=True, nogil=True)
def outputs_by_cell(value, X, X_train, sizes, column, cuts, rows, first, out):
    """Write the outputs of an intact forest at rows of X, for all cells of a column.

    Each tree adds its leaf values where an interval of cells begins and takes them away where it
    ends; running sums over the cells are the function.

    Parameters
    ----------
    X : (n, p) float64
        Rows; the cells of the column are not read.
    cuts : (C - 1,) float64
        Increasing; every cut of the column in the forest is one of them.
    rows : (b,) int64
        Rows of X.
    out : (b, C, K) float64
        Overwritten from the output ``first`` on.
    """
    n_values, n_cells = sizes.n_values, out.shape[1]
    links = links_of(value, sizes)
    rules = rules_of(value, X, X_train, sizes, links.column)
    columns, right = links.column, links.right
    cell_of = np.empty(sizes.max_nodes, dtype=np.int64)
    for k in range(sizes.max_nodes):
        if columns[k] == column:
            cell_of[k] = np.searchsorted(cuts, value[k, 1])
    waiting = np.empty((n_cells, 3), dtype=np.int64)
    for b in range(rows.size):
        i = rows[b]
        for c in range(n_cells):
            for v in range(n_values):
                out[b, c, first + v] = 0.0
        for t in range(sizes.m):
            waiting[0, 0], waiting[0, 1], waiting[0, 2] = links.roots[t], 0, n_cells - 1
            height = 1
            while height > 0:
                height -= 1
                k, low, high = waiting[height, 0], waiting[height, 1], waiting[height, 2]
                while columns[k] >= 0:
                    if columns[k] != column:
                        left = goes_left(X[i, columns[k]], value[k, 1], rules, k, columns[k])
                        k = k + 1 if left else right[k]
                    elif high <= cell_of[k]:
                        k += 1
                    elif low > cell_of[k]:
                        k = right[k]
                    else:
                        waiting[height, 0] = right[k]
                        waiting[height, 1], waiting[height, 2] = cell_of[k] + 1, high
                        height += 1
                        high = cell_of[k]
                        k += 1
                for v in range(n_values):
                    leaf = value[k, 1 + v]
                    out[b, low, first + v] += leaf
                    if high + 1 < n_cells:
                        out[b, high + 1, first + v] -= leaf
        for c in range(1, n_cells):
            for v in range(n_values):
                out[b, c, first + v] += out[b, c - 1, first + v]


@njit(cache=True)
def list_intervals(outputs, merge, tolerance, at, owner, low, high):
    """List the intervals of cells in which the outputs of each row are constant.

    Parameters
    ----------
    outputs : (b, C, K) float64
    merge : bool
        Whether neighbouring cells with the same outputs are one interval.
    tolerance : float
        Differences that running sums may make out of nothing.
    at : (b C, K) float64
        Overwritten with the outputs of each interval.
    owner, low, high : (b C,) int64
        Overwritten with its row, first and last cell.

    Returns
    -------
    int
        Number of intervals.
    """
    n = 0
    for b in range(outputs.shape[0]):
        for c in range(outputs.shape[1]):
            differs = c == 0 or not merge
            if not differs:
                for k in range(outputs.shape[2]):
                    differs |= abs(outputs[b, c, k] - at[n - 1, k]) > tolerance
            if differs:
                owner[n], low[n] = b, c
                for k in range(outputs.shape[2]):
                    at[n, k] = outputs[b, c, k]
                n += 1
            high[n - 1] = c
    return n


@njit(cache=True)
def add_normal_masses(mean, sd, edges, owner, low, high, weights):
    """Add the log probability of each interval under the Normal of its row.

    By differences of the distribution function, each number of which serves two intervals; where
    rounding would be felt, anew.
    """
    row, above = -1, 0.0
    for u in range(weights.size):
        m, s = mean[owner[u]], sd[owner[u]]
        a, b = (edges[low[u]] - m) / s, (edges[high[u] + 1] - m) / s
        below = above if owner[u] == row else 0.0  # the first interval of a row begins at -inf
        row, above = owner[u], 0.5 * math.erfc(-b * ROOT_HALF)
        mass = above - below
        weights[u] += math.log(mass) if mass > LEAST_MASS else log_between(a, b)


@njit(cache=True)
def add_masses(cdf, owner, low, high, weights):
    """The same, given the distribution function of each row at the edges, (b, C + 1)."""
    for u in range(weights.size):
        mass = cdf[owner[u], high[u] + 1] - cdf[owner[u], low[u]]
        weights[u] += math.log(mass) if mass > 0.0 else -np.inf


@njit(cache=True)
def choose_intervals(rng, owner, weights, chosen):
    """Draw an interval of each row by its log weights; -1 where all are 0, or one is NaN.

    The log weights are overwritten.
    """
    u, n = 0, owner.size
    for b in range(chosen.size):
        start = u
        most = -np.inf
        while u < n and owner[u] == b:
            if weights[u] > most or weights[u] != weights[u]:
                most = weights[u]
            u += 1
        chosen[b] = -1
        if not (most > -np.inf and most < np.inf):
            continue
        total = 0.0
        for k in range(start, u):
            weights[k] = math.exp(weights[k] - most)
            total += weights[k]
        point = rng.random() * total
        chosen[b] = draw_by_weight(weights, start, u, point)


@njit(cache=True)
def draw_normals(rng, mean, sd, low, high, out):
    """Draw from Normals between two bounds."""
    for b in range(out.size):
        m, s = mean[b], sd[b]
        drawn = m + s * draw_truncated(rng, (low[b] - m) / s, (high[b] - m) / s)
        out[b] = min(max(drawn, np.nextafter(low[b], np.inf)), high[b])


@njit(cache=True)
def middle_points(mean, sd, edges, owner, low, high, out):
    """A point of each interval: its middle, or of an unbounded one a point near the mean."""
    for u in range(out.size):
        a, b = edges[low[u]], edges[high[u] + 1]
        m, s = mean[owner[u]], sd[owner[u]]
        if a == -np.inf and b == np.inf:
            out[u] = m
        elif a == -np.inf:
            out[u] = min(b, max(m, b - s))
        elif b == np.inf:
            out[u] = max(a, min(m, a + s))
        else:
            out[u] = 0.5 * (a + b)
