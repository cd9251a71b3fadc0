"""Moments of trees and vectors in a Gaussian regression, summed over trees and a hyperparameter.

Rows are ``y = f + G v + e``. Given the trees, f is Gaussian with a known covariance; given a
hyperparameter, so is v.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp


class Around(NamedTuple):
    """What is around the trees, at one value of the hyperparameter."""

    number: float
    """The hyperparameter, or a function of it."""
    log_weight: float
    """Log of its prior, up to a constant."""
    G: np.ndarray
    """(n, K)"""
    covariance: np.ndarray
    """(K, K) of v."""
    mean: np.ndarray
    """(K,) of v."""


def moments(
    V: np.ndarray, log_weight: np.ndarray, centre, y: np.ndarray, sd, grid: Iterable[Around]
) -> tuple[np.ndarray, np.ndarray]:
    """Means and second moments of f, v and the hyperparameter, and the posterior of the trees.

    Parameters
    ----------
    V : (P, n, n)
        Covariance of f given each of P forests.
    log_weight : (P,)
        Their log prior.
    centre : (n,)
        Mean of f.
    sd : number or (n,)

    Returns
    -------
    first, second : (n + K + 1,) arrays
    """
    n, P = len(y), len(V)
    noise = np.diag(np.broadcast_to(sd, (n,)) ** 2.0)
    scores, firsts, seconds = [], [], []
    for one in grid:
        G, C, mean = one.G, one.covariance, np.broadcast_to(one.mean, (one.G.shape[1],))
        total = V + G @ C @ G.T + noise
        away = y - centre - G @ mean
        solved = np.linalg.solve(total, np.broadcast_to(away[:, None], (P, n, 1)))[:, :, 0]
        score = log_weight - 0.5 * (np.linalg.slogdet(total)[1] + solved @ away)
        scores.append(score + one.log_weight)
        joint_prior = np.concatenate([V, np.broadcast_to(C @ G.T, (P, *(G @ C).T.shape))], 1)
        moved = np.einsum("pij,pj->pi", joint_prior, solved)
        inverse = np.linalg.inv(total)
        of_v = np.broadcast_to(np.diag(C), (P, len(C)))
        before = np.concatenate([np.einsum("pii->pi", V), of_v], 1)
        variance = before - np.einsum("pij,pjk,pik->pi", joint_prior, inverse, joint_prior)
        location = np.concatenate([np.broadcast_to(centre, (n,)), mean]) + moved
        number = np.full((P, 1), one.number)
        firsts.append(np.concatenate([location, number], axis=1))
        seconds.append(np.concatenate([variance + location**2, number**2], axis=1))
    scores, firsts, seconds = map(np.concatenate, (scores, firsts, seconds))
    weights = np.exp(scores - logsumexp(scores))
    return weights @ firsts, weights @ seconds
