"""Cross products of leaves, and of leaves and sparse columns, over the training rows.

Leaves of the trees of all forests are numbered from 0, a tree's consecutively. With B the
membership of rows in leaves, each times the row's factor for the forest, W the precisions of rows
and G sparse columns, these are the entries of B'WB, B'WG and B'Wy.
"""

from abc import ABC, abstractmethod

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.compile.lanes import popcount
from pymc_trees.core.forest.trees import preorder
from pymc_trees.core.soft_forest.trees import leaf_weights

# ------ Dense columns of leaves (weights in soft trees, lines), and their products with sparse ones


@njit(cache=True)
def fill_weights(trees, unit, hard, by, block):
    """Write the weight of each leaf at some rows, times a number for each row.

    Parameters
    ----------
    trees : SoftTrees
    unit, hard
        As in `core.soft_forest.trees.sum_trees`.
    by : (n,) float64
    block : (p, n) float64
        Leaves in preorder, tree by tree.
    """
    n, first = by.size, 0
    path = np.empty(((trees.size.max() + 1) // 2 + 1, n))
    for t in range(trees.size.size):
        end = first + (trees.size[t] + 1) // 2
        path[0, :] = 1.0
        out = block[first:end]
        leaf_weights(trees.column[t], trees.number[t], trees.bandwidth[t], 0, unit, hard, path, out)
        for a in range(first, end):
            for i in range(n):
                block[a, i] *= by[i]
        first = end


@njit(cache=True)
def add_dense_cross(block, column, factor, cross):
    """Add to B'WG: row i of (p, n) ``block`` has ``factor[i]`` in the entry ``column[i]``."""
    for a in range(block.shape[0]):
        for i in range(column.size):
            cross[a, column[i]] += block[a, i] * factor[i]


@njit(cache=True)
def fill_lines(leaf_of, chosen, begin, end, slope, z, by, first_row, block):
    """Write what coefficients of linear leaves are multiplied by at some rows, times ``by``.

    Parameters
    ----------
    leaf_of, chosen
        As in `gram.set_bits`.
    begin, end : (max_nodes,) int64
        The coefficients of each leaf, by node.
    slope : (p,) int64
        Which column of ``z`` a coefficient is the slope of; -1 for an intercept.
    z : (n, d) float64
    by : (rows,) float64
    block : (p, rows) float64
        0 before.
    """
    for t in chosen:
        labels = leaf_of[t]
        for i in range(by.size):
            row = first_row + i
            node = labels[row]
            for c in range(begin[node], end[node]):
                block[c, i] = by[i] if slope[c] < 0 else by[i] * z[row, slope[c]]


# -------------------------------------------------------------------------------------------------


ROWS_AT_ONCE = 512
"""Rows of a block of the dense matrix of leaves."""


class DenseLeaves(ABC):
    """Coefficients of the leaves of some trees of a forest, with columns computed row by row.

    Attributes
    ----------
    start, n_values : int
        The first coefficient among those of all forests, and how many there are.
    mean, sd : (n_values,) float64
        Of their prior.
    """

    start: int
    n_values: int
    mean: np.ndarray
    sd: np.ndarray
    n: int

    @property
    def place(self) -> slice:
        """The coefficients among those of all forests."""
        return slice(self.start, self.start + self.n_values)

    @abstractmethod
    def write(self, part: np.ndarray, rows: slice, root: np.ndarray) -> None:
        """Write rows of sqrt(W) B: (coefficients, rows), given (n,) roots of precisions."""

    @abstractmethod
    def fixed_outputs(self) -> np.ndarray | float:
        """(n,) what the mean has of the forest apart from the coefficients to be drawn."""

    @abstractmethod
    def store(self, u: np.ndarray):
        """State of the forest with new coefficients, of all forests one after the other."""

    def add_products(self, block, rows: slice, root, slots, y, cross, rhs) -> None:
        """Write these leaves' part of a block of rows of sqrt(W) B, and add to B'WG and B'Wy.

        Parameters
        ----------
        block : (coefficients of all forests, rows) float64
        root : (n,) float64
            Square roots of precisions.
        """
        part = block[self.place, : rows.stop - rows.start]
        self.write(part, rows, root)
        root = root[rows]
        rhs[self.place] += part @ (root * y[rows])
        for slot in slots:
            add_dense_cross(part, slot.column[rows], root * slot.factor[rows], cross[self.place])


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
def add_outputs(leaf_of, chosen, values, by, out):
    """Add what some trees contribute to the mean: ``sum_t sum_k values[leaf, k] by[k, i]``.

    Parameters
    ----------
    leaf_of : (m, n)
        The leaf of each row in each tree, as a node.
    chosen : (t,) int64
        The trees.
    values : (max_nodes, d) float64
    by : (d, n) float64
    out : (n,) float64
    """
    for k in range(by.shape[0]):
        column = values[:, k].copy()
        for t in chosen:
            labels = leaf_of[t]
            for i in range(out.size):
                out[i] += column[labels[i]] * by[k, i]


@njit(cache=True)
def set_bits(leaf_of, chosen, number, used, bits):
    """The rows of each leaf, as bits.

    Parameters
    ----------
    leaf_of : (m, n)
    chosen : (t,) int64
    number : (max_nodes,) int64
        The coefficient of each leaf, by node.
    used : (n,) bool
        Rows that are counted.
    bits : (p, words) uint64
        0 before.
    """
    for t in chosen:
        labels = leaf_of[t]
        for i in range(labels.size):
            if used[i]:
                bits[number[labels[i]], i // WORD] |= np.uint64(1) << np.uint64(i % WORD)


@njit(cache=True)
def bits_of_column(column, first, bits):
    """The rows of each entry of a vector, as bits: ``column`` is (n,), from ``first``."""
    for i in range(column.size):
        bits[column[i] - first, i // WORD] |= np.uint64(1) << np.uint64(i % WORD)


@njit(cache=True)
def _shared(a, b):
    """Rows that two sets of bits share."""
    total = 0
    for w in range(a.size):
        total += popcount(a[w] & b[w])
    return total


@njit(cache=True)
def count_pairs(bits, after, gram):
    """The rows that two leaves share, in the lower triangle of ``gram``.

    Parameters
    ----------
    bits : (p, words) uint64
    after : (p,) int64
        The first leaf of the next tree: leaves of one tree share no rows.
    """
    p = bits.shape[0]
    for a in range(p):
        gram[a, a] = _shared(bits[a], bits[a])
        for b in range(a + 1, after[a]):
            gram[b, a] = 0.0
        for b in range(after[a], p):
            gram[b, a] = _shared(bits[a], bits[b])


@njit(cache=True)
def count_cross(bits, columns, by, first, cross):
    """Add to B'WG the rows that leaves share with the entries of a vector, times ``by`` (p,)."""
    for a in range(bits.shape[0]):
        for c in range(columns.shape[0]):
            cross[a, first + c] += by[a] * _shared(bits[a], columns[c])


@njit(cache=True)
def fill_block(leaf_of, chosen, number, weighted, first_row, width, block):
    """A block of rows of the dense matrix sqrt(W) B: coefficient by row.

    Parameters
    ----------
    leaf_of, chosen, number
        As in `set_bits`; a leaf's coefficients are consecutive.
    weighted : (d, n) float64
        What the d coefficients of a row's leaf are multiplied by, times the root of its precision.
    """
    for t in chosen:
        labels = leaf_of[t]
        for k in range(weighted.shape[0]):
            for i in range(width):
                row = first_row + i
                block[number[labels[row]] + k, i] = weighted[k, row]


@njit(cache=True)
def clear_block(leaf_of, chosen, number, d, first_row, width, block):
    """Set what `fill_block` wrote to 0."""
    for t in chosen:
        labels = leaf_of[t]
        for k in range(d):
            for i in range(width):
                block[number[labels[first_row + i]] + k, i] = 0.0


@njit(cache=True)
def add_sums(leaf_of, chosen, number, weighted, y, rhs):
    """Add to B'Wy.

    Parameters
    ----------
    leaf_of, chosen, number
        As in `fill_block`.
    weighted : (d, n) float64
        What the d coefficients of a row's leaf are multiplied by, times its precision.
    y : (n,) float64
    rhs : (p,) float64
    """
    for k in range(weighted.shape[0]):
        product = weighted[k] * y
        for t in chosen:
            labels = leaf_of[t]
            for i in range(y.size):
                rhs[number[labels[i]] + k] += product[i]


@njit(cache=True)
def add_cross(leaf_of, chosen, number, weighted, column, factor, cross):
    """Add to B'WG: ``column`` (n,) int64, an entry of a vector, has ``factor`` (n,) in each row."""
    for k in range(weighted.shape[0]):
        product = weighted[k] * factor
        for t in chosen:
            labels = leaf_of[t]
            for i in range(column.size):
                cross[number[labels[i]] + k, column[i]] += product[i]


@njit(cache=True)
def add_columns(w, index, factor, y, gram, rhs):
    """Add to G'WG, the lower triangle and the upper, and to G'Wy.

    Parameters
    ----------
    w : (n,) or (1,) float64
    index : (n, r) int64
        Columns of G in which a row has entries, ...
    factor : (n, r) float64
        ... and the entries.
    """
    n, r = index.shape
    for i in range(n):
        w_i = w[i] if w.size > 1 else w[0]
        for j in range(r):
            b = w_i * factor[i, j]
            rhs[index[i, j]] += b * y[i]
            for k in range(r):
                gram[index[i, j], index[i, k]] += b * factor[i, k]
