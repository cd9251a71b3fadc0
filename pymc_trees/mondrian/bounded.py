"""A fitted forest with bounded memory, for any number of rows."""

from typing import Any, NamedTuple

import numpy as np

from pymc_trees.mondrian.kernels.extend import close, mark_rows, renumber_rows
from pymc_trees.mondrian.kernels.labels import Moments
from pymc_trees.mondrian.kernels.tree import COUNT_LIMIT, NEXT_ROW, Rules, make_tree
from pymc_trees.mondrian.trees import SLOW, Ensemble, Rows, Sample, owned


class BoundedEnsemble(Ensemble):
    """Trees that are closed when there is no room for another split, with the rows they still need.

    When there is no room for another row, rows that no tree needs are dropped. If these are few,
    all trees are closed and need no rows. From then on a sample of all rows is kept, and a forest
    that fails to learn a block of rows cannot be grown anew.
    """

    whole = False

    def _allocate(self, pause_pure, n_columns, label_type):
        self.room = room_within(self.design, pause_pure, n_columns, self.empty)
        self.rules = self.room.rules
        self.rows = Rows(n_columns, label_type, self.rules.max_rows)
        self.sample = Sample(n_columns, label_type, self.room.sample)

    @property
    def n_seen(self):
        """Rows in the trees."""
        return self.sample.seen or self.rows.n

    def learnt_rows(self):
        """Rows and labels of them: all, or a sample."""
        return (self.sample if self.sample.seen else self.rows).learnt()

    def _grow_first(self, X, y, jobs, progressbar=False):
        n = min(len(y), self.room.first)  # further rows in blocks, with the same distribution
        super()._grow_first(X[:n], y[:n], jobs, progressbar)
        if n < len(y):
            slow = (len(y) - n) * len(self.generators) > SLOW
            self._extend(X[n:], y[n:], False, jobs, progressbar and slow)

    def _regrow(self, jobs):
        if not self.sample.seen:
            X, y = self.rows.learnt()
            self.rows.n = 0
            self._grow_first(X, y, jobs)

    def _free_rows(self, jobs):
        if self.rows.n == self.rules.max_rows:
            self._drop_rows()
        return self.rules.max_rows - self.rows.n

    def _drop_rows(self):
        """Keep the rows that trees need, or close the trees."""
        if not self.sample.seen:
            self.sample.count(*self.rows.learnt())
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
        """Mark the rows that trees need, up to about ``most`` per leaf."""
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


# -------------------------------------------------- What a forest of bounded memory has room for
#
# `max_memory` is divided when the forest is made: between nodes of each tree, rows, and a sample of
# the stream. So the treatment of a row does not depend on how rows are divided into calls.


MEGABYTE = 10**6
_BELIEF = 4 * 8
"""Bytes of the messages of an exact posterior per node."""
_MARK = 1 + 8
"""Bytes of the mark and number of a row while rows are dropped."""
_MOST_NODES = 2**31 - 2
"""Nodes and rows are numbered with four bytes."""
_LEAST_BLOCK = 8
_MOST_SAMPLED = 6000
_SAMPLE_SHARE, _ROWS_SHARE = 16, 4
"""Inverse shares of the memory: at most for the sample, at least for other rows."""


class Room(NamedTuple):
    """Numbers of rows and nodes that there is room for."""

    rules: Rules
    first: int
    """Maximal number of rows from which trees are grown as a batch."""
    needed: int
    """Maximal number of rows that trees may need when there is no room for another row."""
    least_block: int
    """Number of rows that a leaf may keep however little room there is."""
    sample: int
    """Number of rows of the sample, even."""
    bytes: int
    """Total, including copies to larger arrays: of all rows, and of the nodes of one tree."""


def room_for(leaves, memory, design, pause_pure, n_columns, empty):
    """Room in some memory for trees with this many leaves; the rest of the memory is for rows."""
    mss, n_trees = int(design.min_samples_split), int(design.n_estimators)
    tree = make_tree(n_columns, 1.0, 1, 1)
    node = sum(a.nbytes for a in (*tree[:NEXT_ROW], *empty))
    node += _BELIEF if isinstance(empty, Moments) else 0
    nodes = 2 * leaves * node * (n_trees + 1)
    row = 8 * n_columns + 8
    numbered = row + row // 2 + n_trees * tree.next_row.itemsize + _MARK
    sample = 2 * min(_MOST_SAMPLED // 2, 1 + int(memory // (2 * _SAMPLE_SHARE * row)))
    # With an infinite lifetime and distinct rows a tree has a leaf for each (mss + 1) / 2 rows.
    least = max(leaves * (mss + 1) * 5 // 8 + mss, int(memory // (_ROWS_SHARE * numbered)))
    rows = max(least, int((memory - nodes - sample * row) // numbered))
    rows = min(rows, _MOST_NODES)
    most = COUNT_LIMIT if design.max_leaf_nodes is None else int(design.max_leaf_nodes)
    rules = Rules(mss, pause_pure, most, 2 * leaves, rows, max(mss, _LEAST_BLOCK, leaves // 8))
    first, needed = min(leaves, rows), 4 * rows // 5
    block = max(mss, _LEAST_BLOCK)
    return Room(rules, first, needed, block, sample, nodes + rows * numbered + sample * row)


def room_within(design: Any, pause_pure, n_columns, empty):
    """The most room within `max_memory`; ValueError if that is too little."""
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
    if design.max_leaf_nodes is not None:  # and room for one more block
        wanted = int(design.max_leaf_nodes)
        high = max(low, min(high, wanted + max(least, wanted // 4)))
    while low < high:
        leaves = (low + high + 1) // 2
        low, high = (leaves, high) if room(leaves).bytes <= memory else (low, leaves - 1)
    return room(low)
