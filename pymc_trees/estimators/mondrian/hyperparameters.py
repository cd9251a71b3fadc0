"""Settings of the hierarchical Gaussian prior that the user leaves open."""

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, ndtr

from pymc_trees.core.mondrian.predict.belief import Hierarchy, send_messages
from pymc_trees.core.mondrian.predict.leave_one_out import add_left_out
from pymc_trees.core.mondrian.tree import ROOT, find_leaves

_LEAST_SHARE = 1.0 / 1001.0
"""Of the noise in the variance of y: that of the heuristic for many rows, (1/K) / (1/2 + 1/K)."""
_LEAST_TIME = 4e-10
"""Of gamma_2 times a lifetime: below it the prior variance used up by then is lost in rounding."""
_LEAST_SEARCHED = 4e-6
"""The same for the search: there already the variance grows in proportion to time, and rounding
errors of it, 1e-16 over this number, grow below."""
_MOST_ROWS, _MOST_TREES, _MOST_STEPS = 3000, 25, 60


class Prior(NamedTuple):
    """Settings of the predictions as the user gives them."""

    posterior: str
    hyperparameters: str
    mean: float | None
    gamma_1: float | None
    gamma_2: float | None
    noise_variance: float | None


def check_spread(grown):
    """Refuse labels that differ by so little that the squares of the differences vanish."""
    tree, labels = grown.trees[0]
    root = tree.state[ROOT]
    _, y = grown.known_rows()
    if labels.squares[root] < np.finfo(float).tiny / _LEAST_SHARE and y.min() < y.max():
        raise ValueError(
            f"y lies between {y.min():g} and {y.max():g}: the squares of these differences "
            "underflow to 0. Rescale y."
        )


def heuristic(tree, labels, linear_dimension, mean, gamma_1, gamma_2, noise):
    """Settings of the prior of one tree; None is filled in by the heuristic (thesis, 6.3.2).

    The thesis has leaves without end, where ``logistic(gamma_2 tau) = 1``, and features that fill
    [0, 1]; the lifetime and the sum of the ranges take their place here.
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
    """Continuous ranked probability score of normal predictions, averaged (Gneiting 2005, eq. 5).

    The log score, ruled by the few rows predicted worst, made intervals too wide for the others.
    """
    z = (y - mean) / sd
    density = np.exp(-0.5 * z**2) / np.sqrt(2.0 * np.pi)
    return np.mean(sd * (z * (2.0 * ndtr(z) - 1.0) + 2.0 * density - 1.0 / np.sqrt(np.pi)))


def leave_one_out(grown, prior, run):
    """(gamma_2, noise) whose predictions of each row from all others have the best `score`.

    ``run`` calls a function for several trees, maybe in threads. Rows and trees beyond some
    number are passed over. gamma_1 follows: mean and sd far from the data are those of y.
    """
    (X, y), trees = grown.known_rows(), grown.trees[:_MOST_TREES]
    size, (tree, labels) = grown.linear_dimension(), trees[0]
    root = tree.state[ROOT]
    total = labels.squares[root] / labels.n[root]
    start = heuristic(tree, labels, size, None, None, None, None)
    if len(y) < 3 or total == 0.0:
        return start.gamma_2, start.noise
    least = max(_LEAST_SEARCHED / tree.lifetime[0] for tree, _ in grown.trees)
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
    found = minimize(
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
    return settings(found.x)
