"""Fast approximation: each node predicts the mean and variance of its rows (thesis, 6.3.3).

A point that branches off above a node, at any time, gets a new parent with the rows of that node,
and a leaf without rows: its prediction is that of the node.
"""

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.compile.dispatch import register
from pymc_trees.core.mondrian.branch import distance
from pymc_trees.core.mondrian.predict.belief import Hierarchy
from pymc_trees.core.mondrian.predict.components import MEAN, VAR, WEIGHT
from pymc_trees.core.mondrian.tree import ROOT


@njit(cache=True)
def _components(tree, labels, belief, x, buffers, n):
    column, cut, time, box = tree.column, tree.cut, tree.time, tree.box
    lifetime, n_rows, mean, squares = tree.lifetime[0], labels.n, labels.mean, labels.squares
    out, noise = buffers.out, belief.noise
    j, start, stays = tree.state[ROOT], 0.0, 1.0
    while True:
        end = min(time[j], lifetime)
        eta = distance(box[j], x)
        is_leaf = column[j] < 0
        weight = stays
        if not is_leaf:
            weight = -stays * np.expm1(-eta * (end - start)) if eta > 0.0 else 0.0
        if weight > 0.0:
            # At a leaf the prediction is the same whether or not the point branches off.
            out[n, WEIGHT], out[n, MEAN] = weight, mean[j]
            out[n, VAR] = squares[j] / n_rows[j] + noise
            n += 1
            stays -= weight
        if is_leaf or stays <= 0.0:
            return n
        j, start = (tree.left[j] if x[column[j]] <= cut[j] else tree.right[j]), end


register(Hierarchy, append_components=_components)
