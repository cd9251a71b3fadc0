"""Posterior of the mean of each node: Gaussian belief propagation.

Hierarchical Gaussian prior (thesis, 6.3): ``mu_root ~ N(mu_H, phi_root)``, ``mu_j ~ N(mu_parent,
phi_j)``, ``y ~ N(mu_leaf, noise)``, with ``phi_j = rest(start) - rest(end)`` over the time in which
the node has no split, and ``rest(t) = gamma_1 (1 - logistic(gamma_2 t))`` the variance to come.

Messages are kept as mean and variance. No message is without information, since each node has seen
rows, and a variance may be 0 without a division by it.
"""

from typing import NamedTuple

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.mondrian.tree import LEAVES, ROOT, start_and_end


class Hierarchy(NamedTuple):
    """Settings of the prior."""

    mean: float
    """mu_H."""
    gamma_1: float
    gamma_2: float
    noise: float
    """Variance of a label about the mean of its leaf."""


class Messages(NamedTuple):
    """Exact belief: for each node the messages from below and from everything else."""

    prior: Hierarchy
    mean_below: np.ndarray
    """(nodes,) of mu_j, from the rows of the node."""
    var_below: np.ndarray
    mean_above: np.ndarray
    """(nodes,) of mu_parent, from the prior and all rows but the node's."""
    var_above: np.ndarray


@njit(cache=True)
def rest(prior, time):
    """Prior variance that remains after ``time``."""
    return prior.gamma_1 / (1.0 + np.exp(prior.gamma_2 * time))


@njit(cache=True)
def edge(tree, prior, node):
    """Prior variance phi_j of a node's mean about its parent's."""
    start, end = start_and_end(tree, node)
    return rest(prior, start) - rest(prior, end)


@njit(cache=True)
def product(mean, var, other_mean, other_var):
    """Mean and variance of the product of two normal densities."""
    total = var + other_var
    if total == 0.0:
        return 0.5 * (mean + other_mean), 0.0
    share = var / total
    return mean + share * (other_mean - mean), share * other_var


@njit(cache=True, nogil=True)
def send_messages(tree, labels, prior):
    """Belief propagation, from the leaves to the root and back."""
    column, left, right = tree.column, tree.left, tree.right
    room = column.size
    mean_below, var_below = np.empty(room), np.empty(room)
    mean_above, var_above = np.empty(room), np.empty(room)
    order = np.empty(2 * tree.state[LEAVES], dtype=np.int64)
    order[0] = tree.state[ROOT]
    n = 1
    for k in range(order.size - 1):
        node = order[k]
        if column[node] >= 0:
            order[n], order[n + 1] = left[node], right[node]
            n += 2
    for k in range(n - 1, -1, -1):
        node = order[k]
        if column[node] < 0:
            mean_below[node] = labels.mean[node]
            var_below[node] = prior.noise / labels.n[node]
        else:
            a, b = left[node], right[node]
            mean_below[node], var_below[node] = product(
                mean_below[a],
                var_below[a] + edge(tree, prior, a),
                mean_below[b],
                var_below[b] + edge(tree, prior, b),
            )
    mean_above[order[0]], var_above[order[0]] = prior.mean, 0.0
    for k in range(n):
        node = order[k]
        if column[node] < 0:
            continue
        at_node = var_above[node] + edge(tree, prior, node)
        for child, other in ((left[node], right[node]), (right[node], left[node])):
            mean_above[child], var_above[child] = product(
                mean_above[node],
                at_node,
                mean_below[other],
                var_below[other] + edge(tree, prior, other),
            )
    return Messages(prior, mean_below, var_below, mean_above, var_above)
