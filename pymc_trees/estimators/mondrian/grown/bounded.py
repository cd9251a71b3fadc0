"""A fitted forest with bounded memory, for any number of rows."""

import numpy as np

from pymc_trees.core.mondrian.closed import close
from pymc_trees.core.mondrian.paused import mark_rows, renumber_rows
from pymc_trees.estimators.mondrian.grown.memory import Room, room_within
from pymc_trees.estimators.mondrian.grown.rows import Rows, Sample
from pymc_trees.estimators.mondrian.grown.trees import Grown, owned


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
