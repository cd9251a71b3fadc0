"""Fast approximation: each node predicts the mean and variance of its rows (thesis, 6.3.3).

A point that branches off above a node gets a new parent with the rows of that node, whenever it
does so, and a leaf without rows: it predicts what the node does.
"""

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.mondrian.branch import distance
from pymc_trees.core.mondrian.tree import ROOT, greatest_depth


@njit(cache=True, nogil=True)
def collect_empirical(tree, labels, noise, X):
    """Components (weight, mean, variance) of all rows one after another; how many each row has."""
    column, cut, box, left, right = tree.column, tree.cut, tree.box, tree.left, tree.right
    time, lifetime, root = tree.time, tree.lifetime[0], tree.state[ROOT]
    n_rows, mean, squares = labels.n, labels.mean, labels.squares
    most = greatest_depth(tree) + 2
    out = np.empty((most * X.shape[0], 3))
    counts = np.empty(X.shape[0], dtype=np.int64)
    n = 0
    for i in range(X.shape[0]):
        x, before = X[i], n
        j, start, stays = root, 0.0, 1.0
        while True:
            end = min(time[j], lifetime)
            eta = distance(box[j], x)
            is_leaf = column[j] < 0
            weight = stays
            if not is_leaf:
                weight = -stays * np.expm1(-eta * (end - start)) if eta > 0.0 else 0.0
            if weight > 0.0:
                # At a leaf a point that branches off and one that does not predict the same.
                out[n, 0], out[n, 1] = weight, mean[j]
                out[n, 2] = squares[j] / n_rows[j] + noise
                n += 1
                stays -= weight
            if is_leaf or stays <= 0.0:
                break
            j, start = (left[j] if x[column[j]] <= cut[j] else right[j]), end
        counts[i] = n - before
    return out[:n].copy(), counts


@njit(cache=True, nogil=True)
def add_moments_empirical(tree, labels, noise, X, centre, first, second):
    """Add each row's mean and mean square of one tree (6.4), both about ``centre``."""
    column, cut, box, left, right = tree.column, tree.cut, tree.box, tree.left, tree.right
    time, lifetime, root = tree.time, tree.lifetime[0], tree.state[ROOT]
    n_rows, mean, squares = labels.n, labels.mean, labels.squares
    for i in range(X.shape[0]):
        x = X[i]
        j, start, stays = root, 0.0, 1.0
        while True:
            end = min(time[j], lifetime)
            eta = distance(box[j], x)
            is_leaf = column[j] < 0
            weight = stays
            if not is_leaf:
                weight = -stays * np.expm1(-eta * (end - start)) if eta > 0.0 else 0.0
            if weight > 0.0:
                away = mean[j] - centre
                first[i] += weight * away
                second[i] += weight * (squares[j] / n_rows[j] + noise + away * away)
                stays -= weight
            if is_leaf or stays <= 0.0:
                break
            j, start = (left[j] if x[column[j]] <= cut[j] else right[j]), end
