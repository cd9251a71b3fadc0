"""Exact posterior of a sum of trees with normal leaves and known noise."""

import math
from collections import Counter
from itertools import combinations_with_replacement
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from .partitions import partition_prior, same_leaf


class TreeSumPosterior(NamedTuple):
    """Exact posterior of ``f = g_1 + ... + g_m`` at the training rows.

    log_evidence : float
    mean, sd : arrays (n,) of f
    covariance : array (n, n) of f, tree uncertainty included
    leaf_counts : dict total number of leaves -> probability
    pair_probabilities : array (n, n), same leaf in one tree, averaged over trees
    combinations : list of (partitions, weight)
        ``partitions`` is a tuple of m partitions in no particular order; the weight
        is that of the unordered combination (all orders together).
    """

    log_evidence: float
    mean: np.ndarray
    sd: np.ndarray
    covariance: np.ndarray
    leaf_counts: dict
    pair_probabilities: np.ndarray
    combinations: list


def tree_sum_posterior(
    n_trees, X, y, sigma, mean, sd, alpha, beta, split_prior=None, cuts=None, max_depth=None
):
    """Sum of ``n_trees`` trees, independent a priori, each with leaves N(mean, sd^2).

    Trees with equal partitions have equal likelihood, so only partitions matter.
    Given partitions with same-leaf indicators B_1..B_m, leaf values are independent
    normals, hence ``f ~ N(m mean 1, V)``, ``V = sd^2 (B_1 + ... + B_m)`` and
    ``y ~ N(m mean 1, V + S)``, ``S = diag(s_i^2)``.  By Gaussian conditioning, with
    ``K = V (V + S)^-1``,

        E[f | y] = m mean 1 + K (y - m mean 1),     Cov[f | y] = V - K V.

    An unordered combination stands for ``m! / prod(multiplicities!)`` ordered ones.
    Over combinations: ``Cov f = E[Cov] + E[(E_c f - E f)(E_c f - E f)']``.

    Parameters
    ----------
    sigma : float or array (n,), noise sd
    mean, sd : float, of one leaf value in one tree

    Returns
    -------
    TreeSumPosterior
    """
    y = np.asarray(y, dtype=float)
    n = len(y)
    noise = np.diag(np.broadcast_to(np.asarray(sigma, float) ** 2, (n,)))
    prior = partition_prior(X, alpha, beta, split_prior, cuts, max_depth)
    partitions = list(prior)
    log_prior = np.log([prior[part] for part in partitions])
    same = np.array([same_leaf(part, n) for part in partitions])
    centre = n_trees * mean

    picks = list(combinations_with_replacement(range(len(partitions)), n_trees))
    scores, means, covariances = [], [], []
    for start in range(0, len(picks), 5000):
        chunk = np.array(picks[start : start + 5000])
        V = sd**2 * same[chunk].sum(axis=1)
        total = V + noise
        solved = np.linalg.solve(total, np.broadcast_to((y - centre)[:, None], (len(chunk), n, 1)))
        log_det = np.linalg.slogdet(total)[1]
        quadratic = ((y - centre) * solved[:, :, 0]).sum(axis=1)
        orders = [
            math.log(math.factorial(n_trees) / math.prod(map(math.factorial, Counter(c).values())))
            for c in chunk.tolist()
        ]
        scores.append(
            log_prior[chunk].sum(axis=1)
            + np.array(orders)
            - 0.5 * (n * math.log(2 * math.pi) + log_det + quadratic)
        )
        means.append(centre + (V @ solved)[:, :, 0])
        covariances.append(V - V @ np.linalg.solve(total, V))
    scores, means, covariances = map(np.concatenate, (scores, means, covariances))

    log_evidence = float(logsumexp(scores))
    weights = np.exp(scores - log_evidence)
    f_mean = weights @ means
    away = means - f_mean
    covariance = np.tensordot(weights, covariances, axes=1) + (away * weights[:, None]).T @ away
    leaf_counts, pairs = {}, np.zeros((n, n))
    for pick, weight in zip(picks, weights):
        total_leaves = sum(len(partitions[k]) for k in pick)
        leaf_counts[total_leaves] = leaf_counts.get(total_leaves, 0.0) + float(weight)
        pairs += weight * same[list(pick)].mean(axis=0)
    return TreeSumPosterior(
        log_evidence,
        f_mean,
        np.sqrt(np.diag(covariance)),
        covariance,
        dict(sorted(leaf_counts.items())),
        pairs,
        [(tuple(partitions[k] for k in c), float(w)) for c, w in zip(picks, weights)],
    )


def two_tree_posterior(
    X, y, sigma, mean, sd, alpha, beta, split_prior=None, cuts=None, max_depth=None
):
    """`tree_sum_posterior` of two trees: ``y ~ N(2 mean, sd^2 (B1 + B2) + diag(s_i^2))``."""
    return tree_sum_posterior(2, X, y, sigma, mean, sd, alpha, beta, split_prior, cuts, max_depth)
