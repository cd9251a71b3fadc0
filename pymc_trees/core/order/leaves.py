"""The leaves of one tree, lowest first, and their order relations."""

from typing import NamedTuple

import numpy as np

from pymc_trees.core.compile.assign import copy_numbers
from pymc_trees.core.compile.cache import njit
from pymc_trees.core.compile.pointer import by_pointer
from pymc_trees.core.order.boxes import is_below, lower_first

_ONE = np.uint64(1)


@by_pointer
class OrderedLeaves(NamedTuple):
    """Leaves of a tree in the order of `boxes.lower_first`; at most L, with D statistics."""

    n: np.ndarray
    """(1,) int64: their number."""
    node: np.ndarray
    """(L,) int32."""
    value: np.ndarray
    """(L,) float64."""
    stats: np.ndarray
    """(L, D) float64: statistics of their rows."""
    above: np.ndarray
    """(L, L / 64) uint64: bit b of row a says that leaf b may not lie below leaf a; b > a."""


@njit(cache=True)
def make_ordered_leaves(n_leaves, n_stats):
    """Arrays for a number of leaves."""
    return OrderedLeaves(
        np.zeros(1, dtype=np.int64),
        np.empty(n_leaves, dtype=np.int32),
        np.empty(n_leaves),
        np.empty((n_leaves, n_stats)),
        np.empty((n_leaves, (n_leaves + 63) // 64), dtype=np.uint64),
    )


@njit(cache=True)
def arrange(leaves, branches, directions, root, stack):
    """Write the leaves of a tree, and which pairs are ordered."""
    n = lower_first(branches, directions, root, stack, leaves.node)
    leaves.n[0] = n
    for a in range(n):
        for w in range((n + 63) // 64):
            leaves.above[a, w] = np.uint64(0)
        for b in range(a + 1, n):
            if is_below(branches, directions, leaves.node[a], leaves.node[b]):
                leaves.above[a, b >> 6] |= _ONE << np.uint64(b & 63)


@njit(cache=True)
def take_statistics(leaves, stats):
    """Copy the statistics of the leaves from those of the nodes."""
    for k in range(leaves.n[0]):
        copy_numbers(stats[leaves.node[k]], leaves.stats[k])


@njit(cache=True)
def is_above(leaves, b, a):
    """Whether leaf b may not be below leaf a, which precedes it."""
    return (leaves.above[a, b >> 6] >> np.uint64(b & 63)) & _ONE != np.uint64(0)


@njit(cache=True)
def bounds_of(leaves, known, k):
    """Bounds of the value of leaf k, given the known values of other leaves."""
    low, high = -np.inf, np.inf
    for a in range(k):
        if known[a] and is_above(leaves, k, a):
            low = max(low, leaves.value[a])
    for b in range(k + 1, leaves.n[0]):
        if known[b] and is_above(leaves, b, k):
            high = min(high, leaves.value[b])
    return low, high


@njit(cache=True)
def known_in_order(leaves, known):
    """Whether the known values are in order."""
    for a in range(leaves.n[0]):
        if not known[a]:
            continue
        for b in range(a + 1, leaves.n[0]):
            if known[b] and is_above(leaves, b, a) and not leaves.value[a] <= leaves.value[b]:
                return False
    return True


@njit(cache=True)
def in_order(leaves):
    """Whether all values are in order."""
    return known_in_order(leaves, np.ones(leaves.n[0], dtype=np.bool_))


@njit(cache=True)
def copy_leaves(source, target):
    """Copy one list of leaves to another."""
    n = source.n[0]
    target.n[0] = n
    for a in range(n):
        target.node[a], target.value[a] = source.node[a], source.value[a]
        copy_numbers(source.stats[a], target.stats[a])
        for w in range((n + 63) // 64):
            target.above[a, w] = source.above[a, w]
