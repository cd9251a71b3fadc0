"""`MondrianForestClassifier`."""

import numpy as np
from sklearn.base import ClassifierMixin

from pymc_trees.estimators.mondrian.classes import check_same_classes, codes_of, known_classes
from pymc_trees.estimators.mondrian.inputs import need_no_check
from pymc_trees.estimators.mondrian.probabilities import ClassForest


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

    Attributes
    ----------
    classes_ : (K,) array
        Class labels in ascending order.
    n_samples_seen_ : int
        Number of rows seen.
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
        gamma=None,
        smoothing="shares",
        concentration=None,
        scaling=None,
        n_jobs=None,
        random_state=None,
    ):
        self.n_estimators = n_estimators
        self.lifetime = lifetime
        self.min_samples_split = min_samples_split
        self.max_leaf_nodes = max_leaf_nodes
        self.max_memory = max_memory
        self.gamma = gamma
        self.smoothing = smoothing
        self.concentration = concentration
        self.scaling = scaling
        self.n_jobs = n_jobs
        self.random_state = random_state

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
        self._grown = self._grow(columns, X, codes_of(y, classes), classes)
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
            grown = self._fitted
            self._check_design(grown)
            check_same_classes(classes, grown.classes)
            if not need_no_check(grown, X, y, "iubU"):
                _, X, y = self._checked(X, y, reset=False)
            grown.extend(X, codes_of(y, grown.classes), self.n_jobs)
            return self
        known = known_classes(classes)
        columns, X, y = self._checked(X, y)
        self._grown = self._grow(columns, X, codes_of(y, known), known)
        return self

    @property
    def classes_(self):
        """Class labels in ascending order."""
        return self._fitted.classes
