"""What both forests share: settings, learning, leaves and paths."""

from typing import Any

import numpy as np
import scipy.sparse
from arviz_base import from_dict
from joblib import effective_n_jobs
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state

from pymc_trees.arguments import check_number
from pymc_trees.mondrian.bounded import BoundedGrown
from pymc_trees.mondrian.inputs import checked_X, lifetime_of, plain, positive_and_finite, same
from pymc_trees.mondrian.kernels.tree import CLOSED, LEAVES, USED, find_leaves, find_paths
from pymc_trees.mondrian.trees import LONG, Design, Grown, jobs_for, run


class MondrianForest(BaseEstimator):
    """Settings and, once fitted, one `Grown` with all that was learnt.

    Public attributes of a fitted forest are read off that object, so that they never tell of
    another forest than its trees.
    """

    _pause_pure: bool
    n_estimators: Any
    lifetime: Any
    min_samples_split: Any
    max_leaf_nodes: Any
    max_memory: Any
    scaling: Any
    n_jobs: Any
    random_state: Any

    def __sklearn_is_fitted__(self):
        grown = self.__dict__.get("_grown")
        return grown is not None and bool(grown.trees)

    @property
    def _fitted(self) -> Grown:
        grown = self.__dict__.get("_grown")
        if grown is None or not grown.trees:
            raise NotFittedError(
                f"This {type(self).__name__} instance is not fitted yet. Call 'fit' with "
                "appropriate arguments before using this estimator."
            )
        return grown

    @property
    def n_samples_seen_(self):
        """Rows learnt."""
        return self._fitted.n_seen

    @property
    def n_features_in_(self):
        """Number of features."""
        return self._fitted.n_columns

    @property
    def n_leaves_(self):
        """Leaves of each tree."""
        return np.array([tree.state[LEAVES] for tree, _ in self._fitted.trees])

    @property
    def closed_(self):
        """Whether each tree is split no further, for want of memory."""
        return np.array([bool(tree.state[CLOSED]) for tree, _ in self._fitted.trees])

    @property
    def feature_names_in_(self):
        """Names of the features, where X had some."""
        names = self._fitted.names
        if names is None:
            raise AttributeError("feature_names_in_: X had no names when the forest was fitted.")
        return names

    def _design(self):
        """Settings that shape the trees, checked."""
        check_number("n_estimators", self.n_estimators, 1)
        lifetime_of(self.lifetime)
        check_number("min_samples_split", self.min_samples_split, 2)
        if self.max_leaf_nodes is not None:
            check_number("max_leaf_nodes", self.max_leaf_nodes, 1, " or None")
        if self.max_memory is not None:
            positive_and_finite("max_memory", self.max_memory, " or None")
        return Design(*(getattr(self, name) for name in Design._fields))

    def _check_design(self, grown):
        """Refuse settings that a forest that has been grown would not follow."""
        for name, kept in zip(Design._fields, grown.design):
            if not same(getattr(self, name), kept):
                self._design()
                raise ValueError(
                    f"{name}={getattr(self, name)!r}, but the trees were grown with {kept!r}, and "
                    "partial_fit cannot change that: set it back, or call fit."
                )

    def _grow(self, columns, X, y, classes=None):
        """A forest of these rows, beside the one there may be."""
        design = self._design()
        seed = check_random_state(self.random_state).randint(2**31 - 1, size=4)
        empty = self._empty_labels(classes)
        kind = Grown if design.max_memory is None else BoundedGrown
        return kind(design, self._pause_pure, columns, X, y, classes, empty, seed, self.n_jobs)

    def __setstate__(self, state):
        """`Grown` looks at what it is given; a forest of another time has none."""
        if "n_samples_seen_" in state or not isinstance(state.get("_grown"), Grown | None):
            raise ValueError(
                f"This pickled {type(self).__name__} was written by another version of "
                "pymc_trees: fit it again."
            )
        super().__setstate__(state)

    def _inputs(self, X) -> tuple[Grown, np.ndarray]:
        """The fitted forest; rows to predict, checked and scaled."""
        grown = self._fitted
        X = plain(grown.scaling(checked_X(self, X)))
        if X.shape[1] != grown.n_columns:  # it was fitted anew in another thread
            raise ValueError(f"X has {X.shape[1]} columns, the trees have {grown.n_columns}.")
        return grown, X

    def _run(self, function, tasks, work):
        """Results of a function on each tuple of arguments, in threads where that pays."""
        return run(function, tasks, work, jobs_for(self.n_jobs, work))

    def _over_rows(self, function, n, n_trees):
        """Call a function on slices of n rows."""
        enough = -(-n * n_trees // LONG)  # an interrupt waits for one slice
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
            Number of the leaf; numbers of leaves are kept while a tree grows, but a leaf that is
            split has its number as a split node.
        """
        grown, X = self._inputs(X)
        out = np.empty((len(grown.trees), len(X)), dtype=np.int64)
        self._run(
            find_leaves,
            [(tree, X, leaves) for (tree, _), leaves in zip(grown.trees, out)],
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
        grown, X = self._inputs(X)
        paths = self._run(
            find_paths, [(tree, X) for tree, _ in grown.trees], len(X) * len(grown.trees)
        )
        blocks = []
        for (tree, _), (nodes, starts) in zip(grown.trees, paths):
            shape = (len(X), int(tree.state[USED]))
            data = np.ones(nodes.size, dtype=np.int64)
            blocks.append(scipy.sparse.csr_array((data, nodes, starts), shape=shape))
        ends = np.concatenate([[0], np.cumsum([block.shape[1] for block in blocks])])
        return scipy.sparse.hstack(blocks, format="csr"), ends


# ------------------------------------------------ Draws of a predictive distribution as ArviZ data


def predictive_data(draws, observed, attrs):
    """`DataTree` of (n, draws) predictive draws and what was observed, if anything."""
    groups = {"posterior_predictive": {"y": np.ascontiguousarray(draws.T)[None]}}
    if observed is not None:
        groups["observed_data"] = {"y": observed}
    dims = {"y": ["row"]}
    return from_dict(groups, dims=dims, attrs={"/": attrs})
