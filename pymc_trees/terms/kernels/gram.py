"""Cross products of leaves, and of leaves and sparse columns, over the training rows.

Leaves of the trees of all forests are numbered from 0, a tree's consecutively. With B the
membership of rows in leaves, each times the row's factor for the forest, W the precisions of rows
and G sparse columns, these are the entries of B'WB, B'WG and B'Wy.
"""

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.compile.lanes import popcount
from pymc_trees.core.forest.trees import preorder

WORD = 64
"""Rows in a word of bits."""


@njit(cache=True)
def number_leaves(trees, chosen, nodes, number, first):
    """Numbers of the leaves of some trees, in preorder.

    Parameters
    ----------
    chosen : (t,) int64
        The trees.
    nodes : (max_nodes,) int32
        Overwritten.
    number : (max_nodes,) int64
        The number of each leaf, by node.
    first : (t + 1,) int64
        The first number of each tree, and how many there are.

    Returns
    -------
    leaves : (p,) int64
        The node of each number.
    """
    p = 0
    leaves = np.empty(trees.column.size, dtype=np.int64)
    for k in range(chosen.size):
        first[k] = p
        for place in range(preorder(trees, trees.roots[chosen[k]], nodes)):
            node = nodes[place]
            if trees.column[node] < 0:
                number[node] = p
                leaves[p] = node
                p += 1
    first[chosen.size] = p
    return leaves[:p].copy()


@njit(cache=True)
def number_rows(leaf_of, chosen, number, out):
    """The number of each row's leaf in each of some trees: ``out`` is (t, n)."""
    for k in range(chosen.size):
        labels = leaf_of[chosen[k]]
        for i in range(labels.size):
            out[k, i] = number[labels[i]]


@njit(cache=True)
def set_bits(rows_of, used, bits):
    """The rows of each leaf, as bits.

    Parameters
    ----------
    rows_of : (t, n) int64
        The number of each row's leaf.
    used : (n,) bool
        Rows that are counted.
    bits : (p, words) uint64
        0 before.
    """
    for t in range(rows_of.shape[0]):
        for i in range(rows_of.shape[1]):
            if used[i]:
                bits[rows_of[t, i], i // WORD] |= np.uint64(1) << np.uint64(i % WORD)


@njit(cache=True)
def count_pairs(bits, after, gram):
    """The rows that two leaves share, in the lower triangle of ``gram``.

    Parameters
    ----------
    bits : (p, words) uint64
    after : (p,) int64
        The first leaf of the next tree: leaves of one tree share no rows.
    """
    p, words = bits.shape
    for a in range(p):
        gram[a, a] = 0.0
        for w in range(words):
            gram[a, a] += popcount(bits[a, w])
        for b in range(a + 1, after[a]):
            gram[b, a] = 0.0
        for b in range(after[a], p):
            total = 0
            for w in range(words):
                total += popcount(bits[a, w] & bits[b, w])
            gram[b, a] = total


@njit(cache=True)
def fill_block(rows_of, weighted, first_row, width, block):
    """A block of rows of the dense matrix sqrt(W) B: coefficient by row.

    Parameters
    ----------
    rows_of : (t, n) int64
        The first coefficient of each row's leaf.
    weighted : (n, d) float64
        What the d coefficients of a row's leaf are multiplied by, times the root of its precision.
    """
    for t in range(rows_of.shape[0]):
        for i in range(width):
            row = first_row + i
            for k in range(weighted.shape[1]):
                block[rows_of[t, row] + k, i] = weighted[row, k]


@njit(cache=True)
def clear_block(rows_of, d, first_row, width, block):
    """Set what `fill_block` wrote to 0."""
    for t in range(rows_of.shape[0]):
        for i in range(width):
            for k in range(d):
                block[rows_of[t, first_row + i] + k, i] = 0.0


@njit(cache=True)
def add_cross(rows_of, weighted, index, factor, y, cross, rhs):
    """Add to B'WG and B'Wy.

    Parameters
    ----------
    rows_of : (t, n) int64
        The first coefficient of each row's leaf.
    weighted : (n, d) float64
        What the d coefficients of a row's leaf are multiplied by, times its precision.
    index : (n, r) int64
        Columns of G in which a row has entries, ...
    factor : (n, r) float64
        ... and the entries.
    y : (n,) float64
    cross : (p, K) float64
    rhs : (p,) float64
    """
    n, r = index.shape
    for t in range(rows_of.shape[0]):
        for i in range(n):
            for k in range(weighted.shape[1]):
                place, b = rows_of[t, i] + k, weighted[i, k]
                rhs[place] += b * y[i]
                for j in range(r):
                    cross[place, index[i, j]] += b * factor[i, j]


@njit(cache=True)
def add_columns(w, index, factor, y, gram, rhs):
    """Add to G'WG, the lower triangle and the upper, and to G'Wy."""
    n, r = index.shape
    for i in range(n):
        w_i = w[i] if w.size > 1 else w[0]
        for j in range(r):
            b = w_i * factor[i, j]
            rhs[index[i, j]] += b * y[i]
            for k in range(r):
                gram[index[i, j], index[i, k]] += b * factor[i, k]
