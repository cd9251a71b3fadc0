"""Predictive mixtures of a forest: what is believed in its trees, and sums over them."""

from typing import Any

import numpy as np
from scipy.special import ndtri
from sklearn.utils import check_random_state

from pymc_trees.arguments import check_choice, check_number
from pymc_trees.core.mondrian.predict.belief import send_messages
from pymc_trees.core.mondrian.predict.components import collect
from pymc_trees.core.mondrian.predict.mixture_distribution import by_row, draw, log_density
from pymc_trees.core.mondrian.predict.mixture_distribution import quantiles as quantile_kernel
from pymc_trees.estimators.mondrian.checks import (
    MOST_LABEL,
    finite,
    levels,
    positive_and_finite,
)
from pymc_trees.estimators.mondrian.draws import predictive_data
from pymc_trees.estimators.mondrian.forest import MondrianForest
from pymc_trees.estimators.mondrian.grown.trees import Grown
from pymc_trees.estimators.mondrian.hyperparameters import (
    Prior,
    check_spread,
    heuristic,
    leave_one_out,
)
from pymc_trees.estimators.mondrian.inputs import plain

CHUNK = 128
"""Rows whose mixtures are held at a time: some 100 kB each for 100 deep trees."""


class MixtureForest(MondrianForest):
    """What a forest of numbers says beyond mean and sd, read off its predictive mixtures."""

    posterior: Any
    hyperparameters: Any
    mean: Any
    gamma_1: Any
    gamma_2: Any
    noise_variance: Any
    _checked: Any

    def _prior(self):
        """Settings of the predictions, checked; they may change between two of them."""
        check_choice("posterior", self.posterior, ("exact", "fast"))
        check_choice("hyperparameters", self.hyperparameters, ("leave-one-out", "heuristic"))
        if self.mean is not None:
            finite("mean", self.mean, " or None", MOST_LABEL)
        for name in ("gamma_1", "gamma_2", "noise_variance"):
            if getattr(self, name) is not None:
                positive_and_finite(name, getattr(self, name), " or None")
        return Prior(*(getattr(self, name) for name in Prior._fields))

    def _believe(self, grown: Grown):
        """Belief of each tree: messages, or only the settings they would be sent with."""
        prior, known = self._prior(), grown.beliefs
        if known is not None and known[0] == prior:
            return known[1]
        trees, work = grown.trees, grown.n_seen * len(grown.trees)
        check_spread(grown)
        gamma_2, noise = prior.gamma_2, prior.noise_variance
        exact = prior.posterior == "exact"
        if exact and prior.hyperparameters == "leave-one-out" and None in (gamma_2, noise):
            found = leave_one_out(grown, prior, lambda f, tasks: self._run(f, tasks, work))
            gamma_2 = found[0] if gamma_2 is None else gamma_2
            noise = found[1] if noise is None else noise
        given = (grown.linear_dimension(), prior.mean, prior.gamma_1, gamma_2, noise)
        beliefs = [heuristic(*tree, *given) for tree in trees]
        if exact:
            tasks = [(*tree, settings) for tree, settings in zip(trees, beliefs)]
            beliefs = self._run(send_messages, tasks, work)
        grown.beliefs = prior, beliefs
        return beliefs

    def _over_mixtures(self, grown: Grown, X, function):
        """Call a function with each chunk of rows and its mixtures."""
        beliefs, trees = self._believe(grown), grown.trees
        chunks = [slice(a, a + CHUNK) for a in range(0, len(X), CHUNK)]

        def one(rows):
            found = [collect(*tree, belief, X[rows]) for tree, belief in zip(trees, beliefs)]
            function(rows, *by_row(*zip(*found)))

        self._run(one, [(rows,) for rows in chunks], len(X) * len(trees))

    def predict_quantiles(self, X, quantiles=(0.05, 0.5, 0.95)):
        """Quantiles of the predictive mixture.

        Parameters
        ----------
        X : (n, p) array
        quantiles : float or (q,) array, default (0.05, 0.5, 0.95)
            Probabilities strictly between 0 and 1.

        Returns
        -------
        (n, q) array, or (n,) for one probability
        """
        grown, X = self._inputs(X)
        wanted = levels("quantiles", quantiles)
        out = np.empty((len(X), wanted.size))
        scores = ndtri(wanted)
        self._over_mixtures(
            grown, X, lambda rows, *mixture: quantile_kernel(*mixture, wanted, scores, out[rows])
        )
        return out[:, 0] if np.ndim(quantiles) == 0 else out

    def log_predictive_density(self, X, y):
        """Log density of each row's y under its predictive mixture (thesis, (6.5)).

        Parameters
        ----------
        X : (n, p) array
        y : (n,) array

        Returns
        -------
        (n,) array
        """
        _, _, y = self._checked(X, y, self._fitted)
        (grown, X), y = self._inputs(X), plain(y)
        out = np.empty(len(X))
        self._over_mixtures(
            grown, X, lambda rows, *mixture: log_density(*mixture, y[rows], out[rows])
        )
        return out

    def sample_y(self, X, n_samples=1, random_state=None):
        """Draws of y at each row, independent of each other.

        Parameters
        ----------
        X : (n, p) array
        n_samples : int, default 1
        random_state : int, RandomState or None

        Returns
        -------
        (n, n_samples) array
        """
        grown, X = self._inputs(X)
        check_number("n_samples", n_samples, 1)
        out = np.empty((len(X), n_samples))
        seed = check_random_state(random_state).randint(2**31 - 1, size=4)

        def one(rows, *mixture):
            rng = np.random.default_rng([*seed, rows.start])  # whichever thread draws them
            draw(rng, *mixture, out[rows])

        self._over_mixtures(grown, X, one)
        return out

    def to_arviz(self, X, y=None, n_draws=1000, random_state=None):
        """Predictive draws, and what was observed, for ArviZ's predictive checks.

        Parameters
        ----------
        X : (n, p) array
            Rows that were held out.
        y : (n,) array, optional
            What was observed there.
        n_draws : int, default 1000
        random_state : int, RandomState or None

        Returns
        -------
        xarray.DataTree
            Groups ``posterior_predictive`` and ``observed_data``, both with ``y``, dimension
            ``row``: for ``az.plot_ppc_dist``, ``az.plot_ppc_pit`` and their like.
        """
        draws = self.sample_y(X, n_draws, random_state)
        observed = None if y is None else self._checked(X, y, self._fitted)[2]
        return predictive_data(draws, observed, {})
