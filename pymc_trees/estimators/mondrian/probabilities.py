"""What a forest says of the classes of rows: their probabilities, and draws."""

from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets

from pymc_trees.arguments import check_number
from pymc_trees.core.mondrian.categories import (
    Smoothing,
    add_class_probabilities,
    make_categories,
)
from pymc_trees.estimators.mondrian.checks import finite, positive_and_finite
from pymc_trees.estimators.mondrian.classes import codes_of
from pymc_trees.estimators.mondrian.draws import predictive_data
from pymc_trees.estimators.mondrian.forest import MondrianForest
from pymc_trees.estimators.mondrian.inputs import checked_rows, unmasked

CONCENTRATION = {"shares": 0.3, "kneser-ney": 0.0}
"""The default of each way of smoothing."""


class ClassForest(MondrianForest):
    """A forest of classes, once it has learnt."""

    gamma: Any
    smoothing: Any
    concentration: Any

    def _smoothing(self, grown=None):
        """The settings of predictions, checked; gamma by the rows of a forest if it has none."""
        gamma, concentration = self.gamma, self.concentration
        if gamma is not None:
            gamma = positive_and_finite("gamma", gamma, " or None")
        elif grown is not None:
            gamma = 10 * grown.linear_dimension()
        if self.smoothing not in tuple(CONCENTRATION):
            raise ValueError(f"smoothing must be 'shares' or 'kneser-ney', got {self.smoothing!r}.")
        if concentration is None:
            concentration = CONCENTRATION[self.smoothing]
        elif finite("concentration", concentration, " or None") < 0:
            raise ValueError(
                f"concentration must be 0 or a positive number, or None, got {concentration!r}."
            )
        return Smoothing(self.smoothing == "kneser-ney", gamma, float(concentration))

    def _checked(self, X, y, reset=True):
        """Columns, rows and labels."""
        columns, X, y = checked_rows(self, X, unmasked("y", y), reset)
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
        grown, X = self._inputs(X)
        return self._probabilities(grown, X)

    def _probabilities(self, grown, X):
        smoothing = self._smoothing(grown)
        out, trees = np.zeros((len(X), len(grown.classes))), grown.trees

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
        grown, X = self._inputs(X)
        return grown.classes[self._probabilities(grown, X).argmax(axis=1)]

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
        grown = self._fitted
        _, _, y = self._checked(X, y, reset=False)
        codes = codes_of(y, grown.classes)
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X)[np.arange(len(codes)), codes])

    def _sample(self, X, n_samples, random_state):
        """The fitted forest; positions of drawn classes."""
        grown, X = self._inputs(X)
        check_number("n_samples", n_samples, 1)
        bounds = self._probabilities(grown, X).cumsum(axis=1)
        u = check_random_state(random_state).random_sample((len(bounds), n_samples))
        codes = (u[:, :, None] * bounds[:, -1, None, None] >= bounds[:, None, :]).sum(axis=2)
        return grown, codes.clip(max=len(grown.classes) - 1)

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
        grown, codes = self._sample(X, n_samples, random_state)
        return grown.classes[codes]

    def to_arviz(self, X, y=None, n_draws=1000, random_state=None):
        """Predictive draws, and what was observed, for ArviZ's predictive checks.

        Parameters
        ----------
        X : (n, p) array
            Rows that were held out.
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
        grown, draws = self._sample(X, n_draws, random_state)
        observed = None
        if y is not None:
            observed = codes_of(self._checked(X, y, reset=False)[2], grown.classes)
        return predictive_data(draws, observed, {"classes": [str(c) for c in grown.classes]})
