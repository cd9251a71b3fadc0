"""Predictive mixtures of a forest: what is believed in its trees, and sums over them."""

import numpy as np
from scipy.special import ndtri
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from pymc_trees.core.mondrian.belief import Messages, send_messages
from pymc_trees.core.mondrian.empirical import add_moments_empirical, collect_empirical
from pymc_trees.core.mondrian.mixture import add_moments, collect
from pymc_trees.core.mondrian.mixture_law import by_row, draw, log_density
from pymc_trees.core.mondrian.mixture_law import quantiles as quantile_kernel
from pymc_trees.estimators.checks import levels, whole_number
from pymc_trees.estimators.draws import predictive_data
from pymc_trees.estimators.forest import MondrianForest
from pymc_trees.estimators.hyperparameters import heuristic, leave_one_out
from pymc_trees.estimators.rows import plain

CHUNK = 128
"""Rows whose mixtures are held at a time: some 100 kB each for 100 deep trees."""


def components(tree, labels, belief, X):
    """Predictive mixtures of some rows, of one tree."""
    if isinstance(belief, Messages):
        return collect(tree, belief, X)
    return collect_empirical(tree, labels, belief.noise, X)


def add_moments_of(tree, labels, belief, X, centre, first, second):
    """Add mean and mean square about ``centre`` of some rows, of one tree."""
    if isinstance(belief, Messages):
        add_moments(tree, belief, X, centre, first, second)
    else:
        add_moments_empirical(tree, labels, belief.noise, X, centre, first, second)


class MixtureForest(MondrianForest):
    """What a forest of numbers says beyond mean and sd, read off its predictive mixtures."""

    def _believe(self):
        """Belief of each tree: messages, or only the settings they would be sent with."""
        if not self._beliefs:
            gamma_2, noise = self.gamma_2, self.noise_variance
            work = self._rows.n * len(self._trees)
            exact = self.posterior == "exact"
            searched = exact and self.hyperparameters == "leave-one-out"
            if searched and None in (gamma_2, noise):
                found = leave_one_out(self, lambda f, tasks: self._run(f, tasks, work))
                gamma_2 = found[0] if gamma_2 is None else gamma_2
                noise = found[1] if noise is None else noise
            given = (self._linear_dimension(), self.mean, self.gamma_1, gamma_2, noise)
            priors = [heuristic(*tree, *given) for tree in self._trees]
            if exact:
                tasks = [(*tree, prior) for tree, prior in zip(self._trees, priors)]
                self._beliefs[:] = self._run(send_messages, tasks, work)
            else:
                self._beliefs[:] = priors
        return self._beliefs

    def _over_mixtures(self, X, function):
        """Call a function with each chunk of rows and its mixtures."""
        beliefs = self._believe()
        trees = self._trees
        chunks = [slice(a, a + CHUNK) for a in range(0, len(X), CHUNK)]

        def one(rows):
            found = [components(*tree, belief, X[rows]) for tree, belief in zip(trees, beliefs)]
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
        wanted = levels("quantiles", quantiles)
        X = self._inputs(X)
        out = np.empty((len(X), wanted.size))
        scores = ndtri(wanted)
        self._over_mixtures(
            X, lambda rows, *mixture: quantile_kernel(*mixture, wanted, scores, out[rows])
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
        check_is_fitted(self, "n_samples_seen_")
        _, y = self._checked(X, y, reset=False)
        X, y = self._inputs(X), plain(y)
        out = np.empty(len(X))
        self._over_mixtures(X, lambda rows, *mixture: log_density(*mixture, y[rows], out[rows]))
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
        whole_number("n_samples", n_samples, 1)
        X = self._inputs(X)
        out = np.empty((len(X), n_samples))
        seed = check_random_state(random_state).randint(2**31 - 1, size=4)

        def one(rows, *mixture):
            rng = np.random.default_rng([*seed, rows.start])  # whichever thread draws them
            draw(rng, *mixture, out[rows])

        self._over_mixtures(X, one)
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
        observed = None if y is None else self._checked(X, y, reset=False)[1]
        return predictive_data(draws, observed, {})
