"""Posterior over listed trees and what follows from it, by direct averaging."""

import math

import numpy as np
from scipy.special import logsumexp

from .partitions import same_leaf


def posterior(trees, log_marginal):
    """Posterior of listed trees: prior times the product of leaf marginals.

    Parameters
    ----------
    trees : list of (log_prior, partition, ...)
    log_marginal : function rows (frozenset of int) -> float

    Returns
    -------
    weights : array (len(trees),), sums to one
    log_evidence : float, ``log sum_T prior(T) prod_leaves marginal(leaf)``
    """
    memo = {}
    scores = []
    for log_prior, partition, *_ in trees:
        for leaf in partition:
            if leaf not in memo:
                memo[leaf] = log_marginal(leaf)
        scores.append(log_prior + math.fsum(memo[leaf] for leaf in partition))
    log_evidence = float(logsumexp(scores))
    return np.exp(np.array(scores) - log_evidence), log_evidence


def distribution(trees, weights, key):
    """dict value -> probability of ``key(partition, info)`` (any hashable value)."""
    out = {}
    for (_, partition, info), weight in zip(trees, weights):
        value = key(partition, info)
        out[value] = out.get(value, 0.0) + float(weight)
    return out


def leaf_count_distribution(trees, weights):
    """dict number of leaves -> probability, in increasing order."""
    return dict(sorted(distribution(trees, weights, lambda part, info: len(part)).items()))


def depth_distribution(trees, weights):
    """dict depth of the deepest leaf -> probability, in increasing order."""
    return dict(sorted(distribution(trees, weights, lambda part, info: info.depth).items()))


def partition_probabilities(trees, weights):
    """dict partition -> probability."""
    return distribution(trees, weights, lambda part, info: part)


def structure_probabilities(trees, weights):
    """dict `TreeInfo.structure` -> probability (one entry per tree)."""
    return distribution(trees, weights, lambda part, info: info.structure)


def pair_probabilities(trees, weights, n):
    """(n, n) array: probability that rows i and j share a leaf."""
    out = np.zeros((n, n))
    for partition, weight in partition_probabilities(trees, weights).items():
        out += weight * same_leaf(partition, n)
    return out


def row_moments(trees, weights, leaf_moments, n):
    """Exact posterior mean and sd, at each row, of the value of the row's leaf.

    Law of total variance over trees, with ``m_T, v_T`` the mean and variance given
    the tree: ``mean = E m_T`` and ``var = E v_T + E (m_T - mean)^2``.

    Parameters
    ----------
    leaf_moments : function rows -> (mean, variance), scalars or (K,) arrays
        ``leaf.moments`` or ``leaf.precision_moments`` of a leaf model.

    Returns
    -------
    mean, sd : arrays (n,), or (n, K) for vector leaf values
    """
    memo, means, variances, mass = {}, [], [], []
    for partition, weight in partition_probabilities(trees, weights).items():
        mean_here, variance_here = [None] * n, [None] * n
        for leaf in partition:
            if leaf not in memo:
                memo[leaf] = leaf_moments(leaf)
            for i in leaf:
                mean_here[i], variance_here[i] = memo[leaf]
        means.append(mean_here)
        variances.append(variance_here)
        mass.append(weight)
    means, variances, mass = np.array(means, float), np.array(variances, float), np.array(mass)
    mean = np.tensordot(mass, means, axes=1)
    variance = np.tensordot(mass, variances + (means - mean) ** 2, axes=1)
    return mean, np.sqrt(variance)
