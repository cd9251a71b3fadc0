"""Shares of the variance of a sum of trees when its columns are independent (Sobol 1993).

Under a product distribution, with column j distributed as its cells in X, leaf l is reached with
probability prod_j q_lj, and two leaves jointly with prod_j q_j(l and l'). With v the leaves' values
and sums over all pairs of leaves that share column j,

    var f = sum v v' (prod_i q_i(l and l') - prod_i q_li q_l'i),
    V_j   = sum v v' (q_j(l and l') - q_lj q_l'j) prod_{i != j} q_li q_l'i,
    T_j   = sum v v' (q_j(l and l') - q_lj q_l'j) prod_{i != j} q_i(l and l'),

the variance of E[f | x_j], and the mean variance of f given all other columns. None of them changes
if a constant is subtracted from all leaves of a tree, which avoids cancellation.
"""

from typing import NamedTuple

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.compile.lanes import popcount
from pymc_trees.core.compile.pointer import by_pointer
from pymc_trees.core.explain.paths import centred, paths_of, sides_of
from pymc_trees.core.value.evaluate import links_of, rules_of

WORD = 64


@by_pointer
class Leaves(NamedTuple):
    """All leaves of one or more forests, with the rows that each column leads to them."""

    first: np.ndarray
    """(L + 1,) int64: where the columns of each leaf start."""
    columns: np.ndarray
    """(S,) int64: columns on the path of each leaf, in rising order."""
    through: np.ndarray
    """(S, words) uint64: a bit for each row whose cell of the column leads to the leaf."""
    outputs: np.ndarray
    """(L, K) float64: outputs of the leaf, less their mean over the leaves of its tree."""


@njit(cache=True, nogil=True)
def leaves_of(value, X, X_train, outputs, sizes):
    """`Leaves` of an encoded forest at the rows of X."""
    links = links_of(value, sizes)
    rules = rules_of(value, X, X_train, sizes, links.column)
    n_leaves, n_columns = 0, 0
    for tree in range(sizes.m):
        paths = paths_of(links, tree)
        n_leaves += paths.leaves.size
        n_columns += paths.first_column[-1]
    first, columns = np.zeros(n_leaves + 1, dtype=np.int64), np.empty(n_columns, dtype=np.int64)
    through = np.zeros((n_columns, (X.shape[0] + WORD - 1) // WORD), dtype=np.uint64)
    returned = np.empty((n_leaves, outputs.shape[1]))
    leaf = 0
    for tree in range(sizes.m):
        paths = paths_of(links, tree)
        sides = sides_of(value, X, links, rules, paths.splits)
        own_outputs = centred(outputs, paths.leaves)
        for leaf_of_tree in range(paths.leaves.size):
            start, stop = paths.first_column[leaf_of_tree], paths.first_column[leaf_of_tree + 1]
            path_columns = paths.columns[start:stop]
            order = np.argsort(path_columns)
            first[leaf + 1] = first[leaf] + path_columns.size
            for k in range(path_columns.size):
                columns[first[leaf] + k] = path_columns[order[k]]
                _write_bits(paths, leaf_of_tree, order[k], sides, through[first[leaf] + k])
            returned[leaf] = own_outputs[leaf_of_tree]
            leaf += 1
    return Leaves(first, columns, through, returned)


@njit(cache=True)
def _write_bits(paths, leaf, slot, sides, bits):
    """Write the bits of the rows whose cell of a column leads to a leaf."""
    for i in range(sides.shape[1]):
        inside = True
        for entry in range(paths.start[leaf], paths.start[leaf + 1]):
            if paths.slot[entry] == slot:
                inside &= sides[paths.split[entry], i] == paths.left[entry]
        if inside:
            bits[i // WORD] |= np.uint64(1) << np.uint64(i % WORD)


@njit(cache=True)
def _shared(a, b):
    """Rows in both sets."""
    n = 0
    for k in range(a.size):
        n += popcount(a[k] & b[k])
    return n


@njit(cache=True, nogil=True)
def variance_shares(leaves, n_rows, first_order, total):
    """Write V_j and T_j, (p, K), and return the variances, (K,)."""
    n_leaves, n_outputs = leaves.outputs.shape
    variance = np.zeros(n_outputs)
    share = np.empty(leaves.columns.size)
    alone = np.ones(n_leaves)
    for leaf in range(n_leaves):
        for s in range(leaves.first[leaf], leaves.first[leaf + 1]):
            share[s] = _shared(leaves.through[s], leaves.through[s]) / n_rows
            alone[leaf] *= share[s]
    most = 1
    for leaf in range(n_leaves):
        most = max(most, leaves.first[leaf + 1] - leaves.first[leaf])
    column, joint, product = np.empty(most, dtype=np.int64), np.empty(most), np.empty(most)
    for leaf_a in range(n_leaves):
        for leaf_b in range(leaf_a + 1):
            n_shared, rest = _shared_columns(
                leaves, leaf_a, leaf_b, share, n_rows, column, joint, product
            )
            if n_shared == 0:
                continue
            twice = 1.0 if leaf_a == leaf_b else 2.0
            all_joint, all_product = rest, rest
            for s in range(n_shared):
                all_joint *= joint[s]
                all_product *= product[s]
            for s in range(n_shared):
                rest_joint, rest_product = rest, rest
                for t in range(n_shared):
                    if t != s:
                        rest_joint, rest_product = rest_joint * joint[t], rest_product * product[t]
                excess = twice * (joint[s] - product[s])
                for k in range(n_outputs):
                    v = leaves.outputs[leaf_a, k] * leaves.outputs[leaf_b, k]
                    first_order[column[s], k] += v * excess * rest_product
                    total[column[s], k] += v * excess * rest_joint
            for k in range(n_outputs):
                v = leaves.outputs[leaf_a, k] * leaves.outputs[leaf_b, k]
                variance[k] += v * twice * (all_joint - all_product)
    return variance


@njit(cache=True)
def _shared_columns(leaves, leaf_a, leaf_b, share, n_rows, column, joint, product):
    """Write the columns that two leaves share and their probabilities.

    Returns their number, and the product of the probabilities of all other columns.
    """
    a, b, n_shared, rest = leaves.first[leaf_a], leaves.first[leaf_b], 0, 1.0
    end_a, end_b = leaves.first[leaf_a + 1], leaves.first[leaf_b + 1]
    while a < end_a or b < end_b:
        if b == end_b or (a < end_a and leaves.columns[a] < leaves.columns[b]):
            rest *= share[a]
            a += 1
        elif a == end_a or leaves.columns[b] < leaves.columns[a]:
            rest *= share[b]
            b += 1
        else:
            column[n_shared] = leaves.columns[a]
            joint[n_shared] = _shared(leaves.through[a], leaves.through[b]) / n_rows
            product[n_shared] = share[a] * share[b]
            n_shared, a, b = n_shared + 1, a + 1, b + 1
    return n_shared, rest
