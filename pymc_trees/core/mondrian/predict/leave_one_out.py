"""Predictions of each row from all others, given the tree.

The tree does not depend on the labels. The prediction for a row by a tree of all other rows,
extended by this row, is therefore that of the tree without the row's label in its leaf.
"""

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.mondrian.predict.belief import edge, product


@njit(cache=True, nogil=True)
def add_left_out(tree, labels, belief, y, leaves, first, second):
    """Add each row's mean and mean square, its own label left out; ``leaves`` are the rows'."""
    noise = belief.prior.noise
    n_rows, mean_of = labels.n, labels.mean
    mean_above, var_above = belief.mean_above, belief.var_above
    for i in range(y.size):
        j = leaves[i]
        n = n_rows[j]
        mean, var = mean_above[j], var_above[j] + edge(tree, belief.prior, j)
        if n > 1.0:
            others = mean_of[j] - (y[i] - mean_of[j]) / (n - 1.0)
            mean, var = product(mean, var, others, noise / (n - 1.0))
        first[i] += mean
        second[i] += var + noise + mean * mean
