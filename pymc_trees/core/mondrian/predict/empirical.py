"""Fast approximation: each node predicts the mean and variance of its rows (thesis, 6.3.3).

A point that branches off above a node gets a new parent with the rows of that node, whenever it
does so, and a leaf without rows: it predicts what the node does.
"""

import numpy as np

from pymc_trees.core.compile.borrow import borrowed
from pymc_trees.core.compile.cache import njit
from pymc_trees.core.mondrian.branch import distance
from pymc_trees.core.mondrian.predict.components import MEAN, VAR, WEIGHT, add_components
from pymc_trees.core.mondrian.tree import ROOT, greatest_depth


@njit(cache=True)
def _components(tree, labels, noise, x, out, n):
    """Append the components of a point; how many there are then."""
    column, cut, time, box = tree.column, tree.cut, tree.time, tree.box
    lifetime, n_rows, mean, squares = tree.lifetime[0], labels.n, labels.mean, labels.squares
    j, start, stays = tree.state[ROOT], 0.0, 1.0
    while True:
        end = min(time[j], lifetime)
        eta = distance(box[j], x)
        is_leaf = column[j] < 0
        weight = stays
        if not is_leaf:
            weight = -stays * np.expm1(-eta * (end - start)) if eta > 0.0 else 0.0
        if weight > 0.0:
            # At a leaf a point that branches off and one that does not predict the same.
            out[n, WEIGHT], out[n, MEAN] = weight, mean[j]
            out[n, VAR] = squares[j] / n_rows[j] + noise
            n += 1
            stays -= weight
        if is_leaf or stays <= 0.0:
            return n
        j, start = (tree.left[j] if x[column[j]] <= cut[j] else tree.right[j]), end


@njit(cache=True, nogil=True)
def collect_empirical(tree, labels, noise, X):
    """Components (weight, mean, variance) of all rows one after another; how many each row has."""
    most = greatest_depth(tree) + 2
    out = np.empty((most * X.shape[0], 3))
    counts = np.empty(X.shape[0], dtype=np.int64)
    tree, labels, X, lent = borrowed((tree, labels, X, out))
    n = 0
    for i in range(X.shape[0]):
        stop = _components(tree, labels, noise, X[i], lent, n)
        counts[i] = stop - n
        n = stop
    return out[:n].copy(), counts


@njit(cache=True, nogil=True)
def add_moments_empirical(tree, labels, noise, X, centre, first, second):
    """Add each row's mean and mean square of one tree (6.4), both about ``centre``."""
    out = np.empty((greatest_depth(tree) + 2, 3))
    tree, labels, X, lent = borrowed((tree, labels, X, out))
    for i in range(X.shape[0]):
        n = _components(tree, labels, noise, X[i], lent, 0)
        add_components(out, n, centre, first, second, i)
