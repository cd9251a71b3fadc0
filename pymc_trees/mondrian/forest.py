"""What classifier and regressor share: settings, learning, leaves and paths."""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from arviz_base import from_dict
from joblib import effective_n_jobs
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state

from pymc_trees.arguments import check_number
from pymc_trees.mondrian.inputs import (
    as_kernel_input,
    check_lifetime,
    check_positive_finite,
    check_X,
    same,
)
from pymc_trees.mondrian.kernels.extend import close, mark_rows, renumber_rows
from pymc_trees.mondrian.kernels.labels import Moments
from pymc_trees.mondrian.kernels.tree import (
    CLOSED,
    COUNT_LIMIT,
    LEAVES,
    NEXT_ROW,
    USED,
    Rules,
    find_leaves,
    find_paths,
    make_tree,
)
from pymc_trees.mondrian.trees import (
    LONG,
    SLOW,
    Design,
    Ensemble,
    Rows,
    Sample,
    jobs_for,
    owned,
    run,
)

# -------------------------------------- A fitted forest with bounded memory, for any number of rows


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


# ------------------- A fitted forest that forgets: its trees know the latest rows of a stream alone


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


# -------------------------------------------------------------------------------------------------


class MondrianForest(BaseEstimator):
    """Settings and, once fitted, one `Ensemble` with everything learnt.

    Public attributes of a fitted forest are read from that object, so they always match its trees.
    """

    _pause_pure: bool
    n_estimators: Any
    lifetime: Any
    min_samples_split: Any
    max_leaf_nodes: Any
    max_memory: Any
    scaling: Any
    window: Any
    n_jobs: Any
    random_state: Any
    progressbar: Any

    def __sklearn_is_fitted__(self):
        ensemble = self.__dict__.get("_ensemble")
        return ensemble is not None and bool(ensemble.trees)

    @property
    def _fitted(self) -> Ensemble:
        ensemble = self.__dict__.get("_ensemble")
        if ensemble is None or not ensemble.trees:
            raise NotFittedError(
                f"This {type(self).__name__} instance is not fitted yet. Call 'fit' with "
                "appropriate arguments before using this estimator."
            )
        return ensemble

    @property
    def n_samples_seen_(self):
        """Number of rows learnt."""
        return self._fitted.n_ever

    @property
    def n_features_in_(self):
        """Number of features."""
        return self._fitted.n_columns

    @property
    def n_leaves_(self):
        """Number of leaves of each tree."""
        return np.array([tree.state[LEAVES] for tree, _ in self._fitted.trees])

    @property
    def closed_(self):
        """Whether each tree is no longer split, for lack of memory."""
        return np.array([bool(tree.state[CLOSED]) for tree, _ in self._fitted.trees])

    @property
    def feature_names_in_(self):
        """Names of the features, if X had any."""
        names = self._fitted.names
        if names is None:
            raise AttributeError("feature_names_in_: X had no names when the forest was fitted.")
        return names

    def _design(self):
        """Settings that shape the trees, checked."""
        check_number("n_estimators", self.n_estimators, 1)
        check_lifetime(self.lifetime)
        check_number("min_samples_split", self.min_samples_split, 2)
        if self.max_leaf_nodes is not None:
            check_number("max_leaf_nodes", self.max_leaf_nodes, 1, " or None")
        if self.max_memory is not None:
            check_positive_finite("max_memory", self.max_memory, " or None")
        if self.window is not None:
            check_number("window", self.window, 1, " or None")
            if self.max_memory is not None:
                raise ValueError(
                    f"window={self.window!r} and max_memory={self.max_memory!r}: give one of them. "
                    "A window bounds memory too, by the number of rows."
                )
        return Design(*(getattr(self, name) for name in Design._fields))

    def _check_design(self, ensemble):
        """Refuse changes of settings that shaped the trees."""
        for name, old in zip(Design._fields, ensemble.design):
            if not same(getattr(self, name), old):
                self._design()
                raise ValueError(
                    f"{name}={getattr(self, name)!r}, but the trees were grown with {old!r}, and "
                    "partial_fit cannot change that: set it back, or call fit."
                )

    def _grow(self, columns, X, y, classes=None):
        """New trees of these rows; those of a previous fit are left alone."""
        design = self._design()
        seed = check_random_state(self.random_state).randint(2**31 - 1, size=4)
        empty = self._empty_labels(classes)
        kind = Ensemble if design.max_memory is None else BoundedEnsemble
        kind = kind if design.window is None else WindowedEnsemble
        return kind(
            design,
            self._pause_pure,
            columns,
            X,
            y,
            classes,
            empty,
            seed,
            self.n_jobs,
            self.progressbar,
        )

    def __setstate__(self, state):
        """Refuse forests of other versions; `Ensemble` checks the rest."""
        if "n_samples_seen_" in state or not isinstance(state.get("_ensemble"), Ensemble | None):
            raise ValueError(
                f"This pickled {type(self).__name__} was written by another version of "
                "pymc_trees: fit it again."
            )
        super().__setstate__(state)

    def _inputs(self, X) -> tuple[Ensemble, np.ndarray]:
        """The fitted forest; rows to predict, checked and scaled."""
        ensemble = self._fitted
        X = as_kernel_input(ensemble.scaling(check_X(self, X)))
        if X.shape[1] != ensemble.n_columns:  # refitted in another thread
            raise ValueError(f"X has {X.shape[1]} columns, the trees have {ensemble.n_columns}.")
        return ensemble, X

    def _run(self, function, tasks, work):
        """Results of a function for each tuple of arguments, in threads if that is faster."""
        return run(function, tasks, work, jobs_for(self.n_jobs, work))

    def _over_rows(self, function, n, n_trees):
        """Call a function for slices of n rows."""
        enough = -(-n * n_trees // LONG)  # interrupts wait for the end of a slice
        pieces = min(n, max(effective_n_jobs(self.n_jobs), enough))
        ends = np.linspace(0, n, pieces + 1).astype(int)
        self._run(function, [(slice(a, b),) for a, b in zip(ends[:-1], ends[1:])], n * n_trees)

    def apply(self, X):
        """Leaf of each row in each tree.

        Parameters
        ----------
        X : (n, p) array

        Returns
        -------
        (n, n_estimators) int array
            Number of the leaf. A leaf keeps its number while the tree grows, also as a split
            node.
        """
        ensemble, X = self._inputs(X)
        out = np.empty((len(ensemble.trees), len(X)), dtype=np.int64)
        self._run(
            find_leaves,
            [(tree, X, leaves) for (tree, _), leaves in zip(ensemble.trees, out)],
            out.size,
        )
        return out.T.copy()

    def decision_path(self, X):
        """Nodes each row goes through, from root to leaf.

        Parameters
        ----------
        X : (n, p) array

        Returns
        -------
        indicator : (n, nodes of all trees) sparse array in CSR format
            1 if a row passes through a node.
        n_nodes_ptr : (n_estimators + 1,) int array
            Columns ``n_nodes_ptr[t]`` to ``n_nodes_ptr[t + 1]`` belong to tree t.
        """
        ensemble, X = self._inputs(X)
        paths = self._run(
            find_paths, [(tree, X) for tree, _ in ensemble.trees], len(X) * len(ensemble.trees)
        )
        blocks = []
        for (tree, _), (nodes, starts) in zip(ensemble.trees, paths):
            shape = (len(X), int(tree.state[USED]))
            data = np.ones(nodes.size, dtype=np.int64)
            blocks.append(scipy.sparse.csr_array((data, nodes, starts), shape=shape))
        ends = np.concatenate([[0], np.cumsum([block.shape[1] for block in blocks])])
        return scipy.sparse.hstack(blocks, format="csr"), ends


# ------------------------------------------------ Draws of a predictive distribution as ArviZ data


def predictive_data(draws, observed, attrs):
    """`DataTree` of (n, draws) predictive draws, and of observed values if given."""
    groups = {"posterior_predictive": {"y": np.ascontiguousarray(draws.T)[None]}}
    if observed is not None:
        groups["observed_data"] = {"y": observed}
    dims = {"y": ["row"]}
    return from_dict(groups, dims=dims, attrs={"/": attrs})
