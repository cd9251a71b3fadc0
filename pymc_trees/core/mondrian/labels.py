"""Interface of a label model, dispatched on the type of its NamedTuple of arrays.

A label model has statistics for each node.
"""

from collections.abc import Callable
from typing import NamedTuple

from pymc_trees.core.compile.dispatch import generic, registrar


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
