"""What both forests share: settings, growing, leaves and paths."""

import time
from typing import Any

import numpy as np
import scipy.sparse
from joblib import Parallel, delayed, effective_n_jobs
from numba.typed import List
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from pymc_trees.core.interrupts import deferred_interrupts, run_apart
from pymc_trees.core.mondrian.extend import extend_forest, extend_tree
from pymc_trees.core.mondrian.grow import grow_tree
from pymc_trees.core.mondrian.tree import (
    COUNT_LIMIT,
    ROOT,
    USED,
    Rules,
    find_leaves,
    find_paths,
    make_tree,
)
from pymc_trees.estimators.checks import positive, whole_number
from pymc_trees.estimators.rows import Rows, Scaling, plain

_WORTH_A_THREAD = 2000
"""Rows times trees below which starting threads takes longer than the work."""
_LONG = 50_000
"""Rows times trees beyond which an interrupt cannot wait for the work: some tenths of a second."""


class MondrianForest(BaseEstimator):
    """Trees, the rows they have seen, and their generators."""

    _in_python: list[tuple[Any, Any]]
    _packed: Any
    _moved: np.ndarray

    def _run(self, function, tasks, work, cease=None):
        """Results of a function on each tuple of arguments, in threads where that pays.

        An interrupt comes when all threads have ended: in long work as soon as the tasks begun are
        done, or look at ``cease``.
        """
        jobs = 1 if work < _WORTH_A_THREAD else effective_n_jobs(self.n_jobs)
        cease = np.zeros(1, dtype=np.bool_) if cease is None else cease

        def one(task):
            return None if cease[0] else function(*task)

        def all_tasks():
            if jobs == 1:
                return [one(task) for task in tasks]
            return Parallel(n_jobs=jobs, require="sharedmem")(delayed(one)(task) for task in tasks)

        if jobs > 1 or work > _LONG:
            return run_apart(all_tasks, cease)
        with deferred_interrupts():
            return all_tasks()

    def _start(self, X, label_type):
        """Read the settings, and make empty trees."""
        n_trees = whole_number("n_estimators", self.n_estimators, 1)
        lifetime = positive("lifetime", self.lifetime, " (numpy.inf for no end)")
        max_leaves = COUNT_LIMIT
        if self.max_leaf_nodes is not None:
            max_leaves = whole_number("max_leaf_nodes", self.max_leaf_nodes, 1, " or None")
        self._rules = Rules(
            whole_number("min_samples_split", self.min_samples_split, 2),
            self._pause_pure,
            max_leaves,
        )
        self._scaling = Scaling(self.scaling, X)
        self._rows = Rows(X.shape[1], label_type)
        seed = check_random_state(self.random_state).randint(2**31 - 1, size=4)
        seeds = np.random.SeedSequence(seed).spawn(n_trees + 1)
        *self._generators, self._common = [np.random.default_rng(s) for s in seeds]
        self._trees = [
            (make_tree(X.shape[1], lifetime, 1, 1), self._empty_labels()) for _ in range(n_trees)
        ]
        self.n_samples_seen_ = 0

    def _learn(self, X, y):
        """Grow empty trees from a batch, extend others row by row: the same law."""
        X = self._scaling(X)
        with np.errstate(over="ignore"):
            if not np.isfinite(np.ptp(X, axis=0).sum()):
                raise ValueError("The ranges of X add up to more than a float can hold: rescale X.")
        with deferred_interrupts():  # rows and trees go together
            self._take_in(X, y)

    def _take_in(self, X, y):
        rows, start = self._rows, self._rows.n
        rows.append(X, y)
        work = len(X) * len(self._trees)
        if start == 0:
            cease = np.zeros(1, dtype=np.bool_)
            self._trees = self._run(
                grow_tree,
                [
                    (rng, *tree, self._rules, rows.X, rows.y, rows.n, cease)
                    for rng, tree in zip(self._generators, self._trees)
                ],
                work,
                cease,
            )
        elif work < _WORTH_A_THREAD:
            self._extend_all(start)
        else:
            self._extend_each(start)
        self.n_samples_seen_ = rows.n

    def _extend_all(self, start):
        """Extend all trees by few rows: one call, since each costs more than a row does."""
        if self._packed is None:
            self._packed = List(self._trees)
        rows = self._rows
        extend_forest(
            self._common, self._packed, self._rules, rows.X, rows.y, start, rows.n, self._moved
        )

    def _extend_each(self, start):
        """Extend each tree by many rows, some at a time, all of which an interrupt finds learnt."""
        rows, jobs = self._rows, effective_n_jobs(self.n_jobs)
        some = 1 + _WORTH_A_THREAD // len(self._trees)
        try:
            with deferred_interrupts() as held, Parallel(jobs, require="sharedmem") as parallel:
                while start < rows.n:
                    stop, begun = min(start + some, rows.n), time.perf_counter()
                    self._trees = parallel(
                        delayed(extend_tree)(rng, *tree, self._rules, rows.X, rows.y, start, stop)
                        for rng, tree in zip(self._generators, self._trees)
                    )
                    start = self.n_samples_seen_ = stop
                    took = time.perf_counter() - begun
                    some = 2 * some if took < 0.1 else 1 + int(some * 0.2 / took)
                    held.answer()
        except BaseException:
            rows.n = start
            raise

    @property
    def _trees(self) -> list[tuple[Any, Any]]:
        """(tree, labels) of each tree; their arrays are those of `_packed`, where there is one."""
        if self._moved.any():
            for t in np.flatnonzero(self._moved):
                self._in_python[t] = self._packed[t]
            self._moved[:] = False
        return self._in_python

    @_trees.setter
    def _trees(self, trees):
        self._in_python, self._packed = trees, None
        self._moved = np.zeros(len(trees), dtype=np.bool_)

    def __getstate__(self):
        """Without what can be packed again."""
        state = dict(super().__getstate__())
        if "_packed" in state:
            state |= {"_in_python": list(self._trees), "_packed": None}
            state["_moved"] = self._moved.copy()
        return state

    def _box(self):
        """(2, features) least and largest values seen, scaled."""
        tree, _ = self._trees[0]
        return tree.box[tree.state[ROOT]]

    def _linear_dimension(self):
        """Sum of the sides of the box of all rows; 1 where it has none."""
        low, high = self._box()
        return (high - low).sum() or 1.0

    def _inputs(self, X):
        """Rows to predict, checked and scaled."""
        check_is_fitted(self, "n_samples_seen_")
        X = validate_data(self, X, reset=False, dtype=np.float64, order="C")
        return plain(self._scaling(X))

    def _pieces(self, n):
        """Slices of rows, one for each thread."""
        enough = -(-n * len(self._trees) // _LONG)  # an interrupt waits for one piece
        pieces = min(n, max(effective_n_jobs(self.n_jobs), enough))
        ends = np.linspace(0, n, pieces + 1).astype(int)
        return [slice(a, b) for a, b in zip(ends[:-1], ends[1:])]

    def apply(self, X):
        """Leaf of each row in each tree.

        Parameters
        ----------
        X : (n, p) array

        Returns
        -------
        (n, n_estimators) int array
            Number of the leaf; numbers of leaves are kept while a tree grows, but a leaf that is
            split has its number as a split node.
        """
        X = self._inputs(X)
        out = np.empty((len(self._trees), len(X)), dtype=np.int64)
        self._run(
            find_leaves,
            [(tree, X, leaves) for (tree, _), leaves in zip(self._trees, out)],
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
            1 where a row goes through a node.
        n_nodes_ptr : (n_estimators + 1,) int array
            Columns ``n_nodes_ptr[t]`` to ``n_nodes_ptr[t + 1]`` belong to tree t.
        """
        X = self._inputs(X)
        blocks = []
        for tree, _ in self._trees:
            nodes, starts = find_paths(tree, X)
            shape = (len(X), int(tree.state[USED]))
            data = np.ones(nodes.size, dtype=np.int64)
            blocks.append(scipy.sparse.csr_array((data, nodes, starts), shape=shape))
        ends = np.concatenate([[0], np.cumsum([block.shape[1] for block in blocks])])
        return scipy.sparse.hstack(blocks, format="csr"), ends
