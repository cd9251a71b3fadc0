"""The function of an encoded forest at rows of which only some columns are known.

At a split on a column that is not known both branches are followed, weighted by the shares of the
training rows in the node that go there. The output of a tree is the weighted sum over the leaves
that are reached.
"""

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.value.evaluate import goes_left, links_of, rules_of


@njit(cache=True, nogil=True)
def marginal(value, X, X_train, sizes, known):
    """Values of the leaves, summed over the trees, at the rows of X: (S, n, V).

    Parameters
    ----------
    value : (rows, fields) float64
        An intact encoded forest.
    X_train : (n_rows, p) float64
        Rows that the forest was declared with.
    known : (S, p) bool
        Which columns are known, for each of S results.
    """
    links = links_of(value, sizes)
    rules = rules_of(value, X, X_train, sizes, links.column)
    share = left_shares(value, X_train, links, rules, sizes)
    found = np.zeros((known.shape[0], X.shape[0], sizes.n_values))
    waiting = np.empty(sizes.max_nodes, dtype=np.int64)
    weights = np.empty(sizes.max_nodes)
    for s in range(known.shape[0]):
        for t in range(sizes.m):
            for i in range(X.shape[0]):
                waiting[0], weights[0] = links.roots[t], 1.0
                height = 1
                while height > 0:
                    height -= 1
                    k, weight = waiting[height], weights[height]
                    while links.column[k] >= 0:
                        column = links.column[k]
                        if known[s, column]:
                            left = goes_left(X[i, column], value[k, 1], rules, k, column)
                            k = k + 1 if left else links.right[k]
                            continue
                        waiting[height] = links.right[k]
                        weights[height] = weight * (1.0 - share[k])
                        height += 1
                        weight *= share[k]
                        k += 1
                    for v in range(sizes.n_values):
                        found[s, i, v] += weight * value[k, 1 + v]
    return found


@njit(cache=True)
def left_shares(value, X_train, links, rules, sizes):
    """(max_nodes,) share of the training rows in each split node that go left; 0 elsewhere."""
    rows, left = np.zeros(sizes.max_nodes), np.zeros(sizes.max_nodes)
    for t in range(sizes.m):
        for i in range(X_train.shape[0]):
            k = links.roots[t]
            while links.column[k] >= 0:
                column = links.column[k]
                rows[k] += 1.0
                if goes_left(X_train[i, column], value[k, 1], rules, k, column):
                    left[k] += 1.0
                    k += 1
                else:
                    k = links.right[k]
    return left / np.maximum(rows, 1.0)
