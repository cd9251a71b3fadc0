"""The rows of paused leaves: chains, from ``first_row`` along ``next_row``.

No other rows of a tree are ever read again, so a forest may drop those that are in no paused leaf.
A chain longer than the maximal block is thinned when its leaf is sampled or rows are dropped: box
and labels of the leaf include all its rows, but it is split as a block of the remaining rows. A
Mondrian process restricted to some rows does not depend on others: these splits have the
distribution of a tree of the remaining rows.
"""

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.mondrian.tree import CLOSED, NONE, ROWS, USED


@njit(cache=True)
def chain_length(tree, leaf):
    """Number of rows of a paused leaf."""
    length, row = 0, tree.first_row[leaf]
    while row != NONE:
        length += 1
        row = tree.next_row[row]
    return length


@njit(cache=True)
def rows_of(tree, leaf, most):
    """Rows of a paused leaf in order of arrival; at most a given number, including the latest."""
    length = chain_length(tree, leaf)
    rows = np.empty(min(length, most), dtype=np.int64)
    row, taken = tree.first_row[leaf], 0
    for k in range(length):
        if taken < rows.size and k == taken * length // rows.size:
            rows[rows.size - 1 - taken] = row
            taken += 1
        row = tree.next_row[row]
    return rows


@njit(cache=True)
def _waits(tree, node):
    return tree.column[node] == NONE and tree.paused[node]


@njit(cache=True)
def thin(tree, leaf, most):
    """Thin a longer chain to about ``most`` rows: the first, and every k-th row number.

    Trees that share paused rows keep sharing them.
    """
    length, every = chain_length(tree, leaf), 1
    while length > every * most:
        every *= 2
    last = tree.first_row[leaf]
    row = tree.next_row[last]
    while row != NONE:
        if row % every == 0:
            tree.next_row[last] = row
            last = row
        row = tree.next_row[row]
    tree.next_row[last] = NONE


@njit(cache=True, nogil=True)
def mark_rows(tree, most, needed):
    """Mark the rows of the paused leaves of a tree, about ``most`` for each."""
    for node in range(tree.state[USED]):
        if _waits(tree, node):
            thin(tree, node, most)
            row = tree.first_row[node]
            while row != NONE:
                needed[row] = True
                row = tree.next_row[row]


@njit(cache=True, nogil=True)
def renumber_rows(tree, needed):
    """Renumber the rows of a tree among those that are kept."""
    if tree.state[CLOSED]:
        return
    number = np.cumsum(needed) - 1
    next_row = tree.next_row
    for row in range(needed.size):  # new numbers are not larger, so nothing unread is overwritten
        if needed[row]:
            follower = next_row[row]
            next_row[number[row]] = NONE if follower == NONE else number[follower]
    for node in range(tree.state[USED]):
        if _waits(tree, node):
            tree.first_row[node] = number[tree.first_row[node]]
    tree.state[ROWS] = number[-1] + 1
