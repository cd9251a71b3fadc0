"""What every label model answers, dispatched on the type of its NamedTuple of arrays.

A label model keeps statistics for each node. Growing calls these generic functions; numba resolves
them at compile time, so that the kernels stay at module level and are kept between sessions.

======================================== ==========================================================
``with_label_nodes(labels, n)``           the statistics, with room for n nodes
``pass_through(labels, node, y)``         a row with label y goes through a split node
``fill_leaf(labels, node, y, rows,        the statistics of a leaf with ``rows[start:stop]``
start, stop)``
``fill_split(labels, node, left, right)`` the statistics of a split node, from its children's
``join_leaves(labels, node, left,         the statistics of a node whose two leaves are joined
right)``
``add_to_leaf(labels, node, y)``          a row with label y falls into a leaf
``knows(labels, node, y)``                whether nothing above changes when y comes to ``node``
``rise(labels, parents, node, y)``        label y is new at ``node``: tell the nodes above
======================================== ==========================================================
"""

from collections.abc import Callable

from numba import types
from numba.extending import overload

_MODELS: dict[type, dict[str, Callable]] = {}


def register(model: type, **kernels: Callable) -> None:
    """Give the kernels of a label model: names and arguments of the contract."""
    _MODELS[model] = kernels


def _kernel(labels, name):
    if isinstance(labels, types.BaseNamedTuple) and labels.instance_class in _MODELS:
        return _MODELS[labels.instance_class][name].py_func
    return None


def with_label_nodes(labels, n):
    """Statistics with room for n nodes."""
    return _MODELS[type(labels)]["with_label_nodes"](labels, n)


def pass_through(labels, node, y):
    """Count a row at a split node."""
    return _MODELS[type(labels)]["pass_through"](labels, node, y)


def fill_leaf(labels, node, y, rows, start, stop):
    """Statistics of a leaf."""
    return _MODELS[type(labels)]["fill_leaf"](labels, node, y, rows, start, stop)


def fill_split(labels, node, left, right):
    """Statistics of a split node."""
    return _MODELS[type(labels)]["fill_split"](labels, node, left, right)


def join_leaves(labels, node, left, right):
    """Statistics of a node that becomes a leaf."""
    return _MODELS[type(labels)]["join_leaves"](labels, node, left, right)


def add_to_leaf(labels, node, y):
    """Count a row at a leaf."""
    return _MODELS[type(labels)]["add_to_leaf"](labels, node, y)


def rise(labels, parents, node, y):
    """Tell the nodes above of a new label."""
    return _MODELS[type(labels)]["rise"](labels, parents, node, y)


def knows(labels, node, y):
    """Whether a label is nothing new to the nodes above."""
    return _MODELS[type(labels)]["knows"](labels, node, y)


@overload(with_label_nodes)
def _with_label_nodes(labels, n):
    return _kernel(labels, "with_label_nodes")


@overload(pass_through)
def _pass_through(labels, node, y):
    return _kernel(labels, "pass_through")


@overload(fill_leaf)
def _fill_leaf(labels, node, y, rows, start, stop):
    return _kernel(labels, "fill_leaf")


@overload(fill_split)
def _fill_split(labels, node, left, right):
    return _kernel(labels, "fill_split")


@overload(join_leaves)
def _join_leaves(labels, node, left, right):
    return _kernel(labels, "join_leaves")


@overload(add_to_leaf)
def _add_to_leaf(labels, node, y):
    return _kernel(labels, "add_to_leaf")


@overload(rise)
def _rise(labels, parents, node, y):
    return _kernel(labels, "rise")


@overload(knows)
def _knows(labels, node, y):
    return _kernel(labels, "knows")
