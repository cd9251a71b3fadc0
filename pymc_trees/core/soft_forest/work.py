"""Workspace for visits of soft trees."""

from typing import NamedTuple

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.soft_forest.rows import Squares, make_squares
from pymc_trees.core.soft_forest.trees import Links, make_links

LEAVES = 8
"""Initial capacity in leaves."""


class SoftWork(NamedTuple):
    """Arrays for the visited tree and for a draft of its change."""

    links: Links
    """Of the current tree."""
    column: np.ndarray
    """(R + 2,) int32: of the draft."""
    number: np.ndarray
    """(R + 2,) float64: of the draft."""
    present: Squares
    draft: Squares
    """Its ``phi`` has only the leaves that differ, below the changed node."""
    path: np.ndarray
    """(L + 1, n) weights along a path."""
    distance: np.ndarray
    """(n,) target of the tree minus the prior mean of a leaf."""
    weighed: np.ndarray
    """(n,)"""
    values: np.ndarray
    """(L,) leaf values."""


@njit(cache=True)
def make_soft_work(room, leaves, n):
    """Workspace for trees with a number of nodes, and initially a number of leaves."""
    return SoftWork(
        make_links(room + 2),
        np.empty(room + 2, dtype=np.int32),
        np.empty(room + 2),
        make_squares(leaves, n),
        make_squares(leaves, n),
        np.empty((leaves + 1, n)),
        np.empty(n),
        np.empty(n),
        np.empty(leaves),
    )


@njit(cache=True)
def _copy_squares(old, new):
    leaves = old.pull.size
    new.phi[:leaves] = old.phi
    new.gram[:leaves, :leaves] = old.gram
    new.pull[:leaves] = old.pull


@njit(cache=True)
def with_room(work, leaves):
    """Workspace with capacity for a number of leaves; the same object if large enough."""
    if leaves <= work.values.size:
        return work
    n = work.distance.size
    more = make_soft_work(work.column.size - 2, max(leaves, 2 * work.values.size), n)
    _copy_squares(work.present, more.present)
    more.values[: work.values.size] = work.values
    present, draft, path, values = more.present, more.draft, more.path, more.values
    links, column, number = work.links, work.column, work.number
    return SoftWork(
        links, column, number, present, draft, path, work.distance, work.weighed, values
    )
