"""A fitted forest: its trees and their rows, and how it learns more rows.

`fit` makes such an object and then assigns it to the estimator in one statement, so no error or
interrupt leaves the estimator between two forests. Further rows go into all trees or into none.
"""

from itertools import count
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numba.typed import List

from pymc_trees.core.interrupts import deferred_interrupts, run_interruptible
from pymc_trees.mondrian.inputs import MAX_VALUE
from pymc_trees.mondrian.kernels.extend import extend_forest, extend_tree
from pymc_trees.mondrian.kernels.grow import grow_tree
from pymc_trees.mondrian.kernels.tree import COUNT_LIMIT, ROOT, Rules, make_tree
from pymc_trees.mondrian.kernels.validate import check_tree
from pymc_trees.progress import reporting

_FORMAT = 3
"""Version of pickles."""
_FIRST_BLOCK, _BLOCK_SECONDS = 64, 0.25
"""Number of rows of the first block that all trees learn; time that later blocks should take."""


class Design(NamedTuple):
    """Settings that shape the trees: `partial_fit` cannot change them."""

    n_estimators: int
    lifetime: float
    min_samples_split: int
    max_leaf_nodes: int | None
    max_memory: float | None
    scaling: Any
    window: int | None


def owned(arrays):
    """Writable arrays in the memory of this process."""
    return [np.require(a, requirements=["C", "O", "W", "E"]) for a in arrays]


class Ensemble:
    """Trees grown from a first batch of rows.

    Parameters
    ----------
    design : Design
    pause_pure : bool
        Whether blocks whose labels are all equal are paused.
    columns : Columns
    X, y : arrays
    classes : (K,) array or None
    empty : tuple
        Label statistics of one node without rows.
    seed : sequence of int
    n_jobs : int or None
    progressbar : bool
        Whether progress is shown where trees take seconds.
    """

    whole = True
    """Whether leaves keep all their rows."""
    _in_python: list[tuple[Any, Any]]
    _packed: Any
    _moved: np.ndarray

    def __init__(
        self, design, pause_pure, columns, X, y, classes, empty, seed, n_jobs, progressbar
    ):
        self.format = _FORMAT
        self.design, self.empty, self.classes, self.names = design, empty, classes, columns.names
        self.scaling = Scaling(design.scaling, X)
        self._allocate(pause_pure, X.shape[1], y.dtype)
        seeds = np.random.SeedSequence(seed).spawn(int(design.n_estimators) + 1)
        *self.generators, self.common = [np.random.default_rng(s) for s in seeds]
        self.beliefs: Any = None  # computed by the first prediction after new rows
        self.trees = []
        jobs = jobs_for(n_jobs, len(X) * len(self.generators))
        self._grow_first(self.scaling.of_new(X), y, jobs, progressbar)

    def _allocate(self, pause_pure, n_columns, label_type):
        """Set the bounds of the trees, and make room for rows."""
        most = self.design.max_leaf_nodes
        most = COUNT_LIMIT if most is None else int(most)
        mss = int(self.design.min_samples_split)
        self.rules = Rules(mss, pause_pure, most, COUNT_LIMIT, COUNT_LIMIT, COUNT_LIMIT)
        self.rows = Rows(n_columns, label_type, COUNT_LIMIT)

    def _grow_first(self, X, y, jobs, progressbar=False):
        """Grow trees from the first rows."""
        self.rows.put(X, y)
        self._grow(len(y), jobs, progressbar)
        self.rows.n = len(y)

    def _regrow(self, jobs):
        """Grow trees from all rows learnt."""
        self._grow(self.rows.n, jobs)

    def _grow(self, n, jobs, progressbar=False):
        """Grow trees from the first n rows."""
        rows, stop_flag = self.rows, np.zeros(1, dtype=np.bool_)
        tasks = []
        for rng in self.generators:
            tree = make_tree(rows.X.shape[1], float(self.design.lifetime), 1, len(rows.X))
            labels = type(self.empty)(*(array.copy() for array in self.empty))
            tasks.append((rng, tree, labels, self.rules, rows.X, rows.y, n, stop_flag))
        work = n * len(tasks)
        with reporting("Mondrian trees", len(tasks), progressbar and work > SLOW) as report:
            self.trees = run(counted(grow_tree, report), tasks, work, jobs, stop_flag)

    @property
    def n_seen(self):
        """Number of rows in the trees."""
        return self.rows.n

    @property
    def n_ever(self):
        """Number of rows learnt."""
        return self.n_seen

    def learnt_rows(self):
        """Rows and labels learnt: all, or a sample."""
        return self.rows.learnt()

    @property
    def n_columns(self):
        """Number of columns of the rows."""
        return self._in_python[0][0].box.shape[2]

    @property
    def trees(self) -> list[tuple[Any, Any]]:
        """(tree, labels) of each tree; if there is a `_packed` list, with its arrays."""
        if self._moved.any():
            with deferred_interrupts():
                for t in np.flatnonzero(self._moved):
                    self._in_python[t] = self._packed[t]
                self._moved[:] = False
        return self._in_python

    @trees.setter
    def trees(self, trees):
        self._in_python, self._packed = trees, None
        self._moved = np.zeros(len(trees), dtype=np.bool_)

    def extend(self, X, y, n_jobs, progressbar=False):
        """Learn some rows, in blocks.

        Interrupts wait for the end of a block. If a block fails, for lack of memory, some trees
        have its rows and others do not. All trees are then grown anew from the rows learnt before,
        which gives them the same distribution. If memory is too short for that, no trees are left.
        """
        work = len(X) * len(self._in_python)
        jobs, few = jobs_for(n_jobs, work), work < WORTH_A_THREAD
        self._extend(self.scaling.of_new(X), y, few, jobs, progressbar and work > SLOW)

    def _extend(self, X, y, few, jobs, progressbar=False):
        """Learn scaled rows, in one block if they are few."""
        shown = reporting("Rows of Mondrian trees", len(X), progressbar)
        with shown as report, deferred_interrupts() as held:
            self.beliefs = None
            size, start = len(X) if few else _FIRST_BLOCK, 0
            while start < len(X):
                begin = perf_counter()
                stop = min(start + min(size, self._free_rows(jobs)), len(X))
                block = X[start:stop], y[start:stop]
                self.rows.put(*block)
                end = self.rows.n + stop - start
                try:
                    if few:
                        self._extend_all(end)
                    else:
                        self._extend_each(end, jobs)
                    self._count(*block)
                except BaseException:
                    self.trees = []
                    self.generators = self.common.spawn(len(self.generators))
                    self._regrow(jobs)
                    raise
                start = stop
                report(stop)
                held.answer()
                seconds = max(perf_counter() - begin, 1e-6)
                size = max(1, int(size * min(4.0, _BLOCK_SECONDS / seconds)))

    def _free_rows(self, jobs):
        """Number of rows that there is room for now."""
        return COUNT_LIMIT

    def _count(self, X, y):
        """Record that all trees have learnt some rows."""
        self.rows.n += len(y)

    def _extend_all(self, stop):
        """Extend all trees by few rows in one call, whose overhead exceeds the work for a row."""
        if self._packed is None:
            self._packed = List(self.trees)
        rows = self.rows
        extend_forest(
            self.common, self._packed, self.rules, rows.X, rows.y, rows.n, stop, self._moved
        )

    def _extend_each(self, stop, jobs):
        """Extend each tree by a block of rows."""
        rows, trees = self.rows, self.trees

        def one(t, rng):  # in place: frees the old arrays before those of the next tree are copied
            trees[t] = extend_tree(rng, *trees[t], self.rules, rows.X, rows.y, rows.n, stop)

        run_all(one, list(enumerate(self.generators)), jobs)
        self.trees = trees

    def box(self):
        """(2, features) smallest and largest scaled values."""
        tree, _ = self.trees[0]
        return tree.box[tree.state[ROOT]]

    def linear_dimension(self):
        """Sum of the sides of the box of all rows, or 1 if that is 0."""
        low, high = self.box()
        return (high - low).sum() or 1.0

    def __getstate__(self):
        """Without the packed list, which can be made again."""
        state = dict(self.__dict__)
        state |= {"_in_python": list(self.trees), "_packed": None, "_moved": self._moved.copy()}
        return state

    def __setstate__(self, state):
        """Refuse damaged pickles: kernels follow indices without bounds checks."""
        try:
            if state["format"] != _FORMAT:
                raise ValueError(f"format {state['format']}, not {_FORMAT}")
            self.__dict__.update(state)
            self._own()
            self._check()
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            raise ValueError(
                "This pickled Mondrian forest is damaged, or was written by another version of "
                f"pymc_trees ({error}): fit it again."
            ) from error

    def _own(self):
        """Copy read-only arrays, such as those of files: kernels take writable ones."""
        rows = self.rows
        rows.X, rows.y = owned((rows.X, rows.y))
        self.trees = [
            (type(tree)(*owned(tree)), type(labels)(*owned(labels)))
            for tree, labels in self._in_python
        ]

    def _parts(self):
        """Components of the forest, and their types."""
        return [
            (self.rows, Rows),
            (self.scaling, Scaling),
            (self.rules, Rules),
            (self.design, Design),
            (self.common, np.random.Generator),
            *((rng, np.random.Generator) for rng in self.generators),
        ]

    def _check(self):
        """Raise an error if trees, rows and settings do not fit each other."""
        rows, n_trees = self.rows, len(self._in_python)
        for part, kind in self._parts():
            if not isinstance(part, kind):
                raise TypeError(f"{type(part).__name__} for {kind.__name__}")
        self._check_rows(rows)
        if len(self.generators) != n_trees:
            raise ValueError("another number of trees")
        counts = rows.X.shape[1], self.n_seen, rows.n
        for tree, labels in self._in_python:
            check_tree(tree, labels, counts, self.empty, self.whole)

    def _check_rows(self, rows):
        """Raise an error for rows that a forest cannot have."""
        if not 0 <= rows.n <= len(rows.X) == len(rows.y):
            raise ValueError("more rows are counted than there are")
        kinds = (np.float64, 2), (np.float64 if self.classes is None else np.int64, 1)
        for array, (dtype, n_dims) in zip((rows.X, rows.y), kinds):
            if array.dtype != dtype or array.ndim != n_dims:
                raise ValueError("rows are of another type")
        X, y = rows.learnt()
        if not (np.isfinite(X).all() and np.isfinite(y).all()):
            raise ValueError("rows are not finite")
        if self.classes is not None and rows.n and not 0 <= y.min() <= y.max() < len(self.classes):
            raise ValueError("labels are not classes")


# -------------------------------- The rows that a forest has seen, or a sample of them; their scale


_PIECE = 4096
"""Number of rows moved at a time."""


class Rows:
    """Rows and labels, the first ``n`` of which are learnt, in arrays that grow by doubling."""

    def __init__(self, n_columns, label_type, most):
        self.n, self.most = 0, most
        self.X = np.empty((0, n_columns))
        self.y = np.empty(0, dtype=label_type)

    def learnt(self):
        """Rows and labels that are learnt."""
        return self.X[: self.n], self.y[: self.n]

    def __getstate__(self):
        """Without unused room."""
        X, y = self.learnt()
        return self.__dict__ | {"X": X, "y": y}

    def put(self, X, y):
        """Copy some rows behind those learnt."""
        n = self.n + len(X)
        if n > len(self.X):
            room = max(n, min(2 * len(self.X), self.most))
            self.X, self.y = self._with_room(self.X, room), self._with_room(self.y, room)
        self.X[self.n : n] = X
        self.y[self.n : n] = y

    def keep(self, some):
        """Drop all rows except some, given by ascending indices."""
        self.n = len(some)
        for begin in range(0, self.n, _PIECE):  # in pieces: no copy of all of them is made
            rows = some[begin : begin + _PIECE]
            self.X[begin : begin + len(rows)] = self.X[rows]
            self.y[begin : begin + len(rows)] = self.y[rows]

    def _with_room(self, array, room):
        longer = np.empty((room, *array.shape[1:]), dtype=array.dtype)
        longer[: self.n] = array[: self.n]
        return longer


class Sample(Rows):
    """Every row of a stream, later every second, every fourth and so on; a bounded, even number."""

    def __init__(self, n_columns, label_type, most):
        super().__init__(n_columns, label_type, most)
        self.every, self.seen = 1, 0

    def count(self, X, y):
        """Continue with some rows of the stream, and keep every so many."""
        turn = -self.seen % self.every
        self.seen += len(y)
        X, y = X[turn :: self.every], y[turn :: self.every]
        while len(y):
            if self.n == self.most:
                self.keep(np.arange(0, self.n, 2))
                self.every *= 2
                X, y = X[::2], y[::2]  # ``most`` is even, so that it is the next row's turn
            n = min(len(y), self.most - self.n)
            self.put(X[:n], y[:n])
            self.n += n
            X, y = X[n:], y[n:]


class Scaling:
    """``(X - low) / (high - low)`` with fixed ends; None leaves X unchanged."""

    def __init__(self, scaling, X):
        if scaling is None:
            self.low, self.width = None, None
            return
        if isinstance(scaling, str):
            if scaling != "first":
                raise ValueError(
                    f"scaling must be None, 'first' or a pair (low, high), got {scaling!r}."
                )
            low, high = X.min(axis=0), X.max(axis=0)
        else:
            try:
                low, high = (
                    np.broadcast_to(np.asarray(end, dtype=np.float64), X.shape[1])
                    for end in scaling
                )
            except (TypeError, ValueError) as error:
                raise ValueError(
                    "scaling must be None, 'first' or a pair (low, high) of numbers or of arrays "
                    f"with one entry per feature ({X.shape[1]}), got {scaling!r}."
                ) from error
            if not (np.isfinite(low) & np.isfinite(high) & (low < high)).all():
                raise ValueError("scaling=(low, high) needs finite ends with low < high.")
        with np.errstate(over="ignore"):
            width = np.where(high > low, high - low, 1.0)  # a constant column stays constant
        if not np.isfinite(width).all():
            raise ValueError(f"scaling={scaling!r}: high - low overflows; rescale X.")
        self.low, self.width = low.copy(), width

    def __call__(self, X):
        """The scaled rows; values that overflow become infinite, further away than any point."""
        if self.low is None:
            return X
        with np.errstate(over="ignore"):
            return (X - self.low) / self.width

    def of_new(self, X):
        """The scaled rows; ValueError if sums of their distances would overflow."""
        X = self(X)
        if not max(X.max(), -X.min()) <= MAX_VALUE:
            scaled = "" if self.low is None else " once it is scaled"
            raise ValueError(
                f"X has values beyond {MAX_VALUE:g}{scaled}: with them every distance and every "
                "later prediction would be infinite or NaN. Leave these rows out, or rescale X."
            )
        return X


# --------------------------------------- Calls for many tuples of arguments, in threads if faster


WORTH_A_THREAD = 2000
"""Rows times trees below which threads are slower."""
LONG = 50_000
"""Rows times trees above which interrupts do not wait for the work, some tenths of a second."""
SLOW = 10 * LONG
"""Rows times trees above which progress is shown."""


def jobs_for(n_jobs, work):
    """Number of threads for some work; ValueError if joblib does not accept ``n_jobs``.

    Must be called in the caller's thread, whose joblib settings apply.
    """
    return 1 if work < WORTH_A_THREAD else effective_n_jobs(n_jobs)


def counted(function, report):
    """The function, which tells after each call how many there were."""
    done = count(1)  # one step of it is atomic, also between threads

    def one(*task):
        result = function(*task)
        report(next(done))
        return result

    return one


def run_all(function, tasks, jobs):
    """Results of a function for each tuple of arguments; interrupts wait for all of them."""
    with deferred_interrupts():
        return _results(function, tasks, jobs)


def run(function, tasks, work, jobs, stop_flag=None):
    """Results of a function for each tuple of arguments; interrupts wait for running tasks.

    On an interrupt ``stop_flag``, an array of one entry, is set, so that these tasks can stop
    early. The interrupt is raised when none of them runs any more.
    """
    if jobs == 1 and work <= LONG:
        return run_all(function, tasks, jobs)
    stop_flag = np.zeros(1, dtype=np.bool_) if stop_flag is None else stop_flag

    def one(*task):
        return None if stop_flag[0] else function(*task)

    return run_interruptible(lambda: _results(one, tasks, jobs), stop_flag)


def _results(function, tasks, jobs):
    if jobs == 1:
        return [function(*task) for task in tasks]
    return Parallel(n_jobs=jobs, require="sharedmem")(delayed(function)(*task) for task in tasks)
