"""`BARTClassifier`."""

import numpy as np
import pymc as pm
from scipy.special import expit, ndtr, softmax
from sklearn.base import ClassifierMixin
from sklearn.preprocessing import LabelEncoder
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d

from pymc_trees.arguments import check_choice, check_positive, plain_labels
from pymc_trees.estimators.base import BARTEstimator
from pymc_trees.estimators.inputs import taken, weights_of
from pymc_trees.estimators.models import LINKS, classification
from pymc_trees.posterior.exporting.expressions import Response


class BARTClassifier(ClassifierMixin, BARTEstimator):
    """Bayesian additive regression trees for classes.

    `fit` builds an ordinary PyMC model, kept as ``model_``, and samples it with `pymc.sample`; the
    draws are ``idata_``. Two classes have one forest, y_i ~ Bernoulli(link(f(x_i))); more have one
    each, and y_i ~ Categorical(softmax(f_1(x_i), ..., f_K(x_i))).

    Parameters
    ----------
    m : int, optional
        Number of trees, for each class if there are more than two. Default: 50, and from 5,000 rows
        on 200, as for `BART`.
    link : {"probit", "logit"}, default "probit"
        Link for two classes (Chipman 2010, section 4).
    k : float, default 2
        (-3, 3) on the scale of f spans 2 k prior standard deviations: a larger k shrinks
        probabilities towards one half.
    alpha, beta, split_prior, split_rules, n_cuts, draws, tune, chains, until, cores, \
random_state, progressbar
        As for `BARTRegressor`.

    Attributes
    ----------
    classes_ : (K,) array
        Labels, in the order of the columns of `predict_proba`.
    model_ : pymc.Model
        With ``f``, of shape (K, n) for more than two classes, and ``y``.
    idata_ : xarray.DataTree
        Result of `pymc.sample`. Functions at the training rows are recorded where their draws take
        at most 1 GB; otherwise every answer computes them from the trees.
    n_features_in_ : int
        Features.
    feature_names_in_ : (p,) array
        Names of the features, if X had any.

    Raises
    ------
    ValueError
        For settings out of range, y of one class, and inputs that `Data` refuses.

    Warns
    -----
    ConvergenceWarning
        When R-hat of f at training rows is above 1.05, with the remedy and whether all chains
        together can be used.

    References
    ----------
    Chipman, George and McCulloch (2010). BART: Bayesian additive regression trees. Annals of
    Applied Statistics 4(1), section 4.

    Examples
    --------
    >>> import numpy as np, pymc_trees as pmt
    >>> rng = np.random.default_rng(1)
    >>> X = rng.random((60, 2))
    >>> y = np.where(X[:, 0] > 0.5, "high", "low")
    >>> classifier = pmt.BARTClassifier(m=20, draws=50, tune=50, chains=1, random_state=1)
    >>> classifier.fit(X, y).predict([[0.05, 0.5], [0.95, 0.5]]).tolist()
    ['low', 'high']
    """

    def __init__(
        self,
        m=None,
        *,
        link="probit",
        k=2.0,
        alpha=0.95,
        beta=None,
        split_prior=None,
        split_rules=None,
        n_cuts=None,
        draws=None,
        tune=None,
        chains=None,
        until=None,
        cores=None,
        random_state=None,
        progressbar=True,
    ):
        self.m = m
        self.link = link
        self.k = k
        self.alpha = alpha
        self.beta = beta
        self.split_prior = split_prior
        self.split_rules = split_rules
        self.n_cuts = n_cuts
        self.draws = draws
        self.tune = tune
        self.chains = chains
        self.until = until
        self.cores = cores
        self.random_state = random_state
        self.progressbar = progressbar

    def fit(self, X, y, sample_weight=None):
        """Build the model and sample it.

        Parameters
        ----------
        X : (n, p) array or frame
            Inputs; NaN, None and NA are missing cells.
        y : (n,) array
            Labels, of at least two classes.
        sample_weight : (n,) array, optional
            How often a row counts: its log-likelihood is multiplied by its weight.

        Returns
        -------
        BARTClassifier
            Itself.
        """
        X = self._begin(X)
        y = column_or_1d(plain_labels("y", y), warn=True)
        check_classification_targets(y)
        check_consistent_length(X, y)
        weights = weights_of(sample_weight, len(y))
        if weights is not None and not weights.all():
            X, y, weights = taken(X, weights > 0), y[weights > 0], weights[weights > 0]
        encoder = LabelEncoder().fit(y)
        if len(encoder.classes_) < 2:
            [only] = encoder.classes_.tolist()
            where = "" if sample_weight is None else " among rows with a positive sample_weight"
            raise ValueError(f"y has one class, {only!r}{where}: a classifier needs at least two.")
        self.classes_ = encoder.classes_
        return self._sample(X, y=encoder.transform(y), weights=weights)

    def predict_proba(self, X, *, draws=None, n_jobs=1):
        """Posterior mean of the probabilities of the classes.

        Parameters
        ----------
        X : (n, p) array or frame
            Rows.
        draws : int, optional
            How many draws are used, over all chains and evenly spaced. Default: all.
        n_jobs : int, default 1
            Threads; -1 for as many as there are processors.

        Returns
        -------
        (n, K) array
            Columns in the order of ``classes_``.
        """
        return np.concatenate([p.mean(axis=0) for p in self._probabilities(X, draws, n_jobs)])

    def predict(self, X, *, draws=None, n_jobs=1):
        """The most probable class at each row.

        Parameters
        ----------
        X : (n, p) array or frame
            Rows.
        draws, n_jobs
            As for `predict_proba`.

        Returns
        -------
        (n,) array
            Labels.
        """
        # says so where nothing is fitted
        most_probable = self.predict_proba(X, draws=draws, n_jobs=n_jobs).argmax(axis=1)
        return self.classes_[most_probable]

    def sample_proba(self, X):
        """Probabilities of the classes, draw by draw; their spread is the posterior uncertainty.

        Parameters
        ----------
        X : (n, p) array or frame
            Rows.

        Returns
        -------
        (draws, n, K) array
            Chain after chain.
        """
        return np.concatenate(list(self._probabilities(X)), axis=1)

    def _probabilities(self, X, draws=None, n_jobs=1):
        """(draws, n, K) of some rows at a time."""
        check_is_fitted(self, "idata_")
        for (f,) in self._at(self._predicting(draws), X, ["f"], n_jobs):
            if len(self.classes_) > 2:
                yield np.moveaxis(softmax(f, axis=1), 1, -1)
            else:
                p = ndtr(f) if self._of_fit("link") == "probit" else expit(f)
                yield np.stack([1.0 - p, p], axis=-1)

    def _law(self, model):
        f = model["f"]
        if len(self.classes_) > 2:
            return Response("y", "categorical", [pm.math.softmax(f, axis=0).T], 1)
        # pm.math.invprobit rounds the root of 2 to float32
        probit = 0.5 * pm.math.erfc(f * -np.sqrt(0.5))
        p = probit if self._of_fit("link") == "probit" else pm.math.sigmoid(f)
        return Response("y", "bernoulli", [p], 1)

    def _declare(self, table, rows):
        link = check_choice("link", self.link, LINKS)
        settings = (rows.get("weights"), link, check_positive("k", self.k))
        return classification(
            table, rows["y"], len(self.classes_), *settings, self._tree_settings(len(table))
        )
