"""`MondrianForestRegressor`."""

import numpy as np
from sklearn.base import RegressorMixin

from pymc_trees.mondrian.inputs import MAX_LABEL, can_skip_checks, check_rows, refuse_text
from pymc_trees.mondrian.kernels.labels import make_moments
from pymc_trees.mondrian.kernels.predict import add_moments
from pymc_trees.mondrian.kernels.tree import ROOT
from pymc_trees.mondrian.predictive import MixtureForest


def check_labels(y):
    """The labels; ValueError if their squares would overflow."""
    if not max(y.max(), -y.min()) <= MAX_LABEL:
        raise ValueError(
            f"y must lie within {MAX_LABEL:g} of 0: sums of squares of larger numbers overflow. "
            "Rescale y, or leave these rows out."
        )
    return y


class MondrianForestRegressor(RegressorMixin, MixtureForest):
    """Forest of Mondrian trees that learns numbers, in a batch or row by row.

    A forest trained row by row, in any order, has the same distribution as a forest fitted at once.
    The prediction is a mixture of normals, over trees and over all ways in which a new point may
    leave a tree: far from the data its mean and sd return to those of the prior.

    Splits do not depend on y, and a feature with a wider range is split more often: bring features
    to a common scale (`scaling`), and leave out irrelevant ones.

    Parameters
    ----------
    n_estimators : int, default 100
        Number of trees.
    lifetime : float, default inf
        Time after which no split happens (thesis, 5.3.1), in the inverse units of X.
    min_samples_split : int, default 10
        Blocks with fewer rows are paused (thesis, 6.3.2).
    max_leaf_nodes : int, optional
        Maximum number of leaves of a tree. A tree that would have more has its lifetime shortened
        to the time of the first excess split; its distribution is still that of batch training.
    max_memory : float, optional
        Maximum memory of the forest in megabytes (10**6 bytes), for any number of rows: rows that
        no tree waits for are dropped, and a tree without room for another split is not split
        further; its boxes and means are still updated with all rows (`docs/mondrian.md`).
    window : int, optional
        How many of the latest rows the forest knows, for streams that change. Older rows are
        forgotten when an eighth as many new ones have come: the trees are then grown from the
        latest ``window`` rows, and have the distribution of batch training on them. Default: no
        row is forgotten.
    posterior : "exact" or "fast", default "exact"
        Belief propagation, which after new rows goes once over all nodes before it predicts; or
        the mean and variance of the rows of each node in place of its posterior (thesis, 6.3.3),
        which new rows change on their path alone.
    mean, gamma_1, gamma_2, noise_variance : float, optional
        Settings mu_H, gamma_1, gamma_2, sigma_y**2 of the prior: ``mu_root ~ N(mean, phi)``,
        ``mu_j ~ N(mu_parent, phi_j)``, ``y ~ N(mu_leaf, noise_variance)``, with ``phi_j = gamma_1
        (logistic(gamma_2 tau_j) - logistic(gamma_2 tau_parent))``. By default mean and gamma_1 are
        such that far from the data y has the mean and variance of the y seen so far (thesis,
        6.3.2); the other two are set by `hyperparameters`.
    hyperparameters : "leave-one-out" or "heuristic", default "leave-one-out"
        How gamma_2 and noise_variance are set. "leave-one-out" searches, before the first
        prediction after new rows, for those with which each row is best predicted from all
        others, by the continuous ranked probability score of a normal distribution with the mean
        and sd of the forest (Gneiting 2005), over up to 3,000 rows and 25 trees. "heuristic" is
        that of the thesis (6.3.2): noise_variance = gamma_1 / min(2000, 2n) and gamma_2 = R / (20
        log2 n), where R is the sum of the ranges of the features, the thesis' D for features that
        fill [0, 1]. A fast posterior has the noise of the heuristic.
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
        For settings out of range, and values that are missing or infinite: impute them first.

    Notes
    -----
    Two terms that the thesis leaves out are kept: the component of a point that does not leave its
    leaf (footnote 4 of chapter 6), and the distribution of the time at which it leaves, which is
    integrated by quadrature to an error below 4e-6 gamma_1. Without `max_memory` all rows are kept,
    since paused blocks need them.

    References
    ----------
    Lakshminarayanan, B. (2016). Decision Trees and Forests: A Probabilistic Perspective, chapter 6:
    alg. 6.1 to 6.5, (6.2) to (6.5).

    Gneiting, Raftery, Westveld and Goldman (2005). Calibrated probabilistic forecasting using
    ensemble model output statistics and minimum CRPS estimation. Monthly Weather Review 133(5),
    1098-1118.

    Examples
    --------
    >>> import numpy as np, pymc_trees as pmt
    >>> rng = np.random.default_rng(1)
    >>> X = rng.random((300, 1))
    >>> y = np.sin(6 * X[:, 0]) + 0.1 * rng.normal(size=300)
    >>> forest = pmt.MondrianForestRegressor(random_state=1).fit(X, y)
    >>> mean, sd = forest.predict([[0.25], [1e6]], return_std=True)
    >>> bool(abs(mean[0] - np.sin(1.5)) < 0.15), bool(sd[0] < 0.4)
    (True, True)
    >>> np.allclose([mean[1], sd[1]], [y.mean(), y.std()], atol=1e-4)
    True
    """

    _pause_pure = False

    def __init__(
        self,
        n_estimators=100,
        *,
        lifetime=np.inf,
        min_samples_split=10,
        max_leaf_nodes=None,
        max_memory=None,
        window=None,
        posterior="exact",
        hyperparameters="leave-one-out",
        mean=None,
        gamma_1=None,
        gamma_2=None,
        noise_variance=None,
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
        self.posterior = posterior
        self.hyperparameters = hyperparameters
        self.mean = mean
        self.gamma_1 = gamma_1
        self.gamma_2 = gamma_2
        self.noise_variance = noise_variance
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
            Finite numbers.

        Returns
        -------
        MondrianForestRegressor
            This forest.
        """
        self._prior()
        columns, X, y = self._checked(X, y, None)
        self._ensemble = self._grow(columns, X, check_labels(y))
        return self

    def partial_fit(self, X, y):
        """Extend the trees by the rows of X; the first call makes them.

        Parameters
        ----------
        X : (n, p) array
            Finite numbers.
        y : (n,) array
            Finite numbers.

        Returns
        -------
        MondrianForestRegressor
            This forest.
        """
        if not self.__sklearn_is_fitted__():
            return self.fit(X, y)
        ensemble = self._fitted
        self._prior()
        self._check_design(ensemble)
        _, X, y = self._checked(X, y, ensemble)
        ensemble.extend(X, check_labels(y), self.n_jobs, self.progressbar)
        return self

    def _checked(self, X, y, ensemble):
        """Columns, rows and labels; new columns without a grown forest."""
        columns = self
        if ensemble is None or not (can_skip_checks(ensemble, X, y, "f") and np.isfinite(y).all()):
            y = refuse_text("y", y)
            columns, X, y = check_rows(self, X, y, ensemble is None, y_numeric=True)
        return columns, X, y.astype(np.float64)

    def _empty_labels(self, classes):
        return make_moments(1)

    def predict(self, X, return_std=False):
        """Predictive mean, and standard deviation (thesis, (6.4)).

        Parameters
        ----------
        X : (n, p) array
        return_std : bool, default False

        Returns
        -------
        mean : (n,) array
        sd : (n,) array
            Of a new y, only with ``return_std=True``.
        """
        ensemble, X = self._inputs(X)
        beliefs, trees = self._believe(ensemble), ensemble.trees
        tree, labels = trees[0]
        centre = float(labels.mean[tree.state[ROOT]])  # large means would drown the variance
        first, second = np.zeros((2, len(X)))

        def add(rows):
            for tree, belief in zip(trees, beliefs):
                add_moments(*tree, belief, X[rows], centre, first[rows], second[rows])

        self._over_rows(add, len(X), len(trees))
        mean = first / len(trees)
        if not return_std:
            return centre + mean
        return centre + mean, np.sqrt(np.maximum(second / len(trees) - mean**2, 0.0))
