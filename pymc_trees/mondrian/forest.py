"""What classifier and regressor share: settings, learning, leaves and paths."""

from typing import Any

import numpy as np
import scipy.sparse
from arviz_base import from_dict
from joblib import effective_n_jobs
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state

from pymc_trees.arguments import check_number
from pymc_trees.mondrian.bounded import BoundedEnsemble
from pymc_trees.mondrian.inputs import (
    as_kernel_input,
    check_lifetime,
    check_positive_finite,
    check_X,
    same,
)
from pymc_trees.mondrian.kernels.tree import CLOSED, LEAVES, USED, find_leaves, find_paths
from pymc_trees.mondrian.trees import LONG, Design, Ensemble, jobs_for, run
from pymc_trees.mondrian.windowed import WindowedEnsemble


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
