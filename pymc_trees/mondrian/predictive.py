"""Predictive mixtures of a forest of numbers, and the hyperparameters of their prior."""

from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, ndtr, ndtri
from sklearn.utils import check_random_state

from pymc_trees.arguments import check_choice, check_number
from pymc_trees.mondrian.exporting import of_numbers
from pymc_trees.mondrian.forest import MondrianForest, predictive_data
from pymc_trees.mondrian.inputs import (
    MAX_LABEL,
    as_kernel_input,
    check_finite,
    check_positive_finite,
    check_probabilities,
)
from pymc_trees.mondrian.kernels.predict import (
    Hierarchy,
    add_left_out,
    by_row,
    collect,
    draw,
    log_density,
    send_messages,
)
from pymc_trees.mondrian.kernels.predict import quantiles as quantile_kernel
from pymc_trees.mondrian.kernels.tree import ROOT, find_leaves
from pymc_trees.mondrian.trees import Ensemble

# ----------------- Hyperparameters of the hierarchical Gaussian prior, where they are not given


_LEAST_SHARE = 1.0 / 1001.0
"""Smallest share of the noise in the variance of y: the heuristic's, (1/K) / (1/2 + 1/K)."""
_LEAST_TIME = 4e-10
"""Smallest gamma_2 times lifetime: below it the prior variance is lost in rounding."""
_LEAST_SEARCHED = 4e-6
"""The same in the search: below it the variance is proportional to time, and rounding errors,
1e-16 over this number, grow."""
_MOST_ROWS, _MOST_TREES, _MOST_STEPS = 3000, 25, 60


class Prior(NamedTuple):
    """Settings of the predictions, as given."""

    posterior: str
    hyperparameters: str
    mean: float | None
    gamma_1: float | None
    gamma_2: float | None
    noise_variance: float | None


def check_spread(ensemble):
    """Refuse labels whose squared differences underflow."""
    tree, labels = ensemble.trees[0]
    root = tree.state[ROOT]
    _, y = ensemble.learnt_rows()
    if labels.squares[root] < np.finfo(float).tiny / _LEAST_SHARE and y.min() < y.max():
        raise ValueError(
            f"y lies between {y.min():g} and {y.max():g}: the squares of these differences "
            "underflow to 0. Rescale y."
        )


def heuristic(tree, labels, linear_dimension, mean, gamma_1, gamma_2, noise):
    """Settings of the prior of one tree; None is replaced by the heuristic (thesis, 6.3.2).

    The thesis has infinite lifetimes, with ``logistic(gamma_2 tau) = 1`` at leaves, and features
    that fill [0, 1]; here these are the lifetime and the sum of the ranges.
    """
    root = tree.state[ROOT]
    n = labels.n[root]
    if gamma_2 is None:
        gamma_2 = linear_dimension / (20.0 * np.log2(max(n, 2.0)))
        gamma_2 = max(gamma_2, _LEAST_TIME / tree.lifetime[0], np.finfo(float).tiny)
    reach = expit(gamma_2 * tree.lifetime[0]) - 0.5
    total = labels.squares[root] / n
    if gamma_1 is None:
        if reach < 0.1 * _LEAST_TIME:
            raise ValueError(
                f"gamma_2={gamma_2:g} is too small for trees with a lifetime of "
                f"{tree.lifetime[0]:g}: means would hardly differ, whatever gamma_1 is. Leave "
                "gamma_2 out, or give gamma_1 too."
            )
        if noise is None:
            gamma_1 = total / (reach + 1.0 / min(2000.0, 2.0 * n))
        else:
            gamma_1 = max(total - noise, 0.0)
            gamma_1 = gamma_1 / reach if gamma_1 > 0.0 else 0.0
    if noise is None:
        noise = gamma_1 / min(2000.0, 2.0 * n)
    mean = labels.mean[root] if mean is None else mean
    return Hierarchy(float(mean), float(gamma_1), float(gamma_2), float(noise))


def score(y, mean, sd):
    """Mean continuous ranked probability score of normal predictions (Gneiting 2005, eq. 5).

    The log score is dominated by the few rows predicted worst, and made intervals too wide.
    """
    z = (y - mean) / sd
    density = np.exp(-0.5 * z**2) / np.sqrt(2.0 * np.pi)
    return np.mean(sd * (z * (2.0 * ndtr(z) - 1.0) + 2.0 * density - 1.0 / np.sqrt(np.pi)))


def leave_one_out(ensemble, prior, run):
    """(gamma_2, noise) with the best `score` of predictions of each row from all others.

    ``run`` calls a function for several trees, maybe in threads. Only some of many rows and trees
    are used. gamma_1 follows: mean and sd far from the data are those of y.
    """
    (X, y), trees = ensemble.learnt_rows(), ensemble.trees[:_MOST_TREES]
    size, (tree, labels) = ensemble.linear_dimension(), trees[0]
    root = tree.state[ROOT]
    total = labels.squares[root] / labels.n[root]
    start = heuristic(tree, labels, size, None, None, None, None)
    if len(y) < 3 or total == 0.0:
        return start.gamma_2, start.noise
    least = max(_LEAST_SEARCHED / tree.lifetime[0] for tree, _ in ensemble.trees)
    some = np.linspace(0, len(y) - 1, min(len(y), _MOST_ROWS)).astype(int)
    X, y = X[some], y[some]

    def leaves_of(tree):
        out = np.empty(len(y), dtype=np.int64)
        find_leaves(tree, X, out)
        return out

    leaves = run(leaves_of, [(tree,) for tree, _ in trees])

    def settings(p):
        share = _LEAST_SHARE + (1.0 - _LEAST_SHARE) * expit(p[1])
        return max(start.gamma_2 * np.exp(p[0]), least), share * total

    def left_out(tree, labels, of, gamma_2, noise):
        moments = np.zeros((2, len(y)))
        given = (prior.mean, prior.gamma_1, gamma_2, noise)
        belief = send_messages(tree, labels, heuristic(tree, labels, size, *given))
        add_left_out(tree, labels, belief, y, of, *moments)
        return moments

    def objective(p):
        gamma_2, noise = settings(p)
        first, second = sum(
            run(left_out, [(*tree, of, gamma_2, noise) for tree, of in zip(trees, leaves)])
        ) / len(trees)
        return score(y, first, np.sqrt(np.maximum(second - first**2, 1e-12 * total)))

    p = np.array([1.5, -4.0])
    best = minimize(
        objective,
        p,
        method="Nelder-Mead",
        options={
            "maxfev": _MOST_STEPS,
            "xatol": 0.05,
            "fatol": 2e-4 * np.sqrt(total),
            "initial_simplex": [p, p + [1.5, 0.0], p + [0.0, 1.5]],
        },
    )
    return settings(best.x)


# -------------------------------- Predictive mixtures: belief propagation in trees, sums over them


CHUNK = 128
"""Number of rows whose mixtures are computed at a time: about 100 kB each for 100 deep trees."""


class MixtureForest(MondrianForest):
    """A forest with predictive mixtures: quantiles, densities and draws."""

    posterior: Any
    hyperparameters: Any
    mean: Any
    gamma_1: Any
    gamma_2: Any
    noise_variance: Any
    _checked: Any

    def _prior(self):
        """Checked settings of the predictions, which may change between predictions."""
        check_choice("posterior", self.posterior, ("exact", "fast"))
        check_choice("hyperparameters", self.hyperparameters, ("leave-one-out", "heuristic"))
        if self.mean is not None:
            check_finite("mean", self.mean, " or None", MAX_LABEL)
        for name in ("gamma_1", "gamma_2", "noise_variance"):
            if getattr(self, name) is not None:
                check_positive_finite(name, getattr(self, name), " or None")
        return Prior(*(getattr(self, name) for name in Prior._fields))

    def _believe(self, ensemble: Ensemble):
        """Belief of each tree: messages, or with the fast posterior only its prior."""
        prior, cached = self._prior(), ensemble.beliefs
        if cached is not None and cached[0] == prior:
            return cached[1]
        trees, work = ensemble.trees, ensemble.n_seen * len(ensemble.trees)
        check_spread(ensemble)
        gamma_2, noise = prior.gamma_2, prior.noise_variance
        exact = prior.posterior == "exact"
        if exact and prior.hyperparameters == "leave-one-out" and None in (gamma_2, noise):
            best = leave_one_out(ensemble, prior, lambda f, tasks: self._run(f, tasks, work))
            gamma_2 = best[0] if gamma_2 is None else gamma_2
            noise = best[1] if noise is None else noise
        given = (ensemble.linear_dimension(), prior.mean, prior.gamma_1, gamma_2, noise)
        beliefs = [heuristic(*tree, *given) for tree in trees]
        if exact:
            tasks = [(*tree, settings) for tree, settings in zip(trees, beliefs)]
            beliefs = self._run(send_messages, tasks, work)
        ensemble.beliefs = prior, beliefs
        return beliefs

    def predictor(self, draws=None):
        """Make the forest predict without scikit-learn and without a compiler.

        Parameters
        ----------
        draws : int, optional
            How many trees, evenly spaced. Default: all.

        Returns
        -------
        Predictor
            Its draws are the trees, its only function f is the mean of each of them, and the law
            of the response is a mixture of normals. It has no label, but the boxes of the nodes;
            that of a node with one row is the row.

        Raises
        ------
        NotFittedError
            The forest is not fitted.
        """
        ensemble = self._fitted
        made = of_numbers(ensemble, self._believe(ensemble), self.posterior == "exact")
        return made if draws is None else made.thinned(draws)

    def _over_mixtures(self, ensemble: Ensemble, X, function):
        """Call a function with each chunk of rows and their mixtures."""
        beliefs, trees = self._believe(ensemble), ensemble.trees
        chunks = [slice(a, a + CHUNK) for a in range(0, len(X), CHUNK)]

        def one(rows):
            of_trees = [collect(*tree, belief, X[rows]) for tree, belief in zip(trees, beliefs)]
            function(rows, *by_row(*zip(*of_trees)))

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
        ensemble, X = self._inputs(X)
        levels = check_probabilities("quantiles", quantiles)
        out = np.empty((len(X), levels.size))
        scores = ndtri(levels)
        self._over_mixtures(
            ensemble, X, lambda rows, *mixture: quantile_kernel(*mixture, levels, scores, out[rows])
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
        (ensemble, X), y = self._inputs(X), as_kernel_input(y)
        out = np.empty(len(X))
        self._over_mixtures(
            ensemble, X, lambda rows, *mixture: log_density(*mixture, y[rows], out[rows])
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
        ensemble, X = self._inputs(X)
        check_number("n_samples", n_samples, 1)
        out = np.empty((len(X), n_samples))
        seed = check_random_state(random_state).randint(2**31 - 1, size=4)

        def one(rows, *mixture):
            rng = np.random.default_rng([*seed, rows.start])  # the same in any thread
            draw(rng, *mixture, out[rows])

        self._over_mixtures(ensemble, X, one)
        return out

    def to_arviz(self, X, y=None, n_draws=1000, random_state=None):
        """Predictive draws and observed values for ArviZ's predictive checks.

        Parameters
        ----------
        X : (n, p) array
            Held-out rows.
        y : (n,) array, optional
            Their observed values.
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
