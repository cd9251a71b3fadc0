"""A fitted forest that forgets: its trees know the latest rows of a stream alone."""

import numpy as np

from pymc_trees.mondrian.trees import Ensemble, Rows

SLACK = 8
"""Trees are grown anew when a window and one such part of it have come since its first row."""


class WindowedEnsemble(Ensemble):
    """Trees of the latest rows: at least ``window`` of them, and at most an eighth more.

    Rows are added one by one, as always. When there are an eighth too many, all but the latest
    ``window`` are dropped and the trees are grown from these. A Mondrian tree extended by rows has
    the distribution of one grown from them, so at any time the forest has the distribution of a
    batch forest of the rows it knows. To grow a tree from n rows costs about as much as to extend
    it by n; a row costs some nine times as much as in a forest that remembers all.
    """

    ever = 0
    """Rows learnt, also those forgotten."""

    def _allocate(self, pause_pure, n_columns, label_type):
        super()._allocate(pause_pure, n_columns, label_type)
        self.window = int(self.design.window)
        self.rows = Rows(n_columns, label_type, self.window + max(1, self.window // SLACK))

    @property
    def n_ever(self):
        """Number of rows learnt, also those forgotten."""
        return self.ever

    def _grow_first(self, X, y, jobs, progressbar=False):
        self.ever = len(y)
        super()._grow_first(X[-self.window :], y[-self.window :], jobs, progressbar)

    def _extend(self, X, y, few, jobs, progressbar=False):
        """Learn scaled rows; those before the last ``window`` would be forgotten at once."""
        skipped = max(0, len(X) - self.rows.most)
        super()._extend(X[skipped:], y[skipped:], few, jobs, progressbar)
        self.ever += skipped

    def _free_rows(self, jobs):
        if self.rows.n >= self.rows.most:
            self.rows.keep(np.arange(self.rows.n - self.window, self.rows.n))
            try:
                self._regrow(jobs)
            except BaseException:
                self.trees = []  # they have the numbers of other rows
                raise
        return self.rows.most - self.rows.n

    def _count(self, X, y):
        super()._count(X, y)
        self.ever += len(y)
