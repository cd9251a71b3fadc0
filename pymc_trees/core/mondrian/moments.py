"""Number, mean and sum of squares of the labels in each node, for regression."""

from typing import NamedTuple

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.mondrian.labels import register
from pymc_trees.core.mondrian.tree import resized


class Moments(NamedTuple):
    """Statistics of numbers, of all rows in a node."""

    n: np.ndarray
    """(nodes,) number of rows."""
    mean: np.ndarray
    """(nodes,) their mean label."""
    squares: np.ndarray
    """(nodes,) sum of squared distances from the mean."""


def make_moments(n_nodes):
    """Statistics of no rows."""
    return Moments(np.zeros(n_nodes), np.zeros(n_nodes), np.zeros(n_nodes))


@njit(cache=True)
def _with_label_nodes(labels, n):
    number, mean, squares = labels
    return Moments(resized(number, n, 0.0), resized(mean, n, 0.0), resized(squares, n, 0.0))


@njit(cache=True)
def _add(labels, node, y):
    labels.n[node] += 1.0
    away = y - labels.mean[node]
    labels.mean[node] += away / labels.n[node]
    labels.squares[node] += away * (y - labels.mean[node])


@njit(cache=True)
def _fill_leaf(labels, node, y, rows, start, stop):
    n = stop - start
    mean = 0.0
    for k in range(start, stop):
        mean += y[rows[k]]
    mean /= n
    squares = 0.0
    for k in range(start, stop):
        squares += (y[rows[k]] - mean) ** 2
    labels.n[node] = n
    labels.mean[node] = mean
    labels.squares[node] = squares


@njit(cache=True)
def _fill_split(labels, node, left, right):
    n = labels.n[left] + labels.n[right]
    share = labels.n[right] / n
    apart = labels.mean[right] - labels.mean[left]
    labels.n[node] = n
    labels.mean[node] = labels.mean[left] + share * apart
    labels.squares[node] = (
        labels.squares[left] + labels.squares[right] + labels.n[left] * share * apart**2
    )


@njit(cache=True)
def _join_leaves(labels, node, left, right):
    pass  # a split node has the statistics of all its rows already


register(
    Moments,
    with_label_nodes=_with_label_nodes,
    pass_through=_add,
    fill_leaf=_fill_leaf,
    fill_split=_fill_split,
    join_leaves=_join_leaves,
    add_to_leaf=_add,
)
