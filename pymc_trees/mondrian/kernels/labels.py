"""Interface of a label model, and the model of numbers.

The interface is dispatched on the type of the model's NamedTuple of arrays: statistics for each
node. Classes are in `categories`.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.compile.dispatch import generic, registrar
from pymc_trees.mondrian.kernels.tree import resized

# ------------------ Interface of a label model, dispatched on the type of its NamedTuple of arrays
#
# A label model has statistics for each node.


@generic("labels")
def with_label_nodes(labels, n):
    """Statistics with capacity for n nodes."""


@generic("labels")
def pass_through(labels, node, y):
    """Count a row at a split node."""


@generic("labels")
def fill_leaf(labels, node, y, rows, start, stop):
    """Statistics of a leaf."""


@generic("labels")
def fill_split(labels, node, left, right):
    """Statistics of a split node."""


@generic("labels")
def join_leaves(labels, node, left, right):
    """Statistics of a node that becomes a leaf."""


@generic("labels")
def add_to_leaf(labels, node, y):
    """Count a row at a leaf."""


class LabelKernels(NamedTuple):
    """Kernels of a label model."""

    with_label_nodes: Callable
    """``(labels, n)``: the statistics, with capacity for n nodes."""
    pass_through: Callable
    """``(labels, node, y)``: a row with label y goes through a split node."""
    fill_leaf: Callable
    """``(labels, node, y, rows, start, stop)``: the statistics of a leaf with
    ``rows[start:stop]``."""
    fill_split: Callable
    """``(labels, node, left, right)``: the statistics of a split node, from its children's."""
    join_leaves: Callable
    """``(labels, node, left, right)``: the statistics of a node whose two leaves are joined."""
    add_to_leaf: Callable
    """``(labels, node, y)``: a row with label y falls into a leaf."""


register = registrar(LabelKernels, by_value=True)
"""Register the kernels of a label model."""


# ---------------------- Number, mean and sum of squares of the labels in each node, for regression


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
