"""`MondrianForestClassifier`: encoded classes, class probabilities and draws, the estimator."""

from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets

from pymc_trees.arguments import check_number, plain_labels
from pymc_trees.mondrian.exporting import of_classes
from pymc_trees.mondrian.forest import MondrianForest, predictive_data
from pymc_trees.mondrian.inputs import (
    can_skip_checks,
    check_finite,
    check_positive_finite,
    check_rows,
    refuse_masked,
)
from pymc_trees.mondrian.kernels.categories import (
    Smoothing,
    add_class_probabilities,
    make_categories,
)

# --------------------------------------------------------------------- Classes and their encoding


def check_classes(classes):
    """All classes that will occur, in ascending order."""
    if classes is None:
        raise ValueError(
            "classes must be passed on the first call to partial_fit: all classes that will ever "
            "occur, since a new class would change every prediction."
        )
    labels = np.unique(refuse_masked("classes", classes))
    if (
        np.ndim(classes) != 1
        or not labels.size
        or (labels.dtype.kind == "f" and not np.isfinite(labels).all())
    ):
        raise ValueError(
            f"classes must be a list of labels, at least one of them, got {classes!r}."
        )
    return labels


def check_same_classes(classes, known):
    """Refuse classes that differ from those of the first call."""
    if classes is not None and not np.array_equal(np.unique(classes), known):
        raise ValueError(
            f"classes={classes!r} differ from those of the first call of partial_fit, {known!r}: "
            "leave them out, or fit a new forest."
        )


def encode_classes(y, classes):
    """Index of each label among the classes."""
    codes = np.searchsorted(classes, y).clip(max=len(classes) - 1)
    unseen = classes[codes] != y
    if unseen.any():
        raise ValueError(
            f"y has classes {np.unique(y[unseen])!r} that are not in classes_, "
            f"{classes!r}: give all of them as classes at the first partial_fit."
        )
    return codes.astype(np.int64)


# -------------------------------------------------------------------- Class probabilities and draws


CONCENTRATION = {"shares": 0.3, "kneser-ney": 0.0}
"""Default concentration for each ``smoothing``."""


class ClassForest(MondrianForest):
    """Predictions of a forest of classes."""

    gamma: Any
    smoothing: Any
    concentration: Any

    def _smoothing(self, ensemble=None):
        """Checked settings of predictions; the default gamma depends on the rows learnt."""
        gamma, concentration = self.gamma, self.concentration
        if gamma is not None:
            gamma = check_positive_finite("gamma", gamma, " or None")
        elif ensemble is not None:
            gamma = 10 * ensemble.linear_dimension()
        if self.smoothing not in tuple(CONCENTRATION):
            raise ValueError(f"smoothing must be 'shares' or 'kneser-ney', got {self.smoothing!r}.")
        if concentration is None:
            concentration = CONCENTRATION[self.smoothing]
        elif check_finite("concentration", concentration, " or None") < 0:
            raise ValueError(
                f"concentration must be 0 or a positive number, or None, got {concentration!r}."
            )
        return Smoothing(self.smoothing == "kneser-ney", gamma, float(concentration))

    def _checked(self, X, y, reset=True):
        """Columns, rows and labels."""
        columns, X, y = check_rows(self, X, plain_labels("y", refuse_masked("y", y)), reset)
        check_classification_targets(y)
        return columns, X, y

    def _empty_labels(self, classes):
        return make_categories(len(classes), 1)

    def predict_proba(self, X):
        """Class probabilities, averaged over all extensions of all trees (thesis, (5.6)).

        Parameters
        ----------
        X : (n, p) array

        Returns
        -------
        (n, K) array
            Columns in the order of `classes_`.
        """
        ensemble, X = self._inputs(X)
        return self._probabilities(ensemble, X)

    def _probabilities(self, ensemble, X):
        smoothing = self._smoothing(ensemble)
        out, trees = np.zeros((len(X), len(ensemble.classes))), ensemble.trees

        def add(rows):
            for tree, labels in trees:
                add_class_probabilities(tree, labels, smoothing, X[rows], out[rows])

        self._over_rows(add, len(X), len(trees))
        return out / len(trees)

    def predict(self, X):
        """Most probable class.

        Parameters
        ----------
        X : (n, p) array

        Returns
        -------
        (n,) array
        """
        ensemble, X = self._inputs(X)
        return ensemble.classes[self._probabilities(ensemble, X).argmax(axis=1)]

    def predictor(self, draws=None):
        """Make the forest predict without scikit-learn and without a compiler.

        Parameters
        ----------
        draws : int, optional
            How many trees, evenly spaced. Default: all.

        Returns
        -------
        Predictor
            Its draws are the trees, its only function p are the probabilities of each of them. It
            has the numbers of rows of each class in each node, and the boxes of the nodes; that
            of a node with one row is the row.

        Raises
        ------
        NotFittedError
            The forest is not fitted.
        """
        ensemble = self._fitted
        made = of_classes(ensemble, self._smoothing(ensemble))
        return made if draws is None else made.thinned(draws)

    def log_predictive_density(self, X, y):
        """Log probability of each row's class.

        Parameters
        ----------
        X : (n, p) array
        y : (n,) array
            Classes.

        Returns
        -------
        (n,) array
        """
        ensemble = self._fitted
        _, _, y = self._checked(X, y, reset=False)
        codes = encode_classes(y, ensemble.classes)
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X)[np.arange(len(codes)), codes])

    def _sample(self, X, n_samples, random_state):
        """The fitted forest, and indices of drawn classes."""
        ensemble, X = self._inputs(X)
        check_number("n_samples", n_samples, 1)
        bounds = self._probabilities(ensemble, X).cumsum(axis=1)
        u = check_random_state(random_state).random_sample((len(bounds), n_samples))
        codes = (u[:, :, None] * bounds[:, -1, None, None] >= bounds[:, None, :]).sum(axis=2)
        return ensemble, codes.clip(max=len(ensemble.classes) - 1)

    def sample_y(self, X, n_samples=1, random_state=None):
        """Draws of the class of each row, independent of each other.

        Parameters
        ----------
        X : (n, p) array
        n_samples : int, default 1
        random_state : int, RandomState or None

        Returns
        -------
        (n, n_samples) array
        """
        ensemble, codes = self._sample(X, n_samples, random_state)
        return ensemble.classes[codes]

    def to_arviz(self, X, y=None, n_draws=1000, random_state=None):
        """Predictive draws and observed values for ArviZ's predictive checks.

        Parameters
        ----------
        X : (n, p) array
            Held-out rows.
        y : (n,) array, optional
            Their classes.
        n_draws : int, default 1000
        random_state : int, RandomState or None

        Returns
        -------
        xarray.DataTree
            Groups ``posterior_predictive`` and ``observed_data``, both with ``y``: positions in
            `classes_`, dimension ``row``.
        """
        ensemble, draws = self._sample(X, n_draws, random_state)
        observed = None
        if y is not None:
            observed = encode_classes(self._checked(X, y, reset=False)[2], ensemble.classes)
        return predictive_data(draws, observed, {"classes": [str(c) for c in ensemble.classes]})


# ---------------------------------------------------------------------- `MondrianForestClassifier`


class MondrianForestClassifier(ClassifierMixin, ClassForest):
    """Forest of Mondrian trees that learns classes, in a batch or row by row.

    A forest trained row by row, in any order, has the same distribution as a forest fitted at once.
    Class probabilities are smoothed along the path from the root, under a hierarchy of normalized
    stable processes, and averaged over all ways in which a new point may leave the tree: far from
    the data all classes are equally likely.

    Splits do not depend on the labels, and a feature with a wider range is split more often: bring
    features to a common scale (`scaling`), and leave out irrelevant ones.

    Parameters
    ----------
    n_estimators : int, default 100
        Number of trees (thesis, 5.7).
    lifetime : float, default inf
        Time after which no split happens (thesis, 5.3.1), in the inverse units of X.
    min_samples_split : int, default 2
        Blocks with fewer rows are paused, as are blocks with one class (thesis, 5.5.1).
    max_leaf_nodes : int, optional
        Maximum number of leaves of a tree. A tree that would have more has its lifetime shortened
        to the time of the first excess split; its distribution is still that of batch training.
    max_memory : float, optional
        Maximum memory of the forest in megabytes (10**6 bytes), for any number of rows: rows that
        no tree waits for are dropped, and a tree without room for another split is not split
        further; its boxes and counts are still updated with all rows (`docs/mondrian.md`).
    window : int, optional
        How many of the latest rows the forest knows, for streams that change. Older rows are
        forgotten when an eighth as many new ones have come: the trees are then grown from the
        latest ``window`` rows, and have the distribution of batch training on them. Default: no
        row is forgotten.
    gamma : float, optional
        The discount of node j is ``exp(-gamma (tau_j - tau_parent))``: small values smooth more.
        Default: 10 times the sum of the ranges of the features seen, which is the ``10 D`` of the
        thesis (5.7) for D features that fill [0, 1].
    smoothing : {"shares", "kneser-ney"}, default "shares"
        Estimate of the class probabilities of a node, from its rows and its parent's estimate.
        "shares" draws the share of each class among the rows towards the parent's estimate, the
        less the more rows there are; it is the best linear estimate (`docs/mondrian_classes.md`).
        "kneser-ney" is the thesis' (5.4.1): only which classes a node has seen goes up to its
        parent, so that where places have rows of several classes, all of these become equally
        likely beside them.
    concentration : float, optional
        How many rows the parent's estimate counts for, at points that lie within the box of a
        node: with 0, a place with rows of one class has no other. Default: 0.3, and 0 with
        "kneser-ney" as in the thesis. It takes effect at once, as do `gamma` and `smoothing`.
    scaling : None, "first" or (low, high), default None
        Map low to 0 and high to 1, each a number or an array of shape (p,); "first" uses the range
        of the rows in the first call of `fit` or `partial_fit`. There is no scaling by the range
        seen so far, since it would change with the data, and online and batch training would
        differ.
    n_jobs : int, optional
        Number of threads, as in joblib. The results do not depend on it.
    random_state : int, RandomState or None
        Seed of the trees.
    progressbar : bool, default True
        Whether a bar shows how far learning is, where it takes seconds; in a pipe, a line a minute
        does.

    Attributes
    ----------
    classes_ : (K,) array
        Class labels in ascending order.
    n_samples_seen_ : int
        Number of rows seen, also those that are forgotten.
    n_features_in_ : int
        Features.
    n_leaves_ : (n_estimators,) array
        Leaves of each tree.
    closed_ : (n_estimators,) array
        Whether each tree is no longer split, because `max_memory` leaves no room.
    feature_names_in_ : (p,) array
        Names of the features, if X had any.

    Raises
    ------
    ValueError
        For settings out of range, labels that are not in `classes_`, and values of X that are
        missing or infinite: impute them first.

    Notes
    -----
    ``smoothing="kneser-ney", concentration=0`` is the forest of the thesis. Without `max_memory`
    all rows are kept, since paused blocks need them; memory is mostly the boxes of the nodes, 16
    bytes per node and feature, and their class counts, 4 bytes per node and class.

    References
    ----------
    Lakshminarayanan, B. (2016). Decision Trees and Forests: A Probabilistic Perspective, chapter 5:
    alg. 5.9 and 5.10, (5.5) to (5.7).

    Examples
    --------
    >>> import numpy as np, pymc_trees as pmt
    >>> rng = np.random.default_rng(1)
    >>> X = rng.random((200, 2))
    >>> y = np.where(X[:, 0] > 0.5, "high", "low")
    >>> forest = pmt.MondrianForestClassifier(n_estimators=20, random_state=1)
    >>> for part in np.array_split(np.arange(200), 10):
    ...     forest = forest.partial_fit(X[part], y[part], classes=["high", "low"])
    >>> forest.predict([[0.9, 0.5], [0.1, 0.5]])
    array(['high', 'low'], dtype='<U4')
    >>> forest.predict_proba([[100.0, 100.0]]).round(2)
    array([[0.5, 0.5]])
    """

    _pause_pure = True

    def __init__(
        self,
        n_estimators=100,
        *,
        lifetime=np.inf,
        min_samples_split=2,
        max_leaf_nodes=None,
        max_memory=None,
        window=None,
        gamma=None,
        smoothing="shares",
        concentration=None,
        scaling=None,
        n_jobs=None,
        random_state=None,
        progressbar=True,
    ):
        self.n_estimators = n_estimators
        self.lifetime = lifetime
        self.min_samples_split = min_samples_split
        self.max_leaf_nodes = max_leaf_nodes
        self.max_memory = max_memory
        self.window = window
        self.gamma = gamma
        self.smoothing = smoothing
        self.concentration = concentration
        self.scaling = scaling
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.progressbar = progressbar

    def fit(self, X, y):
        """Discard the trees and grow new ones from the rows of X.

        Parameters
        ----------
        X : (n, p) array
            Finite numbers.
        y : (n,) array
            Classes.

        Returns
        -------
        MondrianForestClassifier
            This forest.
        """
        self._smoothing()
        columns, X, y = self._checked(X, y)
        classes = np.unique(y)
        self._ensemble = self._grow(columns, X, encode_classes(y, classes), classes)
        return self

    def partial_fit(self, X, y, classes=None):
        """Extend the trees by the rows of X; the first call makes them.

        Parameters
        ----------
        X : (n, p) array
            Finite numbers.
        y : (n,) array
            Classes.
        classes : (K,) array
            All classes that will occur; required at the first call.

        Returns
        -------
        MondrianForestClassifier
            This forest.
        """
        self._smoothing()
        if self.__sklearn_is_fitted__():
            ensemble = self._fitted
            self._check_design(ensemble)
            check_same_classes(classes, ensemble.classes)
            if not can_skip_checks(ensemble, X, y, "iubU"):
                _, X, y = self._checked(X, y, reset=False)
            labels = encode_classes(y, ensemble.classes)
            ensemble.extend(X, labels, self.n_jobs, self.progressbar)
            return self
        all_classes = check_classes(classes)
        columns, X, y = self._checked(X, y)
        self._ensemble = self._grow(columns, X, encode_classes(y, all_classes), all_classes)
        return self

    @property
    def classes_(self):
        """Class labels in ascending order."""
        return self._fitted.classes
