"""The rows of paused leaves: chains, from ``first_row`` along ``next_row``.

No other rows of a tree are ever asked for again, so that a forest may let go of those that no tree
waits for. A chain that is longer than a block may be is thinned, when its leaf is sampled or when
rows are let go of: box and labels of the leaf tell of all its rows, but it will be split as a block
of those that are left. What a Mondrian process says of some rows does not depend on others: these
splits have the law of a tree of the rows that are left.
"""

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.mondrian.tree import CLOSED, NONE, ROWS, USED


@njit(cache=True)
def chain_length(tree, leaf):
    """Rows that a paused leaf waits with."""
    length, row = 0, tree.first_row[leaf]
    while row != NONE:
        length += 1
        row = tree.next_row[row]
    return length


@njit(cache=True)
def rows_of(tree, leaf, most):
    """Rows of a paused leaf, in the order they came; at most so many, the latest among them."""
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
    """Leave some ``most`` rows of a longer chain: the first, and those whose numbers are multiples.

    Trees that wait with the same rows go on doing so.
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
    """Set the entries of rows that the leaves of a tree wait with, some ``most`` for each."""
    for node in range(tree.state[USED]):
        if _waits(tree, node):
            thin(tree, node, most)
            row = tree.first_row[node]
            while row != NONE:
                needed[row] = True
                row = tree.next_row[row]


@njit(cache=True, nogil=True)
def renumber_rows(tree, needed):
    """Let a tree know its rows by their numbers among those that are needed."""
    if tree.state[CLOSED]:
        return
    number = np.cumsum(needed) - 1
    next_row = tree.next_row
    for row in range(needed.size):  # a new number is no larger, so that nothing unread is lost
        if needed[row]:
            follower = next_row[row]
            next_row[number[row]] = NONE if follower == NONE else number[follower]
    for node in range(tree.state[USED]):
        if _waits(tree, node):
            tree.first_row[node] = number[tree.first_row[node]]
    tree.state[ROWS] = number[-1] + 1
