"""A fitted forest with bounded memory, for any number of rows."""

from typing import Any, NamedTuple

import numpy as np

from pymc_trees.mondrian.kernels.extend import close, mark_rows, renumber_rows
from pymc_trees.mondrian.kernels.labels import Moments
from pymc_trees.mondrian.kernels.tree import COUNT_LIMIT, NEXT_ROW, Rules, make_tree
from pymc_trees.mondrian.trees import Grown, Rows, Sample, owned


class BoundedGrown(Grown):
    """Trees that are closed when they have no room for another split, and the rows they wait for.

    When there is no room for another row, those that no tree waits for are dropped; where these
    are few, all trees are closed and wait for none. From then on there is a sample of all rows, and
    a forest that fails to take a block of rows cannot be grown anew.
    """

    whole = False

    def _make_room(self, pause_pure, n_columns, label_type):
        self.room = room_within(self.design, pause_pure, n_columns, self.empty)
        self.rules = self.room.rules
        self.rows = Rows(n_columns, label_type, self.rules.max_rows)
        self.sample = Sample(n_columns, label_type, self.room.sample)

    @property
    def n_seen(self):
        """Rows in the trees."""
        return self.sample.seen or self.rows.n

    def known_rows(self):
        """Rows and labels of them: all, or a sample."""
        return (self.sample if self.sample.seen else self.rows).counted()

    def _begin(self, X, y, jobs):
        n = min(len(y), self.room.first)  # further ones in blocks, which have the same law
        super()._begin(X[:n], y[:n], jobs)
        if n < len(y):
            self._take(X[n:], y[n:], False, jobs)

    def _begin_again(self, jobs):
        if not self.sample.seen:
            X, y = self.rows.counted()
            self.rows.n = 0
            self._begin(X, y, jobs)

    def _room_for_rows(self):
        if self.rows.n == self.rules.max_rows:
            self._let_go()
        return self.rules.max_rows - self.rows.n

    def _let_go(self):
        """Keep the rows that trees wait for, or close the trees."""
        if not self.sample.seen:
            self.sample.count(*self.rows.counted())
        needed, most = np.zeros(self.rows.n, dtype=np.bool_), self.rules.max_block
        self._mark(most, needed)
        while needed.sum() > self.room.needed and most > self.room.least_block:
            most = max(most // 2, self.room.least_block)
            self._mark(most, needed)
        if needed.sum() <= self.room.needed:
            for tree, _ in self.trees:
                renumber_rows(tree, needed)
        else:
            needed[:] = False
            for tree, _ in self.trees:
                close(tree)
            no_rows = np.empty(0, dtype=np.int32)
            self.trees = [(tree._replace(next_row=no_rows), labels) for tree, labels in self.trees]
        self.rows.keep(np.flatnonzero(needed))

    def _mark(self, most, needed):
        """Set the entries of rows that trees wait with, some ``most`` at a leaf."""
        needed[:] = False
        for tree, _ in self.trees:
            mark_rows(tree, most, needed)

    def _count(self, X, y):
        super()._count(X, y)
        if self.sample.seen:
            self.sample.count(X, y)

    def _own(self):
        super()._own()
        self.sample.X, self.sample.y = owned((self.sample.X, self.sample.y))

    def _parts(self):
        return [*super()._parts(), (self.sample, Sample), (self.room, Room)]

    def _check(self):
        super()._check()
        self._check_rows(self.sample)


# ------------------------------------------- What a forest with a bound on its memory has room for
#
# `max_memory` is shared out when the forest is made: so many nodes for each tree, so many rows
# for all of them, and a sample of the stream. What becomes of a row then does not depend on how
# rows are cut into calls.


MEGABYTE = 10**6
_BELIEF = 4 * 8
"""Bytes of the messages that an exact posterior keeps for a node."""
_MARK = 1 + 8
"""Bytes of a row's mark and number while rows are dropped."""
_MOST_NODES = 2**31 - 2
"""Nodes and rows have numbers of four bytes."""
_LEAST_BLOCK = 8
_MOST_SAMPLED = 6000
_SAMPLE_SHARE, _ROWS_SHARE = 16, 4
"""One part in so many is for the sample at most, and for other rows at least."""


class Room(NamedTuple):
    """How much of everything there is room for."""

    rules: Rules
    first: int
    """Rows that trees may be grown from as a batch."""
    needed: int
    """Rows that trees may wait for when there is no room for another row."""
    least_block: int
    """Rows that a leaf may wait with, however little room there is."""
    sample: int
    """Rows of the sample; an even number."""
    bytes: int
    """Of all that, and of what is copied to larger arrays at a time: all rows, a tree's nodes."""


def room_for(leaves, memory, design, pause_pure, n_columns, empty):
    """Room in some memory with so many leaves a tree: what their nodes leave over is for rows."""
    mss, n_trees = int(design.min_samples_split), int(design.n_estimators)
    tree = make_tree(n_columns, 1.0, 1, 1)
    node = sum(a.nbytes for a in (*tree[:NEXT_ROW], *empty))
    node += _BELIEF if isinstance(empty, Moments) else 0
    nodes = 2 * leaves * node * (n_trees + 1)
    row = 8 * n_columns + 8
    numbered = row + row // 2 + n_trees * tree.next_row.itemsize + _MARK
    sample = 2 * min(_MOST_SAMPLED // 2, 1 + int(memory // (2 * _SAMPLE_SHARE * row)))
    # A tree of rows that all differ, without an end, has a leaf for each (mss + 1) / 2 of them.
    least = max(leaves * (mss + 1) * 5 // 8 + mss, int(memory // (_ROWS_SHARE * numbered)))
    rows = max(least, int((memory - nodes - sample * row) // numbered))
    rows = min(rows, _MOST_NODES)
    most = COUNT_LIMIT if design.max_leaf_nodes is None else int(design.max_leaf_nodes)
    rules = Rules(mss, pause_pure, most, 2 * leaves, rows, max(mss, _LEAST_BLOCK, leaves // 8))
    first, needed = min(leaves, rows), 4 * rows // 5
    block = max(mss, _LEAST_BLOCK)
    return Room(rules, first, needed, block, sample, nodes + rows * numbered + sample * row)


def room_within(design: Any, pause_pure, n_columns, empty):
    """The most room within `max_memory`; raises ValueError where that is too little."""
    memory = design.max_memory * MEGABYTE

    def room(leaves):
        return room_for(leaves, memory, design, pause_pure, n_columns, empty)

    least = int(design.min_samples_split)
    if room(least).bytes > memory:
        some = room_for(least, 0, design, pause_pure, n_columns, empty).bytes
        raise ValueError(
            f"max_memory={design.max_memory!r}: {design.n_estimators} trees of {n_columns} "
            f"features take at least {2.2 * some / MEGABYTE:.2g} megabytes, which leaves room for "
            "a few leaves each. Give a hundred times as much, or grow fewer trees."
        )
    low, high = least, int(min(memory, _MOST_NODES // 2))
    if design.max_leaf_nodes is not None:  # with room for one block more
        wanted = int(design.max_leaf_nodes)
        high = max(low, min(high, wanted + max(least, wanted // 4)))
    while low < high:
        leaves = (low + high + 1) // 2
        low, high = (leaves, high) if room(leaves).bytes <= memory else (low, leaves - 1)
    return room(low)
