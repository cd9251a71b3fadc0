"""Columns in which a forest is monotone, with or without arrays for one of its trees."""

from typing import NamedTuple

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.compile.dispatch import register
from pymc_trees.core.compile.pointer import by_pointer
from pymc_trees.core.forest.room import make_room
from pymc_trees.core.forest.trees import make_trees
from pymc_trees.core.forest.undo import KeptTree, make_kept_tree
from pymc_trees.core.order.boxes import Branches
from pymc_trees.core.order.leaves import OrderedLeaves, arrange, in_order, make_ordered_leaves


@by_pointer
class Monotone(NamedTuple):
    """Directions, and arrays for one tree; N nodes of the pool."""

    directions: np.ndarray
    """(p,) int64: 1 where f rises in the column, -1 where it falls, else 0."""
    kinds: np.ndarray
    """As in `Branches`."""
    was: OrderedLeaves
    """Of the recorded tree."""
    now: OrderedLeaves
    """Of the changed tree."""
    known: np.ndarray
    """(L,) bool, overwritten: leaves whose values are bounds for others."""
    kept_value: np.ndarray
    """(L,) bool, overwritten: leaves of the tree as noted that are leaves of the new one."""
    stack: np.ndarray
    """(N,) int32, overwritten."""
    place: np.ndarray
    """(N,) int32: of a node: its place among the leaves as noted."""
    kept: KeptTree
    """The tree as noted."""


class Directions(NamedTuple):
    """What a declaration says of the order of its leaf values."""

    directions: np.ndarray
    """(p,) int64, as in `Monotone`."""
    kinds: np.ndarray
    """As in `Branches`."""

    def with_room(self, max_nodes: int, n_rows: int, n_stats: int) -> Monotone:
        """With room to work in."""
        most, sets = max_nodes // 2 + 1, make_room(max_nodes, -(-n_rows // 64))
        return Monotone(
            *self,
            make_ordered_leaves(most, n_stats),
            make_ordered_leaves(most, n_stats),
            np.zeros(most, dtype=np.bool_),
            np.zeros(most, dtype=np.bool_),
            np.zeros(max_nodes, dtype=np.int32),
            np.zeros(max_nodes, dtype=np.int32),
            make_kept_tree(make_trees(1, max_nodes, 1, n_rows), sets),
        )


@njit(cache=True)
def monotone_in(constants, kinds):
    """`Directions` of a forest whose constants they are."""
    return Directions(constants.astype(np.int64), kinds.astype(np.int64))


@njit(cache=True)
def branches_of(order, trees):
    """Rules and links of a forest."""
    return Branches(trees.column, trees.cut, trees.left, trees.right, trees.parent, order.kinds)


@njit(cache=True)
def hold_order(order, trees, tree, leaves, stack):
    """Whether the values of a tree are in order; ``leaves`` and ``stack`` are overwritten."""
    arrange(leaves, branches_of(order, trees), order.directions, trees.roots[tree], stack)
    for k in range(leaves.n[0]):
        leaves.value[k] = trees.values[leaves.node[k], 0]
    return in_order(leaves)


@njit(cache=True)
def _is_ordered(order, trees, tree):
    most = trees.column.size
    leaves = make_ordered_leaves(most // 2 + 1, 0)
    return hold_order(order, trees, tree, leaves, np.empty(most, dtype=np.int32))


register(Directions, is_ordered=_is_ordered)
